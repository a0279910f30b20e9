/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The cost model's choices, and slices of work that have every row of
 * every segment once.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <random>
#include <utility>

#include "plan/histogram_plan.h"

namespace gpu_exact {
namespace {
constexpr std::uint32_t kMaxBins = 10240;
constexpr RowIdx kMaxSorted = 12288;

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
    refine.n_columns = 0.99 * HistogramCost::kGatherLevel / (open * column);
    EXPECT_TRUE(refine.ScansAnyway()) << factor;
    refine.n_columns = 1.01 * HistogramCost::kGatherLevel / (open * column);
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
      HistogramCost::kGatherLevel +
      refine.n_columns * HistogramCost::Read(refine.n_rows, density, refine.shape);
  double const n_scanned = gathering / HistogramCost::ScannedEntry(refine.shape);
  EXPECT_TRUE(refine.Scans(0.99 * n_scanned, 0.0));
  EXPECT_FALSE(refine.Scans(1.01 * n_scanned, 0.0));
}

/** @brief Ranges are halved until there is room: each part but the first takes two more walks. */
TEST(RefineCost, ASmallRoomTakesMoreWalks) {
  auto refine = kRefine;
  double const n_gathered{1e6};
  double const walk =
      refine.n_columns * HistogramCost::Read(refine.n_rows, 1.0 / refine.n_nodes, refine.shape);
  for (double n_parts : {1.0, 2.0, 4.0, 8.0}) {
    refine.at_once = n_gathered / (0.75 * n_parts);
    double const gathering = HistogramCost::kGatherLevel + (2.0 * n_parts - 1.0) * walk +
                             n_gathered * (HistogramCost::OpenEntry(refine.shape) -
                                           HistogramCost::FoundEntry(refine.n_table_rows));
    double const n_scanned = gathering / HistogramCost::ScannedEntry(refine.shape);
    EXPECT_TRUE(refine.Scans(0.99 * n_scanned, n_gathered)) << n_parts;
    EXPECT_FALSE(refine.Scans(1.01 * n_scanned, n_gathered)) << n_parts;
  }
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
  EXPECT_NEAR(in_words - in_bytes, HistogramCost::kByte * 1e5, 1.0);
  EXPECT_EQ(in_bytes, HistogramCost::Read(1e5, 0.001, shape)) << "a sector of each row, full";
}

TEST(HistogramCost, NothingIsOpenWithoutRanges) {
  ResolutionShape const indicators{1.0, 100.0, false};
  EXPECT_EQ(HistogramCost::ExpectedOpen(1e4, indicators), 0.0);
  double const read = HistogramCost::Read(1e4, 0.01, indicators);
  EXPECT_EQ(HistogramCost::Node(1e4, 0.01, indicators), HistogramCost::kBin + read);
  // So nodes of many rows and of indicators alone are not sorted.
  SearchMethods const ways{1'000'000, 700.0, {indicators}, kMaxSorted};
  EXPECT_EQ(ChooseSearchMethods({{2'500, 10'000}}, ways), std::vector<std::size_t>{0});
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

TEST(IsDense, WhereHalfOfTheValuesArePresent) {
  EXPECT_TRUE(IsDense(50, 10, 10));
  EXPECT_FALSE(IsDense(49, 10, 10));
}

TEST(RowOffsetBytes, AreManyOfVerySparseTablesOnly) {
  EXPECT_EQ(RowOffsetBytes(294'000'000, 10'500'000, 28, {false}), 0u);
  EXPECT_EQ(RowOffsetBytes(0, 0, 0, {false}), 0u);
  EXPECT_LE(RowOffsetBytes(197'000'000, 1'070'000, 968, {false}), 8 * EntryIdx{197'000'000});
  // One group of columns at least, in each resolution, and more of them where rows are many.
  EXPECT_GE(RowOffsetBytes(1'000'000'000, 100'000'000, 1'000, {false}), std::uint64_t{60} << 30);
  EXPECT_GE(RowOffsetBytes(100'000'000, 10'000'000, 100'000, {false}), std::uint64_t{50} << 30);
}

TEST(RowOffsetBytes, ColumnsOfOneEntryShareAGroup) {
  constexpr RowIdx kRows = 100'000;
  constexpr FeatureIdx kColumns = 22 * RowOffsetBlock::kMaxColumns;
  constexpr std::uint64_t kGroup = RowOffsetBlock::Bytes(kRows, false);
  auto const n_resolutions =
      ChooseResolutions(kRows, kColumns, kMaxGroupBins, kMaxSortedRows).size();
  EXPECT_EQ(RowOffsetBytes(kColumns, kRows, kColumns), n_resolutions * 22 * kGroup);
  EXPECT_EQ(NumRowOffsets(kColumns, kRows, kColumns), n_resolutions * 22 * kRows);
  HistogramMemory memory;
  memory.shares_bins = true;  // those of the finest and those of the last
  EXPECT_EQ(RowOffsetBytes(kColumns, kRows, kColumns, memory), 2 * 22 * kGroup);
}

/** @brief Of 10,240 bins a group has 64 columns of 160, of 3,932 it has 24. */
TEST(RowOffsetBytes, AreMoreWhereABlockHasLessRoom) {
  constexpr RowIdx kRows = 37'500;
  constexpr FeatureIdx kColumns = 100'000;
  constexpr EntryIdx kEntries = 60'000'000;
  auto const wide = RowOffsetBytes(kEntries, kRows, kColumns, {}, kMaxGroupBinsOf[0]);
  auto const narrow = RowOffsetBytes(kEntries, kRows, kColumns, {}, kMaxGroupBinsOf[2]);
  EXPECT_EQ(wide, RowOffsetBytes(kEntries, kRows, kColumns));
  EXPECT_LT(wide, std::uint64_t{600} << 20);
  EXPECT_GE(narrow, std::uint64_t{630} << 20);
}

/** @brief A table of few entries has a group for each multiprocessor, so that all have work. */
TEST(RowOffsetBytes, ASmallTableHasGroupsThatFillTheDevice) {
  constexpr RowIdx kRows = 246'000;
  constexpr EntryIdx kEntries = 4'190'000;
  constexpr std::uint64_t kGroup = RowOffsetBlock::Bytes(kRows, true);
  constexpr std::uint64_t kArrays = 3;
  constexpr std::uint64_t kArraysOfFew = 2;
  EXPECT_EQ(RowOffsetBytes(kEntries, kRows, 66), kArrays * 66 * kGroup)
      << "a group for each column";
  EXPECT_LE(RowOffsetBytes(kManyEntries, kRows, 66), 8 * kArrays * kGroup) << "many entries";
  // The bins of so few entries fit one group: it may become twice as many as fill the device, and one.
  EXPECT_EQ(RowOffsetBytes(2460, kRows, 20), (3 + 1) * kArraysOfFew * kGroup)
      << "ten columns take two";
  EXPECT_EQ(RowOffsetBytes(2460, kRows, 2), 2 * kArraysOfFew * kGroup) << "no more than columns";
  EXPECT_EQ(FillingGroups(kRows, kRows), 2u);
  EXPECT_EQ(FillingGroups(0, 0), 1u);
}

/** @brief Groups of a dense table most of whose values are missing: not more than miss half of them. */
TEST(RowOffsetBytes, OfColumnsMostlyMissingInADenseTable) {
  constexpr RowIdx kRows = 1'000'000;
  constexpr std::uint64_t kGroup = RowOffsetBlock::Bytes(kRows, true);
  EXPECT_EQ(RowOffsetBytes(EntryIdx{40} * kRows, kRows, 40), 0u);
  EXPECT_EQ(NumRowOffsets(EntryIdx{40} * kRows, kRows, 40), 0u);
  EXPECT_EQ(RowOffsetBytes(EntryIdx{40} * kRows - kRows / 2 + 1, kRows, 40), 0u)
      << "less than half";
  auto const half = RowOffsetBytes(EntryIdx{20} * kRows, kRows, 40);
  EXPECT_GE(half, 10 * kGroup) << "all groups of columns that share a block";
  auto const few = RowOffsetBytes(EntryIdx{37} * kRows, kRows, 40);
  EXPECT_GE(few, 1 * kGroup);
  EXPECT_LT(few, half / 4);
}

/** @brief Of more rows and columns than any machine has, too: 64 bits would wrap. */
TEST(RowOffsetBytes, DoNotWrap) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  constexpr EntryIdx kEntries = EntryIdx{1} << 33;
  for (RowIdx n_rows : {RowIdx{1} << 31, kMost}) {
    std::uint64_t before{0};
    for (FeatureIdx n_features : {1u << 12, 1u << 20, 1u << 30, 1u << 31, kMost}) {
      auto const bytes = RowOffsetBytes(kEntries, n_rows, n_features);
      EXPECT_GT(bytes, std::uint64_t{1} << 43) << n_features;
      EXPECT_GE(bytes, before) << n_features;
      before = bytes;
    }
  }
}

TEST(HistogramMemory, RoomForHistogramsAndOpenRanges) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  HistogramMemory memory;
  EXPECT_EQ(memory.HistogramBytes(16 * kMiB), 20 * kMiB);
  EXPECT_EQ(memory.HistogramBytes(1024 * kMiB), 528 * kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(0), kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(kMiB / 4), 3 * kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(16 * kMiB), 10 * kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(1024 * kMiB), 264 * kMiB);
  EXPECT_EQ(memory.OpenEntries(1000), 1000u);
  EXPECT_EQ(memory.OpenEntries(128 * kMiB), 1u << 19);
  EXPECT_EQ(memory.OpenEntries(256 * kMiB), 1u << 20);
  EXPECT_EQ(memory.CertainRanges(), 1u << 16);
  EXPECT_EQ(memory.ReadAtOnce(0), 1u << 22);
  EXPECT_EQ(memory.ReadAtOnce(EntryIdx{1} << 27), 1u << 23);
  EXPECT_EQ(memory.ReadAtOnce(EntryIdx{1} << 40), 1u << 25);
  memory.is_lean = true;
  memory.histograms = 1;
  EXPECT_EQ(memory.HistogramBytes(1024 * kMiB), 132 * kMiB);
  EXPECT_EQ(memory.OpenEntries(kMiB), 1u << 18);
  EXPECT_EQ(memory.CertainRanges(), HistogramMemory::kFirstRanges)
      << "a list takes as much at once";
  EXPECT_EQ(memory.ReadAtOnce(EntryIdx{1} << 40), 1u << 22);
}

TEST(HistogramMemory, EntriesAtOnceAreNumberedIn32Bits) {
  for (HistogramMemory const& memory : HistogramMemory::All()) {
    for (EntryIdx n = 1; n < EntryIdx{1} << 56; n *= 16) {
      EXPECT_LT(memory.BinnedAtOnce(n, true), EntryIdx{1} << 32) << n;
      EXPECT_LE(memory.BinnedAtOnce(n, false), memory.BinnedAtOnce(n, true)) << n;
    }
  }
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(1, true), EntryIdx{1} << 21);
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(1, false), EntryIdx{1} << 20);
  EXPECT_EQ(HistogramMemory::All().back().BinnedAtOnce(1, true), EntryIdx{1} << 19);
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(EntryIdx{1} << 33, true), EntryIdx{1} << 29);
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(EntryIdx{1} << 33, false), EntryIdx{1} << 27);
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
            2u)
      << "values of the host are not sorted";
}

