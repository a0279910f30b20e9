/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Bins of columns against values counted on the host.
 */
#include <cstring>
#include <limits>
#include <map>

#include "plan/bin_numbers.h"
#include "tests/device/histogram/quantile_cuts_problem.cuh"

namespace gpu_exact {
namespace {
/** @brief A value of a column. */
struct CountedValue {
  float value;
  std::uint32_t n_entries;
};
using Columns = std::vector<std::vector<CountedValue>>;

/** @brief A bin, naively. */
struct Bin {
  float lowest;
  std::uint32_t first_rank;
  bool is_range;
};

Columns CountValues(Table const& table) {
  std::vector<std::map<float, std::uint32_t>> counts(table.n_features);
  for (CsrEntry const& e : table.entries) {
    ++counts[e.feature][e.value];
  }
  Columns columns(table.n_features);
  for (FeatureIdx f = 0; f < table.n_features; ++f) {
    for (auto const& [value, n] : counts[f]) {
      columns[f].push_back({value, n});
    }
  }
  return columns;
}

/** @brief The bins of a column by BinNumbers, which are tested by themselves. */
std::vector<Bin> MakeBins(std::vector<CountedValue> const& values, std::uint32_t max_bins,
                          std::uint32_t coarsest, std::uint32_t shift) {
  std::uint32_t n_entries{0};
  for (CountedValue const& v : values) {
    n_entries += v.n_entries;
  }
  auto const n_values = static_cast<std::uint32_t>(values.size());
  std::uint32_t const n = n_values <= max_bins
                              ? NumbersOfValues(n_values, coarsest, std::min(n_entries, max_bins))
                              : max_bins;
  BinNumbers const numbers = n_values <= max_bins ? BinNumbers::OfValues(n_entries, n_values, n)
                                                  : BinNumbers::OfQuantiles(n_entries, n);
  std::vector<Bin> bins(CeilDiv(n, std::uint64_t{1} << shift));
  std::uint32_t end{n_entries};
  std::size_t next = bins.size();  // the first bin that has a value, so far
  for (std::uint32_t i = n_values; i-- > 0;) {
    CountedValue const& v = values[i];
    std::size_t const number = numbers.Of(i, end - v.n_entries, end) >> shift;
    end -= v.n_entries;
    for (std::size_t k = number + 1; k < next; ++k) {  // without values
      bins[k] = {bins[next].lowest, bins[next].first_rank, false};
    }
    bins[number] = {v.value, end, number == next};
    next = number;
  }
  return bins;
}

class QuantileCutsTest : public DeviceTest {
 protected:
  /** @brief Bins of a table in some limits, and coarser ones of them. */
  static void Check(Table const& table, std::vector<std::uint32_t> const& max_bins) {
    Columns const columns = CountValues(table);
    for (std::uint32_t limit : max_bins) {
      std::string const what = "at most " + std::to_string(limit) + " bins";
      Expect(MakeQuantileCuts(table, limit), columns, limit, ~0u, limit);
      ASSERT_FALSE(HasFailure()) << what;
      for (EntryIdx at_once : {EntryIdx{0}, EntryIdx{1}, table.entries.size() / 3 + 1}) {
        for (Layout layout : {Layout::kByRow, Layout::kByColumn}) {
          Expect(MakeQuantileCuts(table, limit, at_once, 0, layout), columns, limit, ~0u, limit);
        }
        ASSERT_FALSE(HasFailure()) << what << ", sorted by parts of " << at_once;
      }
      for (std::uint32_t coarser : {limit, limit / 2, limit / 7, 2u}) {
        if (coarser >= 2) {
          QuantileCuts const bins =
              MakeQuantileCuts(table, limit, kAllAtOnce, 0, Layout::kByRow, coarser);
          Expect(bins, columns, limit, coarser, limit);
          Expect(QuantileCuts{bins, coarser}, columns, limit, coarser, coarser);
          ASSERT_FALSE(HasFailure()) << what << ", of these at most " << coarser;
        }
      }
    }
  }

