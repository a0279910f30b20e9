/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The short way from a test's table to the device.
 */
#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/table/row_table.cuh"
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

/** @brief A table that comes in pages, which go after their visit. */
class TablePages final : public RowPages {
 public:
  /** @param bounds First row of each page, ascending from 0. */
  TablePages(Table const& table, std::vector<RowIdx> bounds)
      : table_{table}, bounds_{std::move(bounds)} {
    bounds_.push_back(table.n_rows);
  }
  void ForEach(std::function<void(CsrView const&, RowIdx)> const& visit) const override {
    ++n_readings_;
    for (std::size_t p = 0; p + 1 < bounds_.size(); ++p) {
      Table const page = RowsOf(table_, bounds_[p], bounds_[p + 1]);
      visit(page.View(), bounds_[p]);
    }
  }
  [[nodiscard]] CsrView View() const {
    CsrView view = table_.View();
    view.offsets = nullptr;
    view.entries = nullptr;
    view.pages = this;
    return view;
  }
  /** @brief How often all of them were visited. */
  [[nodiscard]] int NumReadings() const { return n_readings_; }

 private:
  Table const& table_;
  std::vector<RowIdx> bounds_;
  mutable int n_readings_{0};
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
