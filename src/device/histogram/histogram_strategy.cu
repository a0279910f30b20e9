/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Every column is searched by histograms. Candidates between bins are exact; of those inside
 *        a bin of several values only the ones that may still win are looked at. Rows move with
 *        their nodes, entries never do.
 */
#include <algorithm>
#include <utility>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/histogram_finder.cuh"
#include "device/histogram/build/histogram_pool.cuh"
#include "device/histogram/category_sets.cuh"
#include "device/histogram/ranges/range_refiner.cuh"
#include "device/histogram/rows/row_partitioner.cuh"
#include "device/histogram/small_nodes/node_sort_finder.cuh"
#include "device/histogram/threshold_finder.cuh"
#include "device/level/split_strategy.cuh"

namespace gpu_exact {
namespace {
/** @brief What searches in one resolution. */
struct ResolutionSearch {
  ResolutionSearch(Resolution const& r, std::vector<CategoricalFeature> const& categorical,
                   HistogramMemory const& memory, HistogramPool* pool, RefineRoom* room)
      : resolution{r}, finder{*r.columns, pool, {}, categorical} {
    if (r.columns->HasRanges()) {
      refiner = std::make_unique<RangeRefiner>(
          *r.columns, room, memory.OpenEntries(r.columns->NumElements()), memory.CertainRanges());
    }
  }

  Resolution const& resolution;
  HistogramFinder finder;
  std::unique_ptr<RangeRefiner> refiner;  // nullptr: every bin is one value
};

EntryIdx NumEntries(BinnedTable const& table) {
  return table.Resolutions().front()->columns->NumElements();
}

/** @brief Of a histogram, in any resolution. */
std::uint64_t LargestHistogram(BinnedTable const& table) {
  std::uint64_t most{0};
  for (auto const& r : table.Resolutions()) {
    most = std::max(most, r->columns->Ref().n_bins);
  }
  return most;
}

class HistogramStrategy : public SplitStrategy {
 public:
  HistogramStrategy(std::unique_ptr<BinnedTable> table, RowIdx max_sorted, RowIdx min_by_row,
                    HistogramMemory const& memory)
      : table_{std::move(table)},
        rows_{table_->NumRows(), min_by_row},
        sorting_{*table_},
        sets_{table_->Categorical()},
        pool_{memory.FirstHistogramBytes(NumEntries(*table_)),
              memory.HistogramBytes(NumEntries(*table_)), LargestHistogram(*table_)},
        shares_{table_->Resolutions().size()} {
    ways_ = {table_->NumRows(),
             static_cast<double>(sorting_.NumColumns()),
             {},
             // Sorting reads every value of a node, or its bin: not over the bus.
             table_->Ref().values_of_host || memory.bins_at == Memory::kHost || sets_.Any()
                 ? 0
                 : std::min(max_sorted, NodeSortFinder::kMaxRows)};
    for (auto const& r : table_->Resolutions()) {
      searches_.push_back(std::make_unique<ResolutionSearch>(*r, table_->Categorical(), memory,
                                                             &pool_, &room_));
      ResolutionShape shape = ShapeOf(r->columns->Layout(), r->scans);
      shape.rows_of_host = memory.rows_at == Memory::kHost;
      shape.values_of_host = table_->Ref().values_of_host;
      ways_.resolutions.push_back(shape);
    }
  }

  [[nodiscard]] ColumnsRef Columns() const override {
    return table_->Resolutions().front()->candidates;
  }
  [[nodiscard]] ColumnsRef Candidates() const override { return this->Columns(); }

  void Begin(TreeStart const& start) override {
    exchange_ = start.exchange;
    rows_.Reset(start.rows, start.n_left_out, start.quantiser);
    parents_.clear();
    depth_ = 0;
    n_seen_ = n_refined_ = 0.0;
    n_expected_.assign(searches_.size(), 0.0);
    shares_.Decay();
    sets_.Begin();
    pool_.Reset();
    for (auto& s : searches_) {
      s->finder.Reset();
    }
  }

