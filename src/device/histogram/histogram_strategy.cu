/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Every column is searched by histograms. Candidates between bins are exact; of those inside
 *        a bin of several values only the ones that may still win are looked at. Rows move with
 *        their nodes, entries never do.
 */
#include "src/device/histogram/binned_table.cuh"
#include "src/device/histogram/histogram_finder.cuh"
#include "src/device/histogram/range_refiner.cuh"
#include "src/device/histogram/row_partitioner.cuh"
#include "src/device/histogram/split_resolver.cuh"
#include "src/device/split_strategy.cuh"

namespace gpu_exact {
namespace {
/** @brief What searches in one resolution. */
struct Searcher {
  Searcher(Resolution const& r, std::uint64_t max_bytes) : resolution{r}, finder{r.columns, max_bytes} {
    if (r.columns.HasRanges()) {
      refiner = std::make_unique<RangeRefiner>(r.columns);
    }
  }

  Resolution const& resolution;
  HistogramFinder finder;
  std::unique_ptr<RangeRefiner> refiner;  // nullptr: every bin is one value
};

class HistogramStrategy : public SplitStrategy {
 public:
  explicit HistogramStrategy(std::unique_ptr<BinnedTable> table, RowIdx n_rows)
      : table_{std::move(table)}, rows_{n_rows} {
    constexpr std::uint64_t kLeastBytes = std::uint64_t{256} << 20;
    constexpr std::uint64_t kBytesPerEntry = 2;
    for (auto const& r : table_->Resolutions()) {
      std::uint64_t const bytes = std::max(kLeastBytes, kBytesPerEntry * r->columns.NumElements());
      searchers_.push_back(std::make_unique<Searcher>(*r, bytes));
      double const n_columns = std::max<std::size_t>(1, r->columns.Columns().size());
      shapes_.push_back({static_cast<double>(r->columns.Ref().n_bins) / n_columns,
                         n_columns / std::max<std::size_t>(1, r->columns.Groups().size())});
    }
  }

  [[nodiscard]] ColumnsRef Columns() const override {
    return table_->Resolutions().front()->candidates;
  }
  [[nodiscard]] ColumnsRef Candidates() const override { return this->Columns(); }

  void Begin(TreeStart const& start) override {
    quantiser_ = start.quantiser;
    rows_.Reset(start.rows, start.n_left_out);
    parents_.clear();
    for (auto& s : searchers_) {
      s->finder.Reset();
    }
  }

  void FindSplits(LevelRef const& level, bool last_level, LevelResult* out) override {
    RowsRef const rows = rows_.Rows();
    resolver_.Begin(level.n_nodes);
    auto const families = this->ChooseResolutions();
    for (std::size_t i = 0; i < searchers_.size(); ++i) {
      this->Search(searchers_[i].get(), level, rows, {families[i], rows_.Nodes(), last_level});
    }
    resolver_.Resolve(level, table_->Ref(), rows, rows_.NumTrained(), rows_.GoesLeft(), out);
    rows_.CountLeft();
  }

  void MoveRows(LevelSplits const& splits, NodeState* out_children) override {
    parents_.clear();
    for (std::size_t b = 0; b < splits.orders.size(); ++b) {
      if (splits.orders[b].left != kNoNode) {
        parents_.push_back(static_cast<Bucket>(b));
      }
    }
    rows_.Move(quantiser_, splits, out_children);
  }

  void Finish(std::vector<SplitOrder> const& tree) override { rows_.Finish(table_->Ref(), tree); }

  [[nodiscard]] RowPositions& Positions() override { return rows_.Positions(); }
  [[nodiscard]] std::uint64_t Bytes() const override {
    std::uint64_t bytes = table_->Bytes() + rows_.Bytes() + resolver_.Bytes();
    for (auto const& s : searchers_) {
      bytes += s->finder.Bytes() + (s->refiner != nullptr ? s->refiner->Bytes() : 0);
    }
    return bytes;
  }

 private:
  /** @brief The families that each resolution searches. */
  [[nodiscard]] std::vector<std::vector<NodesToSearch::Family>> ChooseResolutions() const {
    std::vector<std::vector<NodesToSearch::Family>> families(searchers_.size());
    auto const& nodes = rows_.Nodes();
    auto n_rows = [&](Bucket b) { return nodes[b].end - nodes[b].begin; };
    if (parents_.empty()) {
      families.front().push_back({0, 1, 0});
    }
    for (Bucket i = 0; i < parents_.size(); ++i) {
      RowIdx const larger = std::max(n_rows(2 * i), n_rows(2 * i + 1));
      families[ResolutionFor(larger, rows_.NumRows(), shapes_)].push_back({2 * i, 2, parents_[i]});
    }
    return families;
  }

  void Search(Searcher* s, LevelRef level, RowsRef const& rows, NodesToSearch const& nodes) {
    level.columns = s->resolution.candidates;
    if (s->refiner == nullptr) {
      s->finder.Find(level, rows, nodes, {nullptr, nullptr, 0});
    } else {
      s->finder.Find(level, rows, nodes, s->refiner->List());
    }
    auto const& searched = s->finder.HostNodes();
    if (searched.empty()) {
      return;
    }
    while (s->refiner != nullptr &&
           !s->refiner->Refine(level, table_->Ref(), rows, searched, s->finder.Nodes())) {
      s->finder.FindAgain(level, rows, s->refiner->List());
    }
    resolver_.Read(level, s->resolution.bins.Ref(), s->finder.Nodes(),
                   static_cast<Bucket>(searched.size()),
                   s->refiner != nullptr ? s->refiner->Values() : nullptr);
  }

  std::unique_ptr<BinnedTable> table_;
  RowPartitioner rows_;
  SplitResolver resolver_;
  std::vector<std::unique_ptr<Searcher>> searchers_;  // by resolution, the finest first
  std::vector<ResolutionShape> shapes_;               // the same
  // of the tree in progress
  Quantiser quantiser_{};
  std::vector<Bucket> parents_;  // nodes that the last level split; none: the root is searched
};
}  // namespace

std::unique_ptr<SplitStrategy> MakeHistogramStrategy(CsrView const& table,
                                                     std::vector<std::uint32_t> const& max_bins) {
  return std::make_unique<HistogramStrategy>(std::make_unique<BinnedTable>(table, max_bins),
                                             table.n_rows);
}
}  // namespace gpu_exact
