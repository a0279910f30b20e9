/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The memory formula and its text.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "gpu_exact/device.h"
#include "gpu_exact/memory_estimate.h"
#include "plan/bin_bound.h"
#include "plan/memory_plan.h"
#include "plan/search_cost.h"
#include "tests/support/spaced_numbers.h"

namespace gpu_exact {
namespace {
std::uint64_t Sum(std::vector<MemoryItem> const& items) {
  std::uint64_t sum{0};
  for (MemoryItem const& item : items) {
    sum += item.bytes;
  }
  return sum;
}

TEST(MemoryPlan, BytesAnEntryAndRow) {
  constexpr EntryIdx kEntries = EntryIdx{1} << 32;
  auto plan = MemoryPlan::Make(kEntries, 0, 1, Strategy::kSort);
  EXPECT_EQ(plan.Peak(), 20 * kEntries) << "while it is read and sorted";
  EXPECT_GT(Sum(plan.growing), 13 * kEntries);
  EXPECT_LT(Sum(plan.growing), 14 * kEntries);
  auto with_rows = MemoryPlan::Make(kEntries, 1000, 1, Strategy::kSort);
  EXPECT_EQ(Sum(with_rows.growing) - Sum(plan.growing), 25000u);
}

TEST(MemoryPlan, FewDistinctValuesStayOnTheHost) {
  auto few = MemoryPlan::Make(kHostValues, 0, 1, Strategy::kSort);
  auto many = MemoryPlan::Make(kHostValues + 1, 0, 1, Strategy::kSort);
  EXPECT_NEAR(static_cast<double>(Sum(many.growing) - Sum(few.growing)) / kHostValues,
              sizeof(float), 0.001);
}

TEST(MemoryPlan, ColumnsAreSortedInHalves) {
  constexpr EntryIdx kEntries = EntryIdx{1} << 24;
  auto short_columns = MemoryPlan::Make(kEntries, kEntries / 8, 100, Strategy::kSort);
  EXPECT_EQ(Sum(short_columns.sorting), 18 * kEntries);
  auto long_column = MemoryPlan::Make(kEntries, kEntries, 100, Strategy::kSort);
  EXPECT_EQ(Sum(long_column.sorting), 24 * kEntries);
  EXPECT_EQ(MemoryPlan::SortedAtOnce(kEntries + 1), kEntries / 2 + 1);
  EXPECT_EQ(MemoryPlan::SortedAtOnce(5), EntryIdx{1} << 20);
}

/** @brief 20,000 rows of about 455 words, of 1.4 million. */
TEST(MemoryPlan, WideSparseText) {
  auto plan = MemoryPlan::Make(9062668, 19996, 1355191, Strategy::kSort);
  EXPECT_LT(Sum(plan.reading), std::uint64_t{174} << 20);
  EXPECT_LT(Sum(plan.sorting), std::uint64_t{156} << 20);
  EXPECT_LT(Sum(plan.growing), std::uint64_t{139} << 20);
}

std::uint64_t Of(std::vector<MemoryItem> const& items, std::string const& what) {
  std::uint64_t sum{0};
  for (MemoryItem const& item : items) {
    sum += item.what == what ? item.bytes : 0;
  }
  return sum;
}

/** @brief Of sparse columns keys are made beside the table in rows and its offsets, 8 B a row twice. */
TEST(MemoryPlan, SortKeysOfASparseTable) {
  constexpr RowIdx kRows = 100'000;
  constexpr EntryIdx kEntries = EntryIdx{8} * kRows;
  auto const plan = MemoryPlan::Make(kEntries, kRows, 64, Strategy::kHistogram);
  EXPECT_EQ(Of(plan.reading, "table by row"), 8 * kEntries + 8 * kRows);
  auto const one_more = MemoryPlan::Make(kEntries, kRows + 1, 64, Strategy::kHistogram);
  EXPECT_EQ(Of(one_more.reading, "sort keys") - Of(plan.reading, "sort keys"), 8u) << "an offset";
}

/** @brief Each feature has a first entry, and there is an end. */
TEST(MemoryPlan, OffsetsOfSortedColumns) {
  auto columns = [](FeatureIdx n) {
    return Of(MemoryPlan::Make(1000, 100, n, Strategy::kSort).growing, "columns");
  };
  EXPECT_EQ(columns(11) - columns(10), 8 + 1u) << "and how it is searched";
}

/** @brief One more tile for each column may be a part of one. */
TEST(MemoryPlan, LongTilesHave64Nodes) {
  constexpr EntryIdx kTiles = EntryIdx{1} << 20;
  auto plan = MemoryPlan::Make(2048 * kTiles, 0, 3, Strategy::kSort);
  EXPECT_EQ(Of(plan.growing, "tiles"), (64 * 48 + 32) * (kTiles + 3) + (144 + 16) * 3);
}

/** @brief As many columns as can be long, and as many tiles as shorter ones can share. */
TEST(MemoryPlan, TilesOfManyColumns) {
  constexpr EntryIdx kTiles = EntryIdx{1} << 20;
  auto plan = MemoryPlan::Make(2048 * kTiles, 0, ~0u, Strategy::kSort);
  EXPECT_EQ(Of(plan.growing, "tiles"),
            (64 * 48 + 32) * 3 * kTiles + 144 * (6 * kTiles + 1) + 16 * (3 * 64 * kTiles + 1));
}

TEST(MemoryPlan, HistogramsDenseAndSparse) {
  constexpr RowIdx kRows = 1 << 22;
  auto const resolutions = ChooseResolutions(kRows, 64, kMaxGroupBins, kMaxSortedRows);
  ASSERT_EQ(resolutions.size(), 4u);
  auto const of_sparse = ChooseResolutions(kRows, 64, kMaxGroupBins, kMaxSortedRows, {},
                                           std::uint64_t{64 - 8} * kRows);
  double const n_resolutions{3};
  ASSERT_EQ(of_sparse.size(), 3u);
  auto bins = [&](EntryIdx n_columns, std::vector<std::uint32_t> const& max_bins) {
    std::uint64_t n{0};
    for (std::size_t i = 0; i < max_bins.size(); ++i) {
      n += MostBins(n_columns * kRows, 64, max_bins[i], i == 0);
    }
    return static_cast<double>(9 * n) / kRows;
  };
  auto of_row = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kRows; };
  auto dense = MemoryPlan::Make(EntryIdx{64} * kRows, kRows, 64, Strategy::kHistogram);
  EXPECT_EQ(Of(dense.growing, "bins"), std::uint64_t{64 * (2 + 1)} * kRows);
  auto small = MemoryPlan::Make(EntryIdx{1} << 24, 1 << 20, 16, Strategy::kHistogram);
  EXPECT_EQ(Of(small.growing, "bins"), std::uint64_t{16 * (2 + 2 + 1)} << 20)
      << "each resolution has its own";
  EXPECT_NEAR(of_row(Of(dense.growing, "limits of bins and offsets of rows")),
              bins(64, resolutions), 1.0);
  EXPECT_EQ(Of(dense.growing, "values by row"), std::uint64_t{4 * 64} * kRows);
  EXPECT_NEAR(of_row(Of(dense.growing, "sorted rows")), 64 * 3.25, 1.0);
  EXPECT_NEAR(of_row(Of(dense.growing, "histograms")), 32 + of_row(std::uint64_t{16} << 20), 1.0);
  EXPECT_EQ(Of(dense.growing, "rows by node"), std::uint64_t{52} * kRows);
  constexpr EntryIdx kEntries = EntryIdx{64} * kRows;
  EXPECT_EQ(Of(dense.growing, "open ranges"),
            28 * HistogramMemory{}.OpenEntries(kEntries) +
                (48 * resolutions.size() + 64) * HistogramMemory{}.CertainRanges());
  auto sparse = MemoryPlan::Make(EntryIdx{8} * kRows, kRows, 64, Strategy::kHistogram);
  auto const offsets = RowOffsetBytes(EntryIdx{8} * kRows, kRows, 64);
  EXPECT_NEAR(of_row(Of(sparse.growing, "bins")), 8 * 4.5 * n_resolutions, 1.0);
  EXPECT_NEAR(of_row(Of(sparse.growing, "limits of bins and offsets of rows")),
              bins(8, of_sparse) + of_row(offsets), 1.0);
  EXPECT_EQ(Of(sparse.growing, "values by row"), std::uint64_t{6 * 8} * kRows);
  auto wide = [](FeatureIdx n) {
    return Of(MemoryPlan::Make(1000, 1000, n, Strategy::kHistogram).growing, "values by row");
  };
  EXPECT_EQ(wide(kShortColumns), 6 * 1000u);
  EXPECT_EQ(wide(kShortColumns + 1), 8 * 1000u) << "two bytes do not tell a column";
  EXPECT_EQ(Of(sparse.reading, "table by row"), std::uint64_t{8 * 8 + 8} * kRows);
}

struct DenseShape {
  RowIdx n_rows;
  FeatureIdx n_columns;
  double present;

