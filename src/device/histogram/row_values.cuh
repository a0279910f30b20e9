/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Values by row, of the columns whose bins do not tell them.
 */
#pragma once

#include <vector>

#include "src/device/row_table.cuh"

namespace gpu_exact {
/** @brief Borrowed by kernels. A column is a feature's number among those kept. */
struct RowValuesRef {
  static constexpr std::uint32_t kNotKept = 0xffffffffu;

  struct Value {
    std::uint32_t column;
    float value;
  };
  std::uint32_t const* column_of;  // of a feature, or kNotKept; shape: (n_features)
  float const* dense;              // shape: (n_columns, n_rows), NaN where missing; or nullptr
  EntryIdx const* offsets;         // shape: (n_rows + 1)
  Value const* values;             // shape: (n_entries), by row, column
  RowIdx n_rows;

  /** @brief NaN: missing. */
  __device__ float Find(RowIdx row, std::uint32_t column) const {
    if (dense != nullptr) {
      return dense[std::uint64_t{column} * n_rows + row];
    }
    auto v = values;
    EntryIdx end = offsets[row + 1];
    EntryIdx i = FirstIndex(offsets[row], end, [=](EntryIdx k) { return v[k].column >= column; });
    return i != end && v[i].column == column ? v[i].value : NAN;
  }
};

/** @brief Owns the values. Memory: 4 B a row and column, or 8 B an entry and a row. */
class RowValues {
 public:
  static constexpr EntryIdx kReadAtOnce = EntryIdx{1} << 25;  // 256 MiB of a table of the host

  /**
   * @brief Waits for the device.
   * @param rows      The table; released where it can be had again, some rows at a time.
   * @param source    What it was made of.
   * @param n_entries Of each feature.
   * @param kept      Whether a feature's values are kept, shape: (n_features).
   * @param at_once   Entries that are read again at once, unless a row has more.
   */
  RowValues(RowTable rows, CsrView const& source, std::vector<std::uint32_t> const& n_entries,
            std::vector<bool> const& kept, EntryIdx at_once = kReadAtOnce);

  [[nodiscard]] RowValuesRef Ref() const {
    return {column_of_.Data(), is_dense_ ? dense_.Data() : nullptr, offsets_.Data(), values_.Data(),
            n_rows_};
  }
  [[nodiscard]] std::uint64_t Bytes() const {
    return column_of_.Bytes() + dense_.Bytes() + offsets_.Bytes() + values_.Bytes();
  }

 private:
  bool is_dense_;
  RowIdx n_rows_;
  DeviceBuffer<std::uint32_t> column_of_{"columns with values by row"};
  DeviceBuffer<float> dense_{"values by row"};
  DeviceBuffer<EntryIdx> offsets_{"offsets of rows"};
  DeviceBuffer<RowValuesRef::Value> values_{"values and columns by row"};
};
}  // namespace gpu_exact
