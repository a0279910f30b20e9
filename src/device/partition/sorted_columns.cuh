/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Columns of many values: rows sorted by value once, and the values by row.
 */
#pragma once

#include <vector>

#include "src/device/value_sort.cuh"

namespace gpu_exact {
/** @brief The columns, borrowed by kernels. A column is a feature's number among those sorted. */
struct SortedColumnsRef {
  static constexpr std::uint32_t kDense = 0xffffffffu;

  std::uint32_t const* rows;       // top bit: a value begins; shape: (n_entries), by column, value
  EntryIdx const* offsets;         // shape: (n_columns + 1)
  FeatureIdx const* features;      // shape: (n_columns)
  std::uint32_t const* sparse;     // number among the columns with missing values, or kDense
  std::uint32_t const* of_sparse;  // the column of such a number
  std::uint32_t n_columns;
  std::uint32_t n_sparse;
};

/** @brief Values by row, to read thresholds and to route rows left out of a tree. */
struct RowValuesRef {
  struct Value {
    std::uint32_t column;
    float value;
  };
  float const* dense;       // shape: (n_rows, n_columns), NaN where missing; or nullptr
  EntryIdx const* offsets;  // shape: (n_rows + 1)
  Value const* values;      // shape: (n_entries), by row, column
  std::uint32_t n_columns;

  /** @brief NaN: missing. */
  __device__ float Find(RowIdx row, std::uint32_t column) const {
    if (dense != nullptr) {
      return dense[std::uint64_t{row} * n_columns + column];
    }
    auto v = values;
    EntryIdx end = offsets[row + 1];
    EntryIdx i = FirstIndex(offsets[row], end, [=](EntryIdx k) { return v[k].column >= column; });
    return i != end && v[i].column == column ? v[i].value : NAN;
  }
};

/**
 * @brief Owns both. Work: one radix sort of (column, value) keys, and passes over the entries.
 *
 * Memory kept: 4 B an entry; values 4 B a row and column, or 8 B an entry and a row. 24 B an entry
 * beside the values while it sorts.
 */
class SortedColumns {
 public:
  /**
   * @brief Waits for the device.
   *
   * @param table     Goes when it has been read.
   * @param n_entries Of each feature.
   * @param features  Ascending; each has entries.
   * @param column_of Device memory: a feature's index among them, or ColumnSubset::kLeftOut.
   */
  SortedColumns(RowTable table, std::vector<std::uint32_t> const& n_entries,
                std::vector<FeatureIdx> const& features, std::uint32_t const* column_of);

  [[nodiscard]] SortedColumnsRef Ref() const;
  [[nodiscard]] RowValuesRef Values() const;
  [[nodiscard]] EntryIdx NumEntries() const { return n_entries_; }
  /** @brief Distinct values of each column. */
  [[nodiscard]] std::vector<std::uint32_t> const& NumValues() const { return n_values_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void MakeColumns(std::vector<std::uint32_t> const& n_entries,
                   std::vector<FeatureIdx> const& features);
  void WriteValues(CsrView const& table, ColumnSubset const& subset);
  void MarkValues(std::uint64_t const* keys);

  EntryIdx n_entries_{0};
  RowIdx n_rows_;
  std::uint32_t n_columns_;
  std::uint32_t n_sparse_{0};
  bool dense_{false};
  std::vector<std::uint32_t> n_values_;
  DeviceBuffer<std::uint32_t> rows_{"sorted rows"};
  DeviceBuffer<EntryIdx> offsets_{"offsets of sorted columns"};
  DeviceBuffer<FeatureIdx> features_{"features of sorted columns"};
  DeviceBuffer<std::uint32_t> sparse_{"numbers of columns with missing values"};
  DeviceBuffer<std::uint32_t> of_sparse_{"columns with missing values"};
  DeviceBuffer<float> dense_values_{"values by row"};
  DeviceBuffer<EntryIdx> row_offsets_{"offsets of rows"};
  DeviceBuffer<RowValuesRef::Value> row_values_{"values and columns by row"};
};
}  // namespace gpu_exact
