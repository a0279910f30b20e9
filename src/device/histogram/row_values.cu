/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of row_values.cuh.
 */
#include "src/device/histogram/row_values.cuh"

#include <thrust/fill.h>
#include <thrust/system/cuda/execution_policy.h>

#include "src/device/value_sort.cuh"

namespace gpu_exact {
namespace {
static_assert(RowValuesRef::kNotKept == ColumnSubset::kLeftOut);

// one warp a row
__global__ void WriteDenseKernel(CsrView table, ColumnSubset subset, float* values) {
  auto row = WarpRow();
  if (row < table.n_rows) {
    subset.ForRow(table, row, [=](std::uint32_t column, float value, EntryIdx) {
      values[std::uint64_t{column} * table.n_rows + row] = value;
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

RowValues::RowValues(CsrView const& table, std::vector<std::uint32_t> const& n_entries,
                     std::vector<bool> const& kept)
    : n_rows_{table.n_rows} {
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
  CubScratch scratch;
  offsets_.Reserve(std::size_t{table.n_rows} + 1);
  ColumnSubset const subset{column_of_.Data(), offsets_.Data(), n_columns, n_kept};
  FindRowOffsets(table, subset, &scratch, offsets_.Data());
  // A column's values lie by row where most are present, else a row's with their columns.
  std::uint64_t const n = std::uint64_t{table.n_rows} * n_columns;
  is_dense_ = n <= 2 * n_kept;
  if (is_dense_) {
    dense_.Reserve(n);
    if (n != n_kept) {
      thrust::fill_n(thrust::cuda::par_nosync.on(Stream()), dense_.Data(), n, NAN);
    }
    LaunchRows("WriteDense", WriteDenseKernel, table.n_rows, table, subset, dense_.Data());
  } else {
    LaunchRows("WriteSparse", WriteSparseKernel, table.n_rows, table, subset,
               values_.Reserve(n_kept));
  }
  Synchronize();  // the scratch goes
  if (is_dense_) {
    offsets_.Release();
  }
}
}  // namespace gpu_exact