/** @brief The last one has its own bins where bytes hold them and take less; all others may share. */
TEST(StoredResolutions, WhichMayBeReadAndWhichAreNot) {
  using Columns = std::vector<std::uint32_t>;
  HistogramMemory own;
  HistogramMemory shared;
  shared.shares_bins = true;
  StoredResolutions const four{28, {10240, 5120, 2560, 255}};
  EXPECT_EQ(four.last, 255u);
  EXPECT_EQ(four.GroupColumns(own), (Columns{1, 2, 4, 40}));
  EXPECT_EQ(four.GroupColumns(shared), (Columns{4, 40}));
  StoredResolutions const narrow{4, {10240, 5120, 2560, 255}};
  EXPECT_EQ(narrow.last, 0u);
  EXPECT_EQ(narrow.GroupColumns(own), (Columns{1, 2, 4, 40}));
  EXPECT_EQ(narrow.GroupColumns(shared), (Columns{4})) << "as many stored bins as a group may have";
  StoredResolutions const wide{28, {2560, 640}};
  EXPECT_EQ(wide.last, 0u);
  EXPECT_EQ(wide.GroupColumns(shared), (Columns{16}));
  EXPECT_EQ((StoredResolutions{28, {100}}).GroupColumns(own), (Columns{102}));
  EXPECT_EQ((StoredResolutions{0, {0, 0}}).last, 0u);
}

