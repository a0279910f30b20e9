/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The bin of every row and feature against the table.
 */
#include <algorithm>
#include <map>
#include <set>

#include "src/device/partition/binned_columns.cuh"
#include "tests/device/binned_problem.h"
#include "tests/device/device_arrays.cuh"

namespace gpu_exact {
namespace {
// one thread a row
__global__ void ReadBinsKernel(BinnedRef binned, FeatureIdx f, RowIdx n_rows, int* out) {
  auto r = GlobalIdx();
  if (r < n_rows) {
    out[r] = binned.BinOf(static_cast<RowIdx>(r), f);
  }
}

class BinnedColumnsTest : public DeviceTest {
 protected:
  void Check(Table const& table, std::vector<FeatureIdx> const& features,
             std::uint32_t max_group_bins) {
    ColumnStore store{table.View()};
    BinnedColumns binned{store.Ref(), features, max_group_bins};
    std::vector<std::map<RowIdx, float>> values(table.n_features);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
        values[table.entries[i].feature][r] = table.entries[i].value;
      }
    }
    DeviceBuffer<int> bins{"bins"};
    bins.Reserve(table.n_rows);
    for (FeatureIdx f : features) {
      if (values[f].empty()) {
        continue;
      }
      LaunchN("ReadBins", ReadBinsKernel, table.n_rows, binned.Ref(), f, table.n_rows, bins.Data());
      auto got = ToHost(bins.Data(), table.n_rows);
      std::set<float> distinct;
      for (auto const& at : values[f]) {
        distinct.insert(at.second);
      }
      for (RowIdx r = 0; r < table.n_rows; ++r) {
        auto at = values[f].find(r);
        int want =
            at == values[f].end()
                ? -1
                : static_cast<int>(std::distance(distinct.begin(), distinct.find(at->second)));
        ASSERT_EQ(got[r], want) << "row " << r << ", feature " << f;
      }
    }
    auto column_of = ToHost(binned.Ref().column_of, table.n_features);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      bool listed = std::binary_search(features.begin(), features.end(), f);
      EXPECT_EQ(column_of[f] != BinnedRef::kNotBinned, listed && !values[f].empty()) << f;
    }
  }
};

TEST_F(BinnedColumnsTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table = MakeBinnedTable(static_cast<RowIdx>(random.Int(1, 300)),
                                  static_cast<FeatureIdx>(random.Int(1, 40)), &random);
    std::vector<FeatureIdx> features;
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      if (random.Chance(0.8)) {
        features.push_back(f);
      }
    }
    this->Check(table, features, static_cast<std::uint32_t>(random.Pick({0, 1, 100, 5000})));
  }
}

TEST_F(BinnedColumnsTest, AsManyValuesAsFit) {
  Random random{1};
  auto n_values = static_cast<int>(BinnedColumns::MaxBins());
  Table table = MakeBinnedTable({{n_values, 0.0}, {2, 0.0}, {n_values, 0.1}},
                                static_cast<RowIdx>(3 * n_values), &random);
  this->Check(table, {0, 1, 2}, 0);
}

TEST_F(BinnedColumnsTest, ColumnsWithoutValues) {
  Random random{2};
  this->Check(MakeBinnedTable({{3, 1.0}, {3, 0.5}, {3, 1.0}}, 50, &random), {0, 1, 2}, 0);
  this->Check(MakeBinnedTable({{3, 1.0}, {3, 1.0}}, 50, &random), {0, 1}, 0);
}
}  // namespace
}  // namespace gpu_exact
