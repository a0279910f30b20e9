/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Columns of many values: rows sorted by value once, and the values by row.
 */
#pragma once

#include <vector>

#include "src/device/column_store.cuh"

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

/** @brief Values by row, to route rows and to read thresholds. */
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

class SortedColumns {
 public:
  /** @param features Ascending. Waits for the device. */
  SortedColumns(ColumnsRef const& columns, std::vector<EntryIdx> const& entry_offsets,
                std::vector<FeatureIdx> const& features);

  [[nodiscard]] SortedColumnsRef Ref() const;
  [[nodiscard]] RowValuesRef Values() const;
  [[nodiscard]] EntryIdx NumEntries() const { return n_entries_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void FillDense(ColumnsRef const& columns);
  void FillSparse(ColumnsRef const& columns);

  EntryIdx n_entries_{0};
  RowIdx n_rows_;
  std::uint32_t n_columns_;
  std::uint32_t n_sparse_{0};
  bool dense_{false};
  DeviceBuffer<std::uint32_t> rows_{"sorted rows"};
  DeviceBuffer<EntryIdx> offsets_{"offsets of sorted columns"};
  DeviceBuffer<FeatureIdx> features_{"features of sorted columns"};
  DeviceBuffer<std::uint32_t> sparse_{"columns with missing values"};
  DeviceBuffer<std::uint32_t> of_sparse_{"columns with missing values"};
  DeviceBuffer<float> dense_values_{"values by row"};
  DeviceBuffer<EntryIdx> row_offsets_{"offsets of rows"};
  DeviceBuffer<RowValuesRef::Value> row_values_{"values by row"};
};
}  // namespace gpu_exact
