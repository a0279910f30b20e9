/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps entries sorted by column and value, whatever their nodes, and searches all on each level.
 * @see   Mitchell and Frank, PeerJ CS 3:e127: the interleaved levels
 */
#include <map>

#include "device/sort/column_finder.cuh"
#include "device/sort/row_router.cuh"
#include "device/sort/sort_strategy.cuh"

namespace gpu_exact {
namespace {
class SortStrategy : public SplitStrategy {
 public:
  explicit SortStrategy(CsrView const& table)
      : columns_{table},
        rows_{table.n_rows},
        finder_{columns_.Ref().entries, columns_.EntryOffsets()} {}

  [[nodiscard]] ColumnsRef Candidates() const override { return columns_.Ref(); }
  void BeginTree(TreeStart const& start, Level* root) override;
  void FindSplits(Level const& level, LevelResult* out) override;
  void Partition(Level const& level, LevelSplits const& splits, Level* children) override;
  void EndTree(Level const&, std::vector<NodeSplit> const&) override {}
  [[nodiscard]] RowPositions& Positions() override { return rows_.Positions(); }

 private:
  /** @brief List all entries of the columns that nodes are split on, as far as they are here. */
  [[nodiscard]] std::vector<RouteRange> SplitColumns(LevelSplits const& splits) const;

  ColumnStore columns_;
  RowRouter rows_;
  ColumnFinder finder_;
  SplitExchange* exchange_{nullptr};  // of the tree in progress
};

void SortStrategy::BeginTree(TreeStart const& start, Level*) {
  exchange_ = start.exchange;
  rows_.Reset(start.rows, start.quantiser);
}

void SortStrategy::FindSplits(Level const& level, LevelResult* out) {
  finder_.Find(level.ref, rows_.Ref(level.nodes), out);
  if (exchange_ != nullptr) {
    exchange_->ShareBest(out, level.nodes.n);
  }
}

std::vector<RouteRange> SortStrategy::SplitColumns(LevelSplits const& splits) const {
  std::map<FeatureIdx, ColumnIdx> columns;
  for (NodeSplit const& split : *splits.node_splits) {
    if (ColumnIdx const column = ColumnOf(split, exchange_); column != kRemoteColumn) {
      columns.emplace(split.feature, column);
    }
  }
  auto const& offsets = columns_.EntryOffsets();
  std::vector<RouteRange> ranges;
  for (auto const& [feature, column] : columns) {
    FeatureIdx const c = InOwnTable(column);
    ranges.push_back({{offsets[c], offsets[c + 1]}, feature});
  }
  return ranges;
}

void SortStrategy::Partition(Level const& level, LevelSplits const& splits, Level* children) {
  // Rows of all nodes, trained on or not, are found in the columns of the split features.
  rows_.Route(columns_.Ref().entries, this->SplitColumns(splits), level.nodes,
              splits.device_node_splits, finder_.FirstRight());
  rows_.RouteMissing(level.nodes, splits.device_node_splits, children->nodes, exchange_);
  rows_.SumNodes(children->nodes, children->states.Data());
}
}  // namespace

std::unique_ptr<SplitStrategy> MakeSortStrategy(CsrView const& table) {
  return std::make_unique<SortStrategy>(table);
}
}  // namespace gpu_exact
