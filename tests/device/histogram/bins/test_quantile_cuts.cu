/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Bins of columns against values counted on the host.
 */
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "plan/quantile_law.h"
#include "tests/device/histogram/quantile_cuts_problem.cuh"

namespace gpu_exact {
namespace {
/** @brief What bins are made of: a value, or a finer bin. */
struct Piece {
  float lowest;
  std::uint64_t n_entries;
  bool is_range;
};

/** @brief A bin, naively. */
struct Bin {
  float lowest;
  std::uint64_t first_rank;
  std::uint64_t n_entries;
  bool is_range;
};

/** @brief Of one column: from one quantile to the next, long pieces by themselves. */
std::vector<Bin> GatherPieces(std::vector<Piece> const& pieces, std::uint32_t max_bins) {
  std::uint64_t n{0};
  for (Piece const& p : pieces) {
    n += p.n_entries;
  }
  QuantileLaw const law{static_cast<std::uint32_t>(n), max_bins - 1};
  bool const few = pieces.size() <= max_bins;
  double quantile_before{0.0};
  bool was_long{false};
  std::vector<Bin> bins;
  std::uint64_t rank{0};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece const& p = pieces[i];
    double const quantile = law.Below(rank);
    bool const is_long = law.Below(rank + p.n_entries) - quantile >= 2.0;
    bool const begins =
        i == 0 || few || std::floor(quantile) != std::floor(quantile_before) || is_long || was_long;
    if (begins) {
      bins.push_back({p.lowest, rank, 0, p.is_range});
    } else {
      bins.back().is_range = true;
    }
    bins.back().n_entries += p.n_entries;
    quantile_before = quantile;
    was_long = is_long;
    rank += p.n_entries;
  }
  return bins;
}

class QuantileCutsTest : public DeviceTest {
 protected:
  /** @brief Bins of a table in some limits, and coarser ones of them. */
  static void Check(Table const& table, std::vector<std::uint32_t> const& max_bins) {
    std::vector<std::map<float, std::uint64_t>> counts(table.n_features);
    for (CsrEntry const& e : table.entries) {
      ++counts[e.feature][e.value];
    }
    std::vector<std::vector<Piece>> values(table.n_features);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      for (auto const& [value, n] : counts[f]) {
        values[f].push_back({value, n, false});
      }
    }
    CheckOfPieces(table, values, max_bins);
  }

  static void CheckOfPieces(Table const& table, std::vector<std::vector<Piece>> const& values,
                            std::vector<std::uint32_t> const& max_bins) {
    for (std::uint32_t limit : max_bins) {
      QuantileCuts const bins = MakeQuantileCuts(table, limit);
      std::vector<std::vector<Bin>> const finer = Expect(bins, values, limit);
      std::string const what = "at most " + std::to_string(limit) + " bins";
      ASSERT_FALSE(HasFailure()) << what;
      for (EntryIdx at_once : {EntryIdx{0}, EntryIdx{1}, table.entries.size() / 3 + 1}) {
        Expect(MakeQuantileCuts(table, limit, at_once), values, limit);
        Expect(MakeQuantileCuts(table, limit, at_once, 0, Layout::kByColumn), values, limit);
        ASSERT_FALSE(HasFailure()) << what << ", sorted by parts of " << at_once;
      }
      std::vector<std::vector<Piece>> pieces(finer.size());
      for (std::size_t f = 0; f < finer.size(); ++f) {
        for (Bin const& b : finer[f]) {
          pieces[f].push_back({b.lowest, b.n_entries, b.is_range});
        }
      }
      for (std::uint32_t coarser : {limit, limit / 2, limit / 7, 2u}) {
        if (coarser >= 2) {
          QuantileCuts const merged{bins, CountEntries(table), coarser};
          Expect(merged, pieces, coarser);
          ExpectUnions(HostBins{bins, table.n_features}, HostBins{merged, table.n_features});
          QuantileCuts const shifted{bins, CountEntries(table), coarser, true};
          ExpectByNumber(table, bins, merged, shifted, coarser);
          ASSERT_FALSE(HasFailure()) << what << ", of these at most " << coarser;
        }
      }
    }
  }

