/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements row_values.cuh.
 */
#include <type_traits>
#include <utility>

#include "device/histogram/bins/row_values.cuh"
#include "device/table/value_sort.cuh"
#include "plan/bin_layout.h"

namespace gpu_exact {
namespace {
static_assert(RowValuesRef::kNotKept == ColumnSubset::kLeftOut);

// one warp a row; result: columns and values, by row
template <typename ColumnT>
__global__ void WriteSparseKernel(CsrView table, ColumnSubset subset, ColumnT* columns,
                                  float* values) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row < table.n_rows) {
    subset.ForRow(table, row, [=](std::uint32_t column, float value, EntryIdx to) {
      columns[to] = static_cast<ColumnT>(column);
      values[to] = value;
    });
  }
}
}  // namespace

RowValues::RowValues(ColumnValues&& columns, std::vector<bool> const& kept)
    : columns_{std::make_unique<ColumnValues>(std::move(columns))} {
  columns_->Keep(kept);
}

RowValues::RowValues(CsrView const& table, std::vector<std::uint32_t> const& n_entries,
                     std::vector<bool> const& kept, Memory at, EntryIdx at_once)
    : short_columns_{"columns of values by row", at},
      long_columns_{"columns of values by row", at},
      values_{"values by row", at} {
  EntryIdx n_kept{0};
  std::uint32_t n_columns{0};
  std::vector<std::uint32_t> column_of(kept.size(), RowValuesRef::kNotKept);
  for (std::size_t f = 0; f < kept.size(); ++f) {
    if (kept[f]) {
      column_of[f] = n_columns++;
      n_kept += n_entries[f];
    }
  }
  // A column's values lie by row where that takes less, else a row's with their columns.
  if (sizeof(float) * table.n_rows * n_columns <= SparseValueBytes(n_columns) * n_kept) {
    columns_ = std::make_unique<ColumnValues>(table, kept, at, at_once);
    return;
  }
  CopyFromHost(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  ZeroAsync(offsets_.Reserve(std::size_t{table.n_rows} + 1), 1);
  values_.Reserve(n_kept);
  auto const write = [&](auto* columns) {
    using ColumnT = std::remove_pointer_t<decltype(columns)>;
    ForEachPart(table, at_once, [&](CsrView const& rows, RowIdx first_row) {
      EntryIdx* const offsets = offsets_.Data() + first_row;  // the first one is of the rows before
      ColumnSubset const subset{column_of_.Data(), offsets, n_columns, n_kept};
      FindRowOffsets(rows, subset, offsets);
      LaunchRows("WriteSparse", WriteSparseKernel<ColumnT>, rows.n_rows, rows, subset, columns,
                 values_.Data());
    });
  };
  if (n_columns <= kShortColumns) {
    write(short_columns_.Reserve(n_kept));
  } else {
    write(long_columns_.Reserve(n_kept));
  }
}
}  // namespace gpu_exact
