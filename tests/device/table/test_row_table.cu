/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The table on the device against the one on the host, its rows sorted by std::sort.
 */
#include <numeric>
#include <string>

#include "device/table/row_table.cuh"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
void Expect(std::vector<CsrEntry> const& got, std::vector<CsrEntry> const& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].feature, want[i].feature) << "entry " << i;
    ASSERT_EQ(got[i].value, want[i].value) << "entry " << i;
  }
}

class RowTableTest : public DeviceTest {
 protected:
  static void Check(Table const& table, CsrView const& view, EntryIdx sorted_at_once) {
    std::vector<CsrEntry> want = table.entries;
    std::vector<std::uint32_t> counts(table.n_features, 0);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      std::sort(want.begin() + static_cast<std::ptrdiff_t>(table.offsets[r]),
                want.begin() + static_cast<std::ptrdiff_t>(table.offsets[r + 1]),
                [](CsrEntry const& a, CsrEntry const& b) { return a.feature < b.feature; });
    }
    for (CsrEntry const& e : table.entries) {
      ++counts[e.feature];
    }
    RowTable rows{view, sorted_at_once};
    EXPECT_EQ(rows.View().memory, Memory::kDevice);
    EXPECT_EQ(ToHost(rows.View().offsets, std::size_t{table.n_rows} + 1), table.offsets);
    Expect(ToHost(rows.View().entries, rows.View().n_entries), want);
    EXPECT_EQ(rows.CountEntries(), counts);
  }

  static void CheckBoth(Table const& table, EntryIdx sorted_at_once) {
    Check(table, table.View(), sorted_at_once);
    TableOnDevice const on_device{table};
    Check(table, on_device.view, sorted_at_once);
    Expect(ToHost(on_device.entries.Data(), table.entries.size()), table.entries);
    TablePages const pages{table, {0, table.n_rows / 2, table.n_rows - table.n_rows / 3}};
    Check(table, pages.View(), sorted_at_once);
  }

  static std::string WhyRefused(Table const& table) {
    try {
      RowTable rows{table.View()};
    } catch (std::invalid_argument const& e) {
      return e.what();
    }
    return "not refused";
  }
};

TEST_F(RowTableTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table =
        MakeTable({static_cast<RowIdx>(random.Int(1, 500)),
                   static_cast<FeatureIdx>(random.Int(1, 80)), random.Pick({0.0, 0.5, 0.99}), 0},
                  &random);
    bool const shuffled = random.Chance(0.5);
    for (RowIdx r = 0; shuffled && r < table.n_rows; ++r) {
      std::shuffle(table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[r]),
                   table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[r + 1]),
                   std::mt19937{r});
    }
    CheckBoth(table, random.Pick({EntryIdx{1}, EntryIdx{50}, RowTable::kSortedAtOnce}));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST_F(RowTableTest, EmptyTables) {
  Table table;
  table.n_features = 2;
  CheckBoth(table, RowTable::kSortedAtOnce);
  table.n_rows = 3;
  table.offsets = {0, 0, 0, 0};
  CheckBoth(table, RowTable::kSortedAtOnce);
}

TEST_F(RowTableTest, ManyFeatures) {
  Table table;
  table.n_rows = 3;
  table.n_features = 20000;
  for (RowIdx r = 0; r < table.n_rows; ++r) {
    for (FeatureIdx f = r; f < table.n_features; f += r + 1) {
      table.entries.push_back({f, static_cast<float>(f)});
    }
    table.offsets.push_back(table.entries.size());
  }
  CheckBoth(table, RowTable::kSortedAtOnce);
  std::reverse(table.entries.begin(),
               table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[1]));
  CheckBoth(table, RowTable::kSortedAtOnce);
}

TEST_F(RowTableTest, RefusesTwoValuesOfAFeature) {
  Table table;
  table.n_rows = 2;
  table.n_features = 3;
  table.offsets = {0, 1, 4};
  std::string const want = "Row 1 has two values of feature 1";
  table.entries = {{0, 1.0f}, {0, 3.0f}, {1, 5.0f}, {1, 2.0f}};
  EXPECT_NE(WhyRefused(table).find(want), std::string::npos) << WhyRefused(table);
  table.entries = {{0, 1.0f}, {1, 5.0f}, {2, 3.0f}, {1, 2.0f}};
  EXPECT_NE(WhyRefused(table).find(want), std::string::npos) << WhyRefused(table);
}

TEST_F(RowTableTest, RefusesAFeatureBeyondTheColumns) {
  for (FeatureIdx feature : {3u, 2000u, 0xffffffffu}) {
    Table table;
    table.n_rows = 3;
    table.n_features = 3;
    table.offsets = {0, 1, 3, 4};
    std::string const want =
        "has a value of feature " + std::to_string(feature) + ", but the table has 3 columns";
    table.entries = {{0, 1.0f}, {1, 3.0f}, {feature, 5.0f}, {feature, 2.0f}};
    EXPECT_EQ(WhyRefused(table).rfind("Row 1 " + want, 0), 0u) << WhyRefused(table);
    table.entries = {{0, 1.0f}, {feature, 3.0f}, {1, 5.0f}, {2, 2.0f}};  // a row out of order
    EXPECT_EQ(WhyRefused(table).rfind("Row 1 " + want, 0), 0u) << WhyRefused(table);
    table.entries = {{feature, 1.0f}, {0, 3.0f}, {1, 5.0f}, {2, 2.0f}};  // the first one of a row
    EXPECT_EQ(WhyRefused(table).rfind("Row 0 " + want, 0), 0u) << WhyRefused(table);
  }
}
}  // namespace
}  // namespace gpu_exact
