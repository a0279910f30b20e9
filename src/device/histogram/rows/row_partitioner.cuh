/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps rows in the order of the live nodes: each node's rows lie side by side, in any order.
 *
 * A level's split, with nodes A and B of which A is split and B stays a leaf:
 *
 *     slot        0 1 2 3 4 5 6 7 8
 *     row         1 2 4 5 8|0 3 6 7        rows of A, rows of B
 *     goes left   1 0 0 1 1|. . . .
 *     row after   1 5 8|4 2                left child, right child; B's rows have their position
 *
 * One pass moves them, with one GPU and up to 256 nodes while the host decides which nodes are split: as if
 * all were that have a candidate. A second pass visits only those that stay leaves. Where B's rows were, a gap
 * stays until half of the slots are gaps. The left child is filled from the first slot of its parent, the right one from the last. A
 * block reserves room in both for its rows. Blocks begin in order, so that rows of a left child nearly
 * ascend, and those of a right one nearly descend: neighbours stay neighbours.
 *
 * Only then the value is known that is next to the candidate, and with it the threshold. Between
 * neighbouring floats it may send rows otherwise than the candidate has: these move once more.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/rows/split_sides.cuh"
#include "device/level/split_strategy.cuh"
#include "device/runtime/stream_event.cuh"
#include "device/runtime/uploader.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Holds a split, and the column that it is on. */
struct OwnSplit {
  NodeSplit split;
  ColumnIdx column;
};

/** @brief Tells the host what became of a node whose rows have moved. */
struct RoutedNode {
  RowIdx n_left;
  float threshold;
  bool moves_again;  // its threshold reroutes: they are to be moved once more
  bool stays;        // it had a candidate, and is a leaf: they are to get its position
};

/** @brief Lends the rows of a level to those who move them. */
struct LevelRowsRef {
  RowsRef rows;
  LevelNode n_nodes;
  NodeIdx first_node;
  RowIdx const*
      begins;  // where a node's rows begin when they have moved, nullptr: where they do now

  [[nodiscard]] __device__ RowIdx Begin(LevelNode b) const {
    return begins != nullptr ? begins[b] : rows.nodes[b].begin;
  }
};

class RowPartitioner {
 public:
  explicit RowPartitioner(RowIdx n_rows);

  /**
   * @brief Begin a tree: trained rows are in the root. Does not wait.
   * @param quantiser Makes whole units of gradients.
   * @param root      Gets its row ranges.
   */
  void Reset(TrainingRows const& rows, RowIdx n_left_out, Quantiser const& quantiser, Level* root);

  /** @brief Lend the rows of the level that they were moved to last. */
  [[nodiscard]] RowsRef Rows(Level const& level) const {
    auto const& ranges = level.row_ranges;
    return {rows_[current_].Data(),
            current_units_,
            level.device_row_ranges.Data(),
            has_numbers_ ? node_of_.Data() : nullptr,
            numbers_[current_].Data(),
            units_of_row_.Data(),
            ranges.size() == 1 && ranges.front().end == n_rows_};
  }
  [[nodiscard]] RowIdx NumRows() const { return n_rows_; }

  /** @brief Move rows to the sides of the nodes' best candidates, as if each of these were a split. Does not
   *         wait. */
  void Route(Level const& level, SplitSidesRef const& sides);
  /**
   * @brief Make the level of the children; rows of leaves have their position. Waits.
   * @param sides    As for Route().
   * @param splits   Get thresholds, unless workers have told who goes left.
   * @param children Gets row ranges and sums.
   */
  void Partition(Level const& level, SplitSidesRef const& sides, LevelSplits const& splits,
                 Level* children);

  /**
   * @brief End a tree: rows of the level's nodes have their position, and so have rows left out.
   * @param sets     Of the tree's splits by categories, device memory.
   * @param exchange nullptr: all columns are here. Else collective.
   */
  void Finish(Level const& level, BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
              std::uint32_t const* sets = nullptr, SplitExchange* exchange = nullptr);

  [[nodiscard]] RowPositions& Positions() { return positions_; }

 private:
  [[nodiscard]] LevelRowsRef Ref(Level const& level) const;
  /** @param splits As for the kernel. */
  void LaunchRoute(Level const& level, SplitSidesRef const& sides, NodeSplit const* splits);
  /** @brief Move rows left out down the tree level by level, as columns are with several
   *         workers. */
  void RouteLeftOut(BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
                    std::uint32_t const* sets, SplitExchange* exchange);

  RowIdx n_rows_;
  // of the tree in progress
  RowIdx n_trained_{0};
  int current_{0};                               // which half the rows of the level are in
  bool has_slots_{true};                         // their slots are written
  bool has_numbers_{true};                       // their nodes have numbers
  GradientUnits const* current_units_{nullptr};  // by slot; those of all rows are in their order
  RowPositions positions_;
  DeviceBuffer<ShortLevelNode> node_of_{"nodes of rows"};
  DeviceBuffer<RowIdx> rows_[2]{DeviceBuffer<RowIdx>{"rows by node"},
                                DeviceBuffer<RowIdx>{"rows by node, next level"}};
  DeviceBuffer<GradientUnits> units_[2]{DeviceBuffer<GradientUnits>{"gradients by node"},
                                        DeviceBuffer<GradientUnits>{"gradients by node, next"}};
  DeviceBuffer<GradientUnits> units_of_row_{"gradients by row"};
  DeviceBuffer<RowIdx> n_placed_{"trained rows"};
  // By node of the level, and by node of its children; a child's number is twice its parent's place in the
  // level, and one more if it is a right one: rows have it before it is known which nodes are split.
  DeviceBuffer<LevelNode> numbers_[2]{DeviceBuffer<LevelNode>{"numbers of nodes"},
                                      DeviceBuffer<LevelNode>{"numbers of nodes, next level"}};
  DeviceBuffer<NodeIdx> ids_{"ids of nodes, by number"};
  PinnedBuffer<RoutedNode> routed_{"nodes whose rows have moved"};
  StreamEvent is_routed_;  // routed_ is there
  // of the level whose rows move
  bool moves_{true};                      // their slots are asked for
  std::vector<RowIdx> begins_;            // where a node's rows are to begin
  RowIdx const* device_begins_{nullptr};  // nullptr: where they begin now
  Uploader begins_uploader_{"where rows of nodes begin"};
  DeviceBuffer<OwnSplit> tree_{"the tree, for rows left out"};
  DeviceBuffer<std::uint32_t> left_out_{"rows left out that go left"};  // with workers
};
}  // namespace gpu_exact
