/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What the level loop asks of a strategy. A strategy decides how the table lies in device
 *        memory and how it follows the rows; gains, splits and the tree are the same for all.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/level/level_ref.cuh"
#include "device/level/row_positions.cuh"
#include "device/level/training_rows.cuh"
#include "device/workers/split_exchange.cuh"
#include "plan/memory_plan.h"

namespace gpu_exact {
/** @brief A tree about to grow. */
struct TreeStart {
  GrowParam const& param;
  TrainingRows rows;
  RowIdx n_left_out;
  Quantiser quantiser;
  SplitExchange* exchange{nullptr};  // with the workers that have the other columns, if any
};

/** @brief The splits of one level; their features are those of the whole table. */
struct LevelSplits {
  std::vector<NodeSplit> const& node_splits;  // of its nodes, by node
  std::vector<LevelResult> const& results;    // the same
  NodeSplit const* device_node_splits;
  NodeIdx first_node;
  NodeIdx first_child;
  LevelNode n_children;
  bool is_last;  // no later level is searched
};

class BinnedTable;

class SplitStrategy {
 public:
  virtual ~SplitStrategy() = default;

  /** @brief Entries and distinct values of the features. */
  [[nodiscard]] virtual ColumnsRef Columns() const = 0;
  /** @brief Columns whose value ids number the candidates: LevelRef::columns. */
  [[nodiscard]] virtual ColumnsRef Candidates() const = 0;

  /** @brief All rows are in the root. */
  virtual void Begin(TreeStart const& start) = 0;
  /**
   * @brief Bring entries to the open nodes, offer every candidate, write the best splits: of all
   *        workers, where there are several.
   * @param last_level No later level will be searched.
   * @param out        Device memory or page-locked memory, shape: (level.n_nodes); with several
   *                   workers device memory
   */
  virtual void FindSplits(LevelRef const& level, bool last_level, LevelResult* out) = 0;
  /** @brief Waits for page-locked memory that FindSplits() writes; with one worker. The rest of what it
   *         began may run on, while the host decides what is split. */
  virtual void AwaitSplits() { Synchronize(); }
  /** @brief Move rows to the children. @param out_children Zeros, to which sums are added. */
  virtual void MoveRows(LevelSplits const& splits, NodeState* out_children) = 0;
  /** @brief All rows have their position. @param tree A split or a leaf for each node. */
  virtual void Finish(std::vector<NodeSplit> const& tree) = 0;
  /** @brief Which categories a node of the finished tree sends right, as TreeNode::categories. The stream
   *         was waited for. */
  [[nodiscard]] virtual std::vector<std::uint32_t> Categories(NodeIdx) const { return {}; }

  [[nodiscard]] virtual RowPositions& Positions() = 0;
  /** @brief Device memory held, bytes. */
  [[nodiscard]] virtual std::uint64_t Bytes() const = 0;

  /**
   * @brief Since Begin(): of the entries of nodes that were searched by bins, about so many lay in
   *        ranges that were looked into, about. -1: no node was searched in ranges.
   */
  [[nodiscard]] virtual double RefinedShare() const { return -1.0; }
};

/**
 * @brief The strategy to use, never kAuto.
 * @param max_bins That a block of the device has room for; kMaxGroupBins where several devices agree.
 * @throw std::invalid_argument where the table is too large for the one that was asked for.
 */
[[nodiscard]] Strategy ChooseStrategy(Strategy strategy, CsrView const& table,
                                      std::uint32_t max_bins);

/**
 * @brief The paper's way: interleaved levels, then entries sorted by node.
 * @param gathered_rows Up to so many rows gradients are gathered, beyond entries carry them.
 */
[[nodiscard]] std::unique_ptr<SplitStrategy> MakeSortStrategy(CsrView const& table,
                                                              RowIdx gathered_rows = kGatheredRows);

/**
 * @brief Strategy kHistogram: of so many rows those of all nodes go side by side where they are sent
 *        left or right, 2^20. Of fewer, what kernels cost by themselves is more.
 */
inline constexpr RowIdx kMinByRow = RowIdx{1} << 20;

/**
 * @brief Histograms that bound the gain; only ranges of values that may win are searched exactly.
 * @param memory     What the table keeps, and where.
 * @param max_sorted Nodes of more rows are not sorted; at most, and by default, what a block can.
 * @param min_by_row Rows of a table that are sent left or right in their own order.
 */
[[nodiscard]] std::unique_ptr<SplitStrategy> MakeHistogramStrategy(
    std::unique_ptr<BinnedTable> table, HistogramMemory const& memory, RowIdx max_sorted = ~0u,
    RowIdx min_by_row = kMinByRow);

/**
 * @brief A builder of trees by a strategy, on the device that holds its table.
 * @param n_rows Of the whole table.
 * @param stats  What is known before the first tree.
 * @param share  What the strategy holds of the table; nullptr: all of it.
 */
[[nodiscard]] std::unique_ptr<TreeBuilder> MakeDeviceBuilder(
    int ordinal, RowIdx n_rows, std::unique_ptr<SplitStrategy> strategy,
    TreeStats const& stats = {}, std::unique_ptr<ColumnPartition> share = nullptr);
}  // namespace gpu_exact
