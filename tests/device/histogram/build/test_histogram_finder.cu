/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The best candidates between bins, and the ranges that may hold better ones, against every
 *        candidate tried one by one, over the levels of random trees.
 */
#include <map>
#include <utility>

#include "device/histogram/build/histogram_finder.cuh"
#include "tests/device/histogram/histogram_problem.cuh"

namespace gpu_exact {
namespace {
struct Settings {
  std::uint64_t max_slots{0};  // histograms there is room for, one at least
  BuildLimits limits{};
  double elsewhere{0.0};  // share of the families that another resolution searches
};
constexpr std::uint64_t kManySlots = 500;

/** @brief A finder's list of open ranges, with room for all. */
struct OpenList {
  explicit OpenList(std::uint64_t room) : room_{room} { list_.Reserve(room); }

  [[nodiscard]] OpenRangesRef Ref() {
    return {list_.Data(), counts_.Reserve(1), static_cast<std::uint32_t>(room_)};
  }
  [[nodiscard]] std::vector<OpenRange> Read() const {
    auto const n = ToHost(counts_.Data(), 1)[0].n_listed;
    EXPECT_LE(n, room_);
    return ToHost(list_.Data(), std::min<std::uint64_t>(n, room_));
  }

 private:
  std::uint64_t room_;
  DeviceBuffer<OpenRange> list_{"open ranges"};
  DeviceBuffer<OpenCounts> counts_{"their number"};
};

class HistogramFinderTest : public DeviceTest {
 protected:
  /** @brief Grow random trees over the table and check every level of them. */
  void Check(HistogramProblem const& problem, std::size_t resolution, Settings const& settings,
             int n_levels, Random* random) {
    TestResolution const& r = problem.At(resolution);
    RowIdx const n_rows = problem.Rows().n_rows;
    HistogramPool pool = r.MakePool(settings.max_slots);
    HistogramFinder finder{r.matrix, &pool, settings.limits};
    GrowParam const param = MakeParam(problem.Rows().n_features, random);
    for (int tree = 0; tree < NumRuns(); ++tree) {  // the second one finds the first one's memory
      finder.Reset();
      auto const gpair = MakeWeights(n_rows, random->Pick({0.0, 0.05, 0.4}), random);
      LevelRows nodes = MakeRoot(n_rows, 0.05, random);
      std::vector<LevelNode> parents;
      for (int depth = 0; depth < n_levels && !nodes.empty(); ++depth) {
        HistogramLevel level{r, param, gpair, nodes};
        level.Mask(problem.Rows().n_features, static_cast<unsigned>(random->Int(0, 1000)));
        NodesToSearch const to_search{MakeFamilies(parents, settings.elsewhere, random),
                                      level.ranges, depth + 1 == n_levels};
        finder.Begin(to_search);
        this->CheckLevel(problem.Rows(), r, gpair, nodes, to_search, &level, &finder);
        if (this->HasFailure()) {
          FAIL() << "tree " << tree << ", depth " << depth;
        }
        nodes = SplitAtRandom(nodes, &parents, random);
      }
    }
  }

  /** @brief The same by two finders of one pool, to each of which a part of the families is given. */
  void CheckTogether(HistogramProblem const& problem, std::uint64_t n_histograms, int n_levels,
                     Random* random) {
    RowIdx const n_rows = problem.Rows().n_rows;
    HistogramPool pool = problem.At(0).MakePool(n_histograms);
    HistogramFinder finders[]{{problem.At(0).matrix, &pool}, {problem.At(1).matrix, &pool}};
    GrowParam const param = MakeParam(problem.Rows().n_features, random);
    for (int tree = 0; tree < NumRuns(); ++tree) {
      pool.Reset();
      finders[0].Reset();
      finders[1].Reset();
      auto const gpair = MakeWeights(n_rows, random->Pick({0.0, 0.05}), random);
      LevelRows nodes = MakeRoot(n_rows, 0.05, random);
      std::vector<LevelNode> parents;
      for (int depth = 0; depth < n_levels && !nodes.empty(); ++depth) {
        std::vector<Family> families[2];
        for (auto const& family : MakeFamilies(parents, 0.0, random)) {
          families[random->Chance(0.5) ? 1 : 0].push_back(family);
        }
        HistogramLevel levels[]{{problem.At(0), param, gpair, nodes},
                                {problem.At(1), param, gpair, nodes}};
        bool const is_last = depth + 1 == n_levels;
        NodesToSearch const to_search[]{{families[0], levels[0].ranges, is_last},
                                        {families[1], levels[1].ranges, is_last}};
        for (int i : {0, 1}) {
          finders[i].Begin(to_search[i]);
        }
        for (int i : {0, 1}) {
          this->CheckLevel(problem.Rows(), problem.At(i), gpair, nodes, to_search[i], &levels[i],
                           &finders[i]);
        }
        if (this->HasFailure()) {
          FAIL() << "tree " << tree << ", depth " << depth;
        }
        // Once more, after the other one has kept some: the next level shows whether they are whole.
        OpenList list{nodes.size() * problem.At(0).bins.offsets.back()};
        finders[0].FindAgain(levels[0].lv, levels[0].Rows(), list.Ref());
        nodes = SplitAtRandom(nodes, &parents, random);
      }
    }
  }

