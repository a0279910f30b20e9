/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps values by row, of the columns whose bins do not tell them.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/histogram/bins/column_values.cuh"

namespace gpu_exact {
/** @brief Lends the values to kernels. */
struct RowValuesRef {
  static constexpr std::uint32_t kNotKept = 0xffffffffu;

  float const* const* dense;       // shape: (n_features, n_rows), NaN where missing, nullptr in the
                                   // place of a feature that is not kept; nullptr: as follows
  std::uint32_t const* column_of;  // among the kept ones, or kNotKept; shape: (n_features)
  EntryIdx const* offsets;         // shape: (n_rows + 1)
  // By row, column, shape: (n_entries):
  void const* columns;  // two bytes each, or four
  float const* values;
  bool has_short_columns;

  /** @brief Give the values of a feature that is kept by column; nullptr: it is not. */
  [[nodiscard]] __device__ float const* Column(FeatureIdx f) const {
    return dense != nullptr ? dense[f] : nullptr;
  }
  [[nodiscard]] __device__ bool Keeps(FeatureIdx f) const {
    return dense != nullptr ? dense[f] != nullptr : column_of[f] != kNotKept;
  }
  /** @brief Find a row's value of a feature that is kept; NaN: missing. */
  [[nodiscard]] __device__ float Find(RowIdx row, FeatureIdx f) const {
    if (dense != nullptr) {
      return dense[f][row];
    }
    std::uint32_t const column = column_of[f];
    // By value: a reference to a kernel's parameter makes a copy of it in local memory.
    auto const at = [all = columns, in_two_bytes = has_short_columns](EntryIdx k) -> std::uint32_t {
      return in_two_bytes ? static_cast<std::uint16_t const*>(all)[k]
                          : static_cast<std::uint32_t const*>(all)[k];
    };
    EntryIdx const end = offsets[row + 1];
    EntryIdx const i =
        PartitionPoint(offsets[row], end, [=](EntryIdx k) { return at(k) >= column; });
    return i != end && at(i) == column ? values[i] : NAN;
  }
};

/**
 * @brief Owns the values: 4 B a row and column, or 6 B an entry, of very many columns 8 B; then also
 *        8 B a row.
 */
class RowValues {
 public:
  /** @brief Take over a table by column. Waits. @param kept Whether a feature's values are kept. */
  RowValues(ColumnValues&& columns, std::vector<bool> const& kept);
  /**
   * @brief Reads the table, some rows at a time where it is the host's. Waits for the device.
   *
   * Memory meanwhile: 8 B for each entry that is read at once, and 8 B a row of these.
   *
   * @param n_entries How many each feature has.
   * @param kept      Whether a feature's values are kept, shape: (n_features).
   * @param at        Where the values lie.
   * @param at_once   Entries, unless a row has more.
   */
  RowValues(CsrView const& table, std::vector<std::uint32_t> const& n_entries,
            std::vector<bool> const& kept, Memory at = Memory::kDevice,
            EntryIdx at_once = EntryIdx{1} << 25);

  [[nodiscard]] RowValuesRef Ref() const {
    bool const has_short_columns = short_columns_.Data() != nullptr;
    void const* const columns =
        has_short_columns ? static_cast<void const*>(short_columns_.Data()) : long_columns_.Data();
    return {columns_ != nullptr ? columns_->Source().columns : nullptr,
            column_of_.Data(),
            offsets_.Data(),
            columns,
            values_.Data(),
            has_short_columns};
  }
  /** @brief Tell whether any lie in the memory of the host. */
  [[nodiscard]] bool AtHost() const {
    return columns_ != nullptr ? columns_->AtHost() : values_.DeviceBytes() != values_.Bytes();
  }

 private:
  std::unique_ptr<ColumnValues> columns_;  // nullptr: values lie by entry
  DeviceBuffer<std::uint32_t> column_of_{"columns with values by row"};
  DeviceBuffer<EntryIdx> offsets_{"offsets of rows"};
  PlacedBuffer<std::uint16_t> short_columns_{"columns of values by row", Memory::kDevice};
  PlacedBuffer<std::uint32_t> long_columns_{"columns of values by row", Memory::kDevice};
  PlacedBuffer<float> values_{"values by row", Memory::kDevice};
};
}  // namespace gpu_exact
