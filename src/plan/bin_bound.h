/**
 * Copyright 2026, the gpu_exact contributors
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
/** @brief Divides resolutions into those that read the finest bins if they can, and the last
 *         one. */
struct StoredResolutions {
  std::vector<std::uint32_t> reading;  // bins of a column, the finest first
  std::uint32_t last;                  // that has its own in bytes; 0: none has

  /** @param bins Of all resolutions, the finest first. */
  StoredResolutions(FeatureIdx n_features, std::vector<std::uint32_t> const& bins);
  /**
   * @brief Counts the columns of a group in each array of bins that there may be, the last one's
   *        last.
   * @param memory   Whether one array is read by all others.
   * @param max_bins That a block has room for.
   */
  [[nodiscard]] std::vector<std::uint32_t> GroupColumns(
      HistogramMemory const& memory, std::uint32_t max_bins = kMaxGroupBins) const;
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
 * @param max_bins Of a column in it.
 * @param finest   Whether it is the finest, in which short columns have a bin for each value.
 * @param most     That a block has room for.
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
 * @param max_bins That a block has room for.
 */
[[nodiscard]] std::uint64_t RowOffsetBytes(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                                           HistogramMemory const& memory = {},
                                           std::uint32_t max_bins = kMaxGroupBins);
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

/** @brief Holds what is known of the categorical columns of a table before bins are made. */
struct CategoricalColumns {
  std::vector<std::uint32_t> n_categories;  // of each column
  EntryIdx n_entries{0};                    // of all of them

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
