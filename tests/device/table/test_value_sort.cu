/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keys that sort by column and value, and entries sorted by them, against std::stable_sort.
 */
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "device/table/value_key.cuh"
#include "device/table/value_sort.cuh"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
struct ReadKey {
  std::uint64_t column;
  float value;
  std::uint32_t is_first;  // not a bool: what is copied to the host has no padding
};

// one thread a key
__global__ void ReadKeysKernel(std::uint64_t const* keys, std::uint64_t n, ReadKey* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    out[i] = {ValueKey::Column(keys[i]), ValueKey::Value(keys[i]), ValueKey::IsFirst(keys, i)};
  }
}

// one thread a value
__global__ void MakeKeysKernel(float const* values, std::uint64_t n, std::uint64_t* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    out[i] = ValueKey::Make(7, RadixKey(values[i]));
  }
}

std::vector<ReadKey> ReadKeys(std::uint64_t const* keys, std::uint64_t n) {
  DeviceBuffer<ReadKey> out{"keys"};
  LaunchN("ReadKeys", ReadKeysKernel, n, keys, n, out.Reserve(n));
  return ToHost(out.Data(), n);
}

class ValueSortTest : public DeviceTest {
 protected:
  /** @brief An entry as it should come. */
  struct Want {
    std::uint32_t column;
    float value;
    RowIdx row;
  };
  /** @param column_of By feature, or ColumnSubset::kLeftOut. */
  static std::vector<Want> Sorted(Table const& table, std::vector<std::uint32_t> const& column_of) {
    std::vector<Want> want;
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
        CsrEntry const& e = table.entries[i];
        if (column_of[e.feature] != ColumnSubset::kLeftOut) {
          want.push_back({column_of[e.feature], e.value, r});
        }
      }
    }
    std::stable_sort(want.begin(), want.end(), [](Want const& a, Want const& b) {
      return a.column != b.column ? a.column < b.column : a.value < b.value;
    });
    return want;
  }
  static void Expect(SortedEntries const& sorted, std::vector<Want> const& want) {
    auto const keys = ReadKeys(sorted.keys.Data(), want.size());
    auto const rows = ToHost(sorted.rows.Data(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(keys[i].column, want[i].column) << "entry " << i;
      ASSERT_EQ(keys[i].value, want[i].value) << "entry " << i;
      ASSERT_EQ(rows[i], want[i].row) << "entry " << i;
      ASSERT_EQ(keys[i].is_first, i == 0 || want[i - 1].column != want[i].column ||
                                      want[i - 1].value != want[i].value)
          << "entry " << i;
    }
  }
};

/** @brief Keys ascend with the values, and give them back; the two zeros are one. */
TEST_F(ValueSortTest, KeysAscendWithValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> const values{-kInfinity, -3e38f, -1.5f, -1e-45f, -0.0f, 0.0f,
                                  1e-45f,     1e-38f, 1.0f,  1.5f,    3e38f, kInfinity};
  auto const d_values = ToDevice(values);
  DeviceBuffer<std::uint64_t> keys{"keys"};
  LaunchN("MakeKeys", MakeKeysKernel, values.size(), d_values.Data(), values.size(),
          keys.Reserve(values.size()));
  auto const made = ToHost(keys.Data(), values.size());
  auto const read = ReadKeys(keys.Data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(read[i].column, 7u);
    EXPECT_EQ(read[i].value, values[i]);
    EXPECT_FALSE(std::signbit(read[i].value) && read[i].value == 0.0f);
    if (i != 0) {
      EXPECT_EQ(made[i - 1] < made[i], values[i - 1] < values[i]) << values[i];
      EXPECT_EQ(read[i].is_first, values[i - 1] < values[i]) << values[i];
    }
  }
}

TEST_F(ValueSortTest, AllColumnsInParts) {
  for (double missing : {0.0, 0.9}) {
    Random random{1};
    Table const table = MakeTable({Scaled(500u, 100u), 70, missing, 9}, &random);
    std::vector<EntryIdx> offsets(table.n_features + 1, 0);
    for (CsrEntry const& e : table.entries) {
      ++offsets[e.feature + 1];
    }
    std::partial_sum(offsets.cbegin(), offsets.cend(), offsets.begin());
    std::vector<std::uint32_t> all(table.n_features);
    std::iota(all.begin(), all.end(), 0u);
    auto const want = Sorted(table, all);
    for (EntryIdx at_once : {EntryIdx{1}, table.entries.size() / 5, table.entries.size()}) {
      Expect(SortByValue(RowTable{table.View()}, offsets, at_once), want);
      ASSERT_FALSE(HasFailure()) << at_once << " at once";
    }
  }
}

TEST_F(ValueSortTest, SomeColumns) {
  Random random{2};
  Table const table = MakeTable({Scaled(500u, 100u), 70, 0.4, 9}, &random);
  std::vector<std::uint32_t> column_of(table.n_features, ColumnSubset::kLeftOut);
  std::uint32_t n_columns{0};
  for (auto& column : column_of) {
    column = random.Chance(0.5) ? n_columns++ : ColumnSubset::kLeftOut;
  }
  auto const want = Sorted(table, column_of);
  RowTable rows{table.View()};
  auto const d_column_of = ToDevice(column_of);
  auto const offsets = ToDevice(std::vector<EntryIdx>(table.n_rows + 1, 0));
  ColumnSubset const subset{d_column_of.Data(), offsets.Data(), n_columns, want.size()};
  FindRowOffsets(rows.View(), subset, offsets.Data());
  Expect(SortByValue(std::move(rows), subset), want);
  std::vector<EntryIdx> want_offsets(table.n_rows + 1, 0);
  for (Want const& entry : want) {
    ++want_offsets[entry.row + 1];
  }
  std::partial_sum(want_offsets.cbegin(), want_offsets.cend(), want_offsets.begin());
  EXPECT_EQ(ToHost(offsets.Data(), want_offsets.size()), want_offsets);
}
}  // namespace
}  // namespace gpu_exact
