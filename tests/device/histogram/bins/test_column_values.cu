/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Values by column against the table, however it is read and whatever columns are kept.
 */
#include <algorithm>
#include <random>
#include <stdexcept>

#include "device/histogram/bins/column_values.cuh"
#include "tests/device/histogram/binned_problem.h"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
constexpr EntryIdx kAtOnce = EntryIdx{1} << 25;

class ColumnValuesTest : public DeviceTest {
 protected:
  /** @brief Some columns of a table, and then fewer of them. */
  static void Check(Table const& table, std::vector<bool> const& kept, std::vector<bool> fewer) {
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      fewer[f] = fewer[f] && kept[f];
    }
    TableOnDevice const on_device{table};
    TablePages const pages{table, {0, table.n_rows / 3, table.n_rows - table.n_rows / 4}};
    std::uint64_t const n_rows = table.n_rows;
    for (CsrView const& view : {table.View(), on_device.view, pages.View()}) {
      EntryIdx const n = table.entries.size();
      for (EntryIdx at_once : {kAtOnce, Scaled(EntryIdx{1}, n / 2), n / 3}) {
        for (std::uint64_t part : {std::uint64_t{0}, std::uint64_t{1}, 3 * n_rows}) {
          Memory const at = part == 1 ? Memory::kHost : Memory::kDevice;
          ColumnValues values{view, kept, at, at_once, part};
          Expect(table, kept, values);
          std::uint64_t const before = values.ValueBytes();
          values.Keep(fewer);
          Expect(table, fewer, values);
          auto const n_less = std::count(kept.cbegin(), kept.cend(), true) -
                              std::count(fewer.cbegin(), fewer.cend(), true);
          ASSERT_EQ(before - values.ValueBytes(), 4 * n_rows * n_less) << "what goes is freed";
          ASSERT_FALSE(HasFailure()) << at_once << " at once, parts of " << part;
        }
      }
    }
  }

  static std::vector<bool> Keep(Table const& table, double share, Random* random) {
    std::vector<bool> kept;
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      kept.push_back(random->Chance(share));
    }
    return kept;
  }

 private:
  static void Expect(Table const& table, std::vector<bool> const& kept,
                     ColumnValues const& values) {
    auto const want = ValuesByRow(table);
    TableSource const source = values.Source();
    ASSERT_EQ(source.n_rows, table.n_rows);
    ASSERT_EQ(source.n_features, table.n_features);
    auto const columns = ToHost(source.columns, table.n_features);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      if (!kept[f] || table.n_rows == 0) {
        ASSERT_EQ(columns[f], nullptr) << "feature " << f;
        continue;
      }
      ASSERT_EQ(values.CountEntries()[f], want[f].size()) << "feature " << f;
      auto const got = ToHost(columns[f], table.n_rows);
      ASSERT_EQ(got.size(), table.n_rows);
      ASSERT_NO_FATAL_FAILURE(ExpectValues(want[f], got.data(), table.n_rows, f));
    }
  }
};

TEST_F(ColumnValuesTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(10); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table = MakeBinnedTable(static_cast<RowIdx>(random.Int(1, Scaled(700, 100))),
                                  static_cast<FeatureIdx>(random.Int(1, Scaled(200, 70))), &random);
    bool const shuffled = random.Chance(0.5);
    for (RowIdx r = 0; shuffled && r < table.n_rows; ++r) {
      std::shuffle(table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[r]),
                   table.entries.begin() + static_cast<std::ptrdiff_t>(table.offsets[r + 1]),
                   std::mt19937{r});
    }
    Check(table, Keep(table, random.Pick({0.3, 1.0}), &random), Keep(table, 0.5, &random));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

/** @brief Rows and columns at the edges of the tiles that pass through shared memory. */
TEST_F(ColumnValuesTest, EdgesOfTiles) {
  Random random{1};
  using Sizes = std::vector<std::uint32_t>;
  for (RowIdx n_rows : Scaled(Sizes{1, 31, 32, 33, 65}, {33})) {
    for (FeatureIdx n_features : Scaled(Sizes{1, 31, 33, 63, 64, 65, 129}, {31, 64, 65})) {
      Table const table = MakeTable({n_rows, n_features, random.Pick({0.0, 0.5}), 0}, &random);
      Check(table, std::vector<bool>(n_features, true), Keep(table, 0.5, &random));
      ASSERT_FALSE(HasFailure()) << n_rows << " x " << n_features;
    }
  }
}

TEST_F(ColumnValuesTest, EmptyRowsColumnsAndTables) {
  Random random{2};
  Table const table = MakeBinnedTable({{3, 1.0}, {0, 0.5}, {3, 1.0}}, 50, &random);
  Check(table, {true, true, true}, {true, false, true});
  Check(table, {false, false, false}, {false, false, false});
  Check(MakeTable({100, 4, 1.0, 0}, &random), std::vector<bool>(4, true),
        std::vector<bool>(4, true));
  Check(MakeTable({0, 4, 0.0, 0}, &random), std::vector<bool>(4, true), std::vector<bool>(4, true));
}

/** @brief The row's number in the table, not in the part that is read. */
TEST_F(ColumnValuesTest, RefusesAFaultyRow) {
  Random random{3};
  Table table = MakeTable({200, 3, 0.0, 0}, &random);
  TablePages const pages{table, {0, 20, 120}};
  for (auto const& [feature, want] :
       {std::pair<FeatureIdx, std::string>{2, "Row 150 has two values of feature 2"},
        std::pair<FeatureIdx, std::string>{7, "Row 150 has a value of feature 7"}}) {
    table.entries[3 * 150 + 1].feature = feature;
    for (EntryIdx at_once : {kAtOnce, EntryIdx{90}, EntryIdx{0}}) {
      CsrView const view = at_once == 0 ? pages.View() : table.View();
      try {
        ColumnValues const values{view, {true, true, true}, Memory::kDevice, at_once};
        FAIL() << "not refused";
      } catch (std::invalid_argument const& e) {
        EXPECT_EQ(std::string{e.what()}.rfind(want, 0), 0u) << e.what();
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