 private:
  /** @brief The same bins as naively. @param max_bins Of the finest. @param most Of these. */
  static void Expect(QuantileCuts const& bins, Columns const& columns, std::uint32_t max_bins,
                     std::uint32_t coarsest, std::uint32_t most) {
    auto const n_features = static_cast<FeatureIdx>(columns.size());
    HostBins const got{bins, n_features};
    std::vector<ColumnBins> const by_column = bins.ByColumn();
    EXPECT_EQ(got.offsets[0], 0u);
    for (FeatureIdx f = 0; f < n_features; ++f) {
      std::size_t const n_finest = MakeBins(columns[f], max_bins, coarsest, 0).size();
      std::uint32_t const shift = ShiftOf(static_cast<std::uint32_t>(n_finest), most);
      std::vector<Bin> const want = MakeBins(columns[f], max_bins, coarsest, shift);
      n_shifted_ += shift != 0 ? 1 : 0;
      ASSERT_EQ(by_column[f].shift, shift) << "feature " << f;
      ASSERT_EQ(by_column[f].n_bins, want.size()) << "feature " << f;
      ASSERT_EQ(bins.NumBins(f), want.size()) << "feature " << f;
      ASSERT_EQ(got.NumBins(f), want.size()) << "feature " << f;
      ASSERT_LE(want.size(), most);
      bool any_range{false};
      for (std::size_t k = 0; k < want.size(); ++k) {
        std::uint64_t const at = got.offsets[f] + k;
        std::string const where = "feature " + std::to_string(f) + ", bin " + std::to_string(k);
        float const lowest = want[k].lowest == 0.0f ? 0.0f : want[k].lowest;  // never -0
        ASSERT_EQ(std::memcmp(&got.lowest[at], &lowest, sizeof(float)), 0) << where;
        ASSERT_EQ(got.first_rank[at], want[k].first_rank) << where;
        ASSERT_EQ(got.is_range[at], want[k].is_range ? 1 : 0) << where;
        any_range = any_range || want[k].is_range;
        n_empty_ += k + 1 < want.size() && want[k].first_rank == want[k + 1].first_rank ? 1 : 0;
      }
      EXPECT_EQ(bins.HasRanges(f), any_range) << "feature " << f;
      EXPECT_EQ(by_column[f].has_ranges, any_range) << "feature " << f;
    }
  }

