/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Bounds what bins take, before any value of a table is seen. bin_layout.h says what they
 *        take once all columns are known; it is never more.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu_exact/types.h"
#include "plan/bin_layout.h"
#include "plan/histogram_memory.h"

namespace gpu_exact {
/** @brief Holds what is known of the categorical columns of a table before bins are made. */
struct CategoricalColumns {
  std::vector<std::uint32_t> n_categories;  // of each column
  EntryIdx n_entries{0};                    // of all of them
  // Of an array of bins of the whole table, if most values are missing; at most. See MostElements().
  EntryIdx n_elements{~EntryIdx{0}};

  [[nodiscard]] FeatureIdx Size() const { return static_cast<FeatureIdx>(n_categories.size()); }
  /** @brief Find the most categories of a column. */
  [[nodiscard]] std::uint32_t Longest() const {
    return n_categories.empty() ? 0 : *std::max_element(n_categories.cbegin(), n_categories.cend());
  }
  /** @brief Count the columns of more categories than this. */
  [[nodiscard]] FeatureIdx NumAbove(std::uint32_t n) const {
    return static_cast<FeatureIdx>(std::count_if(n_categories.cbegin(), n_categories.cend(),
                                                 [&](std::uint32_t c) { return c > n; }));
  }
};

/**
 * @brief Bounds the elements that the entries of a column make in an array of bins, where most values of the
 *        table are missing.
 *
 * A group of columns has either as many elements as entries, or, if these are half of its cells or more, a
 * cell for each row and column, and an eighth more to fill rows up. To 9/8 rows of each column of such a group
 * 9/4 (2 entries - rows) may be added: over the group that is no less than 0.
 */
[[nodiscard]] constexpr EntryIdx MostElements(EntryIdx n_entries, RowIdx n_rows) {
  std::uint64_t const of_cells = 36 * n_entries;
  std::uint64_t const rows = 9 * std::uint64_t{n_rows};
  return std::max(n_entries, of_cells > rows ? (of_cells - rows) / 8 : 0);
}

/** @brief Counts the bins of a resolution. */
struct ResolutionBins {
  std::uint64_t n;        // of all columns
  std::uint32_t longest;  // of the column that has most
};

/** @brief Bounds the groups of columns that share an array of bins. */
struct GroupBound {
  std::uint32_t of_group;  // columns that fit one, whichever they are
  std::uint64_t n_full;    // groups, by how full they are

  GroupBound(RowIdx n_rows, FeatureIdx n_features)
      : of_group{LimitGroupColumns(RowOffsetBlock::kMaxColumns, n_rows)},
        n_full{std::uint64_t{n_features} / of_group + 1} {}
  /** @brief Limits the bins of a group: each but the last one lacks room for the next column, and two
   *         neighbours have more than one has room for. */
  void Limit(ResolutionBins const& bins, std::uint32_t most);
  [[nodiscard]] std::uint64_t Num(FeatureIdx n_features) const {
    return std::min((std::uint64_t{n_features} + of_group - 1) / of_group, n_full);
  }
};

/** @brief Divides resolutions into those that read the finest bins if they can, and the last
 *         one. */
struct StoredResolutions {
  std::uint32_t n_reading;  // the finest ones
  std::uint32_t last;       // bins of a column in the one that has its own in bytes; 0: none has

  /** @param bins How many bins a column has in each resolution, the finest first. */
  StoredResolutions(FeatureIdx n_features, std::vector<std::uint32_t> const& bins);
  /**
   * @brief Bounds the groups in each array of bins that there may be, the last resolution's last.
   * @param bins     What columns have in each resolution.
   * @param memory   Whether one array is read by all others.
   * @param max_bins How many bins a block has room for.
   */
  [[nodiscard]] std::vector<GroupBound> Groups(RowIdx n_rows, FeatureIdx n_features,
                                               std::vector<ResolutionBins> const& bins,
                                               HistogramMemory const& memory,
                                               std::uint32_t max_bins = kMaxGroupBins) const;
};

/**
 * @brief Counts the bytes of a row's bins, where most values are present and all columns have as
 *        many bins.
 * @param of_group Columns of a group.
 * @param in_bytes Whether bins take one byte each.
 */
[[nodiscard]] std::uint64_t RowBytes(FeatureIdx n_features, std::uint32_t of_group, bool in_bytes);

/**
 * @brief Bounds the bins of all columns in a resolution; there may be little more where columns
 *        differ in length.
 * @param max_bins How many bins a column has in it.
 * @param finest   Whether it is the finest, in which short columns have a bin for each value.
 * @param most     How many bins a block has room for.
 */
[[nodiscard]] std::uint64_t MostBins(EntryIdx n_entries, FeatureIdx n_features,
                                     std::uint32_t max_bins, bool finest,
                                     std::uint32_t most = kMaxGroupBins);

/**
 * @brief Bounds the bytes of row offsets of groups most of whose values are missing.
 *
 * Each such group has RowOffsetBlock's in each array of bins, also in a table that is dense on the
 * whole. A very sparse table has many groups of few entries, and is better sorted.
 *
 * @param max_bins How many bins a block has room for.
 */
[[nodiscard]] std::uint64_t RowOffsetBytes(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                                           HistogramMemory const& memory = {},
                                           std::uint32_t max_bins = kMaxGroupBins,
                                           CategoricalColumns const& categorical = {});
/** @brief Count the look-ups of a walk over all rows: one for each row and group that has no cell for
 *         each column. */
[[nodiscard]] std::uint64_t NumRowOffsets(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                                          HistogramMemory const& memory = {},
                                          std::uint32_t max_bins = kMaxGroupBins);

/** @brief Bounds the bytes of sorted columns, whose columns are filled up to whole blocks. */
[[nodiscard]] constexpr std::uint64_t MostSortedColumnBytes(EntryIdx n_entries, RowIdx n_rows,
                                                            FeatureIdx n_features) {
  constexpr std::uint64_t kFilledUp = SortedColumnBlockBytes(2) + 8;  // of a column
  return SortedColumnBytes(n_entries, SortedColumnHighBytes(n_rows)) + kFilledUp * n_features;
}

/** @brief Bounds the bins of a table of so many entries, rows and columns, whatever its values. */
struct BinBound {
  std::vector<std::uint32_t> resolutions;  // bins of a column, the finest first
  std::uint64_t elements{0};               // bytes of the bins of all entries
  std::uint64_t descriptions{0};   // bytes of what bins, columns, groups and rows need beside them
  std::uint64_t finest_limits{0};  // bytes of these that the finest bins need while they are made
  std::uint64_t most_bins{0};      // bins of one resolution

  /**
   * @param max_bins    The most that a block has room for. A column of more categories has one bin.
   * @param categorical Columns among these, which have a bin for each category in every resolution.
   */
  BinBound(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features, HistogramMemory memory,
           std::uint32_t max_bins, CategoricalColumns const& categorical = {});
};
}  // namespace gpu_exact
