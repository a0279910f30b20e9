/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Which columns are binned, how candidates are numbered, and every value of both kinds.
 */
#include "src/device/partition/feature_table.cuh"
#include "src/device/partition/split_tile.cuh"
#include "tests/device/binned_problem.h"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
// one thread a row
__global__ void GoesLeftKernel(FeatureTableRef table, SplitOrder order, RowIdx n_rows,
                               std::uint8_t* out) {
  auto r = GlobalIdx();
  if (r < n_rows) {
    out[r] = table.GoesLeft(static_cast<RowIdx>(r), order) ? 1 : 0;
  }
}

/** @brief A column, naively: entries by value, row. */
struct Column {
  std::vector<std::pair<float, RowIdx>> entries;
  std::size_t n_values;
  bool binned;
};

class FeatureTableTest : public DeviceTest {
 protected:
  int n_binned_{0};
  int n_sorted_{0};

  static std::vector<Column> MakeColumns(Table const& table) {
    std::vector<Column> columns(table.n_features);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
        columns[table.entries[i].feature].entries.emplace_back(table.entries[i].value, r);
      }
    }
    auto const distinct = FindDistinct(table);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      Column& c = columns[f];
      std::stable_sort(c.entries.begin(), c.entries.end(),
                       [](auto const& a, auto const& b) { return a.first < b.first; });
      std::size_t const n = c.entries.size();
      c.n_values = distinct[f].size();
      c.binned = n != 0 && c.n_values <= BinnedColumns::MaxBins() &&
                 (c.n_values <= 256 || 8 * c.n_values <= n) &&
                 2 * n * std::max<std::size_t>(1, 8192 / c.n_values) >= table.n_rows;
    }
    return columns;
  }

  void Check(Table const& table, CsrView const& view) {
    std::vector<Column> const columns = MakeColumns(table);
    FeatureTable const kept{view};
    FeatureTableRef const ref = kept.Ref();
    auto sorted_of = ToHost(ref.sorted_of, table.n_features);
    auto n_present = ToHost(kept.Counts().n_present, table.n_features);
    auto values = ToHost(kept.Counts().value_offsets, table.n_features + 1);
    auto places = ToHost(kept.Places().value_offsets, table.n_features + 1);
    EXPECT_EQ(kept.Counts().n_entries, table.entries.size());
    EXPECT_EQ(kept.Counts().n_values, values.back());
    EXPECT_EQ(kept.Places().n_values, places.back());
    std::uint32_t n_sorted{0};
    DeviceBuffer<std::uint8_t> left{"rows that go left"};
    left.Reserve(table.n_rows);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      Column const& c = columns[f];
      bool const sorted = !c.entries.empty() && !c.binned;
      ASSERT_EQ(sorted_of[f], sorted ? n_sorted++ : FeatureTableRef::kNotSorted) << f;
      ASSERT_EQ(n_present[f], c.entries.size()) << f;
      ASSERT_EQ(values[f + 1] - values[f], c.n_values) << f;
      ASSERT_EQ(places[f + 1] - places[f], sorted ? c.entries.size() : c.n_values) << f;
      if (c.entries.empty()) {
        continue;
      }
      n_binned_ += c.binned ? 1 : 0;
      for (bool default_left : {false, true}) {
        float const threshold = c.entries[c.entries.size() / 2].first;
        LaunchN("GoesLeft", GoesLeftKernel, table.n_rows, ref,
                SplitOrder{f, 1, 0, threshold, default_left}, table.n_rows, left.Data());
        std::vector<std::uint8_t> want(table.n_rows, default_left ? 1 : 0);
        for (auto const& e : c.entries) {
          want[e.second] = e.first < threshold ? 1 : 0;
        }
        ASSERT_EQ(ToHost(left.Data(), table.n_rows), want) << f;
      }
    }
    n_sorted_ += static_cast<int>(n_sorted);
    ASSERT_EQ(kept.Sorted() != nullptr, n_sorted != 0);
    if (n_sorted != 0) {
      CheckSorted(columns, table.n_rows, *kept.Sorted());
    }
  }

  static void CheckSorted(std::vector<Column> const& columns, RowIdx n_rows,
                          SortedColumns const& sorted) {
    SortedColumnsRef const ref = sorted.Ref();
    auto features = ToHost(ref.features, ref.n_columns);
    auto offsets = ToHost(ref.offsets, std::size_t{ref.n_columns} + 1);
    auto rows = ToHost(ref.rows, sorted.NumEntries());
    auto sparse = ToHost(ref.sparse, ref.n_columns);
    auto of_sparse = ToHost(ref.of_sparse, ref.n_sparse);
    std::uint32_t n_sparse{0};
    for (std::uint32_t k = 0; k < ref.n_columns; ++k) {
      auto const& want = columns[features[k]].entries;
      ASSERT_EQ(offsets[k + 1] - offsets[k], want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        bool const is_new = i == 0 || want[i].first != want[i - 1].first;
        ASSERT_EQ(rows[offsets[k] + i], want[i].second | (is_new ? PlaceWord::kNewValue : 0))
            << "column " << k << ", entry " << i;
      }
      if (want.size() == n_rows) {
        ASSERT_EQ(sparse[k], SortedColumnsRef::kDense);
      } else {
        ASSERT_EQ(of_sparse[n_sparse], k);
        ASSERT_EQ(sparse[k], n_sparse++);
      }
    }
    ASSERT_EQ(ref.n_sparse, n_sparse);
  }

  void Check(Table const& table) {
    this->Check(table, table.View());
    this->Check(table, TableOnDevice{table}.view);
  }
};

