/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief After finder and refiner the best candidate of each node, and the value that it lies
 *        beside, are those of all candidates tried one by one.
 */

#include "device/histogram/ranges/range_refiner.cuh"
#include "tests/device/histogram/histogram_problem.cuh"

namespace gpu_exact {
namespace {
constexpr std::uint64_t kMany = std::uint64_t{1} << 20;  // more than any table here has
constexpr std::uint64_t kManyHistograms = 500;           // likewise of nodes

struct Settings {
  std::uint64_t max_entries{kMany};  // that are sorted at once
  bool all_open{false};              // the bound closes no range
  double without_weight{0.05};       // share of the rows
  std::uint64_t max_certain{kMany};  // ranges of a list that is scanned without asking
};

class RangeRefinerTest : public DeviceTest {
 protected:
  /** @brief Grow random trees over the table and check every level of them. */
  void Check(HistogramProblem const& problem, std::size_t resolution, Settings const& settings,
             int n_levels, Random* random) {
    TestResolution const& r = problem.At(resolution);
    ASSERT_TRUE(r.matrix.HasRanges());
    RowIdx const n_rows = problem.Rows().n_rows;
    HistogramPool pool = r.MakePool(random->Chance(0.5) ? kManyHistograms : 0);
    HistogramFinder finder{r.matrix, &pool};
    RefineRoom room;
    RangeRefiner refiner{r.matrix, &room, settings.max_entries, settings.max_certain};
    GrowParam const param = MakeParam(problem.Rows().n_features, random);
    for (int tree = 0; tree < 2; ++tree) {
      finder.Reset();
      auto const gpair = MakeWeights(n_rows, settings.without_weight, random);
      LevelRows nodes = MakeRoot(n_rows, 0.05, random);
      std::vector<LevelNode> parents;
      for (int depth = 0; depth < n_levels && !nodes.empty(); ++depth) {
        HistogramLevel level{r, param, gpair, nodes};
        level.Mask(problem.Rows().n_features, static_cast<unsigned>(random->Int(0, 1000)));
        level.lv.bound.enabled = level.lv.bound.enabled && !settings.all_open;
        NodesToSearch const to_search{MakeFamilies(parents, 0.1, random), level.ranges,
                                      depth + 1 == n_levels};
        this->CheckLevel(problem, r, gpair, nodes, to_search, level, &finder, &refiner);
        if (this->HasFailure()) {
          FAIL() << "tree " << tree << ", depth " << depth;
        }
        nodes = SplitAtRandom(nodes, &parents, random);
      }
    }
  }

  void CheckLevel(HistogramProblem const& problem, TestResolution const& r,
                  std::vector<GradientPair> const& gpair, LevelRows const& nodes,
                  NodesToSearch const& to_search, HistogramLevel const& level,
                  HistogramFinder* finder, RangeRefiner* refiner) {
    finder->Begin(to_search);
    finder->Find(level.lv, level.Rows(), to_search, refiner->List(to_search.NumNodes()));
    auto const searched = ReadNodes(*finder);
    if (searched.empty()) {
      return;
    }
    for (int lists = 1;
         RefineOnce(refiner, problem, r, level, finder) == RangeRefiner::Refined::kListAgain;
         ++lists) {
      ++n_short_lists_;
      ASSERT_LT(lists, 3) << "the list has room now";
      finder->FindAgain(level.lv, level.Rows(), refiner->List(finder->NumNodes()));
    }
    this->ExpectBest(problem.Rows(), r, gpair, nodes, searched, level, *refiner);
  }

  int n_short_lists_{0};  // that had no room for all ranges
  int n_refined_{0};      // nodes whose best candidate lies beside a range
  int n_inside_{0};       // and inside of it