 private:
  void CheckLevel(Table const& table, TestResolution const& r,
                  std::vector<GradientPair> const& gpair, LevelRows const& nodes,
                  NodesToSearch const& to_search, HistogramLevel* level, HistogramFinder* finder) {
    AllCandidates const between{table, r.of_bins, gpair, nodes, level->lv};
    AllCandidates const all{table, r.of_values, gpair, nodes, level->lv};
    OpenList list{nodes.size() * r.bins.offsets.back()};
    finder->Find(level->lv, level->Rows(), to_search, list.Ref());

    std::vector<bool> searched(nodes.size(), false);
    auto const found = ReadNodes(*finder);
    for (SearchedNode const& node : found) {
      ASSERT_FALSE(searched[node.level_node]);
      searched[node.level_node] = true;
      ASSERT_EQ(node.rows.begin, level->ranges[node.level_node].begin);
      ASSERT_EQ(node.rows.end, level->ranges[node.level_node].end);
    }
    std::size_t n_searched{0};
    for (auto const& family : to_search.families) {
      for (LevelNode b = family.first; b < family.first + family.n; ++b) {
        ASSERT_TRUE(searched[b]);
        ++n_searched;
      }
    }
    ASSERT_EQ(found.size(), n_searched);

    auto const best = level->Best();
    for (LevelNode b = 0; b < nodes.size(); ++b) {
      ASSERT_EQ(best[b], searched[b] ? between.Best(b) : 0)
          << "node " << b << " of " << nodes.size() << ", " << nodes[b].size() << " rows";
      n_found_ += best[b] != 0 ? 1 : 0;
    }
    if (found.empty()) {  // the list is not written
      return;
    }
    auto const first = this->ExpectRanges(table, r, between, all, *finder, *level, list.Read());
    if (this->HasFatalFailure()) {
      return;
    }
    // The same ranges once more, those that the best candidates have closed left out.
    finder->FindAgain(level->lv, level->Rows(), list.Ref());
    ASSERT_EQ(level->Best(), best);
    auto const again = this->ExpectRanges(table, r, between, all, *finder, *level, list.Read());
    for (auto const& range : again) {
      ASSERT_EQ(first.count(range.first), 1u) << "a range that was closed before";
    }
  }

  /** @brief Open ranges by (searched node, bin), with their bound. */
  using RangeMap = std::map<std::pair<std::uint32_t, std::uint32_t>, float>;

  /** @brief Listed ranges are as they should be, and all others lose. */
  RangeMap ExpectRanges(Table const& table, TestResolution const& r, AllCandidates const& between,
                        AllCandidates const& all, HistogramFinder const& finder,
                        HistogramLevel const& level, std::vector<OpenRange> const& listed) {
    RangeMap found;
    auto const nodes = ReadNodes(finder);
    auto const best = level.Best();
    for (OpenRange const& range : listed) {
      std::string const where =
          "node " + std::to_string(range.node) + ", bin " + std::to_string(range.bin);
      if (range.node >= nodes.size() || range.bin >= r.bins.offsets.back()) {
        ADD_FAILURE() << where;
        return found;
      }
      LevelNode const b = nodes[range.node].level_node;
      FeatureIdx const f = r.of_bins.feature[range.bin];
      EXPECT_TRUE(found.insert({{range.node, range.bin}, range.bound}).second) << where;
      EXPECT_EQ(r.bins.is_range[range.bin], 1) << where;
      EXPECT_EQ(r.matrix.Columns()[range.column].feature, f) << where;
      EXPECT_TRUE(range.before == between.sums.before[b * between.n_pieces + range.bin]) << where;
      EXPECT_TRUE(range.present == between.sums.present[b * std::size_t{table.n_features} + f])
          << where;
    }
    n_listed_ += listed.size();
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      LevelNode const b = nodes[i].level_node;
      for (std::uint64_t p = 0; p < all.n_pieces; ++p) {
        std::uint32_t const bin = r.of_values.bin[p];
        std::uint64_t const key = all.Key(b, p);
        if (r.bins.is_range[bin] != 0 && key != 0 && key >= best[b]) {
          // The best candidate's own range too: its value is to be found.
          EXPECT_EQ(found.count({i, bin}), 1u)
              << "node " << i << ", bin " << bin << " has a better candidate, and is not listed";
          ++n_better_;
        }
      }
    }
    return found;
  }

