/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches every column by histograms. Candidates between bins are exact; of those inside
 *        a bin of several values only the ones that may still win are looked at. Rows move with
 *        their nodes, entries never do.
 */
#include <algorithm>
#include <utility>

#include "device/histogram/build/histogram_finder.cuh"
#include "device/histogram/build/histogram_pool.cuh"
#include "device/histogram/build/wide_category_finder.cuh"
#include "device/histogram/category_sets.cuh"
#include "device/histogram/histogram_strategy.cuh"
#include "device/histogram/ranges/range_refiner.cuh"
#include "device/histogram/rows/row_partitioner.cuh"
#include "device/histogram/rows/threshold_finder.cuh"
#include "device/histogram/small_nodes/node_category_finder.cuh"
#include "device/histogram/small_nodes/node_sort_finder.cuh"

namespace gpu_exact {
namespace {
/** @brief Searches in one resolution. */
struct ResolutionSearch {
  ResolutionSearch(Resolution const& r, std::vector<CategoricalFeature> const& categorical,
                   HistogramMemory const& memory, HistogramPool* pool, RefineRoom* room)
      : resolution{r}, finder{*r.matrix, pool, {}, categorical} {
    if (r.matrix->HasRanges()) {
      refiner = std::make_unique<RangeRefiner>(
          *r.matrix, room, memory.OpenEntries(r.matrix->NumEntries()), memory.CertainRanges());
    }
  }

  Resolution const& resolution;
  HistogramFinder finder;
  std::unique_ptr<RangeRefiner> refiner;  // nullptr: every bin is one value
};

EntryIdx NumEntries(BinnedTable const& table) {
  return table.Resolutions().front()->matrix->NumEntries();
}

/** @brief Count the bins of the largest histogram, in any resolution. */
std::uint64_t LargestHistogram(BinnedTable const& table) {
  std::uint64_t most{0};
  for (auto const& r : table.Resolutions()) {
    most = std::max(most, r->matrix->Ref().n_bins);
  }
  return most;
}

class HistogramStrategy : public SplitStrategy {
 public:
  HistogramStrategy(std::unique_ptr<BinnedTable> table, RowIdx max_sorted,
                    HistogramMemory const& memory)
      : table_{std::move(table)},
        rows_{table_->NumRows()},
        sorting_{*table_},
        thresholds_{table_->Ref()},
        sorting_categories_{*table_},
        wide_{*table_, memory.rows_by_category},
        sets_{table_->Categorical()},
        pool_{memory.FirstHistogramBytes(NumEntries(*table_)),
              memory.HistogramBytes(NumEntries(*table_)), LargestHistogram(*table_)},
        open_history_{table_->Resolutions().size()},
        spare_{memory.spare} {
    ways_ = {table_->NumRows(),
             static_cast<double>(sorting_.NumColumns()),
             {},
             // Sorting reads every value of a node, or its bin: not over the bus.
             table_->Ref().values_of_host || memory.bins_at == Memory::kHost
                 ? 0
                 : std::min(max_sorted,
                            sets_.Any() ? NodeCategoryFinder::kMaxRows : NodeSortFinder::kMaxRows)};
    for (auto const& r : table_->Resolutions()) {
      searches_.push_back(
          std::make_unique<ResolutionSearch>(*r, table_->Categorical(), memory, &pool_, &room_));
      ResolutionShape shape = ShapeOf(r->matrix->Layout(), r->scans);
      shape.rows_of_host = memory.rows_at == Memory::kHost;
      shape.values_of_host = table_->Ref().values_of_host;
      ways_.resolutions.push_back(shape);
    }
  }

  [[nodiscard]] ColumnsRef Candidates() const override {
    return table_->Resolutions().front()->candidates;
  }

  void BeginTree(TreeStart const& start, Level* root) override {
    if (exchange_ == nullptr && start.exchange != nullptr) {  // the first tree
      sets_.AddRemoteFeatures(*start.exchange);
    }
    exchange_ = start.exchange;
    sets_.BeginTree(start.param, table_->NumRows(), spare_);
    rows_.Reset(start.rows, start.n_left_out, start.quantiser, root);
    n_seen_ = n_refined_ = 0.0;
    open_history_.Decay();
    pool_.Reset();
    for (auto& s : searches_) {
      s->finder.Reset();
    }
  }

