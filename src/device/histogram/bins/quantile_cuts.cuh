/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Bins of every column: one value each where a column has few, else ranges of values that
 *        hold about as many entries each.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/column_values.cuh"
#include "device/histogram/bins/sorted_columns.cuh"

namespace gpu_exact {
/** @brief Bins of all features, borrowed by kernels. */
struct CutsRef {
  std::uint64_t const* offsets;     // first bin of each feature, shape: (n_features + 1)
  float const* lowest;              // least value of a bin, ascending within a feature
  std::uint32_t const* first_rank;  // entries of the column below a bin
  std::uint8_t const* is_range;     // whether a bin holds several distinct values

  /** @brief The bin, counted in its column, that holds a value of the column. */
  [[nodiscard]] __device__ std::uint32_t BinOf(FeatureIdx f, float value) const {
    auto const* v = lowest + offsets[f];
    auto const n = static_cast<std::uint32_t>(offsets[f + 1] - offsets[f]);
    return PartitionPoint(1u, n, [=](std::uint32_t k) { return v[k] > value; }) - 1;
  }
};

/**
 * @brief Owns the bins of all features.
 *
 * A column of few distinct values has a bin for each of them. Of another one, bins
 * begin where ranks pass a multiple of n_entries / slots, but never inside a value; a value of two
 * slots and more has a bin of its own, so that a range holds at most three slots of entries.
 */
class QuantileCuts {
 public:
  /**
   * @brief Bins of a table. Work: one radix sort of (column, value) keys, some columns at a time; a
   *        second one of those before the first that needs rows, where rows may be needless. Waits.
   *
   * Memory: 9 B a bin kept; 24 B an entry of the columns that are sorted at once meanwhile, or a row
   * of them where the table lies by column; 8 B a row where it does not.
   *
   * @param table          Device memory.
   * @param n_entries      Of each feature.
   * @param max_bins       Of each feature, 4 at least; 0 for a feature without entries.
   * @param max_values     Of each feature: with at most so many distinct values it has a bin for each.
   * @param sorted_at_once Entries, or places by column, unless one column has more.
   * @param out_rows       Rows of the columns that it keeps; nullptr: they are not wanted.
   */
  QuantileCuts(TableSource const& table, std::vector<std::uint32_t> const& n_entries,
               std::vector<std::uint32_t> const& max_bins,
               std::vector<std::uint32_t> const& max_values, EntryIdx sorted_at_once,
               SortedColumns* out_rows = nullptr);

  /**
   * @brief Fewer bins, each of which is one or several of the finer ones. Waits.
   * @param max_bins  Of a column that is a range of the finer bins or has more of them.
   * @param by_number Whether each is a power of two of the finer ones, where no range becomes longer
   *                  than three slots by that: the number of a bin is that of a finer one, shifted.
   */
  QuantileCuts(QuantileCuts const& finer, std::vector<std::uint32_t> const& n_entries,
               std::uint32_t max_bins, bool by_number = false);

  static constexpr std::uint32_t kByRank = 32;
  /** @brief Bits by which numbers of finer bins are shifted, or kByRank. */
  [[nodiscard]] std::uint32_t Shift(FeatureIdx f) const { return shifts_.empty() ? 0 : shifts_[f]; }

  [[nodiscard]] CutsRef Ref() const {
    return {offsets_.Data(), lowest_.Data(), first_rank_.Data(), is_range_.Data()};
  }
  [[nodiscard]] std::uint32_t NumBins(FeatureIdx f) const {
    return static_cast<std::uint32_t>(h_offsets_[f + 1] - h_offsets_[f]);
  }
  /** @brief Bins of all features. */
  [[nodiscard]] std::uint64_t Size() const { return h_offsets_.back(); }
  /** @brief Whether any bin of a feature is a range. */
  [[nodiscard]] bool HasRanges(FeatureIdx f) const { return has_ranges_[f] != 0; }
  [[nodiscard]] std::uint64_t Bytes() const {
    return offsets_.Bytes() + lowest_.Bytes() + first_rank_.Bytes() + is_range_.Bytes();
  }

 private:
  /** @brief A table whose columns become bins. Params of the constructor. */
  struct Columns {
    TableSource const& table;
    std::vector<std::uint32_t> const& n_entries;
    std::vector<std::uint32_t> const& max_bins;
    std::vector<std::uint32_t> const& max_values;
    EntryIdx sorted_at_once;
    SortedColumns* out_rows;
  };

  /**
   * @brief Bins of all columns.
   * @param keeps_rows Whether rows are kept where a column asks for them.
   * @return Whether it came to the end: without rows it stops where they are needed.
   */
  bool Make(Columns const& all, bool keeps_rows);

  std::vector<std::uint64_t> h_offsets_;
  std::vector<std::uint8_t> has_ranges_;
  std::vector<std::uint8_t> shifts_;  // none: these are the finest
  DeviceBuffer<std::uint64_t> offsets_{"bins of columns"};
  DeviceBuffer<float> lowest_{"least values of bins"};
  DeviceBuffer<std::uint32_t> first_rank_{"ranks of bins"};
  DeviceBuffer<std::uint8_t> is_range_{"bins that are ranges"};
};
}  // namespace gpu_exact