  [[nodiscard]] CsrView Table() const {
    CsrView table;
    table.n_rows = n_rows;
    table.n_features = n_columns;
    table.n_entries = static_cast<EntryIdx>(present * n_rows * n_columns);
    return table;
  }
};
constexpr DenseShape kDenseShapes[] = {
    {400'000, 2000, 1.0},   {473'134, 700, 1.0}, {10'500'000, 28, 1.0}, {50'000'000, 10, 1.0},
    {10'000'000, 39, 0.93}, {581'012, 54, 1.0},  {463'715, 90, 1.0}};

/** @brief A table that is mostly present is never on the device in compressed rows, which would take
 *         8 B an entry: reading and sorting it take 12, and 64 a row, at most. */
TEST(MemoryPlan, DenseTablesAreReadInParts) {
  for (DenseShape const& shape : kDenseShapes) {
    auto const table = shape.Table();
    auto const plan =
        MemoryPlan::Make(table.n_entries, table.n_rows, table.n_features, Strategy::kHistogram);
    std::uint64_t const asked = 12 * table.n_entries + 64ull * table.n_rows;
    EXPECT_LE(Sum(plan.reading), asked) << shape.n_columns;
    EXPECT_LE(Sum(plan.sorting), asked) << shape.n_columns;
    EXPECT_EQ(Of(plan.reading, "table by row"), 0u) << shape.n_columns;
  }
}

/** @brief A table that is mostly missing is there while its columns are sorted, of which few are at
 *         a time. Then parts of it are, while bins and values are written: no more than trees take. */
TEST(MemoryPlan, SparseTablesAreReadAgainInParts) {
  constexpr RowIdx kRows = 1'070'000;
  constexpr EntryIdx kEntries = 196'805'697;
  constexpr FeatureIdx kColumns = 968;
  std::uint64_t const asked = 12 * kEntries + 64ull * kRows;
  for (HistogramMemory const& memory : HistogramMemory::All()) {
    auto const plan = MemoryPlan::Make(kEntries, kRows, kColumns, Strategy::kHistogram, memory);
    EXPECT_LE(Sum(plan.reading), asked);
    EXPECT_EQ(Of(plan.sorting, "table by row"), 0u);
    EXPECT_EQ(Of(plan.sorting, "rows of the table"),
              9 * memory.ReadAtOnce(kEntries) + 8ull * kRows);
    EXPECT_LE(Sum(plan.sorting), Sum(plan.growing));
  }
  auto const small = MemoryPlan::Make(1000, 100, 100, Strategy::kHistogram);
  EXPECT_EQ(Of(small.sorting, "rows of the table"), 9 * 1000 + 8 * 100u) << "all at once";
  CsrView table;
  table.n_rows = kRows;
  table.n_features = kColumns;
  table.n_entries = kEntries;
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  auto const chosen =
      ChooseMemory(table, Strategy::kHistogram, {kMuch, kMuch, static_cast<double>(asked)});
  EXPECT_EQ(chosen.memory.bins_at, Memory::kDevice);
}

/** @brief An entry and the begin of a row take 8 B each; an eighth of the entries is sorted at a time. */
TEST(MemoryPlan, ASmallDenseTableIsReadAtOnce) {
  auto const plan = MemoryPlan::Make(1000, 100, 10, Strategy::kHistogram);
  EXPECT_EQ(Of(plan.reading, "rows of the table"), 9 * 1000 + 8 * 100u);
}

/** @brief A feature takes 38 B in each resolution, one more than there are; 20 B once; groups 128 B. */
TEST(MemoryPlan, FeaturesAndGroups) {
  auto limits = [](EntryIdx n_entries, RowIdx n_rows, FeatureIdx n) {
    return Of(MemoryPlan::Make(n_entries, n_rows, n, Strategy::kHistogram).growing,
              "limits of bins and offsets of rows");
  };
  for (FeatureIdx n : {0u, 5u}) {
    EXPECT_EQ(limits(0, 0, n), 38 * (n + 1) + 20 * n + 128u);
  }
  constexpr FeatureIdx kMany = 1'000'000;
  EXPECT_GE(limits(0, 1000, kMany), std::uint64_t{52} * kMany);
}

/** @brief 12 B an entry and 64 B a row are enough without memory of the host, of large tables for all
 *         that trees grow faster with; 4 B an entry are enough with it. */
TEST(ChooseMemory, DenseTablesInTwelveBytesAnEntryAndInFour) {
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  for (DenseShape const& shape : kDenseShapes) {
    auto const table = shape.Table();
    auto choose = [&](EntryIdx of_entry) {
      auto const limit = static_cast<double>(of_entry * table.n_entries + 64ull * table.n_rows);
      return ChooseMemory(table, Strategy::kHistogram, {kMuch, kMuch, limit});
    };
    auto const twelve = choose(12);
    EXPECT_EQ(twelve.plan.HostBytes(), 0u) << shape.n_columns;
    bool const is_large = table.n_entries > EntryIdx{1} << 26;
    EXPECT_TRUE(!is_large || !twelve.memory.is_lean) << shape.n_columns;
    EXPECT_GE(twelve.memory.histograms, is_large ? HistogramMemory::kAllHistograms : 3u)
        << shape.n_columns;
    auto const four = choose(4);
    EXPECT_GE(four.plan.HostBytes(), 6 * table.n_entries) << shape.n_columns;
    EXPECT_EQ(four.memory.bins_at, Memory::kDevice) << shape.n_columns;
  }
}

/** @brief One histogram may be more than the budget for all of them. */
TEST(MemoryPlan, ManyShortColumns) {
  constexpr FeatureIdx kColumns = 4'000'000;
  auto plan = MemoryPlan::Make(EntryIdx{256} * kColumns, 10'000, kColumns, Strategy::kHistogram);
  std::uint32_t const finest =
      ChooseResolutions(10'000, kColumns, kMaxGroupBins, kMaxSortedRows).front();
  EXPECT_GE(Sum(plan.growing), std::uint64_t{20} * kColumns * std::min(finest, 256u));
}

/** @brief Columns of few values have a bin for each in the finest resolution, not in the others. */
TEST(MemoryPlan, MoreBinsInTheFinestResolutionAlone) {
  constexpr RowIdx kRows = 1'000'000;
  constexpr FeatureIdx kColumns = 28;
  constexpr std::uint64_t kBinBytes = 9;
  auto const bins = ChooseResolutions(kRows, kColumns, kMaxGroupBins, kMaxSortedRows);
  ASSERT_LT(bins.front(), kMaxGroupBins);
  std::uint64_t n_bins{kMaxGroupBins};  // of a column in all resolutions
  for (std::size_t i = 1; i < bins.size(); ++i) {
    n_bins += bins[i];
  }
  auto const plan =
      MemoryPlan::Make(EntryIdx{kColumns} * kRows, kRows, kColumns, Strategy::kHistogram);
  auto const limits = std::find_if(
      plan.growing.cbegin(), plan.growing.cend(),
      [](auto const& item) { return std::string{item.what}.find("limits of bins") == 0; });
  ASSERT_NE(limits, plan.growing.cend());
  auto const bytes = static_cast<double>(limits->bytes);
  EXPECT_GE(bytes, static_cast<double>(kBinBytes * n_bins * kColumns));
  EXPECT_LE(bytes, 1.1 * static_cast<double>(kBinBytes * n_bins * kColumns));
}

/** @brief So many rows that a group has room for 9 columns, or for 4, whose bins take two bytes. */
TEST(MemoryPlan, BinsOfGroupsThatAreCut) {
  auto bins = [](RowIdx n_rows, FeatureIdx n) {
    return Of(MemoryPlan::Make(EntryIdx{n_rows} * n, n_rows, n, Strategy::kHistogram).growing,
              "bins");
  };
  constexpr std::uint64_t kOthers =
      2;  // all but the last resolution read the same bins of two bytes
  EXPECT_EQ(bins(119'000'000, 36), (kOthers * 36 + 4 * 16) * std::uint64_t{119'000'000});
  EXPECT_EQ(bins(1u << 28, 32), (kOthers + 2) * 32 << 28);
}

TEST(MostBins, NoMoreThanEntriesOrLimits) {
  EXPECT_EQ(MostBins(1000, 10, 4096, true), 1000u);
  EXPECT_EQ(MostBins(1'000'000, 10, 64, false), 640u);
  EXPECT_EQ(MostBins(10'000'000, 10, 64, true), std::uint64_t{10} * kMaxGroupBins);
  EXPECT_EQ(MostBins(0, 0, 64, true), 0u);
}

TEST(MemoryPlan, OneLongColumnIsSortedAsAWhole) {
  constexpr RowIdx kRows = 1 << 26;
  auto plan = MemoryPlan::Make(kRows, kRows, 1, Strategy::kHistogram);
  EXPECT_GE(Sum(plan.sorting), std::uint64_t{4 + 4 + 24} * kRows);
}

/** @brief Each choice takes less of the device than the one before, but that all dense tables of so many
 *         entries share bins. */
TEST(HistogramMemory, TheFastestFirstTheLeastLast) {
  constexpr RowIdx kRows = 10'500'000;
  for (EntryIdx n : {EntryIdx{28} * kRows, EntryIdx{10} * kRows}) {
    std::uint64_t before = ~std::uint64_t{0};
    for (HistogramMemory const& memory : HistogramMemory::All()) {
      auto const plan = MemoryPlan::Make(n, kRows, 28, Strategy::kHistogram, memory);
      std::uint64_t const growing = Sum(plan.growing);
      if (memory.reads_finest && !memory.is_lean && IsDense(n, kRows, 28)) {
        EXPECT_EQ(growing, before);
      } else {
        EXPECT_LT(growing, before);
      }
      before = growing;
      bool const rows_on_host = memory.rows_at == Memory::kHost;
      bool const values_on_host = memory.values_at == Memory::kHost;
      EXPECT_EQ(Of(plan.of_host, "sorted rows") == 0, !rows_on_host);
      EXPECT_EQ(Of(plan.growing, "sorted rows") == 0, rows_on_host);
      EXPECT_EQ(Of(plan.of_host, "values by row") == 0, !values_on_host);
      EXPECT_EQ(Of(plan.growing, "values by row") == 0, values_on_host);
      EXPECT_EQ(Of(plan.of_host, "bins") == 0, memory.bins_at != Memory::kHost);
      EXPECT_EQ(Of(plan.growing, "bins") == 0, memory.bins_at == Memory::kHost);
      EXPECT_EQ(plan.HostBytes(), Sum(plan.of_host));
    }
  }
}

/** @brief Narrow groups of a GPU whose blocks have less room have more row offsets. */
TEST(ChooseMemory, ByTheDevice) {
  CsrView table;
  table.n_rows = 37'500;
  table.n_features = 100'000;
  table.n_entries = 60'000'000;
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  auto const estimate = MemoryEstimate(table.n_rows, table.n_features, table.n_entries, 6);
  for (auto strategy : {Strategy::kSort, Strategy::kHistogram}) {
    std::uint64_t most{0};
    for (std::uint32_t const max_bins : kMaxGroupBinsOf) {
      auto const plan = ChooseMemory(table, strategy, {kMuch, kMuch, 0.0, max_bins}).plan;
      auto const made =
          MemoryPlan::Make(table.n_entries, table.n_rows, table.n_features, strategy, {}, max_bins);
      EXPECT_EQ(plan.Peak(), made.Peak());
      if (strategy == Strategy::kHistogram) {
        EXPECT_GE(Of(plan.growing, "limits of bins and offsets of rows"),
                  RowOffsetBytes(table.n_entries, table.n_rows, table.n_features, {}, max_bins));
      }
      most = std::max(most, plan.WithNodes(table.n_rows, table.n_features, strategy, 6).Peak());
    }
    EXPECT_NE(estimate.find('"' + std::string{NameOf(strategy)} + R"(": {"peak": )" +
                            std::to_string(most) + ","),
              std::string::npos)
        << "of any GPU: " << estimate;
  }
}

TEST(MemoryRoom, BytesSharesAndTheDefault) {
  constexpr std::uint64_t kFree = 16'000'000'000, kTotal = 32'000'000'000;
  EXPECT_EQ((MemoryRoom{kFree, kTotal, 0.0}.Most()), 15'000'000'000u);
  EXPECT_EQ((MemoryRoom{kFree, kTotal, 1.0}.Most()), kFree);
  EXPECT_EQ((MemoryRoom{kFree, kTotal, 0.25}.Most()), 4'000'000'000u);
  EXPECT_EQ((MemoryRoom{kFree, kTotal, 5e9}.Most()), 5'000'000'000u);
  EXPECT_EQ((MemoryRoom{kFree, kTotal, 1.5}.Most()), 1u) << "no share: bytes";
  EXPECT_EQ((MemoryRoom{kFree, kTotal, 1e300}.Most()), kFree) << "more than there is";
}

TEST(ChooseMemory, TheFastestThatFits) {
  CsrView table;
  table.n_rows = 10'500'000;
  table.n_features = 28;
  table.n_entries = EntryIdx{10} * table.n_rows;  // dense tables share bins anyway
  auto plan = [&](HistogramMemory const& memory) {
    return MemoryPlan::Make(table.n_entries, table.n_rows, table.n_features, Strategy::kHistogram,
                            memory);
  };
  auto const all = HistogramMemory::All();
  for (HistogramMemory const& fits : all) {
    auto const want = plan(fits);
    // Of those that take as much, as reading the table takes most, the first one.
    HistogramMemory const memory = *std::find_if(
        all.cbegin(), all.cend(), [&](auto const& m) { return plan(m).Peak() == want.Peak(); });
    auto const chosen =
        ChooseMemory(table, Strategy::kHistogram, {want.Peak(), 2 * want.Peak(), 1.0});
    EXPECT_EQ(chosen.plan.Peak(), want.Peak());
    EXPECT_GE(chosen.memory.histograms, memory.histograms);
    EXPECT_EQ(chosen.memory.is_lean, memory.is_lean);
    EXPECT_EQ(chosen.memory.bins_at, memory.bins_at);
    EXPECT_EQ(chosen.memory.reads_finest, memory.reads_finest);
    EXPECT_EQ(chosen.memory.rows_at, memory.rows_at);
    EXPECT_EQ(chosen.memory.values_at, memory.values_at);
  }
}

TEST(ChooseMemory, OwnRowsStayUntilTheyAreRead) {
  constexpr std::uint64_t kRowsBytes = 1'000'000'000;
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  for (double share : {1.0, 0.2}) {
    for (Strategy strategy : {Strategy::kHistogram, Strategy::kSort}) {
      auto const table = DenseShape{463'715, 90, share}.Table();
      MemoryRoom room{kMuch, kMuch};
      auto const without = ChooseMemory(table, strategy, room).plan;
      room.rows_bytes = kRowsBytes;
      auto const with = ChooseMemory(table, strategy, room).plan;
      // A dense table's are read into columns and go; others are what columns are sorted from.
      bool const go = strategy == Strategy::kHistogram && share == 1.0;
      EXPECT_EQ(Sum(with.reading), Sum(without.reading) + (go ? kRowsBytes : 0));
      EXPECT_EQ(Sum(with.sorting), Sum(without.sorting) + (go ? 0 : kRowsBytes));
      EXPECT_EQ(Sum(with.growing), Sum(without.growing));
    }
  }
}

TEST(ChooseMemory, HistogramsTakeWhatIsLeft) {
  auto const table = DenseShape{463'715, 90, 1.0}.Table();
  std::uint32_t before{0};
  for (std::uint64_t mib : {200, 220, 240, 260, 280, 300}) {
    auto const room = static_cast<double>(mib << 20);
    auto const chosen = ChooseMemory(table, Strategy::kHistogram, {1ull << 40, 1ull << 40, room});
    EXPECT_LE(chosen.plan.Peak(), mib << 20);
    EXPECT_EQ(chosen.memory.values_at, Memory::kHost) << mib;
    EXPECT_GE(chosen.memory.histograms, before) << mib;
    before = chosen.memory.histograms;
  }
  EXPECT_EQ(before, HistogramMemory::kAllHistograms);
}

/** @brief The refusal names the limit, what is asked, what is free and the remedy. */
TEST(ChooseMemory, RefusesWithTheLimit) {
  CsrView table;
  table.n_rows = 1'000'000;
  table.n_features = 100;
  table.n_entries = 100'000'000;
  auto refusal = [&](Strategy strategy, double limit) -> std::string {
    try {
      static_cast<void>(ChooseMemory(table, strategy, {8'000'000, 9'000'000, limit}));
    } catch (OutOfDeviceMemory const& e) {
      return e.what();
    }
    return "not refused";
  };
  auto const least = MemoryPlan::Make(table.n_entries, table.n_rows, table.n_features,
                                      Strategy::kHistogram, HistogramMemory::All().back())
                         .Peak();
  auto expect = [&](std::string const& text, std::string const& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  auto text = refusal(Strategy::kHistogram, 5'000'000.0);
  expect(text, "take at least " + std::to_string(least) + " bytes, 8000000 of 9000000 are free");
  expect(text, "gpu_exact_memory_limit=5000000 allows 5000000");
  expect(text, "Raise gpu_exact_memory_limit, free memory on the GPU, or train with fewer rows");
  expect(refusal(Strategy::kHistogram, 0.5), "gpu_exact_memory_limit=0.5 allows 4000000");
  text = refusal(Strategy::kSort, 0.0);
  expect(text, "with a margin 7500000");
  expect(text, ". Free memory on the GPU, or train with fewer rows");
  EXPECT_EQ(text.find("gpu_exact_memory_limit"), std::string::npos) << text;
}

TEST(MemoryPlan, NodesFollowTheDepthAndTheRows) {
  auto plan = MemoryPlan::Make(1000, 100, 10, Strategy::kSort);
  auto nodes = [&](Strategy strategy, std::int32_t max_depth) {
    return plan.WithNodes(100, 10, strategy, max_depth).growing.back().bytes;
  };
  EXPECT_EQ(nodes(Strategy::kSort, 3), 8 * 400u);
  EXPECT_EQ(nodes(Strategy::kSort, 64), 100 * 400u) << "a node has a row";
  EXPECT_EQ(nodes(Strategy::kSort, 0), 100 * 400u);
  EXPECT_EQ(nodes(Strategy::kHistogram, 3), 8 * 400 + 4 * 10 * 16u);
  for (auto where : {&HistogramMemory::values_at, &HistogramMemory::bins_at}) {
    HistogramMemory memory;
    memory.*where = Memory::kHost;
    auto const marked = plan.WithNodes(100, 10, Strategy::kHistogram, 3, memory).growing.back();
    EXPECT_EQ(marked.bytes, 8 * 400 + 4 * 10 * 64u) << "no node's rows are sorted";
  }
}

TEST(MemoryEstimate, SaysWhatThePlanSays) {
  auto json = MemoryEstimate(100, 10, 1000, 3);
  auto peak = [](HistogramMemory const& memory) {
    return MemoryPlan::Make(1000, 100, 10, Strategy::kHistogram, memory)
        .WithNodes(100, 10, Strategy::kHistogram, 3, memory)
        .Peak();
  };
  auto const least = peak(HistogramMemory::All().back());
  EXPECT_LT(least, peak({}));
  EXPECT_NE(json.find("\"histogram\": {\"peak\": " + std::to_string(peak({})) +
                      ", \"least\": " + std::to_string(least) + ", "),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"table by row\": 8800"), std::string::npos) << json;
  SpacedNumbers const spaces;
  EXPECT_EQ(MemoryEstimate(100, 10, 1000, 3), json) << "JSON has none in its numbers";
}

/** @brief Categorical columns have bins alone, of which most values of a column may make few. */
TEST(MemoryPlan, CategoriesAreBins) {
  constexpr RowIdx kRows = 2000;
  constexpr FeatureIdx kColumns = 500'000;
  constexpr EntryIdx kEntries = EntryIdx{kRows} * kColumns;
  CategoricalColumns const all{std::vector<std::uint32_t>(kColumns, 3), kEntries};
  auto const plan =
      MemoryPlan::Make(kEntries, kRows, kColumns, Strategy::kHistogram, {}, kMaxGroupBins, all);
  EXPECT_EQ(Of(plan.reading, "values by row"), 4 * kEntries);
  EXPECT_EQ(Of(plan.growing, "values by row"), 0u);
  EXPECT_EQ(Of(plan.growing, "sorted rows"), 0u);
  EXPECT_EQ(Of(plan.growing, "open ranges"), 0u);
  EXPECT_EQ(Of(plan.sorting, "values by row"), 4 * kEntries) << "while bins are written";
  std::uint64_t const bins = Of(plan.growing, "bins");
  EXPECT_EQ(Of(plan.sorting, "bins"), bins);
  EXPECT_GE(bins, 2 * kEntries);
  EXPECT_LE(bins, 2 * kEntries + kEntries / 50);
  EXPECT_EQ(Of(plan.growing, "sums of wide columns"), 0u);
  auto const numbers = MemoryPlan::Make(kEntries, kRows, kColumns, Strategy::kHistogram);
  EXPECT_LT(plan.Peak(), numbers.Peak());
}

/** @brief What an H200 took of tables with three categories a column; the last one is sparse. */
TEST(MemoryEstimate, OfCategoriesIsWhatIsTaken) {
  struct Taken {
    RowIdx n_rows;
    FeatureIdx n_columns;
    EntryIdx n_entries;
    double mib;
  };
  for (Taken const& t :
       {Taken{400, 60'000, 24'000'000, 142.9}, Taken{2000, 500'000, 1'000'000'000, 5769.8},
        Taken{20'000, 100'000, 19'900'000, 156.8}}) {
    auto const estimate = MemoryEstimate(t.n_rows, t.n_columns, t.n_entries, 6,
                                         std::vector<std::uint32_t>(t.n_columns, 3));
    std::string const before = R"("histogram": {"peak": )";
    auto const peak = std::stoull(estimate.substr(estimate.find(before) + before.size()));
    EXPECT_NEAR(static_cast<double>(peak) / (1 << 20), t.mib, 0.02 * t.mib) << estimate;
  }
}

/** @brief Nodes whose rows are sorted have a best candidate of each column, if any is numerical. */
TEST(MemoryPlan, NodesOfCategoriesHaveNoCandidates) {
  auto const nodes = [](FeatureIdx n_categorical) {
    CategoricalColumns const columns{std::vector<std::uint32_t>(n_categorical, 3), 0};
    return Of(MemoryPlan{}.WithNodes(1000, 100, Strategy::kHistogram, 6, {}, columns).growing,
              "live nodes");
  };
  EXPECT_EQ(nodes(100), 64 * 400u);
  EXPECT_EQ(nodes(99), 64 * 400u + 32 * 100 * 16);
}

/** @brief Of nodes of many rows a wide column has a sum for each category, else as many as rows. */
TEST(MemoryPlan, WideColumns) {
  auto const growing = [](RowIdx n_rows, std::uint32_t n_categories) {
    return MemoryPlan::Make(n_rows, n_rows, 1, Strategy::kHistogram, {}, kMaxGroupBins,
                            {{n_categories}, n_rows})
        .growing;
  };
  constexpr RowIdx kAtOnce = 1 << 22;
  EXPECT_EQ(Of(growing(1000, kMaxGroupBins), "sums of wide columns"), 0u);
  EXPECT_EQ(Of(growing(1000, kMaxGroupBins), "values by row"), 0u);
  EXPECT_EQ(Of(growing(1000, kMaxGroupBins + 1), "sums of wide columns"), 48 * 1000u);
  EXPECT_EQ(Of(growing(1000, kMaxGroupBins + 1), "values by row"), 4 * 1000u);
  EXPECT_EQ(Of(growing(kAtOnce, 1 << 24), "sums of wide columns"), 48ull * kAtOnce);
  EXPECT_EQ(Of(growing(2 * kAtOnce, 50'000), "sums of wide columns"),
            48ull * kAtOnce + 16 * 50'000);
  EXPECT_EQ(Of(growing(3 * kAtOnce, 1 << 23), "sums of wide columns"), 64ull << 23);
}

TEST(MemoryEstimate, CountsCategories) {
  std::vector<std::uint32_t> const n_categories{7, 20'000, 300};
  CategoricalColumns const columns{n_categories, 3000 - 1500};
  std::uint64_t most{0};
  for (std::uint32_t const max_bins : kMaxGroupBinsOf) {
    most =
        std::max(most, MemoryPlan::Make(3000, 500, 6, Strategy::kHistogram, {}, max_bins, columns)
                           .WithNodes(500, 6, Strategy::kHistogram, 4, {}, columns)
                           .Peak());
  }
  auto const json = MemoryEstimate(500, 6, 3000, 4, n_categories);
  EXPECT_NE(json.find("\"histogram\": {\"peak\": " + std::to_string(most) + ","), std::string::npos)
      << json;
  EXPECT_THROW((void)MemoryEstimate(10, 2, 20, 6, {1, 1, 1}), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(10, 2, 20, 6, {kMostCategories + 1}), std::invalid_argument);
}

TEST(MemoryEstimate, RefusesWhatIsNoTable) {
  EXPECT_THROW((void)MemoryEstimate(std::uint64_t{kMostRows} + 1, 1, 1, 6), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(1, std::uint64_t{1} << 32, 1, 6), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(10, 10, 101, 6), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(10, 10, 100, -1), std::invalid_argument);
}

TEST(MemoryPlan, NamesEveryPart) {
  auto text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1, Strategy::kSort).Describe();
  EXPECT_NE(text.find("reading the table 20 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("sorting the table 24 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("growing trees 9 MiB (columns 8"), std::string::npos) << text;
  text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1, Strategy::kHistogram).Describe();
  EXPECT_NE(text.find("histograms 8"), std::string::npos) << text;
}
}  // namespace
}  // namespace gpu_exact
