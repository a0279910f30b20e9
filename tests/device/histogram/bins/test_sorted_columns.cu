/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The rows of a column that has ranges, ascending by value, as kernels read them.
 */
#include <algorithm>
#include <vector>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/bins/sorted_columns.cuh"
#include "tests/device/histogram/binned_problem.h"

namespace gpu_exact {
namespace {
// one thread SortedColumnsRef::kAtOnce entries
__global__ void ReadKernel(SortedColumnsRef sorted, FeatureIdx f, std::uint32_t n, RowIdx* rows,
                           std::uint8_t* begins) {
  WaitForPreviousKernel();
  auto const first = static_cast<std::uint32_t>(GlobalIdx()) * SortedColumnsRef::kAtOnce;
  if (first >= n) {
    return;
  }
  auto const entries = sorted.Load(sorted.columns[f], first);
  for (std::uint32_t k = 0; k < SortedColumnsRef::kAtOnce && first + k < n; ++k) {
    RowIdx const row = sorted.Row(sorted.columns[f], first + k);
    rows[first + k] = row == entries.row[k] ? row : ~RowIdx{0};  // both ways of reading it agree
    begins[first + k] = entries.begins >> k & 1u;
  }
}

class SortedColumnsTest : public DeviceTest {
 protected:
  /** @param value_of value_of(row, f), NaN where it is missing. */
  template <typename FnT>
  static void CheckColumn(SortedColumnsRef const& sorted, FeatureIdx f, std::uint32_t n_entries,
                          RowIdx n_rows, FnT&& value_of) {
    DeviceBuffer<RowIdx> d_rows{"rows"};
    DeviceBuffer<std::uint8_t> d_begins{"begins"};
    LaunchN("Read", ReadKernel, CeilDiv(n_entries, SortedColumnsRef::kAtOnce), sorted, f, n_entries,
            d_rows.Reserve(n_entries), d_begins.Reserve(n_entries));
    auto const rows = ToHost(d_rows.Data(), n_entries);
    auto const begins = ToHost(d_begins.Data(), n_entries);
    std::vector<bool> met(n_rows, false);
    for (std::uint32_t i = 0; i < n_entries; ++i) {
      ASSERT_LT(rows[i], n_rows) << "entry " << i;
      ASSERT_FALSE(met[rows[i]]) << "row " << rows[i] << " twice";
      met[rows[i]] = true;
      float const value = value_of(rows[i], f);
      ASSERT_FALSE(std::isnan(value)) << "row " << rows[i];
      float const before = i == 0 ? value : value_of(rows[i - 1], f);
      ASSERT_LE(before, value) << "entry " << i;
      ASSERT_EQ(begins[i] != 0, i == 0 || before != value) << "entry " << i;
    }
  }
};

/** @brief Columns of about as many entries as blocks have, dense and sparse, with ties. */
TEST_F(SortedColumnsTest, RowsByValue) {
  for (RowIdx n_rows : {33u, 64u, 1000u, Scaled(70001u, 3001u)}) {  // above 16 bits
    Random random{n_rows};
    Table const table = MakeBinnedTable(
        {{0, 0.0}, {2, 0.0}, {0, 0.5}, {0, 0.0, 0.9, 0.25f}, {30, 0.1}, {0, 1.0}, {0, 0.9}}, n_rows,
        &random);
    auto const values = ValuesByRow(table);
    for (Memory at : {Memory::kDevice, Memory::kHost}) {
      HistogramMemory memory;
      memory.rows_at = at;
      BinnedTable const binned{table.View(), {20}, memory};
      ASSERT_TRUE(binned.HasSortedColumns());
      SortedColumnsRef const sorted = binned.Ref().sorted_columns;
      auto const columns = ToHost(sorted.columns, table.n_features);
      for (FeatureIdx f = 0; f < table.n_features; ++f) {
        QuantileCuts const& bins = binned.Resolutions().front()->bins;
        ASSERT_TRUE(columns[f] != nullptr || !bins.HasRanges(f)) << "feature " << f;
        if (columns[f] != nullptr) {
          CheckColumn(sorted, f, static_cast<std::uint32_t>(values[f].size()), n_rows,
                      [&](RowIdx row, FeatureIdx of) {
                        auto const found = values[of].find(row);
                        return found == values[of].cend() ? NAN : found->second;
                      });
          ASSERT_FALSE(HasFailure()) << n_rows << " rows, feature " << f;
        }
      }
    }
  }
}

/** @brief Rows whose numbers take four bytes. */
TEST_F(SortedColumnsTest, MoreRowsThanThreeBytesNumber) {
  constexpr RowIdx kRows = (1u << 24) + 70;
  auto const value_of = [](RowIdx row, FeatureIdx) {
    return static_cast<float>(row * 7919u % (1u << 23));
  };
  if (UnderSanitizer()) {
    GTEST_SKIP() << "16 million rows take a sanitizer too long";
  }
  Table table;
  table.n_rows = kRows;
  table.n_features = 1;
  for (RowIdx r = 0; r < kRows; ++r) {
    table.entries.push_back({0, value_of(r, 0)});
    table.offsets.push_back(r + 1);
  }
  BinnedTable const binned{table.View(), {401}, HistogramMemory{}};
  ASSERT_EQ(binned.Ref().sorted_columns.n_high, 2u);
  CheckColumn(binned.Ref().sorted_columns, 0, kRows, kRows, value_of);
}
}  // namespace
}  // namespace gpu_exact
