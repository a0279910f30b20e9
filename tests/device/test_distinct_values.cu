/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Distinct values against std::set.
 */
#include <cstring>

#include "src/device/partition/distinct_values.cuh"
#include "tests/device/binned_problem.h"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
class DistinctValuesTest : public DeviceTest {
 protected:
  static void Check(Table const& table, std::vector<std::uint32_t> const& limits) {
    TableOnDevice const on_device{table};
    auto const distinct = FindDistinct(table);
    DistinctValues values{on_device.view, limits};
    auto offsets = ToHost(values.Ref().offsets, limits.size() + 1);
    auto listed = ToHost(values.Ref().values, offsets.back());
    ASSERT_EQ(offsets[0], 0u);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      bool const few = distinct[f].size() <= limits[f];
      ASSERT_EQ(values.NumValues(f), few ? distinct[f].size() : 0) << "feature " << f;
      ASSERT_EQ(offsets[f + 1] - offsets[f], values.NumValues(f)) << "feature " << f;
      auto at = listed.cbegin() + static_cast<std::ptrdiff_t>(offsets[f]);
      for (float value : few ? distinct[f] : std::set<float>{}) {
        float const want = value == 0.0f ? 0.0f : value;  // of the two zeros this one
        ASSERT_EQ(std::memcmp(&*at++, &want, sizeof(float)), 0) << "feature " << f << ", " << want;
      }
    }
  }

  static void Check(Table const& table, std::uint32_t limit) {
    Check(table, std::vector<std::uint32_t>(table.n_features, limit));
  }
};

TEST_F(DistinctValuesTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table = MakeBinnedTable(static_cast<RowIdx>(random.Int(1, 300)),
                                  static_cast<FeatureIdx>(random.Int(1, 80)), &random);
    std::vector<std::uint32_t> limits;
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      limits.push_back(static_cast<std::uint32_t>(random.Pick({0, 1, 2, 17, 300, 8192})));
    }
    Check(table, limits);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST_F(DistinctValuesTest, OddValues) {
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
  Check(table, 100);
  Check(table, 1);
}

TEST_F(DistinctValuesTest, AsManyAsTheLimitAndOneMore) {
  Random random{1};
  for (int limit : {1, 2, 31, 256, 8192}) {
    Table table = MakeBinnedTable({{limit, 0.0}, {limit + 1, 0.0}, {limit, 0.0}},
                                  static_cast<RowIdx>(2 * limit + 2), &random);
    Check(table, static_cast<std::uint32_t>(limit));
  }
}

TEST_F(DistinctValuesTest, EmptyTables) {
  Table table;
  Check(table, 10);
  table.n_rows = 2;
  table.n_features = 2;
  table.offsets = {0, 0, 0};
  Check(table, 10);
  Check(table, 0);
}

TEST_F(DistinctValuesTest, ManyFeatures) {
  Random random{2};
  // More than blocks that list values.
  Table table = MakeTable({20, Scaled(70000u, 5000u), 0.9, 3}, &random);
  Check(table, 3);
  Check(table, 2);
}

TEST_F(DistinctValuesTest, ManyRowsOfFewColumns) {
  RowIdx const n_rows = Scaled(200000u, 5000u);
  Random random{3};
  // All threads meet in few slots; and sets are full at once.
  Check(MakeBinnedTable({{2, 0.0}, {40000, 0.0}, {1, 0.5}}, n_rows, &random), 2);
  Check(MakeTable({n_rows, 2, 0.0, 0}, &random), 5);
  Check(MakeTable({n_rows, 1, 0.0, 0}, &random), 8192);
}
}  // namespace
}  // namespace gpu_exact