TEST_F(FeatureTableTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    double const missing = random.Pick({0.0, 0.3, 0.9});
    std::vector<ColumnShape> columns;
    for (int f = random.Int(1, 50); f > 0; --f) {
      columns.push_back(
          {random.Pick({1, 2, 256, 257, 400, 3000}), random.Chance(0.2) ? random.Real() : missing});
    }
    this->Check(MakeBinnedTable(columns, static_cast<RowIdx>(random.Int(1, 3000)), &random));
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
}

TEST_F(FeatureTableTest, AllSortedAndAllBinned) {
  Random random{1};
  this->Check(MakeTable({2000, 5, 0.0, 0}, &random));
  EXPECT_EQ(n_binned_, 0);
  this->Check(MakeTable({2000, 5, 0.6, 0}, &random));  // values lie by row with their columns
  this->Check(MakeTable({2000, 30, 0.97, 0}, &random));
  n_sorted_ = 0;
  this->Check(MakeTable({2000, 5, 0.2, 7}, &random));
  EXPECT_EQ(n_sorted_, 0);
}

TEST_F(FeatureTableTest, AtTheLimits) {
  Random random{2};
  this->Check(MakeBinnedTable({{300, 0.0}, {301, 0.0}, {256, 0.0}, {2400, 0.0}}, 2400, &random));
  EXPECT_EQ(n_binned_, 2 * 2);
  EXPECT_EQ(n_sorted_, 2 * 2);
}

TEST_F(FeatureTableTest, NearlyEmptyColumns) {
  // So many constant columns as fit a group would take 8192 offsets for each two entries.
  Table table;
  table.n_rows = 40000;
  table.n_features = 5;
  for (RowIdx r = 0; r < table.n_rows; ++r) {
    if (r == 77) {
      table.entries.push_back({0, 1.0f});
    }
    if (r < 3) {
      table.entries.push_back({1, -0.0f});
    }
    if (r % 1000 == 5) {
      table.entries.push_back({3, static_cast<float>(r % 9)});
    }
    table.entries.push_back({4, static_cast<float>(r)});
    table.offsets.push_back(table.entries.size());
  }
  this->Check(table);
  EXPECT_GT(n_binned_, 0);
  EXPECT_GT(n_sorted_, 2);
}

TEST_F(FeatureTableTest, RowsInAnyOrderOfFeatures) {
  Random random{3};
  Table table = MakeBinnedTable({{3, 0.2}, {900, 0.2}, {30, 0.2}, {1000, 0.0}}, 1000, &random);
  for (RowIdx r = 0; r < table.n_rows; r += 3) {
    std::reverse(table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[r]),
                 table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[r + 1]));
  }
  this->Check(table);
}

TEST_F(FeatureTableTest, RefusesTwoValuesOfAFeature) {
  Table table;
  table.n_rows = 2;
  table.n_features = 2;
  table.entries = {{0, 1.0f}, {0, 1.0f}, {1, 5.0f}};
  table.offsets = {0, 2, 3};
  EXPECT_THROW(FeatureTable{table.View()}, std::invalid_argument);
}
}  // namespace
}  // namespace gpu_exact
