/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests the cost model's choices.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plan/search_cost.h"

namespace gpu_exact {
namespace {
constexpr std::uint32_t kMaxBins = kMaxGroupBins;
constexpr RowIdx kMaxSorted = kMaxSortedRows;

/** @brief Bins of a column for which a root of so many rows costs least, reading aside. */
double BestBins(double n_rows, bool scans) {
  double best{1.0};
  double least{std::numeric_limits<double>::infinity()};
  for (double bins = 1.0; bins < 1e9; bins *= 1.05) {
    ResolutionShape const shape{bins, 100.0, true, scans};
    double const cost = HistogramCost::Node(n_rows, 1.0, shape);
    if (cost < least) {
      least = cost;
      best = bins;
    }
  }
  return best;
}

TEST(HistogramCost, MoreBinsForMoreRows) {
  for (bool scans : {false, true}) {
    double before{1.0};
    for (double n_rows = 1000.0; n_rows < 1e10; n_rows *= 2.0) {
      double const bins = BestBins(n_rows, scans);
      EXPECT_GT(bins, before);
      EXPECT_LT(bins, n_rows);
      before = bins;
    }
  }
}

TEST(HistogramCost, FewerBinsWhereRangesCanBeScanned) {
  for (double n_rows = 1000.0; n_rows < 1e10; n_rows *= 2.0) {
    EXPECT_LT(BestBins(n_rows, true), BestBins(n_rows, false));
  }
}

/** @brief 32 nodes of a table of a million rows and 100 columns. */
RefineCost const kRefine{32.0, 1e6, 1e6, 100.0, {1000.0, 10.0, true, true}};

TEST(RefineCost, FewEntriesAreScannedManyAreGathered) {
  EXPECT_FALSE(kRefine.ScansAnyway());
  double const n_gathered = 1e4;
  bool before{true};
  for (double n_scanned = n_gathered; n_scanned < 1e12; n_scanned *= 2.0) {
    bool const scans = kRefine.Scans(n_scanned, n_gathered);
    EXPECT_TRUE(before || !scans) << n_scanned;
    before = scans;
  }
  EXPECT_FALSE(before);
  EXPECT_TRUE(kRefine.Scans(n_gathered, n_gathered));
}

TEST(RefineCost, AsksOnlyWhereItMatters) {
  RefineCost small{2.0, 1e5, 1e5, 28.0, {1000.0, 10.0, true, true}};
  EXPECT_TRUE(small.ScansAnyway());
  EXPECT_TRUE(small.Scans(2.0 * 1e5 * 28.0, 0.0));  // every range of both nodes
  small.n_table_rows = small.n_rows = 1e9;
  EXPECT_FALSE(small.ScansAnyway());
}

TEST(RefineCost, IsCarefulButNoMoreThanAllEntriesAreOpen) {
  auto refine = kRefine;
  double const column =
      HistogramCost::ScannedEntry(refine.shape) * refine.n_nodes * refine.n_table_rows +
      HistogramCost::FoundEntry(refine.n_table_rows) * refine.n_rows;
  double const expected =
      HistogramCost::OpenShare(refine.n_rows / refine.n_nodes, refine.shape.n_bins);
  ASSERT_LT(4.0 * expected, 1.0);
  for (double factor : {1.0, 1e9}) {
    refine.shape.open_factor = factor;
    double const open = std::min(4.0 * factor * expected, 1.0);
    refine.n_columns = 0.99 * CostTable::kGatherLevel / (open * column);
    EXPECT_TRUE(refine.ScansAnyway()) << factor;
    refine.n_columns = 1.01 * CostTable::kGatherLevel / (open * column);
    EXPECT_FALSE(refine.ScansAnyway()) << factor;
  }
}

TEST(RefineCost, GatheringReadsEveryColumn) {
  auto refine = kRefine;
  double n_scanned{1e6};
  while (refine.Scans(n_scanned, 0.0)) {
    n_scanned *= 2.0;
  }
  refine.n_columns *= 1000.0;
  EXPECT_TRUE(refine.Scans(n_scanned, 0.0));
}

TEST(RefineCost, GatheringReadsScatteredRows) {
  auto refine = kRefine;
  refine.shape.n_group_columns = 2.0;
  double const density = 1.0 / refine.n_nodes;  // all rows, shared by the nodes
  double const gathering =
      CostTable::kGatherLevel +
      refine.n_columns * HistogramCost::Walk(refine.n_rows, density, refine.shape);
  double const n_scanned = gathering / HistogramCost::ScannedEntry(refine.shape);
  EXPECT_TRUE(refine.Scans(0.99 * n_scanned, 0.0));
  EXPECT_FALSE(refine.Scans(1.01 * n_scanned, 0.0));
}

/** @brief Ranges are halved until there is room: each part but the first takes two more walks. */
TEST(RefineCost, ASmallRoomTakesMoreWalks) {
  auto refine = kRefine;
  double const n_gathered{1e6};
  double const walk =
      refine.n_columns * HistogramCost::Walk(refine.n_rows, 1.0 / refine.n_nodes, refine.shape);
  for (double n_parts : {1.0, 2.0, 4.0, 8.0}) {
    refine.at_once = n_gathered / (0.75 * n_parts);
    double const gathering = CostTable::kGatherLevel + (2.0 * n_parts - 1.0) * walk +
                             n_gathered * (HistogramCost::OpenEntry(refine.shape) -
                                           HistogramCost::FoundEntry(refine.n_table_rows));
    double const n_scanned = gathering / HistogramCost::ScannedEntry(refine.shape);
    EXPECT_TRUE(refine.Scans(0.99 * n_scanned, n_gathered)) << n_parts;
    EXPECT_FALSE(refine.Scans(1.01 * n_scanned, n_gathered)) << n_parts;
  }
}

/** @brief As of a node of a tall table, in bytes: reading alone hardly counts. */
TEST(HistogramCost, GatheringTakesAWalk) {
  ResolutionShape shape{255.0, 28.0, true};
  shape.in_bytes = true;
  double const walk = HistogramCost::Walk(1e6, 0.1, shape);
  EXPECT_EQ(walk, CostTable::kWalkedEntry * 1e6);
  EXPECT_GT(walk, 4.0 * HistogramCost::Read(1e6, 0.1, shape));
}

TEST(HistogramCost, ScatteredRowsCostMoreWhereAGroupIsNarrow) {
  ResolutionShape const narrow{1000.0, 2.0, true};
  ResolutionShape const wide{1000.0, 100.0, true};
  EXPECT_GT(HistogramCost::Node(1e5, 0.01, narrow), HistogramCost::Node(1e5, 1.0, narrow));
  EXPECT_EQ(HistogramCost::Node(1e5, 0.01, wide), HistogramCost::Node(1e5, 1.0, wide));
}

TEST(HistogramCost, ByteBinsAreHalfAsMuchToRead) {
  ResolutionShape shape{255.0, 32.0, true};
  double const in_words = HistogramCost::Read(1e5, 1.0, shape);
  shape.in_bytes = true;
  double const in_bytes = HistogramCost::Read(1e5, 1.0, shape);
  EXPECT_LT(in_bytes, in_words);
  EXPECT_NEAR(in_words - in_bytes, CostTable::kByte * 1e5, 1.0);
  EXPECT_EQ(in_bytes, HistogramCost::Read(1e5, 0.001, shape)) << "a sector of each row, full";
}

TEST(HistogramCost, NothingIsOpenWithoutRanges) {
  ResolutionShape const indicators{1.0, 100.0, false};
  EXPECT_EQ(HistogramCost::ExpectedOpen(1e4, indicators), 0.0);
  double const read = HistogramCost::Read(1e4, 0.01, indicators);
  EXPECT_EQ(HistogramCost::Node(1e4, 0.01, indicators), CostTable::kBin + read);
  // So nodes of many rows and of indicators alone are not sorted.
  SearchWays const ways{1'000'000, 700.0, {indicators}, kMaxSorted};
  EXPECT_EQ(ChooseSearchWays({{0, 2, 0, {2'500, 10'000}}}, ways), std::vector<std::size_t>{0});
}

TEST(HistogramCost, SparseColumnsAreLookedUpAndHaveFewerEntries) {
  ResolutionShape shape{320.0, 32.0, true, true};
  double const dense = HistogramCost::Read(1e6, 1.0, shape);
  double const open = HistogramCost::ExpectedOpen(1e6, shape);
  shape.present = 0.02;
  EXPECT_NEAR(HistogramCost::ExpectedOpen(1e6, shape),
              0.02 * 1e6 * HistogramCost::OpenShare(2e4, 320.0), 1.0);
  EXPECT_LT(HistogramCost::ExpectedOpen(1e6, shape), open);
  EXPECT_LT(HistogramCost::Read(1e6, 1.0, shape), dense) << "64 bytes of bins";
  EXPECT_GT(HistogramCost::Read(1e6, 0.01, shape), HistogramCost::Read(1e6, 1.0, shape));
  // Twice as many groups are nearly twice as many look-ups.
  double const read = HistogramCost::Read(1e6, 1.0, shape);
  shape.n_group_columns = 16.0;
  EXPECT_GT(HistogramCost::Read(1e6, 1.0, shape), 1.9 * read);
}

TEST(ChooseResolutions, SparseColumnsTakeBinsByTheirEntries) {
  for (RowIdx n_rows : {50'000, 1'000'000, 20'000'000}) {
    std::uint32_t before{kMaxGroupBins};
    for (double present : {1.0, 0.2, 0.05, 0.01, 0.001}) {
      auto const n_missing = static_cast<std::uint64_t>((1.0 - present) * n_rows) * 100;
      auto const bins =
          ChooseResolutions(n_rows, 100, kMaxGroupBins, kMaxSortedRows, {}, n_missing);
      EXPECT_LE(bins.front(), before) << n_rows << " rows, " << present;
      EXPECT_GE(bins.front(), 160u) << n_rows << " rows, " << present;
      before = bins.front();
    }
    EXPECT_LT(before, ChooseResolutions(n_rows, 100, kMaxGroupBins, kMaxSortedRows).front());
  }
}

TEST(ChooseResolutions, WithinBoundsAndDescending) {
  std::vector<std::uint64_t> rows{0, 1, 2, 31, 32, 33, 100, 1000, 10239, 10240, 10241, 20000};
  for (std::uint64_t n = 50'000; n <= std::numeric_limits<RowIdx>::max(); n = n * 5 / 3) {
    rows.push_back(n);
  }
  rows.push_back(std::numeric_limits<RowIdx>::max());
  for (std::uint32_t max_bins : {64u, 1000u, 2624u, kMaxBins, 65535u}) {
    for (std::uint64_t n : rows) {
      for (FeatureIdx n_features :
           {0u, 1u, 2u, 15u, 500u, 2'000'000u, std::numeric_limits<FeatureIdx>::max()}) {
        std::uint64_t const n_places = n * n_features;
        auto const bins =
            ChooseResolutions(static_cast<RowIdx>(n), n_features, max_bins, kMaxSorted,
                              {n % 2 == 0}, n % 3 * (n_places / 100 * 49));
        ASSERT_FALSE(bins.empty());
        ASSERT_LE(bins.size(), 4u);
        ASSERT_LE(bins.front(), max_bins);
        ASSERT_GE(bins.back(), 32u) << n << " rows, " << n_features << " features";
        for (std::size_t i = 1; i < bins.size(); ++i) {
          ASSERT_LT(bins[i], bins[i - 1]);
        }
      }
    }
  }
}

TEST(ChooseResolutions, TheLastOneFitsAByte) {
  auto const of = [](RowIdx n_rows, bool is_dense) {
    return ChooseResolutions(n_rows, 28, kMaxGroupBins, kMaxSortedRows, {},
                             is_dense ? 0 : std::uint64_t{n_rows} * 21);
  };
  for (RowIdx n_rows : {kMaxSortedRows + 1, 30'000u, 400'000u, 1'000'000u, 10'500'000u}) {
    EXPECT_LE(of(n_rows, true).back(), kMaxByteBins) << n_rows;
    EXPECT_LE(of(n_rows, false).back(), kMaxByteBins) << n_rows;
    EXPECT_GE(of(n_rows, true).size(), 2u) << n_rows;
  }
  EXPECT_EQ(of(1'000'000, true).back(), kMaxByteBins);
  EXPECT_LT(of(1'000'000, false).back(), kMaxByteBins) << "no place for each column";
  EXPECT_LT(of(30'000, true).back(), kMaxByteBins) << "a byte holds nearly as many";
  EXPECT_EQ(ChooseResolutions(kMaxSortedRows, 5000, kMaxGroupBins, kMaxSortedRows).size(), 1u)
      << "nodes are sorted where they have too few rows for as many bins";
  HistogramMemory of_host;
  of_host.values_at = Memory::kHost;
  EXPECT_EQ(ChooseResolutions(kMaxSortedRows, 5000, kMaxGroupBins, kMaxSortedRows, of_host).size(),
            3u)
      << "values of the host are not sorted";
}

TEST(ChooseResolutions, SmallTablesAreExact) {
  for (auto const& [n_rows, n_features] :
       {std::pair{0u, 0u}, {1u, 1u}, {33u, 4000u}, {1000u, 3333u}, {kMaxBins, 325u}}) {
    auto const bins = ChooseResolutions(n_rows, n_features, kMaxBins, kMaxSorted, {true});
    ASSERT_EQ(bins.size(), 1u) << n_rows << " rows";
    EXPECT_GE(bins[0], n_rows);  // a bin for each value, whatever the values
  }
  // One feature, or one row, too many.
  EXPECT_LT(ChooseResolutions(1000, 3334, kMaxBins, kMaxSorted, {true})[0], 1000u);
  EXPECT_LT(ChooseResolutions(kMaxBins + 1, 1, kMaxBins, kMaxSorted, {true})[0], kMaxBins);
}

TEST(SortsTable, AsManyRowsAsABlockSorts) {
  EXPECT_TRUE(SortsTable(1000, 1, 1000));
  EXPECT_FALSE(SortsTable(1001, 1, 1000));
}

TEST(ChooseResolutions, FinestCostsLeastAtTheRoot) {
  auto cost = [](double n_rows, std::uint32_t bins) {
    return HistogramCost::Node(
        n_rows, 1.0, {static_cast<double>(bins), static_cast<double>(kMaxBins / bins), true});
  };
  for (double n = 20'000.0; n < 4e9; n *= 1.9) {
    auto const finest =
        ChooseResolutions(static_cast<RowIdx>(n), 100, kMaxBins, kMaxSorted, {false})[0];
    for (std::uint32_t n_columns = 2; n_columns <= 128; n_columns *= 2) {
      EXPECT_LE(cost(n, finest), 1.001 * cost(n, kMaxBins / n_columns))
          << n << " rows, " << n_columns << " columns";
    }
  }
}

TEST(OpenShareHistory, SeenAtADepthCountsThereAndBelow) {
  OpenShareHistory shares{1};
  EXPECT_EQ(shares.Factor(3, 0), 1.0);
  shares.Record(2, 0, 500.0, 10.0);
  EXPECT_EQ(shares.Factor(1, 0), 1.0);
  EXPECT_EQ(shares.Factor(2, 0), 50.0);
  EXPECT_EQ(shares.Factor(7, 0), 50.0);  // of the deepest level seen
  shares.Record(4, 0, 900.0, 10.0);
  EXPECT_EQ(shares.Factor(4, 0), 90.0);
  EXPECT_EQ(shares.Factor(3, 0), 50.0);
}

TEST(OpenShareHistory, AResolutionNotSeenCountsAsTheOneNextToIt) {
  OpenShareHistory shares{4};
  shares.Record(1, 2, 500.0, 10.0);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(shares.Factor(1, r), 50.0) << r;
  }
  shares.Record(1, 0, 20.0, 10.0);
  EXPECT_EQ(shares.Factor(1, 0), 2.0);
  EXPECT_EQ(shares.Factor(1, 1), 2.0);  // the finer one of two
  EXPECT_EQ(shares.Factor(1, 2), 50.0);
  EXPECT_EQ(shares.Factor(1, 3), 50.0);
  EXPECT_EQ(shares.Factor(2, 0), 2.0);
  EXPECT_EQ(shares.Factor(2, 3), 50.0);
  EXPECT_EQ(shares.Factor(0, 0), 1.0);
}

TEST(OpenShareHistory, LessIsBelievedByAndBy) {
  OpenShareHistory shares{1};
  shares.Record(2, 0, 500.0, 10.0);
  double before{50.0};
  for (int tree = 0; tree < 80; ++tree) {
    shares.Decay();
    EXPECT_EQ(shares.Factor(2, 0), before);  // as it was used
    shares.Record(2, 0, 1.0, 1000.0);
    EXPECT_LE(shares.Factor(2, 0), before);
    EXPECT_GE(shares.Factor(2, 0), 0.5 * before);
    before = shares.Factor(2, 0);
  }
  EXPECT_LT(before, 0.1);
  EXPECT_GT(before, 0.001);
}

TEST(OpenShareHistory, AgesUntilItIsLookedAtAgain) {
  for (double n_open : {1e9, 0.0}) {
    OpenShareHistory shares{1};
    shares.Record(0, 0, n_open, 1.0);
    double before = shares.Factor(0, 0);
    EXPECT_LE(std::abs(std::log(before)), std::log(1000.001));
    EXPECT_GT(std::abs(std::log(before)), std::log(50.0));
    shares.Decay();  // after the tree that saw it
    for (int tree = 0; tree < 300; ++tree) {
      shares.Decay();
      EXPECT_LT(std::abs(std::log(shares.Factor(0, 0))), std::abs(std::log(before)));
      before = shares.Factor(0, 0);
    }
    EXPECT_NEAR(before, 1.0, 0.1);
  }
}

TEST(OpenShareHistory, AgesTowardsWhatIsUsed) {
  OpenShareHistory shares{3};
  shares.Record(1, 0, 1.0, 1.0);
  shares.Record(1, 1, 900.0, 1.0);  // tried once
  shares.Decay();
  double before = shares.Factor(1, 1);
  for (int tree = 0; tree < 200; ++tree) {
    shares.Record(1, 0, 0.2, 1.0);
    shares.Decay();
    EXPECT_LT(shares.Factor(1, 1), before);
    before = shares.Factor(1, 1);
  }
  EXPECT_NEAR(before, 0.2, 0.05);
  EXPECT_DOUBLE_EQ(shares.Factor(1, 0), 0.2);
}

TEST(ChooseSearchWays, SortsWhereFarMoreIsOpenThanExpected) {
  SearchWays ways{1'000'000, 28.0, {{40.0, 28.0, true, true}}, kMaxSorted};
  std::vector<Family> const families(1000, {0, 2, 0, {250, 250}});
  EXPECT_EQ(ChooseSearchWays(families, ways).front(), 0u);
  ways.resolutions[0].open_factor = 1000.0;
  EXPECT_EQ(ChooseSearchWays(families, ways).front(), 1u);
}

/** @brief What a level costs, whatever is in it, is paid for the ways that are taken alone. */
TEST(ChooseSearchWays, FewSmallNodesGoTheWayOfALargeOne) {
  std::vector<Family> families{{0, 1, 0, {5'000'000, 0}}, {1, 1, 0, {3000, 0}}};
  SearchWays const ways{10'000'000, 28.0, {{5120.0, 2.0, true, true}}, kMaxSorted};
  EXPECT_EQ(ChooseSearchWays(families, ways), (std::vector<std::size_t>{0, 0}));
  families.resize(100, {1, 1, 0, {3000, 0}});
  EXPECT_EQ(ChooseSearchWays(families, ways).at(1), 1u) << "sorted";
}

TEST(ChooseSearchWays, AParentsHistogramIsWorthKeepingTo) {
  std::vector<ResolutionShape> const shapes{
      {5120.0, 2.0, true}, {1280.0, 8.0, true}, {160.0, 64.0, true}};
  SearchWays const ways{10'000'000, 28.0, shapes, kMaxSorted};
  std::size_t n_kept{0};
  for (RowIdx n = 20'000; n < 5'000'000; n = n * 4 / 3) {
    std::size_t const free = ChooseSearchWays({{0, 2, 0, {n, 3 * n}}}, ways).at(0);
    for (std::size_t way = 0; way < shapes.size(); ++way) {
      std::size_t const chosen = ChooseSearchWays({{0, 2, 0, {n, 3 * n}, way}}, ways).at(0);
      EXPECT_TRUE(chosen == free || chosen == way) << n << " rows";
      n_kept += chosen != free ? 1 : 0;
    }
    EXPECT_EQ(ChooseSearchWays({{0, 2, 0, {n, 3 * n}, free}}, ways).at(0), free);
  }
  EXPECT_GT(n_kept, 0u);
}

/** @brief What columns of a table have on average, were their groups as full as
 * can be. */
std::vector<ResolutionShape> ShapesOf(std::vector<std::uint32_t> const& resolutions) {
  std::vector<ResolutionShape> shapes;
  for (std::uint32_t bins : resolutions) {
    shapes.push_back({static_cast<double>(bins), static_cast<double>(kMaxBins / bins), true});
  }
  return shapes;
}

/** @brief The way to search two siblings of so many rows each. */
std::size_t WayFor(RowIdx n_rows, RowIdx n_all, std::vector<ResolutionShape> const& shapes,
                   RowIdx max_sorted = 0) {
  return ChooseSearchWays({{0, 2, 0, {n_rows, n_rows}}}, {n_all, 100.0, shapes, max_sorted}).at(0);
}

TEST(ChooseSearchWays, FinerForLargerNodes) {
  for (RowIdx n_all : {20'000u, 100'000u, 1'000'000u, 10'000'000u, 100'000'000u}) {
    auto const shapes = ShapesOf(ChooseResolutions(n_all, 100, kMaxBins, kMaxSorted, {false}));
    ASSERT_GT(shapes.size(), 1u);
    EXPECT_EQ(WayFor(1, n_all, shapes), shapes.size() - 1);
    // Of a million rows a second resolution costs the root a little less.
    EXPECT_LE(WayFor(n_all, n_all, shapes), n_all == 1'000'000u ? 1u : 0u) << n_all;
    std::size_t before = shapes.size() - 1;
    for (double n = 1.0; n <= n_all; n *= 1.3) {
      std::size_t const chosen = WayFor(static_cast<RowIdx>(n), n_all, shapes);
      EXPECT_LE(chosen, before) << n << " of " << n_all << " rows";
      before = chosen;
    }
  }
}

TEST(ChooseSearchWays, CoarserForScatteredNodes) {
  std::vector<ResolutionShape> const shapes{
      {5120.0, 2.0, true}, {1280.0, 8.0, true}, {160.0, 64.0, true}};
  bool any_change{false};
  for (RowIdx n_rows = 1000; n_rows < 10'000'000; n_rows = n_rows * 3 / 2) {
    std::size_t before{0};
    for (std::uint64_t n_all = n_rows; n_all < 4'000'000'000u; n_all = n_all * 3 / 2) {
      std::size_t const chosen = WayFor(n_rows, static_cast<RowIdx>(n_all), shapes);
      EXPECT_GE(chosen, before) << n_rows << " of " << n_all << " rows";
      any_change = any_change || (n_all != n_rows && chosen != before);
      before = chosen;
    }
  }
  EXPECT_TRUE(any_change);
}

TEST(ChooseSearchWays, OneResolutionServesAll) {
  for (RowIdx n_rows : {1u, 1000u}) {
    EXPECT_EQ(WayFor(n_rows, 1000, {{32.0, 320.0, true}}), 0u);
    EXPECT_EQ(WayFor(n_rows, 0, {{32.0, 320.0, false}}), 0u);
  }
}

TEST(ChooseSearchWays, SortsUpToAsManyRowsAsCanBe) {
  auto const shapes = ShapesOf(ChooseResolutions(1'000'000, 100, kMaxBins, kMaxSorted, {false}));
  EXPECT_EQ(WayFor(100, 1'000'000, shapes, 100), shapes.size());
  EXPECT_LT(WayFor(100, 1'000'000, shapes, 99), shapes.size());
}

TEST(ChooseSearchWays, NoLargerNodesAreSortedThanCanBe) {
  auto const shapes = ShapesOf(ChooseResolutions(1'000'000, 100, kMaxBins, kMaxSorted, {false}));
  std::vector<Family> families;
  for (RowIdx n : {0u, 1u, 10u, 100u, 12'287u, 12'288u, 12'289u, 500'000u}) {
    families.push_back({0, 1, 0, {n, 0}});
    families.push_back({0, 2, 0, {0, n}});
    families.push_back({0, 2, 0, {n, 100}});
  }
  for (int copies : {1, 40}) {  // few families, and more than all sets of ways are tried for
    std::vector<Family> all;
    for (int i = 0; i < copies; ++i) {
      all.insert(all.end(), families.begin(), families.end());
    }
    auto const ways = ChooseSearchWays(all, {1'000'000, 100.0, shapes, kMaxSorted});
    ASSERT_EQ(ways.size(), all.size());
    bool any_sorted{false};
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_LE(ways[i], shapes.size());
      any_sorted = any_sorted || ways[i] == shapes.size();
      if (std::max(all[i].n_rows[0], all[i].n_rows[1]) > kMaxSorted) {
        ASSERT_LT(ways[i], shapes.size());
      }
    }
    EXPECT_TRUE(any_sorted || copies == 1);  // of few, kernels of their own cost more
  }
  EXPECT_TRUE(ChooseSearchWays({}, {1'000'000, 100.0, shapes, kMaxSorted}).empty());
}

TEST(ChooseSearchWays, SmallTablesAreSorted) {
  EXPECT_TRUE(SortsTable(0, 0, kMaxSorted));
  EXPECT_TRUE(SortsTable(1000, 100, kMaxSorted));
  EXPECT_FALSE(SortsTable(kMaxSorted + 1, 1, kMaxSorted));
  EXPECT_FALSE(SortsTable(1000, 100'000, kMaxSorted));
}
/** @brief Columns with ranges are kept, and those that have some in a resolution that is
 *         scanned. */
TEST(SortedColumnsRule, WhichColumnsAreKept) {
  using Bins = std::vector<std::uint32_t>;
  ColumnBins const ranges{400, true};
  auto values = [](std::uint32_t n) { return ColumnBins{n, false}; };
  SortedColumnsRule const one{Bins{400}, true};
  EXPECT_FALSE(one.MayKeepNoColumn());
  EXPECT_TRUE(one.Keeps(ranges));
  EXPECT_FALSE(one.Keeps(values(1'000'000))) << "no other resolution";
  SortedColumnsRule const dense{Bins{400, 100, 20}, true};
  EXPECT_FALSE(dense.MayKeepNoColumn());
  EXPECT_FALSE(dense.Keeps(values(20)));
  EXPECT_TRUE(dense.Keeps(values(21)));
  SortedColumnsRule const sparse{Bins{400, 100, 20}, false};
  EXPECT_TRUE(sparse.MayKeepNoColumn());
  EXPECT_FALSE(sparse.Keeps(values(100))) << "ranges in the last one alone";
  EXPECT_TRUE(sparse.Keeps(values(101)));
  EXPECT_TRUE(sparse.NeedsRows(ranges));
  EXPECT_FALSE(sparse.NeedsRows(values(150))) << "hardly two values a range";
  EXPECT_TRUE(sparse.NeedsRows(values(151)));
  EXPECT_FALSE((SortedColumnsRule{Bins{400, 20}, false}).MayKeepNoColumn());
  EXPECT_TRUE(sparse.KeepsEveryColumnAbove({values(90), ranges}, 100));
  EXPECT_FALSE(sparse.KeepsEveryColumnAbove({values(90), ranges}, 20))
      << "the first has ranges there";
  EXPECT_TRUE(sparse.KeepsEveryColumnAbove({values(15), ranges, values(0)}, 20));
}
}  // namespace
}  // namespace gpu_exact
