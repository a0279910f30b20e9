/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Seeded tables whose columns have few distinct values, a different number each.
 */
#pragma once

#include <vector>

#include "tests/device/random_problem.h"

namespace gpu_exact {
struct ColumnShape {
  int n_distinct;
  double missing;  // share of rows without a value
};

inline Table MakeBinnedTable(std::vector<ColumnShape> const& columns, RowIdx n_rows,
                             Random* random) {
  Table t;
  t.n_rows = n_rows;
  t.n_features = static_cast<FeatureIdx>(columns.size());
  for (RowIdx r = 0; r < n_rows; ++r) {
    for (FeatureIdx f = 0; f < t.n_features; ++f) {
      if (!random->Chance(columns[f].missing)) {
        // The first rows have every value once.
        int n = columns[f].n_distinct;
        int value = r < static_cast<RowIdx>(n) ? static_cast<int>(r) : random->Int(0, n - 1);
        t.entries.push_back({f, static_cast<float>(value - n / 2) / 8.0f});
      }
    }
    t.offsets.push_back(t.entries.size());
  }
  return t;
}

/** @brief Constant, binary and longer columns; some dense, some with few values present. */
inline Table MakeBinnedTable(RowIdx n_rows, FeatureIdx n_features, Random* random) {
  double missing = random->Pick({0.0, 0.0, 0.4, 0.95});
  std::vector<ColumnShape> columns;
  for (FeatureIdx f = 0; f < n_features; ++f) {
    columns.push_back({random->Pick({1, 2, 2, 3, 17, 200, 1500}),
                       random->Chance(0.2) ? random->Real() : missing});
  }
  return MakeBinnedTable(columns, n_rows, random);
}
}  // namespace gpu_exact
