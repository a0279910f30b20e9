/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The table as the partition strategy keeps it: columns of few distinct values binned, the
 *        others sorted; values of both by row as well, to look up.
 */
#pragma once

#include <memory>
#include <vector>

#include "src/device/level_ref.cuh"
#include "src/device/partition/binned_columns.cuh"
#include "src/device/partition/sorted_columns.cuh"

namespace gpu_exact {
/** @brief The table, borrowed by kernels. */
struct FeatureTableRef {
  static constexpr std::uint32_t kNotSorted = ColumnSubset::kLeftOut;

  BinnedRef binned;
  RowValuesRef values;  // of sorted columns
  SortedColumnsRef sorted;
  std::uint32_t const* sorted_of;    // column of a feature, or kNotSorted; shape: (n_features)
  float const* bin_values;           // of binned features, ascending
  std::uint64_t const* bin_offsets;  // into bin_values, shape: (n_features + 1)

  /** @brief Whether a row goes to the left child. */
  __device__ bool GoesLeft(RowIdx row, SplitOrder const& order) const {
    std::uint32_t column = sorted_of[order.feature];
    if (column != kNotSorted) {
      float value = values.Find(row, column);
      return isnan(value) ? order.default_left : value < order.threshold;
    }
    int bin = binned.BinOf(row, order.feature);
    return bin < 0 ? order.default_left
                   : bin_values[bin_offsets[order.feature] + bin] < order.threshold;
  }
};

class FeatureTable {
 public:
  /** @brief Copies what it needs of the table; waits until that has been read. */
  explicit FeatureTable(CsrView const& table);

  [[nodiscard]] FeatureTableRef Ref() const;
  /** @brief Columns without entries; a binned feature's values are its bins, a sorted one's its
   *         entries: that is how candidates are numbered. */
  [[nodiscard]] ColumnsRef Places() const { return places_; }
  /** @brief The same with the table's own numbers of distinct values, for rules. */
  [[nodiscard]] ColumnsRef Counts() const { return counts_; }
  /** @brief nullptr where no column is of the kind. */
  [[nodiscard]] SortedColumns const* Sorted() const { return sorted_.get(); }
  [[nodiscard]] BinnedColumns const* Binned() const { return binned_.get(); }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void CopyOffsets(CsrView const& table, std::vector<std::uint32_t> const& n_entries,
                   std::vector<std::uint32_t> const& sorted_of);

  std::unique_ptr<DistinctValues> values_;  // of binned columns
  std::unique_ptr<SortedColumns> sorted_;
  std::unique_ptr<BinnedColumns> binned_;
  DeviceBuffer<std::uint32_t> n_present_{"entries of columns"};
  DeviceBuffer<ValueId> value_offsets_{"value offsets"};
  DeviceBuffer<ValueId> place_offsets_{"places of candidates"};
  DeviceBuffer<std::uint32_t> sorted_of_{"sorted columns by feature"};
  ColumnsRef places_{};
  ColumnsRef counts_{};
};
}  // namespace gpu_exact