 protected:
  int n_found_{0};             // nodes that had a candidate
  std::size_t n_listed_{0};    // open ranges
  std::uint64_t n_better_{0};  // candidates inside of ranges
};

TEST_F(HistogramFinderTest, RandomTrees) {
  for (int seed = 0; seed < NumSeeds(40); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table const table = MakeBinnedTable(
        static_cast<RowIdx>(random.Int(1, Scaled(600, 200))),
        static_cast<FeatureIdx>(random.Int(1, Scaled(random.Pick({20, 20, 80}), 8))), &random);
    auto const finest = static_cast<std::uint32_t>(random.Pick({9, 21, 61, 2000}));
    HistogramProblem const problem{
        table,
        {finest, finest / 2 + 2, std::min(finest / 2, random.Pick({5u, 40u}))},
        static_cast<std::uint32_t>(random.Pick({0, 0, 1, 300, 20000}))};
    Settings const settings{random.Pick<std::uint64_t>({0, 1, 5, kManySlots, kManySlots}),
                            {static_cast<std::uint32_t>(random.Pick({0, 0, 1, 3, 1000})),
                             random.Pick<std::uint64_t>({0, 10, 1 << 21})},
                            random.Pick({0.0, 0.0, 0.3})};
    for (std::size_t resolution : {0, 1, 2}) {
      this->Check(problem, resolution, settings, random.Int(1, ForRacecheck(6, 3)), &random);
      ASSERT_FALSE(this->HasFailure()) << "seed " << seed << ", resolution " << resolution;
    }
  }
  EXPECT_GT(n_found_, 0);
  EXPECT_TRUE(n_listed_ > 0 || UnderRacecheck());
  EXPECT_TRUE(n_better_ > 0 || UnderSanitizer());
}

/** @brief Two resolutions in one level, with room for few histograms and for many. */
TEST_F(HistogramFinderTest, TwoResolutionsShareAPool) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table const table =
        MakeBinnedTable(static_cast<RowIdx>(random.Int(100, Scaled(2000, 300))),
                        static_cast<FeatureIdx>(random.Int(1, Scaled(12, 5))), &random);
    HistogramProblem const problem{table, {21, 9}};
    for (std::uint64_t n_histograms : {2, 5, 60}) {
      this->CheckTogether(problem, n_histograms, ForRacecheck(5, 3), &random);
      ASSERT_FALSE(this->HasFailure()) << "seed " << seed << ", " << n_histograms;
    }
  }
  EXPECT_GT(n_found_, 0);
}

/** @brief Columns of many values and of fewer bins, dense and sparse, in segments of many blocks. */
TEST_F(HistogramFinderTest, SegmentsOfManyBlocks) {
  for (std::uint64_t max_slots : {std::uint64_t{0}, kManySlots}) {
    for (double missing : {0.0, 0.6}) {
      Random random{static_cast<unsigned>(max_slots)};
      Table const table = MakeBinnedTable({{1, missing},
                                           {2, missing},
                                           {0, missing, 0.5, 0.5f},
                                           {40, missing},
                                           {Scaled(2500, 1100), missing}},
                                          Scaled(30000u, 3000u), &random);
      for (std::uint32_t max_bins : {300u, 1200u}) {  // within a tile, and more than one
        if (LeftOut(missing == 0.0, max_bins == 300)) {
          continue;
        }
        HistogramProblem const problem{table, {max_bins}, 4000};
        // By the last two, nodes are cut into parts.
        for (BuildLimits const& limits : {BuildLimits{0}, {1}, {50}, {8, 0}, {50, 100}}) {
          this->Check(problem, 0, {max_slots, limits}, Scaled(4, 2), &random);
          ASSERT_FALSE(this->HasFailure())
              << max_bins << " bins, " << limits.n_blocks << " blocks, " << limits.cached_rows
              << " rows in the cache";
        }
      }
    }
  }
  EXPECT_GT(n_listed_, 0u);
}

