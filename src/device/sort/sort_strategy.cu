/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Follows the paper: entries stay in column order on shallow levels, nodes interleaved; then
 *        they are sorted by node.
 * @see   Mitchell and Frank, PeerJ CS 3:e127
 */
#include <map>

#include "device/level/split_strategy.cuh"
#include "device/sort/entry_sorter.cuh"
#include "device/sort/feature_hints.cuh"
#include "device/sort/interleaved_finder.cuh"
#include "device/sort/row_router.cuh"
#include "device/sort/segmented_finder.cuh"
#include "device/sort/thresholds.cuh"

namespace gpu_exact {
namespace {
/** @brief Sort all entries as long as at least one in kLeastOpenPart is open. */
constexpr EntryIdx kLeastOpenPart = 4;

class SortStrategy : public SplitStrategy {
 public:
  explicit SortStrategy(CsrView const& table)
      : columns_{table}, hints_{columns_.Ref()}, rows_{table.n_rows}, sorter_{columns_.Ref()} {}

  [[nodiscard]] ColumnsRef Candidates() const override {
    ColumnsRef columns = columns_.Ref();
    columns.feature_hints = hints_.Data();
    return columns;
  }
  void BeginTree(TreeStart const& start, Level* root) override;
  void FindSplits(Level const& level, LevelResult* out) override;
  void Partition(Level const& level, LevelSplits const& splits, Level* children) override;
  void EndTree(Level const&, std::vector<NodeSplit> const&) override {}
  [[nodiscard]] RowPositions& Positions() override { return rows_.Positions(); }

 private:
  /** @brief Tell whether entries of the level's nodes lie in column order; else they lie by node. */
  [[nodiscard]] bool IsInterleaved(Level const& level) const {
    return level.depth < interleaved_levels_;
  }
  /** @brief List all entries of the columns that nodes are split on, as far as they are here. */
  [[nodiscard]] std::vector<RouteRange> SplitColumns(LevelSplits const& splits) const;
  /** @brief Bring entries to the children. @param level Its splits' rows have moved. */
  void PartitionEntries(Level const& level, LevelSplits const& splits, Level const& children);

  ColumnStore columns_;
  FeatureHints hints_;
  RowRouter rows_;
  EntrySorter sorter_;
  InterleavedFinder interleaved_;
  SegmentedFinder sorted_;
  // of the tree in progress
  SplitExchange* exchange_{nullptr};
  GradientPair const* gpair_{nullptr};
  std::int32_t interleaved_levels_{0};
  bool has_left_out_{false};  // rows that are routed but not trained on
};

void SortStrategy::BeginTree(TreeStart const& start, Level*) {
  exchange_ = start.exchange;
  gpair_ = start.rows.gpair;
  has_left_out_ = start.n_left_out != 0;
  interleaved_levels_ = start.param.interleaved_levels;
  if (interleaved_levels_ < 0) {
    // Each level kept interleaved saves time: 10,000 x 28, depth 6, on an H200 took 1.7 ms a tree at 0
    // levels and 0.6 ms at 7.
    interleaved_levels_ = kMaxInterleavedLevels;
  }
  if (interleaved_levels_ != 0) {
    interleaved_.BuildTiles(columns_.EntryOffsets());
  }
  rows_.Reset(start.rows);
  sorter_.Reset(gpair_, start.quantiser);
  if (interleaved_levels_ == 0 && has_left_out_) {
    sorter_.SortByNode(rows_.RowKeys(), 1, columns_.Ref().n_entries);
  }
}

void SortStrategy::FindSplits(Level const& level, LevelResult* out) {
  if (this->IsInterleaved(level)) {
    interleaved_.Find(level.ref, sorter_.Entries(), rows_.RowKeys());
    FindThresholds(level.ref, interleaved_.Ref(), out);
  } else {
    sorted_.Find(level.ref, sorter_.Entries(), sorter_.Ranges());
    FindThresholds(level.ref, sorter_.Entries(), sorter_.Ranges(), out);
  }
  if (exchange_ != nullptr) {
    exchange_->ShareBest(out, level.nodes.n);
  }
}

std::vector<RouteRange> SortStrategy::SplitColumns(LevelSplits const& splits) const {
  std::map<FeatureIdx, ColumnIdx> columns;
  for (NodeSplit const& split : splits.node_splits) {
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
  if (this->IsInterleaved(level) || has_left_out_) {
    // Rows of all nodes, trained on or not, are found in the columns of the split features.
    rows_.Route(columns_.Ref().entries, this->SplitColumns(splits), level.nodes,
                splits.device_node_splits);
  } else {
    std::vector<RouteRange> winners;
    for (std::size_t i = 0; i < splits.node_splits.size(); ++i) {
      if (splits.node_splits[i].left != kNoNode) {
        winners.push_back({splits.results[i].winner, splits.node_splits[i].feature});
      }
    }
    rows_.Route(sorter_.Entries().entries, winners, level.nodes, splits.device_node_splits);
  }
  rows_.RouteMissing(level.nodes, splits.device_node_splits, children->nodes, exchange_);
  rows_.SumNodes(gpair_, level.ref.quantiser, children->nodes, children->states.Data());
  if (children->is_searched && !this->IsInterleaved(*children)) {
    this->PartitionEntries(level, splits, *children);
  }
}

void SortStrategy::PartitionEntries(Level const& level, LevelSplits const& splits,
                                    Level const& children) {
  EntryIdx const n_entries = columns_.Ref().n_entries;
  EntryIdx n_open{n_entries};
  std::vector<EntryRange> split_nodes;  // where their entries lie
  if (!this->IsInterleaved(level)) {
    n_open = 0;
    for (LevelNode const parent : children.parents) {
      split_nodes.push_back(splits.results[parent].entries);
      n_open += split_nodes.back().Size();
    }
  }
  if (children.nodes.n > kMaxKeyedNodes || n_open < n_entries / kLeastOpenPart) {
    sorter_.SortByChild(split_nodes, rows_.RowKeys());
  } else {
    sorter_.SortByNode(rows_.RowKeys(), children.nodes.n, n_open);
  }
}
}  // namespace

std::unique_ptr<SplitStrategy> MakeSortStrategy(CsrView const& table) {
  return std::make_unique<SortStrategy>(table);
}
}  // namespace gpu_exact
