/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Bins of a test's table, and their copy on the host.
 */
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "device/histogram/bins/quantile_cuts.cuh"
#include "tests/device/histogram/binned_problem.h"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
/** @brief All columns sorted at once. */
inline constexpr EntryIdx kAllAtOnce = EntryIdx{1} << 40;

/** @brief The two ways that a table lies on the device while bins are made of it. */
enum class Layout : std::uint8_t { kByRow, kByColumn };

/** @brief A table on the device in either way. */
class SourceOnDevice {
 public:
  SourceOnDevice(Table const& table, Layout layout) : rows_{table} {
    if (layout == Layout::kByColumn) {
      columns_ =
          std::make_unique<ColumnValues>(rows_.view, std::vector<bool>(table.n_features, true));
    }
  }
  [[nodiscard]] TableSource Source() const {
    return columns_ != nullptr ? columns_->Source() : TableSource{rows_.view};
  }

 private:
  TableOnDevice rows_;
  std::unique_ptr<ColumnValues> columns_;
};

/** @param max_values 0: as max_bins. @param coarsest As UnbinnedColumns'. */
inline QuantileCuts MakeQuantileCuts(Table const& table, std::uint32_t max_bins,
                                     EntryIdx sorted_at_once = kAllAtOnce,
                                     std::uint32_t max_values = 0, Layout layout = Layout::kByRow,
                                     std::uint32_t coarsest = ~0u) {
  SourceOnDevice const on_device{table, layout};
  std::vector<std::uint32_t> const n_entries = CountEntries(table);
  std::vector<std::uint32_t> limits, values;
  for (std::uint32_t n : n_entries) {
    limits.push_back(n == 0 ? 0 : max_bins);
    values.push_back(n == 0 || max_values == 0 ? limits.back() : max_values);
  }
  TableSource const source = on_device.Source();
  QuantileCuts bins{UnbinnedColumns{source, n_entries, limits, values, sorted_at_once, coarsest}};
  Synchronize();  // the table goes
  return bins;
}

/** @brief The bins, read back. */
struct HostBins {
  HostBins(QuantileCuts const& bins, FeatureIdx n_features) {
    CutsRef const ref = bins.Ref();
    offsets = ToHost(ref.offsets, std::size_t{n_features} + 1);
    lowest = ToHost(ref.lowest, offsets.back());
    first_rank = ToHost(ref.first_rank, offsets.back());
    is_range = ToHost(ref.is_range, offsets.back());
  }

  [[nodiscard]] std::uint32_t NumBins(FeatureIdx f) const {
    return static_cast<std::uint32_t>(offsets[f + 1] - offsets[f]);
  }
  /** @brief The bin, counted in its column, that holds a value of the column. */
  [[nodiscard]] std::uint32_t BinOf(FeatureIdx f, float value) const {
    auto const first = lowest.cbegin() + static_cast<std::ptrdiff_t>(offsets[f]);
    auto const last = lowest.cbegin() + static_cast<std::ptrdiff_t>(offsets[f + 1]);
    return static_cast<std::uint32_t>(std::upper_bound(first, last, value) - first) - 1;
  }

  std::vector<std::uint64_t> offsets;
  std::vector<float> lowest;
  std::vector<std::uint32_t> first_rank;
  std::vector<std::uint8_t> is_range;
};
}  // namespace gpu_exact
