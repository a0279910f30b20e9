/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows in the order of the open nodes: each node's rows lie side by side, ascending by row.
 *
 * A level's split, with nodes A and B of which A is split and B stays a leaf:
 *
 *     slot        0 1 2 3 4 5 6 7 8
 *     row         1 2 4 5 8|0 3 6 7        rows of A, rows of B
 *     goes left   1 0 0 1 1|. . . .        one bit a slot, counted by RankBitVector
 *     row after   1 5 8|2 4                left child, right child; B's rows have their position
 *
 * The k-th left row of a node goes to slot begin + k, the k-th right one to begin + n_left + k, where
 * begin is the number of rows of the nodes before it that are split.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/binned_table.cuh"
#include "device/level/rank_bit_vector.cuh"
#include "device/level/rows_ref.cuh"
#include "device/level/split_strategy.cuh"
#include "device/runtime/stream_event.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
class RowPartitioner {
 public:
  /** @param min_by_row As for MakeHistogramStrategy(). */
  explicit RowPartitioner(RowIdx n_rows, RowIdx min_by_row = kMinByRow);

  /**
   * @brief Begin a tree: trained rows are in the root. Does not wait.
   * @param quantiser Makes whole units of gradients.
   */
  void Reset(TrainingRows const& rows, RowIdx n_left_out, Quantiser const& quantiser);

  [[nodiscard]] RowsRef Rows() const {
    return {rows_[current_].Data(),  current_units_,
            nodes_[current_].Data(), node_of_.Data(),
            units_of_row_.Data(),    h_nodes_.size() == 1 && h_nodes_.front().end == n_rows_};
  }
  /** @brief Give the row slots of the open nodes, by node. */
  [[nodiscard]] std::vector<RowRange> const& Nodes() const { return h_nodes_; }
  /** @brief Count the rows in open nodes. */
  [[nodiscard]] RowIdx NumSlots() const { return h_nodes_.empty() ? 0 : h_nodes_.back().end; }

  [[nodiscard]] RowIdx NumRows() const { return n_rows_; }

  /** @brief Give one bit a slot and one slot more, to be written: whether the row goes left. */
  [[nodiscard]] RankBitVectorRef GoesLeft() const { return goes_left_.Ref(); }
  /** @brief Tells whether rows of this level may go left or right in the order of the table: it is long,
   *         and most of them are in open nodes. */
  [[nodiscard]] bool MayGoByRow() const;
  /**
   * @brief Sends rows of this level left or right in the order of the table.
   * @return One bit a row of the table and one row more, to be written before FindLeft().
   */
  [[nodiscard]] std::uint32_t* GoByRow();
  /** @brief Writes GoesLeft() by the bits of GoByRow(). */
  void FindLeft();
  /** @brief Call SplitExchange::ShareSplits() for this level's rows. Collective. */
  void ShareSplits(SplitExchange* exchange, LevelResult* results);
  /** @brief Count the bits, which are written. Does not wait; Move() waits for the counts. */
  void CountLeft();

  /**
   * @brief Move rows to the children; those of leaves have their position. Where no later level is
   *        searched, rows stay where they are after GoByRow().
   */
  void Move(LevelSplits const& splits, NodeState* out_children);

  /**
   * @brief End a tree: rows of open nodes have their position, and so have rows left out.
   * @param tree     By OfOwnColumns().
   * @param sets     Of the tree's splits by categories, device memory.
   * @param exchange nullptr: all columns are here. Else collective.
   */
  void Finish(BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
              std::uint32_t const* sets = nullptr, SplitExchange* exchange = nullptr);

  [[nodiscard]] RowPositions& Positions() { return positions_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  /** @brief Move rows left out down the tree level by level, as columns are with several
   *         workers. */
  void RouteLeftOut(BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
                    std::uint32_t const* sets, SplitExchange* exchange);

  RowIdx n_rows_;
  RowIdx min_by_row_;
  bool goes_by_row_{false};  // this level
  RowIdx n_trained_{0};
  int current_{0};
  NodeIdx first_node_{kRoot};                    // of the open ones
  GradientUnits const* current_units_{nullptr};  // by slot; those of all rows are in their order
  std::vector<RowRange> h_nodes_;
  RowPositions positions_;
  DeviceBuffer<ShortLevelNode> node_of_{"nodes of rows"};
  DeviceBuffer<RowIdx> rows_[2]{DeviceBuffer<RowIdx>{"rows by node"},
                                DeviceBuffer<RowIdx>{"rows by node, next level"}};
  DeviceBuffer<GradientUnits> units_[2]{DeviceBuffer<GradientUnits>{"gradients by node"},
                                        DeviceBuffer<GradientUnits>{"gradients by node, next"}};
  DeviceBuffer<GradientUnits> units_of_row_{"gradients by row"};
  DeviceBuffer<RowRange> nodes_[2]{DeviceBuffer<RowRange>{"rows of nodes"},
                                   DeviceBuffer<RowRange>{"rows of nodes, next level"}};
  RankBitVector goes_left_{"rows that go left"};
  DeviceBuffer<std::uint32_t> left_of_row_{"rows that go left, by row"};
  PinnedBuffer<RowIdx> n_left_{"left rows of nodes"};
  StreamEvent counted_;  // n_left_ is there
  UploadBuffer<RowIdx> begins_{"rows before those of nodes"};
  DeviceBuffer<NodeSplit> tree_{"the tree, for rows left out"};
  CubScratch scratch_;
};
}  // namespace gpu_exact
