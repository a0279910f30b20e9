/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows are kept in the order of the nodes. Columns of few values are searched by exact
 *        histograms, the entries of others move with their rows and are searched on the way.
 */
#include <optional>

#include "src/device/partition/feature_table.cuh"
#include "src/device/partition/fused_finder.cuh"
#include "src/device/partition/histogram_finder.cuh"
#include "src/device/partition/row_order.cuh"
#include "src/device/partition/winner_resolver.cuh"
#include "src/device/split_strategy.cuh"

namespace gpu_exact {
namespace {
class PartitionStrategy : public SplitStrategy {
 public:
  explicit PartitionStrategy(CsrView const& table) : table_{table}, rows_{table.n_rows} {
    if (table_.Sorted() != nullptr) {
      fused_.emplace(*table_.Sorted());
    }
    if (table_.Binned() != nullptr) {
      histograms_.emplace(*table_.Binned());
    }
  }

  [[nodiscard]] ColumnsRef Columns() const override { return table_.Counts(); }
  [[nodiscard]] ColumnsRef Candidates() const override { return table_.Places(); }

  void Begin(TreeStart const& start) override {
    quantiser_ = start.quantiser;
    rows_.Reset(start.rows, start.n_left_out);
    row_gpair_ = start.rows.gpair;
    parents_.clear();
  }

  void FindSplits(LevelRef const& level, bool last_level, LevelResult* out) override {
    RowsRef rows = rows_.Rows();
    SortedEntriesRef entries{};
    if (fused_.has_value()) {
      if (parents_.empty()) {
        fused_->FindRoot(level, row_gpair_, rows_.Sides(), rows.nodes, level.columns.n_rows,
                         last_level);
      } else {
        fused_->Find(level, parents_, rows_.Sides(), rows.nodes, last_level);
      }
      entries = {fused_->Places(), fused_->Segments()};
    }
    if (histograms_.has_value()) {
      histograms_->Find(level, rows, rows_.NumTrained(), this->ParentBuckets());
    }
    resolver_.Resolve(level, table_.Ref(), rows, rows_.NumTrained(), entries, out);
  }

  void MoveRows(LevelSplits const& splits, NodeState* out_children) override {
    parents_.clear();
    for (std::size_t b = 0; b < splits.orders.size(); ++b) {
      if (splits.orders[b].left != kNoNode) {
        EntryRange places = splits.results[b].entries;
        parents_.push_back({{static_cast<RowIdx>(places.begin), static_cast<RowIdx>(places.end)},
                            static_cast<Bucket>(b),
                            static_cast<Bucket>(parents_.size()),
                            0});
      }
    }
    rows_.Split(table_.Ref(), resolver_.SortedWinners(), quantiser_, splits, out_children);
  }

  void Finish(std::vector<SplitOrder> const& tree) override { rows_.Finish(table_.Ref(), tree); }

  [[nodiscard]] RowPositions& Positions() override { return rows_.Positions(); }
  [[nodiscard]] std::uint64_t Bytes() const override {
    return table_.Bytes() + rows_.Bytes() + resolver_.Bytes() +
           (fused_.has_value() ? fused_->Bytes() : 0) +
           (histograms_.has_value() ? histograms_->Bytes() : 0);
  }

 private:
  /** @brief Of the nodes that the last level split. */
  [[nodiscard]] std::vector<Bucket> ParentBuckets() const {
    std::vector<Bucket> buckets;
    for (SplitParent const& p : parents_) {
      buckets.push_back(p.bucket);
    }
    return buckets;
  }

  FeatureTable table_;
  RowOrder rows_;
  std::optional<FusedFinder> fused_;
  std::optional<HistogramFinder> histograms_;
  WinnerResolver resolver_;
  // of the tree in progress
  Quantiser quantiser_{};
  GradientPair const* row_gpair_{nullptr};
  std::vector<SplitParent> parents_;  // nodes that the last level split; none: the root is searched
};
}  // namespace

std::unique_ptr<SplitStrategy> MakePartitionStrategy(CsrView const& table) {
  return std::make_unique<PartitionStrategy>(table);
}
}  // namespace gpu_exact
