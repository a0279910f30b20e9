/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Cuts every column into bins: one value each where a column has few, else ranges of values,
 *        which are shorter towards the ends of a column. plan/bin_numbers.h says which.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/histogram/bins/column_values.cuh"
#include "device/histogram/bins/sorted_columns.cuh"
#include "plan/bin_layout.h"
#include "plan/search_cost.h"

namespace gpu_exact {
/** @brief Lends the bins of all features to kernels. */
struct CutsRef {
  std::uint64_t const* offsets;  // first bin of each feature, shape: (n_features + 1)
  // Of a bin without values both are the next one's, so that ends are right, and bisection passes it.
  float const* lowest;              // least value of a bin, ascending within a feature
  std::uint32_t const* first_rank;  // entries of the column below a bin; 0 of a category
  std::uint8_t const* is_range;     // whether a bin holds several distinct values

  /** @brief Tell whether any value is in a bin. @param end Where its feature's bins end. */
  [[nodiscard]] __device__ bool HasValues(std::uint64_t bin, std::uint64_t end) const {
    return bin + 1 == end || first_rank[bin + 1] != first_rank[bin];
  }
  /** @brief Find the bin, counted in its column, that holds a value of the column. */
  [[nodiscard]] __device__ std::uint32_t BinOf(FeatureIdx f, float value) const {
    auto const* v = lowest + offsets[f];
    auto const n = static_cast<std::uint32_t>(offsets[f + 1] - offsets[f]);
    return PartitionPoint(1u, n, [=](std::uint32_t k) { return v[k] > value; }) - 1;
  }

  static_assert(sizeof(*lowest) + sizeof(*first_rank) + sizeof(*is_range) == BinBytes::kBin &&
                sizeof(*offsets) == BinBytes::kOffset);
};

/** @brief Names columns of a table that are to be binned. */
struct UnbinnedColumns {
  TableSource const& table;                      // device memory
  std::vector<std::uint32_t> const& n_entries;   // of each feature
  std::vector<std::uint32_t> const& max_bins;    // of each feature; 0: it has no entries
  std::vector<std::uint32_t> const& max_values;  // up to so many distinct values each have a bin
  EntryIdx sorted_at_once;                       // entries, or rows of columns, unless one has more
  std::uint32_t coarsest{~0u};                   // bins of a column that will be merged of these
  std::vector<std::uint32_t> n_categories{};     // of each feature, 0: numerical; empty: all are
};

struct FinestBins;

/**
 * @brief Owns the bins of all features.
 *
 * A column of few distinct values has a bin for each of them. Another one has as many as are allowed,
 * some of them without a value. BinNumbers says which values are in which bin. A coarser bin is always as
 * many finer ones of a column as a power of two: its number is theirs, shifted.
 *
 * Categories have a bin each in every resolution: its number is the code.
 */
class QuantileCuts {
 public:
  /** @brief Cut a table whose sorted columns are not wanted. Otherwise as MakeFinestBins(). */
  explicit QuantileCuts(UnbinnedColumns const& columns);

  /** @brief Merge finer bins. Waits. @param max_bins How many a column has at most. */
  QuantileCuts(QuantileCuts const& finer, std::uint32_t max_bins);

  /** @brief Counts the bins of each feature, which are laid out by that. */
  [[nodiscard]] std::vector<ColumnBins> ByColumn() const;

  [[nodiscard]] CutsRef Ref() const {
    return {offsets_.Data(), lowest_.Data(), first_rank_.Data(), is_range_.Data()};
  }
  [[nodiscard]] std::uint32_t NumBins(FeatureIdx f) const {
    return static_cast<std::uint32_t>(h_offsets_[f + 1] - h_offsets_[f]);
  }
  /** @brief Count the bins of all features. */
  [[nodiscard]] std::uint64_t Size() const { return h_offsets_.back(); }
  /** @brief Tell whether any bin of a feature is a range. */
  [[nodiscard]] bool HasRanges(FeatureIdx f) const { return has_ranges_[f] != 0; }
  [[nodiscard]] bool IsCategorical(FeatureIdx f) const { return is_categorical_[f] != 0; }

 private:
  friend FinestBins MakeFinestBins(UnbinnedColumns const& columns, SortedColumnsRule const& rule,
                                   Memory rows_at);

  /** @brief Has room for the bins of so many features, none of which is made. */
  explicit QuantileCuts(std::size_t n_features)
      : has_ranges_(n_features, 0), is_categorical_(n_features, 0) {}
  /**
   * @brief Makes the bins of all columns.
   * @param rule     Which columns keep their rows; nullptr: none.
   * @param out_rows Their rows; nullptr: it stops at the first column that needs some.
   * @return Whether it came to the end.
   */
  bool Make(UnbinnedColumns const& all, SortedColumnsRule const* rule, SortedColumns* out_rows);

  /** @brief Adds the bins of the next column, which is categorical. */
  void AddCategories(std::uint32_t n);

  std::vector<std::uint64_t> h_offsets_;
  std::vector<std::uint8_t> has_ranges_;
  std::vector<std::uint8_t> is_categorical_;
  std::vector<std::uint8_t> shifts_;  // as ColumnBins::shift; none: these are the finest
  DeviceBuffer<std::uint64_t> offsets_{"bins of columns"};
  DeviceBuffer<float> lowest_{"least values of bins"};
  DeviceBuffer<std::uint32_t> first_rank_{"ranks of bins"};
  DeviceBuffer<std::uint8_t> is_range_{"bins that are ranges"};
};

/** @brief Holds the finest bins of a table, and the sorted columns that are kept beside them. */
struct FinestBins {
  QuantileCuts bins;
  std::unique_ptr<SortedColumns> rows;  // nullptr: none are kept
};

/**
 * @brief Makes bins of a table. Work: one radix sort of (column, value) keys, some columns at a time; a
 *        second one of those before the first that needs rows, where rows may be needless. Waits.
 *
 * Memory: 9 B a bin kept; 24 B an entry of the columns that are sorted at once meanwhile, or a row
 * of them where the table lies by column; 8 B a row where it does not.
 */
[[nodiscard]] FinestBins MakeFinestBins(UnbinnedColumns const& columns,
                                        SortedColumnsRule const& rule, Memory rows_at);
}  // namespace gpu_exact