  void FindSplits(LevelRef const& level, bool last_level, LevelResult* out) override {
    RowsRef const rows = rows_.Rows();
    thresholds_.Begin(level.n_nodes);
    sets_.BeginLevel(level.n_nodes);
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      ways_.resolutions[i].open_factor = shares_.Factor(depth_, i);
    }
    NodesByMethod const nodes = this->ChooseSearch();
    LevelRef finest = level;
    finest.columns = this->Candidates();
    if (!nodes.sorted.empty()) {
      sorting_.Find(finest, rows, nodes.sorted);
    }
    std::vector<NodesToSearch> searched;
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      searched.push_back({nodes.families[i], rows_.Nodes(), last_level});
      searches_[i]->finder.Begin(searched[i]);
    }
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      this->SearchBins(i, level, rows, searched[i]);
    }
    if (exchange_ != nullptr) {
      exchange_->ShareBestGains(level.best, level.n_nodes);
    }
    if (!nodes.sorted.empty()) {
      thresholds_.Read(finest, table_->Ref().finest, sorting_.Nodes(),
                       static_cast<LevelNode>(nodes.sorted.size()),
                       {sorting_.Values(), sorting_.NumColumns()});
    }
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      this->SearchRanges(i, level, rows, searched[i]);
    }
    // With several workers most columns are others': what they send left comes by slot.
    if (exchange_ == nullptr && !table_->Ref().values_of_host && rows_.MayGoByRow()) {
      thresholds_.ResolveByRow(level, table_->Ref(), rows, rows_.GoByRow(), out, sets_.Level());
      rows_.FindLeft();
    } else {
      thresholds_.Resolve(level, table_->Ref(), rows, rows_.NumSlots(), rows_.GoesLeft(), out,
                          sets_.Level());
    }
    if (exchange_ != nullptr) {
      rows_.ShareSplits(exchange_, out);
    }
    rows_.CountLeft();
  }
  void AwaitSplits() override { thresholds_.Await(); }

  void MoveRows(LevelSplits const& splits, NodeState* out_children) override {
    this->SeeOpen();
    ++depth_;
    parents_.clear();
    for (std::size_t b = 0; b < splits.node_splits.size(); ++b) {
      if (splits.node_splits[b].left != kNoNode) {
        parents_.push_back(static_cast<LevelNode>(b));
      }
    }
    rows_.Move(splits, out_children);
  }

  void Finish(std::vector<NodeSplit> const& tree) override {
    this->SeeOpen();
    std::vector<NodeSplit> splits = OfOwnColumns(tree, exchange_);
    sets_.Gather(&splits);
    rows_.Finish(table_->Ref(), splits, sets_.Words(), exchange_);
  }
  [[nodiscard]] std::vector<std::uint32_t> Categories(NodeIdx nidx) const override {
    return sets_.Of(nidx);
  }

  [[nodiscard]] double RefinedShare() const override {
    return n_seen_ == 0.0 ? -1.0 : std::min(n_refined_ / n_seen_, 1.0);
  }
  [[nodiscard]] RowPositions& Positions() override { return rows_.Positions(); }
  [[nodiscard]] std::uint64_t Bytes() const override {
    std::uint64_t bytes = table_->Bytes() + rows_.Bytes() + sorting_.Bytes() + thresholds_.Bytes() +
                          sets_.Bytes() + pool_.Bytes() + room_.Bytes();
    for (auto const& s : searches_) {
      bytes += s->finder.Bytes() + (s->refiner != nullptr ? s->refiner->Bytes() : 0);
    }
    return bytes;
  }

 private:
  /** @brief How the nodes of a level are searched. */
  struct NodesByMethod {
    std::vector<SearchedNode> sorted;                          // by sorting their rows
    std::vector<std::vector<NodesToSearch::Family>> families;  // by histograms of each resolution
  };

  [[nodiscard]] NodesByMethod ChooseSearch() const {
    NodesByMethod chosen{{}, std::vector<std::vector<NodesToSearch::Family>>(searches_.size())};
    auto const& nodes = rows_.Nodes();
    auto n_rows = [&](LevelNode b) { return nodes[b].end - nodes[b].begin; };
    std::vector<NodesToSearch::Family> families;
    std::vector<FamilyRows> family_rows;
    if (parents_.empty()) {
      families.push_back({0, 1, 0});
      family_rows.push_back({n_rows(0), 0});
    }
    for (LevelNode i = 0; i < parents_.size(); ++i) {
      families.push_back({2 * i, 2, parents_[i]});
      auto const kept = std::find_if(searches_.cbegin(), searches_.cend(),
                                     [&](auto const& s) { return s->finder.HasKept(parents_[i]); });
      std::size_t const parent_method =
          kept == searches_.cend() ? FamilyRows::kNone : kept - searches_.cbegin();
      family_rows.push_back({n_rows(2 * i), n_rows(2 * i + 1), parent_method});
    }
    std::vector<std::size_t> const ways = ChooseSearchMethods(family_rows, ways_);
    for (std::size_t i = 0; i < families.size(); ++i) {
      if (ways[i] < searches_.size()) {
        chosen.families[ways[i]].push_back(families[i]);
        continue;
      }
      for (LevelNode b = families[i].first; b < families[i].first + families[i].n; ++b) {
        chosen.sorted.push_back({nodes[b], b, SearchedNode::kNoHistogram});
      }
    }
    return chosen;
  }

  void SearchBins(std::size_t i, LevelRef level, RowsRef const& rows, NodesToSearch const& nodes) {
    ResolutionSearch* s = searches_[i].get();
    level.columns = s->resolution.candidates;
    if (s->refiner == nullptr || nodes.NumNodes() == 0) {
      s->finder.Find(level, rows, nodes, {nullptr, nullptr, 0}, sets_.Level());
    } else {
      s->finder.Find(level, rows, nodes, s->refiner->List(nodes.NumNodes()), sets_.Level());
    }
  }

  void SearchRanges(std::size_t i, LevelRef level, RowsRef const& rows,
                    NodesToSearch const& nodes) {
    ResolutionSearch* s = searches_[i].get();
    level.columns = s->resolution.candidates;
    if (s->finder.NumNodes() == 0) {
      return;
    }
    while (s->refiner != nullptr && !s->refiner->Refine(level, table_->Ref(), rows, &s->finder,
                                                        ways_.resolutions[i], depth_)) {
      s->finder.FindAgain(level, rows, s->refiner->List(s->finder.NumNodes()));
    }
    if (s->refiner != nullptr) {
      this->ExpectOpen(i, nodes);
    }
    thresholds_.Read(level, s->resolution.columns->Ref(), s->finder.Nodes(),
                     static_cast<LevelNode>(s->finder.NumNodes()),
                     {s->refiner != nullptr ? s->refiner->Values() : nullptr, 0});
  }

  void ExpectOpen(std::size_t i, NodesToSearch const& nodes) {
    for (NodesToSearch::Family const& family : nodes.families) {
      for (LevelNode b = family.first; b < family.first + family.n; ++b) {
        double const n_rows = nodes.rows[b].end - nodes.rows[b].begin;
        ResolutionShape const& shape = ways_.resolutions[i];
        n_seen_ += ways_.n_columns * n_rows * shape.present;
        n_expected_[i] += ways_.n_columns * HistogramCost::ExpectedOpen(n_rows, shape);
      }
    }
  }

  /** @brief What the level had open beside what was expected; its results have been waited for. */
  void SeeOpen() {
    for (std::size_t i = 0; i < searches_.size(); ++i) {
      if (double const expected = std::exchange(n_expected_[i], 0.0); expected != 0.0) {
        auto const n_open = static_cast<double>(searches_[i]->refiner->NumOpenEntries());
        if (expected >= 1.0) {
          shares_.Record(depth_, i, n_open, expected);
        }
        n_refined_ += n_open;
      }
    }
  }

  std::unique_ptr<BinnedTable> table_;
  RowPartitioner rows_;
  NodeSortFinder sorting_;
  ThresholdFinder thresholds_;
  CategorySets sets_;
  HistogramPool pool_;
  RefineRoom room_;
  std::vector<std::unique_ptr<ResolutionSearch>> searches_;  // by resolution, the finest first
  SearchMethods ways_;
  OpenShareHistory shares_;
  // of the tree in progress
  SplitExchange* exchange_{nullptr};
  std::size_t depth_{0};
  std::vector<double> n_expected_;  // entries of the level's open ranges, by resolution
  double n_seen_{0.0};              // entries of the tree's nodes that were searched in ranges
  double n_refined_{0.0};           // of these, in open ranges
  std::vector<LevelNode> parents_;  // nodes that the last level split; none: the root is searched
};
}  // namespace

std::unique_ptr<SplitStrategy> MakeHistogramStrategy(std::unique_ptr<BinnedTable> table,
                                                     HistogramMemory const& memory,
                                                     RowIdx max_sorted, RowIdx min_by_row) {
  return std::make_unique<HistogramStrategy>(std::move(table), max_sorted, min_by_row, memory);
}
}  // namespace gpu_exact