TEST(SortedColumnHighBytes, OneUpTo24Bits) {
  EXPECT_EQ(SortedColumnHighBytes(1u << 24), 1u);
  EXPECT_EQ(SortedColumnHighBytes((1u << 24) + 1), 2u);
}

TEST(NumStoredBins, APlaceForEachRowOfADenseTable) {
  EXPECT_EQ(NumStoredBins(50, 10, 10), 100u);
  EXPECT_EQ(NumStoredBins(49, 10, 10), 49u);
}

TEST(ReadsFinest, LargeTablesWhoseBinsAreJustShifted) {
  EXPECT_TRUE(ReadsFinest(1 << 26, false, 0.0));
  EXPECT_TRUE(ReadsFinest(1 << 26, false, 0.1));
  EXPECT_TRUE(ReadsFinest(1 << 26, false, 0.125));
  EXPECT_FALSE(ReadsFinest(1 << 26, false, 0.2)) << "too many are looked up";
  EXPECT_TRUE(ReadsFinest(1 << 26, true, 1.0)) << "most values are present";
  EXPECT_FALSE(ReadsFinest(1 << 22, false, 0.0)) << "the cache holds them";
  EXPECT_FALSE(ReadsFinest(1 << 22, true, 0.0));
}

TEST(NumCells, WholeChunksWhereLittleIsLost) {
  EXPECT_EQ(NumCells(8), 8u);
  EXPECT_EQ(NumCells(28), 28u);  // in chunks of four
  EXPECT_EQ(NumCells(31), 32u);
  EXPECT_EQ(NumCells(5), 5u);
  EXPECT_EQ(NumByteCells(4), 0u);  // would take as much as two bytes each
  EXPECT_EQ(NumByteCells(5), 8u);
  EXPECT_EQ(NumByteCells(40), 40u);
  for (std::uint32_t n = 1; n < 300; ++n) {
    EXPECT_GE(NumCells(n), n);
    EXPECT_LE(8 * NumCells(n), 9 * n);
    EXPECT_TRUE(NumByteCells(n) == 0 || (NumByteCells(n) >= n && NumByteCells(n) % 8 == 0));
  }
}