/** @brief Bins of one byte, in rows of one to four chunks, and in several groups. */
TEST_F(HistogramFinderTest, BinsOfOneByte) {
  for (int n_columns : {5, 8, 13, 16, 21, 28, 32, 33, Scaled(75, 40)}) {
    if (LeftOut(n_columns == 21, n_columns == 33)) {
      continue;
    }
    for (double missing : {0.0, 0.3}) {
      Random random{static_cast<unsigned>(n_columns)};
      std::vector<ColumnShape> columns;
      for (int f = 0; f < n_columns; ++f) {  // all distinct, few values, one that most rows have
        columns.push_back({random.Pick({0, 0, 3, 60}), random.Chance(0.3) ? missing : 0.0,
                           random.Pick({0.0, 0.0, 0.9}), 0.5f});
      }
      Table const table = MakeBinnedTable(columns, Scaled(3000u, 600u), &random);
      for (std::uint32_t max_bins : {20u, kMaxByteBins}) {
        if (LeftOut(missing == 0.0, max_bins == 20)) {
          continue;
        }
        HistogramProblem const problem{table, {2 * kMaxByteBins, max_bins}, 20000};
        auto const& groups = problem.At(1).matrix.Groups();
        ASSERT_TRUE(std::all_of(groups.cbegin(), groups.cend(), [](FeatureGroup const& g) {
          return g.InBytes() || NumByteCells(g.n_columns) == 0;
        }));
        ASSERT_EQ(groups.size(), CeilDiv(n_columns, kMaxByteColumns));
        for (BuildLimits const& limits : {BuildLimits{0}, {7, 100}}) {
          this->Check(problem, 1, {kManySlots, limits}, Scaled(4, 2), &random);
          ASSERT_FALSE(this->HasFailure()) << n_columns << " columns, " << max_bins << " bins";
        }
      }
    }
  }
  EXPECT_GT(n_listed_, 0u);
}

TEST_F(HistogramFinderTest, AsManyBinsAsFit) {
  auto const most = static_cast<int>(BinMatrix::MaxBins());
  Random random{3};
  for (double missing : {0.0, 0.3}) {
    Table const table = MakeBinnedTable({{most, missing}, {3, missing}, {0, missing}},
                                        static_cast<RowIdx>(most + 500), &random);
    HistogramProblem const problem{table, {BinMatrix::MaxBins(), 1000}};
    this->Check(problem, 0, {kManySlots}, Scaled(3, 1), &random);
    ASSERT_FALSE(this->HasFailure());
  }
  EXPECT_GT(n_found_, 0);
}

/** @brief Few slots among many nodes: some families subtract, some are built, some not kept. */
TEST_F(HistogramFinderTest, ManyNodes) {
  for (std::uint64_t max_slots : {std::uint64_t{0}, Scaled<std::uint64_t>(20, 3), kManySlots}) {
    Random random{7};
    Table const table =
        MakeBinnedTable({{2, 0.0}, {30, 0.3}, {0, 0.1}}, Scaled(3000u, 200u), &random);
    HistogramProblem const problem{table, {12}};
    this->Check(problem, 0, {max_slots, {}, 0.1}, Scaled(10, 4), &random);
    ASSERT_FALSE(this->HasFailure()) << max_slots << " slots";
    EXPECT_GT(n_found_, 0);
  }
}

TEST_F(HistogramFinderTest, ManyFeatures) {
  for (std::uint64_t max_slots : {std::uint64_t{0}, kManySlots}) {
    for (double missing : {0.0, 0.9}) {
      Random random{8};
      std::vector<ColumnShape> columns;
      for (int f = 0; f < Scaled(2000, 600); ++f) {  // several tiles of columns in a group
        columns.push_back({random.Int(1, 9), missing});
      }
      Table const table = MakeBinnedTable(columns, Scaled(150u, 60u), &random);
      HistogramProblem const problem{table, {5}, 20000};
      this->Check(problem, 0, {max_slots}, 3, &random);
      ASSERT_FALSE(this->HasFailure());
      EXPECT_GT(n_found_, 0);
    }
  }
}

TEST_F(HistogramFinderTest, OneConstantFeatureAndNone) {
  Random random{9};
  for (double missing : {0.0, 0.5, 1.0}) {
    Table const table = MakeBinnedTable({{1, missing}}, 500, &random);
    HistogramProblem const problem{table, {8}};
    this->Check(problem, 0, {kManySlots}, 3, &random);
    ASSERT_FALSE(this->HasFailure()) << "missing " << missing;
  }
}
}  // namespace
}  // namespace gpu_exact
