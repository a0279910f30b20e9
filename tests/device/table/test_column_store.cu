/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Columns against std::stable_sort on the host.
 */
#include "device/table/column_store.cuh"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
struct Present {
  FeatureIdx feature;
  float value;
  RowIdx row;
};

class ColumnStoreTest : public DeviceTest {
 protected:
  void Check(Table const& table, CsrView const& view) { this->Check(table, ColumnStore{view}); }

  void Check(Table const& table, ColumnStore const& store) {
    std::vector<Present> want;
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
        want.push_back({table.entries[i].feature, table.entries[i].value, r});
      }
    }
    std::stable_sort(want.begin(), want.end(), [](Present const& a, Present const& b) {
      return a.feature != b.feature ? a.feature < b.feature : a.value < b.value;
    });
    ColumnsRef ref = store.Ref();
    ASSERT_EQ(ref.n_entries, want.size());
    auto entries = ToHost(ref.entries, ref.n_entries);
    auto values = ToHost(ref.values, ref.n_values);
    auto n_present = ToHost(ref.n_present, table.n_features);
    auto const& offsets = store.EntryOffsets();
    auto value_offsets = ToHost(ref.value_offsets, table.n_features + 1);
    ASSERT_EQ(offsets.size(), table.n_features + 1);
    EXPECT_EQ(offsets.back(), want.size());
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      ASSERT_EQ(offsets[f + 1] - offsets[f], n_present[f]) << "feature " << f;
    }
    EXPECT_EQ(value_offsets.back(), ref.n_values);
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(entries[i].row, want[i].row) << "entry " << i;
      ASSERT_EQ(values[entries[i].value], want[i].value) << "entry " << i;
      ASSERT_GE(i, offsets[want[i].feature]);
      ASSERT_LT(i, offsets[want[i].feature + 1]);
      ASSERT_GE(entries[i].value, value_offsets[want[i].feature]);
      ASSERT_LT(entries[i].value, value_offsets[want[i].feature + 1]);
      bool is_new =
          i == 0 || want[i].feature != want[i - 1].feature || want[i].value != want[i - 1].value;
      ASSERT_EQ(entries[i].value, i == 0 ? 0 : entries[i - 1].value + is_new) << "entry " << i;
    }
  }
};

TEST_F(ColumnStoreTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(1, 3000)),
                static_cast<FeatureIdx>(random.Int(1, 40)), random.Pick({0.0, 0.5, 0.99}),
                random.Pick({0, 3})};
    Table table = MakeTable(shape, &random);
    ASSERT_NO_FATAL_FAILURE(this->Check(table, table.View())) << "seed " << seed;
  }
}

TEST_F(ColumnStoreTest, OddValues) {
  Table table;
  table.n_rows = 9;
  table.n_features = 2;
  for (float v : {0.0f, -0.0f, 1e-45f, -1e-45f, 3e38f, -3e38f, -1.0f, 1.0f,
                  -std::numeric_limits<float>::infinity()}) {
    table.entries.push_back({1, v});
    table.offsets.push_back(table.entries.size());
  }
  this->Check(table, table.View());
}

TEST_F(ColumnStoreTest, RowsInAnyOrderOfFeatures) {
  Table table;
  table.n_rows = 2;
  table.n_features = 3;
  table.entries = {{2, 1.0f}, {0, 5.0f}, {1, 3.0f}, {1, 2.0f}, {0, 4.0f}};
  table.offsets = {0, 3, 5};
  this->Check(table, table.View());
}

TEST_F(ColumnStoreTest, RefusesTwoValuesOfAFeature) {
  Table table;
  table.n_rows = 2;
  table.n_features = 3;
  table.entries = {{0, 1.0f}, {1, 5.0f}, {2, 3.0f}, {1, 2.0f}};
  table.offsets = {0, 1, 4};
  EXPECT_THROW(ColumnStore{table.View()}, std::invalid_argument);
}

TEST_F(ColumnStoreTest, SeveralParts) {
  for (int seed = 0; seed < NumSeeds(10); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table = MakeTable(
        {static_cast<RowIdx>(random.Int(1, 200)), static_cast<FeatureIdx>(random.Int(1, 60)),
         random.Pick({0.3, 0.9, 0.99}), random.Pick({0, 3})},
        &random);
    // A column each; a few columns each; half of the table.
    for (EntryIdx at_once : {EntryIdx{0}, EntryIdx{300}, table.entries.size() / 2}) {
      ASSERT_NO_FATAL_FAILURE(this->Check(table, ColumnStore{table.View(), at_once, kHostValues}))
          << "seed " << seed << ", " << at_once << " at once";
    }
  }
}

/** @brief Among parts of short columns; the first columns, some in between, the last are empty. */
TEST_F(ColumnStoreTest, PartOfOneLongColumn) {
  constexpr RowIdx kRows = 5000;
  for (FeatureIdx long_column : {3, 200, 395}) {
    Table table;
    table.n_rows = kRows;
    table.n_features = 400;
    for (RowIdx r = 0; r < kRows; ++r) {
      std::set<FeatureIdx> const features{3 + r % 131 * 3, long_column};
      for (FeatureIdx f : features) {
        table.entries.push_back({f, static_cast<float>(r * 7919 % 1009)});
      }
      table.offsets.push_back(table.entries.size());
    }
    ASSERT_NO_FATAL_FAILURE(this->Check(table, ColumnStore{table.View(), 500, kHostValues}));
  }
}

TEST_F(ColumnStoreTest, NoEntries) {
  Table table;
  table.n_rows = 3;
  table.n_features = 4;
  table.offsets = {0, 0, 0, 0};
  this->Check(table, table.View());
  this->Check(table, ColumnStore{table.View(), 0, 0});
}

TEST_F(ColumnStoreTest, ValuesOnEitherSide) {
  Random random{6};
  Table table = MakeTable({300, 8, 0.4, 0}, &random);
  HeldBytes const held_by_both;
  ColumnStore on_host{table.View()};
  HeldBytes const held_by_one;
  ColumnStore on_device{table.View(), table.entries.size(), on_host.Ref().n_values - 1};
  std::size_t const n_bytes = held_by_one.Count();
  EXPECT_EQ(2 * n_bytes - held_by_both.Count(), on_host.Ref().n_values * sizeof(float));
  this->Check(table, on_host);
  this->Check(table, on_device);
}

TEST_F(ColumnStoreTest, TableOnTheDevice) {
  Random random{5};
  Table table = MakeTable({700, 6, 0.4, 0}, &random);
  this->Check(table, TableOnDevice{table}.view);
}
}  // namespace
}  // namespace gpu_exact
