/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of sorted_columns.cuh.
 */
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "src/device/partition/sorted_columns.cuh"
#include "src/device/partition/split_tile.cuh"

namespace gpu_exact {
namespace {
/** @brief An entry of a sorted column and where the table's columns have it. */
struct Place {
  std::uint32_t column;
  FeatureIdx feature;
  EntryIdx source;
};

__device__ Place FindPlace(ColumnsRef const& columns, SortedColumnsRef const& sorted, EntryIdx i) {
  auto offsets = sorted.offsets;
  auto c = FirstIndex(std::uint32_t{0}, sorted.n_columns,
                      [=](std::uint32_t k) { return offsets[k + 1] > i; });
  FeatureIdx f = sorted.features[c];
  return {c, f, columns.entry_offsets[f] + (i - offsets[c])};
}

// one thread an entry
__global__ void WriteRowsKernel(ColumnsRef columns, SortedColumnsRef sorted, EntryIdx n,
                                std::uint32_t* rows) {
  auto i = GlobalIdx();
  if (i >= n) {
    return;
  }
  Place at = FindPlace(columns, sorted, i);
  ColumnEntry e = columns.entries[at.source];
  bool is_new = at.source == columns.entry_offsets[at.feature] ||
                columns.entries[at.source - 1].value != e.value;
  rows[i] = e.row | (is_new ? PlaceWord::kNewValue : 0);
}

// one thread an entry
__global__ void WriteDenseKernel(ColumnsRef columns, SortedColumnsRef sorted, EntryIdx n,
                                 float* values) {
  auto i = GlobalIdx();
  if (i < n) {
    Place at = FindPlace(columns, sorted, i);
    ColumnEntry e = columns.entries[at.source];
    values[std::uint64_t{e.row} * sorted.n_columns + at.column] = columns.values[e.value];
  }
}

// one thread a value
__global__ void FillKernel(float* values, std::uint64_t n, float value) {
  auto i = GlobalIdx();
  if (i < n) {
    values[i] = value;
  }
}

// one thread an entry
__global__ void WriteSparseKernel(ColumnsRef columns, SortedColumnsRef sorted, EntryIdx n,
                                  RowIdx* rows, RowValuesRef::Value* values) {
  auto i = GlobalIdx();
  if (i < n) {
    Place at = FindPlace(columns, sorted, i);
    ColumnEntry e = columns.entries[at.source];
    rows[i] = e.row;
    values[i] = {at.column, columns.values[e.value]};
  }
}

// one thread a row, and one more
__global__ void FindRowsKernel(RowIdx const* rows, EntryIdx n, RowIdx n_rows, EntryIdx* offsets) {
  auto row = GlobalIdx();
  if (row <= n_rows) {
    offsets[row] = FirstIndex(EntryIdx{0}, n, [=](EntryIdx i) { return rows[i] >= row; });
  }
}
}  // namespace

SortedColumns::SortedColumns(ColumnsRef const& columns, std::vector<EntryIdx> const& entry_offsets,
                             std::vector<FeatureIdx> const& features)
    : n_rows_{columns.n_rows}, n_columns_{static_cast<std::uint32_t>(features.size())} {
  std::vector<EntryIdx> offsets{0};
  std::vector<std::uint32_t> sparse, of_sparse;
  for (FeatureIdx f : features) {
    EntryIdx n = entry_offsets[f + 1] - entry_offsets[f];
    n_entries_ += n;
    offsets.push_back(n_entries_);
    bool const is_dense = n == n_rows_;
    if (!is_dense) {
      of_sparse.push_back(static_cast<std::uint32_t>(sparse.size()));
    }
    sparse.push_back(is_dense ? SortedColumnsRef::kDense : n_sparse_++);
  }
  CopyAsync(offsets_.Reserve(offsets.size()), offsets.data(), offsets.size());
  CopyAsync(features_.Reserve(features.size()), features.data(), features.size());
  CopyAsync(sparse_.Reserve(sparse.size()), sparse.data(), sparse.size());
  CopyAsync(of_sparse_.Reserve(of_sparse.size()), of_sparse.data(), of_sparse.size());
  rows_.Reserve(n_entries_);
  LaunchN("WriteRows", WriteRowsKernel, n_entries_, columns, this->Ref(), n_entries_, rows_.Data());
  // A row's values lie side by side where most are present, else with their column.
  dense_ = std::uint64_t{n_rows_} * n_columns_ <= 2 * n_entries_;
  if (dense_) {
    this->FillDense(columns);
  } else {
    this->FillSparse(columns);
  }
  Synchronize();  // the vectors go
}

void SortedColumns::FillDense(ColumnsRef const& columns) {
  std::uint64_t n = std::uint64_t{n_rows_} * n_columns_;
  dense_values_.Reserve(n);
  if (n_sparse_ != 0) {
    LaunchN("Fill", FillKernel, n, dense_values_.Data(), n, NAN);
  }
  LaunchN("WriteDense", WriteDenseKernel, n_entries_, columns, this->Ref(), n_entries_,
          dense_values_.Data());
}

void SortedColumns::FillSparse(ColumnsRef const& columns) {
  auto n = n_entries_;
  DeviceBuffer<RowIdx> rows{"rows to sort"}, rows_alt{"rows to sort, second half"};
  DeviceBuffer<RowValuesRef::Value> values_alt{"values to sort"};
  row_values_.Reserve(n);
  values_alt.Reserve(n);
  row_offsets_.Reserve(std::size_t{n_rows_} + 1);
  cub::DoubleBuffer<RowIdx> keys{rows.Reserve(n), rows_alt.Reserve(n)};
  cub::DoubleBuffer<RowValuesRef::Value> values{row_values_.Data(), values_alt.Data()};
  LaunchN("WriteSparse", WriteSparseKernel, n, columns, this->Ref(), n, keys.Current(),
          values.Current());
  CubScratch scratch;
  scratch.Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, values, n, 0, 32, Stream());
  });
  LaunchN("FindRows", FindRowsKernel, std::uint64_t{n_rows_} + 1, keys.Current(), n, n_rows_,
          row_offsets_.Data());
  Synchronize();  // the sort's buffers go
  if (values.Current() != row_values_.Data()) {
    row_values_ = std::move(values_alt);
  }
}

SortedColumnsRef SortedColumns::Ref() const {
  return {rows_.Data(),      offsets_.Data(), features_.Data(), sparse_.Data(),
          of_sparse_.Data(), n_columns_,      n_sparse_};
}

RowValuesRef SortedColumns::Values() const {
  return {dense_ ? dense_values_.Data() : nullptr, row_offsets_.Data(), row_values_.Data(),
          n_columns_};
}

std::uint64_t SortedColumns::Bytes() const {
  return rows_.Bytes() + offsets_.Bytes() + features_.Bytes() + sparse_.Bytes() +
         of_sparse_.Bytes() + dense_values_.Bytes() + row_offsets_.Bytes() + row_values_.Bytes();
}
}  // namespace gpu_exact
