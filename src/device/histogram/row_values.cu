/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of row_values.cuh.
 */
#include <utility>

#include "src/device/histogram/row_values.cuh"
#include "src/device/value_sort.cuh"

namespace gpu_exact {
namespace {
static_assert(RowValuesRef::kNotKept == ColumnSubset::kLeftOut);

// one warp a row
__global__ void WriteSparseKernel(CsrView table, ColumnSubset subset, RowValuesRef::Value* values) {
  auto row = WarpRow();
  if (row < table.n_rows) {
    subset.ForRow(table, row, [=](std::uint32_t column, float value, EntryIdx to) {
      values[to] = {column, value};
    });
  }
}
}  // namespace

RowValues::RowValues(ColumnValues&& columns, std::vector<bool> const& kept)
    : columns_{std::make_unique<ColumnValues>(std::move(columns))} {
  columns_->Keep(kept);
}

RowValues::RowValues(RowTable rows, CsrView const& source,
                     std::vector<std::uint32_t> const& n_entries, std::vector<bool> const& kept,
                     Memory at, EntryIdx at_once)
    : values_{"values and columns by row", at} {
  EntryIdx n_kept{0};
  std::uint32_t n_columns{0};
  std::vector<std::uint32_t> column_of(kept.size(), RowValuesRef::kNotKept);
  for (std::size_t f = 0; f < kept.size(); ++f) {
    if (kept[f]) {
      column_of[f] = n_columns++;
      n_kept += n_entries[f];
    }
  }
  // A column's values lie by row where most are present, else a row's with their columns.
  if (std::uint64_t{source.n_rows} * n_columns <= 2 * n_kept) {
    if (source.memory == Memory::kHost && source.n_entries > at_once) {
      rows.Release();
      columns_ = std::make_unique<ColumnValues>(source, kept, at, at_once);
    } else {
      columns_ = std::make_unique<ColumnValues>(rows.View(), kept, at, at_once);
    }
    return;
  }
  CopyAsync(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  CubScratch scratch;
  offsets_.Reserve(std::size_t{source.n_rows} + 1);
  ColumnSubset const subset{column_of_.Data(), offsets_.Data(), n_columns, n_kept};
  FindRowOffsets(rows.View(), subset, &scratch, offsets_.Data());
  LaunchRows("WriteSparse", WriteSparseKernel, source.n_rows, rows.View(), subset,
             values_.Reserve(n_kept));
  Synchronize();  // the scratch goes
}
}  // namespace gpu_exact