TEST(RowBytes, GroupsAndTheRest) {
  EXPECT_EQ(RowBytes(2000, 8, false), 2 * 2000u);               // 250 groups
  EXPECT_EQ(RowBytes(2000, 256, false), 2 * (7 * 256 + 208u));  // 7 groups, and the rest
  EXPECT_EQ(RowBytes(2000, 256, true), 2000u);
  EXPECT_EQ(RowBytes(34, 40, true), 32 + 2 * 2u) << "a bank for each column";
  EXPECT_EQ(RowBytes(10, 64, true), 16u);
  EXPECT_EQ(RowBytes(9, 4, true), 2 * (4 + 4 + 1u)) << "of so few columns bytes take no less";
  EXPECT_EQ(RowBytes(0, 256, true), 0u);
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

TEST(ChooseSearchMethods, SortsWhereFarMoreIsOpenThanExpected) {
  SearchMethods ways{1'000'000, 28.0, {{40.0, 28.0, true, true}}, kMaxSorted};
  std::vector<FamilyRows> const families(1000, {250, 250});
  EXPECT_EQ(ChooseSearchMethods(families, ways).front(), 0u);
  ways.resolutions[0].open_factor = 1000.0;
  EXPECT_EQ(ChooseSearchMethods(families, ways).front(), 1u);
}

/** @brief What a level costs, whatever is in it, is paid for the ways that are taken alone. */
TEST(ChooseSearchMethods, FewSmallNodesGoTheWayOfALargeOne) {
  std::vector<FamilyRows> families{{5'000'000, 0}, {3000, 0}};
  SearchMethods const ways{10'000'000, 28.0, {{5120.0, 2.0, true, true}}, kMaxSorted};
  EXPECT_EQ(ChooseSearchMethods(families, ways), (std::vector<std::size_t>{0, 0}));
  families.resize(100, {3000, 0});
  EXPECT_EQ(ChooseSearchMethods(families, ways).at(1), 1u) << "sorted";
}

TEST(ChooseSearchMethods, AParentsHistogramIsWorthKeepingTo) {
  std::vector<ResolutionShape> const shapes{
      {5120.0, 2.0, true}, {1280.0, 8.0, true}, {160.0, 64.0, true}};
  SearchMethods const ways{10'000'000, 28.0, shapes, kMaxSorted};
  std::size_t n_kept{0};
  for (RowIdx n = 20'000; n < 5'000'000; n = n * 4 / 3) {
    std::size_t const free = ChooseSearchMethods({{n, 3 * n}}, ways).at(0);
    for (std::size_t way = 0; way < shapes.size(); ++way) {
      std::size_t const chosen = ChooseSearchMethods({{n, 3 * n, way}}, ways).at(0);
      EXPECT_TRUE(chosen == free || chosen == way) << n << " rows";
      n_kept += chosen != free ? 1 : 0;
    }
    EXPECT_EQ(ChooseSearchMethods({{n, 3 * n, free}}, ways).at(0), free);
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
  return ChooseSearchMethods({{n_rows, n_rows}}, {n_all, 100.0, shapes, max_sorted}).at(0);
}

TEST(ChooseSearchMethods, FinerForLargerNodes) {
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

TEST(ChooseSearchMethods, CoarserForScatteredNodes) {
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

TEST(ChooseSearchMethods, OneResolutionServesAll) {
  for (RowIdx n_rows : {1u, 1000u}) {
    EXPECT_EQ(WayFor(n_rows, 1000, {{32.0, 320.0, true}}), 0u);
    EXPECT_EQ(WayFor(n_rows, 0, {{32.0, 320.0, false}}), 0u);
  }
}

TEST(ChooseSearchMethods, SortsUpToAsManyRowsAsCanBe) {
  auto const shapes = ShapesOf(ChooseResolutions(1'000'000, 100, kMaxBins, kMaxSorted, {false}));
  EXPECT_EQ(WayFor(100, 1'000'000, shapes, 100), shapes.size());
  EXPECT_LT(WayFor(100, 1'000'000, shapes, 99), shapes.size());
}

TEST(ChooseSearchMethods, NoLargerNodesAreSortedThanCanBe) {
  auto const shapes = ShapesOf(ChooseResolutions(1'000'000, 100, kMaxBins, kMaxSorted, {false}));
  std::vector<FamilyRows> families;
  for (RowIdx n : {0u, 1u, 10u, 100u, 12'287u, 12'288u, 12'289u, 500'000u}) {
    families.push_back({n, 0});
    families.push_back({0, n});
    families.push_back({n, 100});
  }
  for (int copies : {1, 40}) {  // few families, and more than all sets of ways are tried for
    std::vector<FamilyRows> all;
    for (int i = 0; i < copies; ++i) {
      all.insert(all.end(), families.begin(), families.end());
    }
    auto const ways = ChooseSearchMethods(all, {1'000'000, 100.0, shapes, kMaxSorted});
    ASSERT_EQ(ways.size(), all.size());
    bool any_sorted{false};
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_LE(ways[i], shapes.size());
      any_sorted = any_sorted || ways[i] == shapes.size();
      if (std::max(all[i].first, all[i].second) > kMaxSorted) {
        ASSERT_LT(ways[i], shapes.size());
      }
    }
    EXPECT_TRUE(any_sorted || copies == 1);  // of few, kernels of their own cost more
  }
  EXPECT_TRUE(ChooseSearchMethods({}, {1'000'000, 100.0, shapes, kMaxSorted}).empty());
}

TEST(ChooseSearchMethods, SmallTablesAreSorted) {
  EXPECT_TRUE(SortsTable(0, 0, kMaxSorted));
  EXPECT_TRUE(SortsTable(1000, 100, kMaxSorted));
  EXPECT_FALSE(SortsTable(kMaxSorted + 1, 1, kMaxSorted));
  EXPECT_FALSE(SortsTable(1000, 100'000, kMaxSorted));
}

/** @brief A group's elements, and its bins. */
struct Group {
  std::uint64_t n_elements;
  std::uint32_t n_bins;
};

/** @brief Cuts work on nodes of so many rows, and goes along the slices as
 * blocks do. */
class Slicing {
 public:
  Slicing(std::vector<Group> const& groups, std::vector<RowIdx> const& rows, RowIdx n_rows)
      : rows_{rows} {
    for (Group const& g : groups) {
      slicer_.AddGroup(g.n_elements, n_rows, g.n_bins);
    }
    std::uint64_t before{0};
    for (RowIdx n : rows) {
      nodes_.push_back({0, static_cast<std::uint32_t>(nodes_.size()), before});
      before += n;
    }
    nodes_.push_back({0, 0, before});
  }

  void Check(std::uint32_t max_slices) const {
    auto const slices = slicer_.Slices(nodes_, max_slices);
    auto const n_slices = slices.size() - 1;
    auto const n_nodes = static_cast<std::uint32_t>(rows_.size());
    ASSERT_GE(slices.size(), 2u);
    ASSERT_LE(n_slices, std::max(max_slices, 1u));
    std::map<std::pair<std::uint32_t, std::uint32_t>, RowIdx> done;  // rows of each segment
    std::vector<double> costs;
    double total{0.0};
    for (std::size_t s = 0; s < n_slices; ++s) {
      ASSERT_FALSE(slices[s + 1] < slices[s]);
      double cost{0.0};
      WorkOffset point = slices[s];
      while (point < slices[s + 1]) {
        ASSERT_LT(point.node, n_nodes);
        ASSERT_LT(point.group, slicer_.NumGroups());
        bool const ends_cut = point.SameSegment(slices[s + 1]);
        RowIdx const n = rows_[point.node];
        RowIdx const last = ends_cut ? slices[s + 1].row : n;
        ASSERT_LE(last, n);
        ASSERT_TRUE(point.row < last || n == 0) << "no row, for which a histogram is written";
        auto const [segment, is_new] = done.insert({{point.node, point.group}, 0});
        ASSERT_EQ(is_new, point.row == 0) << "an empty segment twice, or one begun in its middle";
        ASSERT_EQ(segment->second, point.row) << "rows twice, or left out";
        segment->second = last;
        cost += this->Cost(point, last, !ends_cut);
        point = point.group + 1 < slicer_.NumGroups() ? WorkOffset{point.node, point.group + 1, 0}
                                                      : WorkOffset{point.node + 1, 0, 0};
      }
      costs.push_back(cost);
      total += cost;
    }
    for (auto const& [segment, n_rows] : done) {
      ASSERT_EQ(n_rows, rows_[segment.first]) << "node " << segment.first;
    }
    ASSERT_EQ(done.size(), std::size_t{n_nodes} * slicer_.NumGroups());
    ASSERT_EQ(slices.back().node, n_nodes);
    // A row and the bins of a segment are not divided, at the begin and at the
    // end of a slice.
    double most{0.0};
    for (std::uint32_t g = 0; g < slicer_.NumGroups(); ++g) {
      most = std::max(most, this->Cost({0, g, 0}, 1, true));
    }
    double const share = total / static_cast<double>(n_slices);
    EXPECT_LE(*std::max_element(costs.begin(), costs.end()), share + 2.0 * most + 1.0);
    if (n_slices > 1) {
      EXPECT_GE(share, static_cast<double>(LoadBalancer::kMinSlice));
    }
    if (n_slices < max_slices) {
      EXPECT_LT(share, 2.0 * static_cast<double>(LoadBalancer::kMinSlice));
    }
  }

 private:
  [[nodiscard]] double Cost(WorkOffset const& point, RowIdx last, bool ends) const {
    GroupCost const& before = slicer_.Costs()[point.group];
    GroupCost const& after = slicer_.Costs()[point.group + 1];
    return static_cast<double>(last - point.row) * static_cast<double>(after.row - before.row) +
           (ends ? static_cast<double>(after.segment - before.segment) : 0.0);
  }

  LoadBalancer slicer_;
  std::vector<RowIdx> rows_;
  std::vector<BuiltNode> nodes_;
};

void CheckSlices(std::vector<Group> const& groups, std::vector<RowIdx> const& rows, RowIdx n_rows) {
  Slicing const slicing{groups, rows, n_rows};
  for (std::uint32_t max_slices : {0u, 1u, 2u, 3u, 132u, 2048u, 100'000u}) {
    slicing.Check(max_slices);
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << max_slices << " slices";
  }
}

TEST(LoadBalancer, NoRowsAndOneRow) {
  for (RowIdx n : {0u, 1u}) {
    CheckSlices({{n, 1}}, {n}, n);
    CheckSlices({{n, 2}, {5 * n, 10'000}, {0, 3}}, {n}, n);
  }
  CheckSlices({{1000, 60'000}, {1, 60'000}}, {0, 0, 1, 0, 0, 1, 0}, 1000);
}

TEST(LoadBalancer, OneLargeNodeBesideThousandsOfSmallOnes) {
  std::vector<RowIdx> rows(5000, 3);
  for (std::size_t at : {std::size_t{0}, std::size_t{2500}, rows.size() - 1}) {
    rows[at] = 3'000'000;
    CheckSlices({{30'000'000, 500}, {3'000'000, 9000}, {100, 2}}, rows, 3'100'000);
    rows[at] = 3;
  }
}

TEST(LoadBalancer, RowsOfMoreCostThanASlice) {
  // 4000 elements a row: several slices begin at the same row, and all but one
  // have nothing to do.
  CheckSlices({{4'000'000, 10'000}, {1000, 10}}, {10, 0, 1, 989}, 1000);
}

TEST(LoadBalancer, MoreThan32BitsOfRowsTimesGroups) {
  constexpr RowIdx kRows = std::numeric_limits<std::int32_t>::max();
  std::vector<Group> const groups(9, Group{std::uint64_t{1} << 30, 10'000});
  CheckSlices(groups, {kRows}, kRows);
  CheckSlices(groups, {kRows / 2, 0, 17, kRows / 2 - 100}, kRows);
}

TEST(LoadBalancer, RandomNodesAndGroups) {
  std::mt19937 engine{3};
  auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); };
  for (int i = 0; i < 300; ++i) {
    std::vector<RowIdx> rows;
    std::uint64_t n_rows{1};
    for (std::uint32_t n = 1 + below(40); n > 0; --n) {
      rows.push_back(below(4) == 0 ? 0 : below(below(5) == 0 ? 100'000 : 100));
      n_rows += rows.back();
    }
    std::vector<Group> groups;
    for (std::uint32_t n = 1 + below(6); n > 0; --n) {
      groups.push_back({n_rows * below(200) / (1 + below(300)), 1 + below(12'000)});
    }
    Slicing const slicing{groups, rows, static_cast<RowIdx>(n_rows)};
    slicing.Check(1 + below(500));
    ASSERT_FALSE(HasFatalFailure()) << i;
  }
}

/** @brief A slicer of so many alike groups, and nodes of so many rows, one after the other. */
struct Parts {
  LoadBalancer slicer;
  std::vector<BuiltNode> nodes;

  Parts(std::uint32_t n_groups, std::vector<RowIdx> const& rows) {
    for (std::uint32_t g = 0; g < n_groups; ++g) {
      slicer.AddGroup(1000, 1000, 10);
    }
    RowIdx begin{7};
    std::uint64_t before{0};
    for (RowIdx n : rows) {
      nodes.push_back({begin, 2 * static_cast<std::uint32_t>(nodes.size()), before});
      begin += n + 3;
      before += n;
    }
    nodes.push_back({0, 0, before});
  }
};

TEST(LoadBalancer, PartsAreAllRowsOnceTheLargestNodeFirst) {
  std::mt19937 engine{5};
  auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); };
  int n_cut{0};
  for (int i = 0; i < 500; ++i) {
    std::vector<RowIdx> rows(1 + below(20));
    for (RowIdx& n : rows) {
      n = below(3) == 0 ? below(5) : below(below(4) == 0 ? 100'000'000 : 100'000);
    }
    Parts const whole{2 + below(60), rows};
    std::uint32_t const n_blocks = 1 + below(200);
    auto const parts = whole.slicer.Parts(whole.nodes, {n_blocks, 1000});
    if (parts.empty()) {
      continue;
    }
    ++n_cut;
    ASSERT_EQ(parts.back().before, whole.nodes.back().before);
    std::map<std::uint32_t, RowIdx> done;  // rows of each node
    RowIdx last_size = ~RowIdx{0};
    for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
      auto const n = static_cast<RowIdx>(parts[p + 1].before - parts[p].before);
      BuiltNode const& node = whole.nodes[parts[p].node / 2];
      RowIdx const size = rows[parts[p].node / 2];
      RowIdx& of_node = done[parts[p].node];
      ASSERT_EQ(parts[p].begin, node.begin + of_node) << "rows twice, or left out";
      ASSERT_EQ(parts[p].part, n == size      ? NodePart::kWhole
                               : of_node == 0 ? NodePart::kFirst
                                              : NodePart::kLater);
      ASSERT_LE(size, last_size);
      last_size = size;
      of_node += n;
    }
    ASSERT_EQ(done.size(), rows.size());
    for (auto const& [node, n_done] : done) {
      ASSERT_EQ(n_done, rows[node / 2]);
    }
  }
  EXPECT_GT(n_cut, 300);
}

TEST(LoadBalancer, PartsKeepAllBlocksBusy) {
  constexpr std::uint32_t kBlocks = 132;
  for (std::uint32_t n_groups = 2; n_groups <= kBlocks / 2; ++n_groups) {
    for (std::vector<RowIdx> const& rows :
         {std::vector<RowIdx>{10'000'000}, {4'000'000, 2'345'678}, {3'000'000, 1, 2'500'000}}) {
      Parts const whole{n_groups, rows};
      auto const parts = whole.slicer.Parts(whole.nodes, {kBlocks, 2'000'000});
      std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> blocks;
      for (std::uint32_t b = 0; b < kBlocks; ++b) {
        blocks.push(0);
      }
      std::uint64_t end{0};
      for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
        for (std::uint32_t g = 0; g < n_groups; ++g) {  // the block that is done first goes on
          std::uint64_t const done = blocks.top() + parts[p + 1].before - parts[p].before;
          blocks.pop();
          blocks.push(done);
          end = std::max(end, done);
        }
      }
      double const least = static_cast<double>(whole.nodes.back().before) * n_groups / kBlocks;
      EXPECT_LE(static_cast<double>(end), 1.3 * least) << n_groups << " groups, " << rows.size();
      EXPECT_EQ(whole.slicer.Segments(3).size(), 3 * n_groups + 1);
    }
  }
}

/** @brief 33 groups fill one to four rounds of 132 blocks, of which the most are taken; 9 groups fill three,
 *         and leave 6 of 528 blocks idle in four. */
TEST(LoadBalancer, MoreRoundsOfThoseThatFillAlike) {
  constexpr std::uint32_t kBlocks = 132;
  for (std::uint32_t n_groups : {9, 33}) {
    Parts const whole{n_groups, {10'000'000}};
    auto const n_parts = whole.slicer.Parts(whole.nodes, {kBlocks, 1000}).size() - 1;
    EXPECT_EQ(n_parts * n_groups % kBlocks, 0u) << "a round is not full";
    EXPECT_GE(n_parts * n_groups, 3 * kBlocks) << n_groups << " groups";
  }
}

TEST(LoadBalancer, WhereOnePartMoreIsTheNodeOfTheLongestGetsIt) {
  Parts const whole{33, {690'000, 510'000, 400'000}};  // 6.9, 5.1 and 4 of 16 parts
  std::map<std::uint32_t, int> n_parts;
  auto const parts = whole.slicer.Parts(whole.nodes, {132, 1000});
  for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
    ++n_parts[parts[p].node / 2];
  }
  EXPECT_EQ(n_parts, (std::map<std::uint32_t, int>{{0, 7}, {1, 5}, {2, 4}}));
}

TEST(LoadBalancer, SegmentsAreASliceEach) {
  constexpr std::uint32_t kNodes = 3;
  Parts const whole{4, {10, 20, 30}};
  auto const slices = whole.slicer.Segments(kNodes);
  ASSERT_EQ(slices.size(), 4 * kNodes + 1);
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i].node, i / 4);
    EXPECT_EQ(slices[i].group, i % 4) << "the last one ends all, where a node would begin";
    EXPECT_EQ(slices[i].row, 0u);
  }
}

TEST(LoadBalancer, WhatTheCacheHoldsIsNotCut) {
  Parts const whole{20, {1000, 2000}};
  EXPECT_TRUE(whole.slicer.Parts(whole.nodes, {132, 3000}).empty());
  EXPECT_FALSE(whole.slicer.Parts(whole.nodes, {132, 2999}).empty());
  Parts const one_group{1, {1000, 2000}};
  EXPECT_TRUE(one_group.slicer.Parts(one_group.nodes, {132, 0}).empty());
  Parts const many_nodes{20, std::vector<RowIdx>(1000, 1000)};
  EXPECT_TRUE(many_nodes.slicer.Parts(many_nodes.nodes, {132, 0}).empty());
  Parts const many_groups{5000, {1000, 2000}};
  EXPECT_TRUE(many_groups.slicer.Parts(many_groups.nodes, {132, 0}).empty());
}

TEST(LoadBalancer, WithoutGroupsThereIsNoWork) {
  LoadBalancer const slicer;
  auto const slices = slicer.Slices({{0, 0, 0}, {0, 0, 100}}, 132);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_FALSE(slices[0] < slices[1]);
}
}  // namespace
}  // namespace gpu_exact
