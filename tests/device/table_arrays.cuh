/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The short way from a test's table to the device.
 */
#pragma once

#include <set>
#include <vector>

#include "src/device/histogram/binned_columns.cuh"
#include "src/device/row_table.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
/** @brief A copy of a table in device memory. */
struct TableOnDevice {
  explicit TableOnDevice(Table const& table)
      : offsets{ToDevice(table.offsets)},
        entries{ToDevice(table.entries)},
        view{offsets.Data(), entries.Data(),   table.entries.size(),
             table.n_rows,   table.n_features, Memory::kDevice} {}

  DeviceBuffer<EntryIdx> offsets;
  DeviceBuffer<CsrEntry> entries;
  CsrView view;
};

/** @brief Distinct values of each feature, naively. */
inline std::vector<std::set<float>> FindDistinct(Table const& table) {
  std::vector<std::set<float>> distinct(table.n_features);
  for (CsrEntry const& e : table.entries) {
    distinct[e.feature].insert(e.value);
  }
  return distinct;
}

}  // namespace gpu_exact
