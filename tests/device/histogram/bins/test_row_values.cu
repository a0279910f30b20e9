/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The kept value of every row and feature against the table; NaN where it is missing.
 */
#include "device/histogram/bins/row_values.cuh"
#include "tests/device/histogram/binned_problem.h"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
// one thread a feature
__global__ void KeepsKernel(RowValuesRef values, FeatureIdx n_features, std::uint8_t* out) {
  WaitForPreviousKernel();
  auto f = GlobalIdx();
  if (f < n_features) {
    out[f] = values.Keeps(static_cast<FeatureIdx>(f));
  }
}
// one thread a feature and row, shape of out: (n_features, n_rows); NaN where a feature is not kept
__global__ void ReadValuesKernel(RowValuesRef values, RowIdx n_rows, std::uint64_t n, float* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    auto const f = static_cast<FeatureIdx>(i / n_rows);
    out[i] = values.Keeps(f) ? values.Find(static_cast<RowIdx>(i % n_rows), f) : NAN;
  }
}

class RowValuesTest : public DeviceTest {
 protected:
  static void Check(Table const& table, std::vector<bool> const& kept) {
    std::vector<std::uint32_t> const n_entries = CountEntries(table);
    EntryIdx const third = table.entries.size() / 3;
    for (EntryIdx at_once : {EntryIdx{1} << 25, EntryIdx{1}, third}) {
      Memory const at = at_once == 1 ? Memory::kHost : Memory::kDevice;
      Check(table, kept, RowValues{table.View(), n_entries, kept, at, at_once});
    }
    TableOnDevice const on_device{table};
    TablePages const pages{table, {0, table.n_rows / 3, table.n_rows - table.n_rows / 4}};
    for (CsrView const& view : {on_device.view, pages.View()}) {
      Check(table, kept, RowValues{view, n_entries, kept, Memory::kDevice, third});
    }
  }
  static void Check(Table const& table, std::vector<bool> const& kept, RowValues const& values) {
    auto const want = ValuesByRow(table);
    DeviceBuffer<std::uint8_t> keeps{"whether features are kept"};
    LaunchN("Keeps", KeepsKernel, table.n_features, values.Ref(), table.n_features,
            keeps.Reserve(table.n_features));
    auto const is_kept = ToHost(keeps.Data(), table.n_features);
    auto const got = ReadValues(table, values);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      ASSERT_EQ(is_kept[f] != 0, kept[f] && table.n_rows != 0) << "feature " << f;
      if (kept[f]) {
        float const* const of_feature = got.data() + std::size_t{f} * table.n_rows;
        ASSERT_NO_FATAL_FAILURE(ExpectValues(want[f], of_feature, table.n_rows, f));
      }
    }
  }

  static std::vector<float> ReadValues(Table const& table, RowValues const& values) {
    std::size_t const n = std::size_t{table.n_features} * table.n_rows;
    DeviceBuffer<float> read{"values"};
    LaunchN("ReadValues", ReadValuesKernel, n, values.Ref(), table.n_rows, n, read.Reserve(n));
    return ToHost(read.Data(), n);
  }

  static std::vector<bool> Keep(Table const& table, double share, Random* random) {
    std::vector<bool> kept;
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      kept.push_back(random->Chance(share));
    }
    return kept;
  }
};

TEST_F(RowValuesTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table const table =
        MakeBinnedTable(static_cast<RowIdx>(random.Int(1, Scaled(700, 200))),
                        static_cast<FeatureIdx>(random.Int(1, Scaled(70, 20))), &random);
    for (double share : {1.0, 0.5, 0.1}) {
      Check(table, Keep(table, share, &random));
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
  }
}

TEST_F(RowValuesTest, DenseAndSparse) {
  // About half present, where one way of keeping them gives way to the other, and far from it.
  std::vector<double> const shares{0.0, 0.01, 0.45, 0.5, 0.55, 0.99};
  for (double missing : ForRacecheck(shares, {0.0, 0.45, 0.55})) {
    std::vector<RowIdx> const all{1, 31, 32, 33, 1000};
    for (RowIdx n_rows : Scaled(all, {1, 33})) {
      Random random{n_rows};
      Table const table = MakeTable({n_rows, 35, missing, 0}, &random);
      Check(table, std::vector<bool>(35, true));
      Check(table, Keep(table, 0.5, &random));
      ASSERT_FALSE(HasFailure()) << n_rows << " rows, missing " << missing;
    }
  }
}

TEST_F(RowValuesTest, NothingIsKept) {
  Random random{1};
  Table const table = MakeTable({100, 4, 0.3, 0}, &random);
  Check(table, std::vector<bool>(4, false));
  Check(MakeTable({100, 4, 1.0, 0}, &random), std::vector<bool>(4, false));
  Check(MakeTable({0, 4, 0.0, 0}, &random), std::vector<bool>(4, true));
}

/** @brief Features before, between and after the kept ones, in rows of many warps of entries. */
TEST_F(RowValuesTest, WideRows) {
  Random random{2};
  for (double missing : {0.0, 0.9}) {
    Table const table = MakeTable({60, Scaled(3000u, 500u), missing, 0}, &random);
    Check(table, Keep(table, 0.02, &random));
  }
}

/** @brief As many kept columns as two bytes tell, and one more. */
TEST_F(RowValuesTest, ManyColumns) {
  for (FeatureIdx more : {0u, 1u}) {
    Table table;
    table.n_features = kShortColumns + more;
    FeatureIdx const last = table.n_features - 1;
    for (FeatureIdx f : {0u, 1u, 255u, 256u, last - 1, last}) {
      table.entries.push_back({f, 1.0f + static_cast<float>(f)});
      if (f != last) {
        table.entries.push_back({last, 0.5f});
      }
      table.offsets.push_back(table.entries.size());
    }
    table.n_rows = static_cast<RowIdx>(table.offsets.size() - 1);
    RowValues const values{table.View(), CountEntries(table),
                           std::vector<bool>(table.n_features, true)};
    Check(table, std::vector<bool>(table.n_features, true), values);
  }
}

TEST_F(RowValuesTest, OddValues) {
  Table table;
  table.n_features = 2;
  for (float v : {0.0f, -0.0f, 1e-45f, -1e-45f, std::numeric_limits<float>::infinity(),
                  -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()}) {
    table.entries.push_back({1, v});
    table.offsets.push_back(table.entries.size());
    table.offsets.push_back(table.entries.size());  // a row without entries
  }
  table.n_rows = static_cast<RowIdx>(table.offsets.size() - 1);
  Check(table, {false, true});
  Check(table, {true, true});
}
}  // namespace
}  // namespace gpu_exact
