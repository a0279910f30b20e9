/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Sorts entries by column and value.
 */
#pragma once

#include <vector>

#include "device/runtime/warp.cuh"
#include "device/table/row_table.cuh"
#include "device/table/value_key.cuh"

namespace gpu_exact {
/** @brief Lends some features of a table, as columns 0, 1, ... */
struct ColumnSubset {
  static constexpr std::uint32_t kLeftOut = 0xffffffffu;

  std::uint32_t const* column_of;  // by feature, ascending, or kLeftOut; nullptr: all as they are
  EntryIdx const* row_offsets;     // counting its own entries, shape: (n_rows + 1)
  std::uint32_t n_columns;
  EntryIdx n_entries;
  std::uint32_t first{0};  // column; the others follow it

  [[nodiscard]] __device__ std::uint32_t Column(FeatureIdx f) const {
    std::uint32_t const column = column_of == nullptr ? f : column_of[f];
    return column - first < n_columns ? column : kLeftOut;
  }

  /** @brief Call fn(column, value, index in the subset) for a row by a warp; the zeros are one. */
  template <typename FnT>
  __device__ void ForRow(CsrView const& table, std::uint64_t row, FnT&& fn) const {
    EntryIdx to = row_offsets[row];
    WalkRow(table, row, [&](EntryIdx i, bool has) {
      CsrEntry entry{};
      std::uint32_t column{kLeftOut};
      if (has) {
        entry = table.entries[i];
        column = this->Column(entry.feature);
      }
      unsigned const kept = __ballot_sync(kAllLanes, column != kLeftOut);
      if (column != kLeftOut) {
        fn(column, entry.value == 0.0f ? 0.0f : entry.value, to + __popc(kept & LaneMaskLt()));
      }
      to += __popc(kept);
    });
  }
};

/**
 * @brief Find the row offsets of a subset, whose own are not read. Does not wait.
 * @param out_row_offsets shape: (n_rows + 1); the first one is there.
 */
void FindRowOffsets(CsrView const& table, ColumnSubset const& subset, EntryIdx* out_row_offsets);

/**
 * @brief Make the keys of a subset's entries, in their order, and name their rows. Does not wait.
 * @param out_rows nullptr: they are not wanted.
 */
void MakeKeys(CsrView const& table, ColumnSubset const& subset, std::uint64_t* out_keys,
              RowIdx* out_rows);

/** @brief Owns entries by column, value, row. */
struct SortedEntries {
  DeviceBuffer<std::uint64_t> keys{"sort keys"};  // ValueKey
  DeviceBuffer<RowIdx> rows{"sorted rows"};
};

/**
 * @brief Sort (column, value) keys by one radix sort. Waits.
 *
 * Memory: 12 B an entry of the subset beside the table, then 24 B while it sorts, 12 B after.
 *
 * @param table Goes when the keys are made.
 */
[[nodiscard]] SortedEntries SortByValue(RowTable table, ColumnSubset const& subset);

/**
 * @brief Sort all columns, divided into parts, part by part. Waits.
 *
 * Memory: 12 B an entry and 8 B a row beside the table, then 12 B, and another 12 B for each entry
 * of the largest part.
 *
 * @param entry_offsets  Where the entries of each feature begin, shape: (n_features + 1).
 * @param sorted_at_once How many entries a part has, unless one column has more.
 */
[[nodiscard]] SortedEntries SortByValue(RowTable table, std::vector<EntryIdx> const& entry_offsets,
                                        EntryIdx sorted_at_once);
}  // namespace gpu_exact