  void FindSplits(Level const& level, LevelResult* out) override {
    RowsRef const rows = rows_.Rows(level);
    LevelSetsRef const sets = sets_.BeginLevel(level);
    wide_.BeginLevel();
    n_expected_.assign(searches_.size(), 0.0);
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      ways_.resolutions[i].open_factor = open_history_.Factor(level.depth, i);
    }
    std::vector<NodesToSearch> const by_way = this->ChooseSearch(level);
    std::vector<SearchedNode> const sorted = by_way.back().List();
    auto const n_sorted = static_cast<std::uint32_t>(sorted.size());
    if (n_sorted != 0) {
      sorting_.Find(level.ref, rows, sorted);
      sorting_categories_.Find(level.ref, rows, sorting_.Nodes(), n_sorted, sets);
      wide_.Find(level.ref, rows, sorted, sets);
    }
    // Every finder gives back histograms before the first one takes some.
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      searches_[i]->finder.Begin(by_way[i]);
    }
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      this->SearchBins(i, level.ref, rows, by_way[i], sets);
    }
    if (exchange_ != nullptr) {
      exchange_->ShareBestGains(level.ref.best, level.nodes.n);
    }
    if (n_sorted != 0) {
      thresholds_.Read(level.ref, table_->Ref().finest, sorting_.Nodes(), n_sorted,
                       {sorting_.Found(), sorting_.NumColumns()}, out);
    }
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      this->SearchRanges(i, level, rows, by_way[i], out);
    }
    sides_ = thresholds_.Sides(sets);
    if (exchange_ != nullptr) {
      LevelNode const n = level.nodes.n;
      thresholds_.Resolve(sides_, rows, n, level.NumSlots(), exchange_->LeftRows(n), out);
      sides_.left_rows = exchange_->ShareBest(out, n, true);
    }
    found_.Record();
    rows_.Route(level, sides_);  // while the host decides what is split
  }

  void AwaitSplits() override { found_.Await(); }

  /** @brief Record what the level had open beside what was expected. */
  void EndSearch(Level const& level) override {
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      if (double const expected = n_expected_[i]; expected != 0.0) {
        auto const n_open = static_cast<double>(searches_[i]->refiner->NumOpenEntries());
        if (expected >= 1.0) {
          open_history_.Record(level.depth, i, n_open, expected);
        }
        n_refined_ += n_open;
      }
    }
  }

  void Partition(Level const& level, LevelSplits const& splits, Level* children) override {
    rows_.Partition(level, sides_, splits, children);
  }

  void EndTree(Level const& level, std::vector<NodeSplit> const& tree) override {
    std::vector<NodeSplit> splits = tree;
    sets_.Gather(&splits, exchange_);
    rows_.Finish(level, table_->Ref(), splits, sets_.Words(), exchange_);
  }

  [[nodiscard]] std::vector<std::uint32_t> Categories(NodeIdx nidx) const override {
    return sets_.Of(nidx);
  }

  [[nodiscard]] double RefinedShare() const override {
    return n_seen_ == 0.0 ? -1.0 : std::min(n_refined_ / n_seen_, 1.0);
  }
  [[nodiscard]] RowPositions& Positions() override { return rows_.Positions(); }

 private:
  /** @brief Choose the nodes to search by histograms of each resolution, and last those to sort. */
  [[nodiscard]] std::vector<NodesToSearch> ChooseSearch(Level const& level) const {
    auto n_rows = [&](LevelNode b) { return level.row_ranges[b].Size(); };
    std::vector<Family> families;
    if (level.parents.empty()) {
      families.push_back({0, 1, 0, {n_rows(0), 0}});
    }
    for (LevelNode i = 0; i < level.parents.size(); ++i) {
      LevelNode const parent = level.parents[i];
      auto const kept = std::find_if(searches_.cbegin(), searches_.cend(),
                                     [&](auto const& s) { return s->finder.HasKept(parent); });
      std::size_t const parent_way =
          kept == searches_.cend() ? Family::kNone : kept - searches_.cbegin();
      families.push_back({2 * i, 2, parent, {n_rows(2 * i), n_rows(2 * i + 1)}, parent_way});
    }
    std::vector<std::size_t> const ways = ChooseSearchWays(families, ways_);
    std::vector<NodesToSearch> by_way(searches_.size() + 1, {{}, level.row_ranges, level.is_last});
    for (std::size_t i = 0; i < families.size(); ++i) {
      by_way[ways[i]].families.push_back(families[i]);
    }
    return by_way;
  }

  void SearchBins(std::size_t i, LevelRef lv, RowsRef const& rows, NodesToSearch const& nodes,
                  LevelSetsRef const& sets) {
    ResolutionSearch* s = searches_[i].get();
    lv.columns = s->resolution.candidates;
    if (wide_.Any()) {
      wide_.Find(lv, rows, nodes.List(), sets);
    }
    if (s->refiner == nullptr || nodes.NumNodes() == 0) {
      s->finder.Find(lv, rows, nodes, {nullptr, nullptr, 0}, sets);
    } else {
      s->finder.Find(lv, rows, nodes, s->refiner->List(nodes.NumNodes()), sets);
    }
  }

  void SearchRanges(std::size_t i, Level const& level, RowsRef const& rows,
                    NodesToSearch const& nodes, LevelResult* out) {
    ResolutionSearch* s = searches_[i].get();
    LevelRef lv = level.ref;
    lv.columns = s->resolution.candidates;
    if (s->finder.NumNodes() == 0) {
      return;
    }
    if (s->refiner != nullptr) {
      while (s->refiner->Refine(lv, table_->Ref(), rows, &s->finder, ways_.resolutions[i],
                                level.depth) == RangeRefiner::Refined::kListAgain) {
        s->finder.FindAgain(lv, rows, s->refiner->List(s->finder.NumNodes()));
      }
      this->ExpectOpen(i, nodes);
    }
    thresholds_.Read(lv, s->resolution.matrix->Ref(), s->finder.Nodes(),
                     static_cast<LevelNode>(s->finder.NumNodes()),
                     {s->refiner != nullptr ? s->refiner->Found() : nullptr, 0}, out);
  }

  void ExpectOpen(std::size_t i, NodesToSearch const& nodes) {
    for (Family const& family : nodes.families) {
      for (LevelNode b = family.first; b < family.first + family.n; ++b) {
        double const n_rows = nodes.rows[b].Size();
        ResolutionShape const& shape = ways_.resolutions[i];
        n_seen_ += ways_.n_columns * n_rows * shape.present;
        n_expected_[i] += ways_.n_columns * HistogramCost::ExpectedOpen(n_rows, shape);
      }
    }
  }

  std::unique_ptr<BinnedTable> table_;
  RowPartitioner rows_;
  NodeSortFinder sorting_;
  ThresholdFinder thresholds_;
  NodeCategoryFinder sorting_categories_;
  WideCategoryFinder wide_;
  CategorySets sets_;
  HistogramPool pool_;
  RefineRoom room_;
  std::vector<std::unique_ptr<ResolutionSearch>> searches_;  // by resolution, the finest first
  SearchWays ways_;
  OpenShareHistory open_history_;
  std::uint64_t spare_;  // see HistogramMemory
  // of the tree in progress
  SplitExchange* exchange_{nullptr};
  double n_seen_{0.0};     // entries of the nodes that were searched in ranges
  double n_refined_{0.0};  // of these, in open ranges
  // of the level that is searched
  std::vector<double> n_expected_;  // entries of its open ranges, by resolution
  SplitSidesRef sides_{};           // what sends its rows to the children
  StreamEvent found_;               // its best splits are there
};
}  // namespace

std::unique_ptr<SplitStrategy> MakeHistogramStrategy(std::unique_ptr<BinnedTable> table,
                                                     HistogramMemory const& memory,
                                                     RowIdx max_sorted) {
  return std::make_unique<HistogramStrategy>(std::move(table), max_sorted, memory);
}
}  // namespace gpu_exact
