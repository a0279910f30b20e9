/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes up the columns of a table at random: how many entries and bins they have, no values.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "plan/bin_layout.h"
#include "plan/bin_numbers.h"
#include "plan/search_cost.h"

namespace gpu_exact {
/** @brief Columns of a table, and their bins in each resolution, the finest first. */
struct RandomColumns {
  RowIdx n_rows;
  std::vector<std::uint32_t> n_entries;  // of each column
  std::vector<std::uint32_t> n_distinct;
  std::vector<std::vector<ColumnBins>> resolutions;

  RandomColumns(RowIdx rows, FeatureIdx n_columns, std::mt19937* engine) : n_rows{rows} {
    std::uniform_real_distribution<double> real{0.0, 1.0};
    constexpr double kPresent[] = {1.0, 0.9, 0.4, 0.05};
    double const most = kPresent[(*engine)() % 4];
    for (FeatureIdx f = 0; f < n_columns; ++f) {
      double const share = (*engine)() % 5 == 0 ? real(*engine) : most;
      n_entries.push_back(static_cast<std::uint32_t>(share * n_rows));
      constexpr std::uint32_t kDistinct[] = {1, 2, 17, 300, 5000, ~0u, ~0u};
      n_distinct.push_back(std::min(n_entries.back(), kDistinct[(*engine)() % 7]));
    }
  }

  [[nodiscard]] FeatureIdx NumColumns() const { return static_cast<FeatureIdx>(n_entries.size()); }
  [[nodiscard]] EntryIdx NumEntries() const {
    EntryIdx n{0};
    for (std::uint32_t of_column : n_entries) {
      n += of_column;
    }
    return n;
  }

  /**
   * @brief Gives each column bins as QuantileCuts does: one for each value where these are few,
   *        ranges otherwise, fewer than there may be in some columns.
   * @param max_bins Of a column in each resolution.
   * @param most     That a block has room for.
   */
  void Bin(std::vector<std::uint32_t> const& max_bins, std::uint32_t most, std::mt19937* engine) {
    resolutions.assign(1, {});
    for (FeatureIdx f = 0; f < n_entries.size(); ++f) {
      bool const few = n_distinct[f] <= MaxValues(n_entries[f], max_bins.front(), most);
      std::uint32_t const n = max_bins.front() - ((*engine)() % 4 == 0 ? (*engine)() % 50 : 0);
      resolutions[0].push_back({few ? n_distinct[f] : n, !few});
    }
    for (std::size_t i = 1; i < max_bins.size(); ++i) {
      std::vector<ColumnBins> coarser;
      for (ColumnBins const& finest : resolutions.front()) {
        coarser.push_back(Coarser(finest, max_bins[i]));
      }
      resolutions.push_back(coarser);
    }
  }

 private:
  static ColumnBins Coarser(ColumnBins const& finest, std::uint32_t max_bins) {
    std::uint32_t const shift = ShiftOf(finest.n_bins, max_bins);
    std::uint32_t const n = (finest.n_bins + (1u << shift) - 1) >> shift;
    return {n, finest.has_ranges || shift != 0, shift};
  }
};
}  // namespace gpu_exact