 private:
  void ExpectBest(Table const& table, TestResolution const& r,
                  std::vector<GradientPair> const& gpair, LevelRows const& nodes,
                  std::vector<SearchedNode> const& searched, HistogramLevel const& level,
                  RangeRefiner const& refiner) {
    AllCandidates const all{table, r.of_values, gpair, nodes, level.lv};
    auto const best = level.Best();
    auto const found = ReadFound(refiner, searched.size());
    for (std::uint32_t i = 0; i < searched.size(); ++i) {
      LevelNode const b = searched[i].level_node;
      std::string const where = "node " + std::to_string(b) + " of " +
                                std::to_string(nodes.size()) + ", " +
                                std::to_string(nodes[b].size()) + " rows";
      std::uint64_t const want = all.Best(b);
      ASSERT_EQ(best[b], want) << where;
      if (want == 0) {
        continue;
      }
      // Of equal candidates the scan takes the one that it meets first.
      constexpr std::uint64_t kNone = ~std::uint64_t{0};
      std::uint64_t forward{kNone}, backward{kNone};
      for (std::uint64_t p = 0; p < all.n_pieces; ++p) {
        if (forward == kNone && all.forward[b * all.n_pieces + p] == want) {
          forward = p;
        }
        if (all.backward[b * all.n_pieces + p] == want) {
          backward = p;
        }
      }
      ASSERT_NE(forward == kNone, backward == kNone) << where;
      auto const d = forward != kNone ? ScanDirection::kForward : ScanDirection::kBackward;
      std::uint64_t const piece = forward != kNone ? forward : backward;
      std::uint32_t const bin = r.of_values.bin[piece];
      if (r.bins.is_range[bin] == 0) {
        continue;  // the bin tells the value
      }
      ++n_refined_;
      std::uint64_t const next = d == ScanDirection::kForward ? piece + 1 : piece - 1;
      n_inside_ += next < all.n_pieces && r.of_values.bin[next] == bin ? 1 : 0;
      ASSERT_EQ(found[i].key, want) << where;
      ASSERT_EQ(found[i].scan_value, ScanValueOf(d, r.of_values.lowest[piece])) << where;
    }
  }
};

TEST_F(RangeRefinerTest, RandomTrees) {
  for (int seed = 0; seed < NumSeeds(40); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    double const missing = random.Pick({0.0, 0.0, 0.4, 0.9});
    std::vector<ColumnShape> columns{{0, std::min(missing, 0.5)}};  // of ranges, certainly
    for (int f = random.Int(0, Scaled(12, 5)); f > 0; --f) {
      columns.push_back({random.Pick({0, 0, 2, 40, 200}),
                         random.Chance(0.2) ? random.Real() : missing, random.Pick({0.0, 0.0, 0.5}),
                         0.25f});
    }
    Table const table =
        MakeBinnedTable(columns, static_cast<RowIdx>(random.Int(200, Scaled(700, 300))), &random);
    HistogramProblem const problem{table,
                                   {static_cast<std::uint32_t>(random.Pick({13, 17})), 8, 5},
                                   static_cast<std::uint32_t>(random.Pick({0, 1, 300})),
                                   seed % 2 == 0};
    Settings const settings{random.Pick<std::uint64_t>({kMany, kMany, 40}), random.Chance(0.2),
                            random.Pick({0.0, 0.05, 0.5}), random.Pick<std::uint64_t>({0, kMany})};
    for (std::size_t resolution : {0, 1, 2}) {
      this->Check(problem, resolution, settings, random.Int(1, 5), &random);
      ASSERT_FALSE(this->HasFailure()) << "seed " << seed << ", resolution " << resolution;
    }
  }
  EXPECT_TRUE(n_refined_ > 0 || UnderSanitizer());
  EXPECT_TRUE(n_inside_ > 0 || UnderSanitizer());
}

/** @brief Values whose rows have no weight, which candidates lie beside all the same. */
TEST_F(RangeRefinerTest, RowsWithoutWeight) {
  for (int seed = 0; seed < NumSeeds(40); ++seed) {
    Random random{static_cast<unsigned>(100 + seed)};
    Table const table = MakeBinnedTable({{0, random.Pick({0.0, 0.5})}, {40, 0.0}},
                                        static_cast<RowIdx>(random.Int(50, 150)), &random);
    HistogramProblem const problem{table, {8}, 0, seed % 4 < 2};
    this->Check(problem, 0, {kMany, seed % 2 == 0, random.Pick({0.6, 0.9})}, 3, &random);
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_TRUE(n_inside_ > 0 || UnderSanitizer());
}

/** @brief More open ranges than a list has room for at first, which is 16384. */
TEST_F(RangeRefinerTest, LongList) {
  if (UnderRacecheck()) {
    GTEST_SKIP() << "Takes long; other tests run the same kernels.";
  }
  constexpr RowIdx kNodes = 200;
  constexpr RowIdx kRowsOfNode = 80;  // in most of the 15 ranges of each column
  Random random{1};
  std::vector<ColumnShape> const columns(Scaled(8u, 6u), ColumnShape{60, 0.0});
  Table const table = MakeBinnedTable(columns, kNodes * kRowsOfNode, &random);
  for (bool sorts_columns : {false, true}) {
    HistogramProblem const problem{table, {16}, 0, sorts_columns};
    TestResolution const& r = problem.At(0);
    for (std::uint64_t n_histograms : {std::uint64_t{0}, kManyHistograms}) {
      if (LeftOut(sorts_columns, n_histograms == 0)) {
        continue;
      }
      HistogramPool pool = r.MakePool(n_histograms);
      HistogramFinder finder{r.matrix, &pool};
      RefineRoom room;
      RangeRefiner refiner{r.matrix, &room, kMany, 0};
      auto const gpair = MakeWeights(table.n_rows, 0.0, &random);
      LevelRows nodes(kNodes);
      std::vector<Family> families;
      for (LevelNode b = 0; b < kNodes; ++b) {
        families.push_back({b, 1, 0});
        for (RowIdx i = 0; i < kRowsOfNode; ++i) {
          nodes[b].push_back(b * kRowsOfNode + i);
        }
      }
      HistogramLevel level{r, GrowParam{}, gpair, nodes};
      level.lv.bound.enabled = false;  // every range is open
      n_short_lists_ = 0;
      this->CheckLevel(problem, r, gpair, nodes, {families, level.ranges, false}, level, &finder,
                       &refiner);
      EXPECT_EQ(n_short_lists_, 1);
      Synchronize();
      double const n_entries = kNodes * kRowsOfNode * columns.size();  // all of them in ranges
      EXPECT_GT(refiner.NumOpenEntries(), 0.8 * n_entries);
      EXPECT_LT(refiner.NumOpenEntries(), 1.4 * n_entries);  // at least one a range
    }
  }
  EXPECT_TRUE(n_inside_ > 0 || UnderSanitizer());
}

/** @brief Open ranges are searched in halves of halves; one alone may have more entries. */
TEST_F(RangeRefinerTest, InParts) {
  std::vector<std::uint64_t> const all{1, 30, 1000, 3000};
  for (std::uint64_t max_entries : Scaled(all, {ForRacecheck<std::uint64_t>(30, 300), 3000})) {
    for (bool all_open : {false, true}) {
      Random random{static_cast<unsigned>(max_entries)};
      Table const table = MakeBinnedTable({{0, 0.0}, {0, 0.3}, {50, 0.0, 0.3, 0.5f}}, 900, &random);
      HistogramProblem const problem{table, {10}};
      this->Check(problem, 0, {max_entries, all_open, 0.05}, Scaled(3, 2), &random);
      ASSERT_FALSE(this->HasFailure()) << max_entries << " entries at once";
    }
  }
  EXPECT_TRUE(n_inside_ > 0 || UnderSanitizer());
}

/** @brief Nodes of many blocks, ranges of thousands of entries. */
TEST_F(RangeRefinerTest, LongColumns) {
  for (double missing : {0.0, 0.5}) {
    Random random{5};
    Table const table = MakeBinnedTable({{0, missing}, {3000, missing}, {0, missing, 0.6, 0.0f}},
                                        Scaled(60000u, 4000u), &random);
    for (bool sorts_columns : {false, true}) {
      if (LeftOut(missing == 0.0, sorts_columns)) {
        continue;
      }
      HistogramProblem const problem{table, {200, 20}, 0, sorts_columns};
      for (std::size_t resolution : {0, 1}) {
        this->Check(problem, resolution, {}, Scaled(3, 2), &random);
        ASSERT_FALSE(this->HasFailure()) << "resolution " << resolution;
      }
    }
  }
  EXPECT_TRUE(n_inside_ > 0 || UnderSanitizer());
}

/** @brief Gradients alike, so that many candidates have the same loss change. */
TEST_F(RangeRefinerTest, ManyTies) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(200 + seed)};
    Table table = MakeBinnedTable({{0, 0.0}}, 200, &random);
    // The same column twice, and turned around: candidates of two features and both scans tie.
    Table tied;
    tied.n_rows = table.n_rows;
    tied.n_features = 3;
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      float const value = table.entries[r].value;
      for (FeatureIdx f = 0; f < 3; ++f) {
        tied.entries.push_back({f, f == 2 ? -value : value});
      }
      tied.offsets.push_back(tied.entries.size());
    }
    HistogramProblem const problem{tied, {9}, 0, seed % 4 < 2};
    this->Check(problem, 0, {seed % 2 == 0 ? kMany : 60, false, 0.7}, 3, &random);
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_TRUE(n_refined_ > 0 || UnderSanitizer());
}
}  // namespace
}  // namespace gpu_exact
