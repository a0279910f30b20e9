/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Seeded tables whose columns differ: few values or many, long values, missing ones.
 */
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "tests/device/random_problem.h"

namespace gpu_exact {
struct ColumnShape {
  int n_distinct;         // 0: continuous
  double missing;         // share of rows without a value
  double common{0.0};     // share of the present values that are one and the same
  float common_value{0};  // which one
};

inline Table MakeBinnedTable(std::vector<ColumnShape> const& columns, RowIdx n_rows,
                             Random* random) {
  Table t;
  t.n_rows = n_rows;
  t.n_features = static_cast<FeatureIdx>(columns.size());
  for (RowIdx r = 0; r < n_rows; ++r) {
    for (FeatureIdx f = 0; f < t.n_features; ++f) {
      ColumnShape const& c = columns[f];
      if (random->Chance(c.missing)) {
        continue;
      }
      float value = random->Normal();
      if (c.n_distinct != 0) {
        // The first rows have every value once.
        int const n = c.n_distinct;
        int const k = r < static_cast<RowIdx>(n) ? static_cast<int>(r) : random->Int(0, n - 1);
        value = static_cast<float>(k - n / 2) / 8.0f;
      }
      t.entries.push_back({f, random->Chance(c.common) ? c.common_value : value});
    }
    t.offsets.push_back(t.entries.size());
  }
  return t;
}

/** @brief Constant, binary and longer columns; some dense, some with few values present. */
inline Table MakeBinnedTable(RowIdx n_rows, FeatureIdx n_features, Random* random) {
  double const missing = random->Pick({0.0, 0.0, 0.4, 0.95});
  std::vector<ColumnShape> columns;
  for (FeatureIdx f = 0; f < n_features; ++f) {
    columns.push_back({random->Pick({1, 2, 2, 3, 17, 200, 1500, 0, 0}),
                       random->Chance(0.2) ? random->Real() : missing,
                       random->Pick({0.0, 0.0, 0.1, 0.5, 0.9}), random->Pick({-1.0f, 0.0f, 3.0f})});
  }
  return MakeBinnedTable(columns, n_rows, random);
}

/** @brief The present values of each feature, by row; the two zeros are one. */
inline std::vector<std::map<RowIdx, float>> ValuesByRow(Table const& table) {
  std::vector<std::map<RowIdx, float>> values(table.n_features);
  for (RowIdx r = 0; r < table.n_rows; ++r) {
    for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
      CsrEntry const& e = table.entries[i];
      values[e.feature][r] = e.value == 0.0f ? 0.0f : e.value;
    }
  }
  return values;
}

/**
 * @brief Compare the values of a feature, bit for bit.
 * @param want Of ValuesByRow().
 * @param got  shape: (n_rows), NaN where missing.
 */
inline void ExpectValues(std::map<RowIdx, float> const& want, float const* got, RowIdx n_rows,
                         FeatureIdx f) {
  for (RowIdx r = 0; r < n_rows; ++r) {
    auto const at = want.find(r);
    if (at == want.end()) {
      ASSERT_TRUE(std::isnan(got[r])) << "row " << r << ", feature " << f;
    } else {
      ASSERT_EQ(std::memcmp(&got[r], &at->second, sizeof(float)), 0)
          << "row " << r << ", feature " << f;
    }
  }
}

/** @brief Entries of each feature. */
inline std::vector<std::uint32_t> CountEntries(Table const& table) {
  std::vector<std::uint32_t> n_entries(table.n_features, 0);
  for (CsrEntry const& e : table.entries) {
    ++n_entries[e.feature];
  }
  return n_entries;
}
}  // namespace gpu_exact
