/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Keeps rows in the order of the open nodes: each node's rows lie side by side, ascending by row.
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
#include "device/runtime/uploader.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Holds a split, and the column that it is on. */
struct OwnSplit {
  NodeSplit split;
  ColumnIdx column;
};

class RowPartitioner {
 public:
  /** @param min_by_row As for MakeHistogramStrategy(). */
  explicit RowPartitioner(RowIdx n_rows, RowIdx min_by_row = kMinByRow);

  /**
   * @brief Begin a tree: trained rows are in the root. Does not wait.
   * @param quantiser Makes whole units of gradients.
   * @param by_row    Rows may be sent left or right in the order of the table.
   * @param root      Gets its row ranges.
   */
  void Reset(TrainingRows const& rows, RowIdx n_left_out, Quantiser const& quantiser, bool by_row,
             Level* root);

  /** @brief Lend the rows of the level that they were moved to last. */
  [[nodiscard]] RowsRef Rows(Level const& level) const {
    auto const& ranges = level.row_ranges;
    return {rows_[current_].Data(),         current_units_,
            level.device_row_ranges.Data(), node_of_.Data(),
            units_of_row_.Data(),           ranges.size() == 1 && ranges.front().end == n_rows_};
  }
  [[nodiscard]] RowIdx NumRows() const { return n_rows_; }

  /** @brief Give one bit a slot and one slot more, to be written: whether the row goes left. */
  [[nodiscard]] RankBitVectorRef GoesLeft() const { return goes_left_.Ref(); }
  /** @brief Tell whether rows of a level are sent left or right in the order of the table: it is long,
   *         and most of them are in open nodes. */
  [[nodiscard]] bool GoesByRow(Level const& level) const;
  /** @brief Give one bit a row of the table and one row more, to be written where GoesByRow(), before
   *         FindLeft(). */
  [[nodiscard]] std::uint32_t* LeftOfRow() const { return left_of_row_.Data(); }
  /** @brief Write GoesLeft() by the bits of LeftOfRow(). */
  void FindLeft(Level const& level);
  /** @brief Count the bits, which are written. Does not wait; Move() waits for the counts. */
  void CountLeft(Level const& level);

  /**
   * @brief Move rows to the children; those of leaves have their position. Where the children are not
   *        searched, rows that GoesByRow() stay where they are.
   * @param children Gets row ranges; their sums are 0, and are added to.
   */
  void Move(Level const& level, LevelSplits const& splits, Level* children);

  /**
   * @brief End a tree: rows of the level's nodes have their position, and so have rows left out.
   * @param sets     Of the tree's splits by categories, device memory.
   * @param exchange nullptr: all columns are here. Else collective.
   */
  void Finish(Level const& level, BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
              std::uint32_t const* sets = nullptr, SplitExchange* exchange = nullptr);

  [[nodiscard]] RowPositions& Positions() { return positions_; }

 private:
  /** @brief Move rows left out down the tree level by level, as columns are with several
   *         workers. */
  void RouteLeftOut(BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
                    std::uint32_t const* sets, SplitExchange* exchange);

  RowIdx n_rows_;
  RowIdx min_by_row_;
  // of the tree in progress
  bool by_row_{false};
  RowIdx n_trained_{0};
  int current_{0};                               // which half the rows are in
  GradientUnits const* current_units_{nullptr};  // by slot; those of all rows are in their order
  RowPositions positions_;
  DeviceBuffer<ShortLevelNode> node_of_{"nodes of rows"};
  DeviceBuffer<RowIdx> rows_[2]{DeviceBuffer<RowIdx>{"rows by node"},
                                DeviceBuffer<RowIdx>{"rows by node, next level"}};
  DeviceBuffer<GradientUnits> units_[2]{DeviceBuffer<GradientUnits>{"gradients by node"},
                                        DeviceBuffer<GradientUnits>{"gradients by node, next"}};
  DeviceBuffer<GradientUnits> units_of_row_{"gradients by row"};
  RankBitVector goes_left_{"rows that go left"};
  DeviceBuffer<std::uint32_t> left_of_row_{"rows that go left, by row"};
  PinnedBuffer<RowIdx> n_left_{"left rows of nodes"};
  StreamEvent counted_;  // n_left_ is there
  Uploader begins_{"rows before those of nodes"};
  DeviceBuffer<OwnSplit> tree_{"the tree, for rows left out"};
};
}  // namespace gpu_exact
