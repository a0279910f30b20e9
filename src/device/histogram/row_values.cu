/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of row_values.cuh.
 */
#include <thrust/fill.h>
#include <thrust/system/cuda/execution_policy.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/device/histogram/row_values.cuh"
#include "src/device/value_sort.cuh"

namespace gpu_exact {
namespace {
static_assert(RowValuesRef::kNotKept == ColumnSubset::kLeftOut);

// one warp a row
__global__ void WriteDenseKernel(CsrView table, std::uint32_t const* column_of, RowIdx first_row,
                                 RowIdx n_rows, float* values) {
  auto row = WarpRow();
  if (row < table.n_rows) {
    ForEachEntry(table, row, [&](EntryIdx i) {
      CsrEntry const e = table.entries[i];
      std::uint32_t const column = column_of[e.feature];
      if (column != RowValuesRef::kNotKept) {
        values[std::uint64_t{column} * n_rows + first_row + row] = e.value == 0.0f ? 0.0f : e.value;
      }
    });
  }
}

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

RowValues::RowValues(RowTable rows, CsrView const& source,
                     std::vector<std::uint32_t> const& n_entries, std::vector<bool> const& kept,
                     EntryIdx at_once)
    : n_rows_{source.n_rows} {
  EntryIdx n_kept{0};
  std::uint32_t n_columns{0};
  std::vector<std::uint32_t> column_of(kept.size(), RowValuesRef::kNotKept);
  for (std::size_t f = 0; f < kept.size(); ++f) {
    if (kept[f]) {
      column_of[f] = n_columns++;
      n_kept += n_entries[f];
    }
  }
  CopyAsync(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  // A column's values lie by row where most are present, else a row's with their columns.
  std::uint64_t const n = std::uint64_t{n_rows_} * n_columns;
  is_dense_ = n <= 2 * n_kept;
  if (!is_dense_) {
    CubScratch scratch;
    offsets_.Reserve(std::size_t{n_rows_} + 1);
    ColumnSubset const subset{column_of_.Data(), offsets_.Data(), n_columns, n_kept};
    FindRowOffsets(rows.View(), subset, &scratch, offsets_.Data());
    LaunchRows("WriteSparse", WriteSparseKernel, n_rows_, rows.View(), subset,
               values_.Reserve(n_kept));
    Synchronize();  // the scratch goes
    return;
  }
  auto write = [&](CsrView const& table, RowIdx first_row) {
    LaunchRows("WriteDense", WriteDenseKernel, table.n_rows, table, column_of_.Data(), first_row,
               n_rows_, dense_.Data());
    Synchronize();
  };
  bool const again = source.memory == Memory::kHost && source.n_entries > at_once;
  if (again) {
    rows.Release();
  }
  dense_.Reserve(n);
  if (n != n_kept) {
    thrust::fill_n(thrust::cuda::par_nosync.on(Stream()), dense_.Data(), n, NAN);
  }
  if (!again) {
    write(rows.View(), 0);
    return;
  }
  std::vector<EntryIdx> offsets;
  for (RowIdx first = 0; first < n_rows_ && n != 0;) {
    EntryIdx const base = source.offsets[first];
    auto const* last =
        std::upper_bound(source.offsets + first + 1, source.offsets + n_rows_ + 1, base + at_once) -
        1;
    auto const end = std::max(first + 1, static_cast<RowIdx>(last - source.offsets));
    offsets.clear();
    std::transform(source.offsets + first, source.offsets + end + 1, std::back_inserter(offsets),
                   [=](EntryIdx offset) { return offset - base; });
    RowTable const part{{offsets.data(), source.entries + base, offsets.back(), end - first,
                         source.n_features, Memory::kHost}};
    write(part.View(), first);
    first = end;
  }
}
}  // namespace gpu_exact