 private:
  /** @brief The same bins as naively, which keep what the header promises. @return The naive ones. */
  static std::vector<std::vector<Bin>> Expect(QuantileCuts const& bins,
                                              std::vector<std::vector<Piece>> const& pieces,
                                              std::uint32_t max_bins) {
    auto const n_features = static_cast<FeatureIdx>(pieces.size());
    HostBins const got{bins, n_features};
    EXPECT_EQ(got.offsets[0], 0u);
    std::vector<std::vector<Bin>> all;
    for (FeatureIdx f = 0; f < n_features; ++f) {
      std::vector<Bin> const want = GatherPieces(pieces[f], max_bins);
      all.push_back(want);
      EXPECT_EQ(bins.NumBins(f), want.size()) << "feature " << f;
      EXPECT_EQ(got.NumBins(f), want.size()) << "feature " << f;
      if (got.NumBins(f) != want.size()) {
        continue;
      }
      EXPECT_LE(want.size(), max_bins);
      std::uint64_t n_entries{0};
      for (Bin const& b : want) {
        n_entries += b.n_entries;
      }
      bool any_range{false};
      for (std::size_t k = 0; k < want.size(); ++k) {
        std::uint64_t const at = got.offsets[f] + k;
        std::string const where = "feature " + std::to_string(f) + ", bin " + std::to_string(k);
        float const lowest = want[k].lowest == 0.0f ? 0.0f : want[k].lowest;  // never -0
        EXPECT_EQ(std::memcmp(&got.lowest[at], &lowest, sizeof(float)), 0) << where;
        EXPECT_EQ(got.first_rank[at], want[k].first_rank) << where;
        EXPECT_EQ(got.is_range[at], want[k].is_range ? 1 : 0) << where;
        bool const gathered = pieces[f].size() > max_bins;
        if (want[k].is_range && gathered) {
          QuantileLaw const law{static_cast<std::uint32_t>(n_entries), max_bins - 1};
          std::uint64_t const end = want[k].first_rank + want[k].n_entries;
          EXPECT_LE(law.Below(end) - law.Below(want[k].first_rank), 3.0 + 1e-6) << where;
        }
        any_range = any_range || want[k].is_range;
      }
      EXPECT_EQ(bins.HasRanges(f), any_range) << "feature " << f;
    }
    return all;
  }

  /** @brief As by rank, or of as many finer bins each as the shift says, none of them too long. */
  static void ExpectByNumber(Table const& table, QuantileCuts const& bins,
                             QuantileCuts const& by_rank, QuantileCuts const& by_number,
                             std::uint32_t max_bins) {
    std::vector<std::uint32_t> const n_entries = CountEntries(table);
    HostBins const finer{bins, table.n_features};
    HostBins const ranked{by_rank, table.n_features};
    HostBins const got{by_number, table.n_features};
    std::vector<ColumnBins> const ranked_columns = by_rank.ByColumn();
    std::vector<ColumnBins> const columns = by_number.ByColumn();
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      std::uint32_t const shift = columns[f].shift;
      bool const is_ranked = shift == kByRank;
      n_shifted_ += !is_ranked && shift != 0 ? 1 : 0;
      ASSERT_EQ(ranked_columns[f].shift == 0, shift == 0) << "feature " << f;
      std::uint32_t const n = is_ranked ? ranked.NumBins(f) : finer.NumBins(f) >> shift;
      ASSERT_EQ(got.NumBins(f), n) << "feature " << f;
      ASSERT_EQ(columns[f].n_bins, n) << "feature " << f;
      ASSERT_EQ(columns[f].has_ranges, by_number.HasRanges(f)) << "feature " << f;
      ASSERT_LE(n, std::max(max_bins, finer.NumBins(f) != 0 ? 1u : 0u)) << "feature " << f;
      for (std::uint32_t k = 0; k < n; ++k) {
        auto const at = got.offsets[f] + k;
        auto const from = is_ranked ? ranked.offsets[f] + k : finer.offsets[f] + (k << shift);
        HostBins const& want = is_ranked ? ranked : finer;
        ASSERT_EQ(got.lowest[at], want.lowest[from]) << "feature " << f << ", bin " << k;
        ASSERT_EQ(got.first_rank[at], want.first_rank[from]) << "feature " << f << ", bin " << k;
        if (!is_ranked && shift != 0) {
          std::uint64_t const end = k + 1 < n ? got.first_rank[at + 1] : n_entries[f];
          ASSERT_EQ(got.is_range[at], 1) << "feature " << f << ", bin " << k;
          QuantileLaw const law{n_entries[f], max_bins - 1};
          ASSERT_LE(law.Below(end) - law.Below(got.first_rank[at]), 3.0 + 1e-6)
              << "feature " << f << ", bin " << k;
        }
      }
    }
  }

  /** @brief Every coarse bin begins where a finer one does. */
  static void ExpectUnions(HostBins const& finer, HostBins const& coarse) {
    for (FeatureIdx f = 0; f + 1 < finer.offsets.size(); ++f) {
      std::map<float, std::uint32_t> begins;  // rank by value
      for (auto i = finer.offsets[f]; i < finer.offsets[f + 1]; ++i) {
        begins[finer.lowest[i]] = finer.first_rank[i];
      }
      for (auto i = coarse.offsets[f]; i < coarse.offsets[f + 1]; ++i) {
        auto const at = begins.find(coarse.lowest[i]);
        ASSERT_NE(at, begins.end()) << "feature " << f;
        EXPECT_EQ(at->second, coarse.first_rank[i]) << "feature " << f;
      }
    }
  }

 protected:
  static inline int n_shifted_{0};  // columns whose finer bins are gathered by their numbers
};

TEST_F(QuantileCutsTest, RandomTables) {
  n_shifted_ = 0;
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
      // 10 quantiles of 100 entries where the limit is 11.
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
