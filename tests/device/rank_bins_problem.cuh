/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Bins of a test's table, and their copy on the host.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "src/device/histogram/rank_bins.cuh"
#include "tests/device/binned_problem.h"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
/** @brief All columns sorted at once. */
inline constexpr EntryIdx kAllAtOnce = EntryIdx{1} << 40;

/** @param max_values 0: as max_bins. */
inline RankBins MakeRankBins(Table const& table, std::uint32_t max_bins,
                             EntryIdx sorted_at_once = kAllAtOnce, std::uint32_t max_values = 0) {
  TableOnDevice const on_device{table};
  std::vector<std::uint32_t> const n_entries = CountEntries(table);
  std::vector<std::uint32_t> limits, values;
  for (std::uint32_t n : n_entries) {
    limits.push_back(n == 0 ? 0 : max_bins);
    values.push_back(n == 0 || max_values == 0 ? limits.back() : max_values);
  }
  RankBins bins{on_device.view, n_entries, limits, values, sorted_at_once};
  Synchronize();  // the table goes
  return bins;
}

/** @brief The bins, read back. */
struct HostBins {
  HostBins(RankBins const& bins, FeatureIdx n_features) {
    BinsRef const ref = bins.Ref();
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