 protected:
  static inline int n_shifted_{0};  // columns whose finer bins are merged
  static inline int n_empty_{0};    // bins without a value
};

TEST_F(QuantileCutsTest, RandomTables) {
  n_shifted_ = n_empty_ = 0;
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table const table =
        MakeBinnedTable(static_cast<RowIdx>(random.Int(1, Scaled(2000, 300))),
                        static_cast<FeatureIdx>(random.Int(1, Scaled(30, 10))), &random);
    Check(table, {static_cast<std::uint32_t>(random.Int(2, 40)),
                  static_cast<std::uint32_t>(random.Pick({64, 200, 1500, 10240}))});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_shifted_, 0);
  EXPECT_GT(n_empty_, 0);
}

TEST_F(QuantileCutsTest, AsManyValuesAsTheLimitAndOneMore) {
  Random random{1};
  for (int limit : Scaled(std::vector{2, 3, 31, 256, 3000}, {2, 256})) {
    Table const table = MakeBinnedTable({{limit, 0.0}, {limit + 1, 0.0}, {limit, 0.0}},
                                        static_cast<RowIdx>(2 * limit + 2), &random);
    QuantileCuts const bins = MakeQuantileCuts(table, static_cast<std::uint32_t>(limit));
    EXPECT_FALSE(bins.HasRanges(0));
    EXPECT_TRUE(bins.HasRanges(1));
    EXPECT_EQ(bins.NumBins(2), static_cast<std::uint32_t>(limit));
    Check(table, {static_cast<std::uint32_t>(limit)});
  }
}

/** @brief A long value at the begin, in the middle, at the end; several; of just two quantiles. */
TEST_F(QuantileCutsTest, LongValues) {
  for (std::uint32_t limit : Scaled(std::vector{4u, 11u, 50u}, {11u})) {
    for (int at : Scaled(std::vector{0, 1, 500, 998, 999}, {0})) {
      for (int n_long : {99, 199, 200, 201, 5000}) {
        Table table;
        table.n_features = 1;
        for (int k = 0; k < 1000; ++k) {
          for (int i = 0; i < (k == at ? n_long : k % 333 == 2 ? 77 : 1); ++i) {
            table.entries.push_back({0, static_cast<float>(k - 500)});
            table.offsets.push_back(table.entries.size());
          }
        }
        table.n_rows = static_cast<RowIdx>(table.entries.size());
        Check(table, {limit});
        ASSERT_FALSE(HasFailure()) << n_long << " entries of value " << at;
      }
    }
  }
}

TEST_F(QuantileCutsTest, OddValues) {
  Table table;
  table.n_features = 3;  // the first one has no entries
  for (float v : {0.0f, -0.0f, 1e-45f, -1e-45f, 1.1754942e-38f, 3e38f, -3e38f, -1.0f, 1.0f,
                  std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                  std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}) {
    table.entries.push_back({1, v});
    table.offsets.push_back(table.entries.size());
    table.entries.push_back({2, -0.0f});
    table.offsets.push_back(table.entries.size());
  }
  table.n_rows = static_cast<RowIdx>(table.offsets.size() - 1);
  Check(table, {2, 3, 5, 12, 100});
  EXPECT_EQ(MakeQuantileCuts(table, 100).NumBins(1), 12u);  // both zeros in one
  EXPECT_EQ(MakeQuantileCuts(table, 100).NumBins(2), 1u);
}

TEST_F(QuantileCutsTest, EmptyTablesAndColumns) {
  Table table;
  Check(table, {10});
  table.n_rows = 2;
  table.n_features = 2;
  table.offsets = {0, 0, 0};
  Check(table, {10});
  Random random{2};
  // Columns without entries first, last and side by side, at the ends of parts too.
  Check(MakeBinnedTable(
            {{3, 1.0}, {0, 0.5}, {3, 1.0}, {3, 1.0}, {5, 0.0}, {0, 0.0}, {3, 1.0}, {3, 1.0}}, 50,
            &random),
        {2, 4, 20});
}

TEST_F(QuantileCutsTest, ManyShortColumns) {
  Random random{3};
  Table const table = MakeTable({20, Scaled(20000u, 2000u), 0.9, 3}, &random);
  std::vector<std::map<float, std::uint64_t>> counts(table.n_features);
  for (CsrEntry const& e : table.entries) {
    ++counts[e.feature][e.value];
  }
  QuantileCuts const bins = MakeQuantileCuts(table, 32, table.entries.size() / 4);
  HostBins const got{bins, table.n_features};
  for (FeatureIdx f = 0; f < table.n_features; ++f) {
    ASSERT_EQ(got.NumBins(f), counts[f].size()) << "feature " << f;
    auto at = got.offsets[f];
    std::uint64_t rank{0};
    for (auto const& [value, n] : counts[f]) {
      ASSERT_EQ(got.lowest[at], value);
      ASSERT_EQ(got.first_rank[at++], rank);
      rank += n;
    }
    ASSERT_FALSE(bins.HasRanges(f));
  }
}

TEST_F(QuantileCutsTest, LongColumns) {
  Random random{4};
  RowIdx const n_rows = Scaled(200000u, 5000u);
  Check(MakeBinnedTable({{2, 0.0}, {0, 0.0}, {0, 0.3, 0.7, 0.1f}, {40000, 0.0}}, n_rows, &random),
        Scaled<std::vector<std::uint32_t>>({33, 5120}, {33}));
}
/** @brief More values than bins of ranges: a bin for each of up to max_values. */
TEST_F(QuantileCutsTest, ManyValuesMayHaveABinEach) {
  Random random{17};
  Table const table = MakeTable({3000, 2, 0.1, 50}, &random);
  EXPECT_LE(MakeQuantileCuts(table, 10).NumBins(0), 10u);
  EXPECT_EQ(MakeQuantileCuts(table, 10, kAllAtOnce, 50).NumBins(0), 50u);
  EXPECT_FALSE(MakeQuantileCuts(table, 10, kAllAtOnce, 50).HasRanges(0));
  EXPECT_LE(MakeQuantileCuts(table, 10, kAllAtOnce, 49).NumBins(0), 10u);
}
}  // namespace
}  // namespace gpu_exact
