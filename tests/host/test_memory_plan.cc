/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The memory formula and its text.
 */
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gpu_exact/memory_estimate.h"
#include "src/histogram_plan.h"
#include "src/memory_plan.h"

namespace gpu_exact {
namespace {
TEST(MemoryPlan, BytesAnEntryAndRow) {
  constexpr EntryIdx kEntries = EntryIdx{1} << 32;
  auto plan = MemoryPlan::Make(kEntries, 0, 1, Strategy::kSort);
  EXPECT_NEAR(static_cast<double>(plan.Peak()) / kEntries, 32.117, 0.001);
  auto with_rows = MemoryPlan::Make(kEntries, 1000, 1, Strategy::kSort);
  EXPECT_EQ(with_rows.Peak() - plan.Peak(), 18000u);
}

TEST(MemoryPlan, EntriesOfManyRowsCarryGradients) {
  constexpr EntryIdx kEntries = EntryIdx{1} << 30;
  auto gathered = MemoryPlan::Make(kEntries, kGatheredRows, 1, Strategy::kSort);
  auto carried = MemoryPlan::Make(kEntries, kGatheredRows + 1, 1, Strategy::kSort);
  EXPECT_EQ(carried.Peak() - gathered.Peak(), 16 * kEntries + 18);
}

std::uint64_t Sum(std::vector<MemoryItem> const& items) {
  std::uint64_t sum{0};
  for (MemoryItem const& item : items) {
    sum += item.bytes;
  }
  return sum;
}

TEST(MemoryPlan, FewDistinctValuesStayOnTheHost) {
  auto few = MemoryPlan::Make(kHostValues, 0, 1, Strategy::kSort);
  EXPECT_NEAR(static_cast<double>(few.Peak()) / kHostValues, 28.117, 0.001);
  auto many = MemoryPlan::Make(kHostValues + 1, 0, 1, Strategy::kSort);
  EXPECT_NEAR(static_cast<double>(many.Peak()) / kHostValues, 32.117, 0.001);
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
  EXPECT_LT(Sum(plan.growing), std::uint64_t{255} << 20);
}

TEST(MemoryPlan, HistogramsDenseAndSparse) {
  constexpr RowIdx kRows = 1 << 22;
  auto const resolutions = ChooseResolutions(kRows, 64, kMaxGroupBins, kMaxSortedRows, false);
  auto const n_resolutions = static_cast<double>(resolutions.size());
  auto open = [](EntryIdx n_columns) {
    return static_cast<double>(40 * OpenEntriesAtOnce(n_columns * kRows) + 112 * kCertainRanges);
  };
  auto bins = [&](EntryIdx n_columns) {
    std::uint64_t n{0};
    for (std::size_t i = 0; i < resolutions.size(); ++i) {
      n += MostBins(n_columns * kRows, 64, resolutions[i], i == 0);
    }
    return static_cast<double>(9 * n);
  };
  auto of_row = [](double bytes) { return bytes / kRows; };
  auto dense = MemoryPlan::Make(EntryIdx{64} * kRows, kRows, 64, Strategy::kHistogram);
  // Bins, histograms, values; rows; what does not follow the entries.
  EXPECT_NEAR(of_row(static_cast<double>(Sum(dense.growing))),
              64 * (3.5 * n_resolutions + 4) + 48 +
                  of_row(n_resolutions * (open(64) + (64 << 20)) + bins(64)),
              1.0);
  auto sparse = MemoryPlan::Make(EntryIdx{8} * kRows, kRows, 64, Strategy::kHistogram);
  auto const offsets = RowOffsetBytes(EntryIdx{8} * kRows, kRows, 64, false);
  EXPECT_NEAR(
      of_row(static_cast<double>(Sum(sparse.growing))),
      8 * (6 * n_resolutions + 8) + 8 + 48 +
          of_row(n_resolutions * (open(8) + (64 << 20)) + bins(8) + static_cast<double>(offsets)),
      1.0);
}

/** @brief One histogram may be more than the budget for all of them. */
TEST(MemoryPlan, ManyShortColumns) {
  constexpr FeatureIdx kColumns = 4'000'000;
  auto plan = MemoryPlan::Make(EntryIdx{256} * kColumns, 10'000, kColumns, Strategy::kHistogram);
  std::uint32_t const finest =
      ChooseResolutions(10'000, kColumns, kMaxGroupBins, kMaxSortedRows, false).front();
  EXPECT_GE(Sum(plan.growing), std::uint64_t{20} * kColumns * std::min(finest, 256u));
}

TEST(MostBins, NoMoreThanEntriesOrLimits) {
  EXPECT_EQ(MostBins(1000, 10, 4096, true), 1000u);
  EXPECT_EQ(MostBins(1'000'000, 10, 64, false), 640u);
  EXPECT_EQ(MostBins(10'000'000, 10, 64, true), std::uint64_t{10} * kMaxGroupBins);
  EXPECT_EQ(MostBins(0, 0, 64, true), 0u);
}

TEST(MemoryPlan, SortedRowsTakeFourBytesMore) {
  auto rows_of = [](bool sorts_rows) {
    auto plan =
        MemoryPlan::Make(EntryIdx{1} << 30, 1 << 20, 1024, Strategy::kHistogram, sorts_rows);
    std::uint64_t bytes{0};
    for (MemoryItem const& item : plan.growing) {
      bytes += std::string{item.what} == "sorted rows" ? item.bytes : 0;
    }
    return bytes;
  };
  EXPECT_EQ(rows_of(false), 0u);
  EXPECT_EQ(rows_of(true), std::uint64_t{4} << 30);
}

TEST(MemoryPlan, OneLongColumnIsSortedAsAWhole) {
  constexpr RowIdx kRows = 1 << 26;
  auto plan = MemoryPlan::Make(kRows, kRows, 1, Strategy::kHistogram);
  EXPECT_GE(Sum(plan.reading), std::uint64_t{8 + 8 + 36} * kRows);
}

TEST(MemoryPlan, NodesFollowTheDepthAndTheRows) {
  auto plan = MemoryPlan::Make(1000, 100, 10, Strategy::kSort);
  auto nodes = [&](Strategy strategy, std::int32_t max_depth) {
    return plan.WithNodes(100, 10, strategy, max_depth).growing.back().bytes;
  };
  EXPECT_EQ(nodes(Strategy::kSort, 3), 8 * 300u);
  EXPECT_EQ(nodes(Strategy::kSort, 64), 100 * 300u) << "a node has a row";
  EXPECT_EQ(nodes(Strategy::kSort, 0), 100 * 300u);
  EXPECT_EQ(nodes(Strategy::kHistogram, 3), 8 * 300 + 4 * 10 * 16u);
}

TEST(MemoryEstimate, SaysWhatThePlanSays) {
  auto json = MemoryEstimate(100, 10, 1000, 3);
  auto peak = [](bool sorts_rows) {
    return MemoryPlan::Make(1000, 100, 10, Strategy::kHistogram, sorts_rows)
        .WithNodes(100, 10, Strategy::kHistogram, 3)
        .Peak();
  };
  EXPECT_LT(peak(false), peak(true));
  EXPECT_NE(json.find("\"histogram\": {\"peak\": " + std::to_string(peak(true)) +
                      ", \"least\": " + std::to_string(peak(false)) + ", "),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"table by row\": 8800"), std::string::npos) << json;
  EXPECT_EQ(PlannedBytes(1000, 100, 10, Strategy::kSort),
            MemoryPlan::Make(1000, 100, 10, Strategy::kSort).Peak());
}

TEST(MemoryEstimate, RefusesWhatIsNoTable) {
  EXPECT_THROW((void)MemoryEstimate(std::uint64_t{1} << 32, 1, 1, 6), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(1, std::uint64_t{1} << 32, 1, 6), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(10, 10, 101, 6), std::invalid_argument);
  EXPECT_THROW((void)MemoryEstimate(10, 10, 100, -1), std::invalid_argument);
}

TEST(MemoryPlan, NamesEveryPart) {
  auto text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1, Strategy::kSort).Describe();
  EXPECT_NE(text.find("reading the table 20 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("sorting the table 24 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("entries sorted by node 16"), std::string::npos) << text;
  text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1, Strategy::kHistogram).Describe();
  EXPECT_NE(text.find("histograms 65"), std::string::npos) << text;
}
}  // namespace
}  // namespace gpu_exact
