/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of sorted_columns.cuh.
 */
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_segmented_reduce.cuh>
#include <utility>

#include "src/device/partition/sorted_columns.cuh"
#include "src/device/partition/split_tile.cuh"

namespace gpu_exact {
namespace {
// one thread an entry
__global__ void MarkValuesKernel(std::uint64_t const* keys, EntryIdx n, std::uint32_t* rows) {
  auto i = GlobalIdx();
  if (i < n && ValueKey::IsFirst(keys, i)) {
    rows[i] |= PlaceWord::kNewValue;
  }
}

struct BeginsValue {
  __device__ std::uint32_t operator()(std::uint32_t row) const {
    return (row & PlaceWord::kNewValue) != 0 ? 1 : 0;
  }
};

// one thread a value
__global__ void FillKernel(float* values, std::uint64_t n, float value) {
  auto i = GlobalIdx();
  if (i < n) {
    values[i] = value;
  }
}

// one warp a row
__global__ void WriteDenseKernel(CsrView table, ColumnSubset subset, float* values) {
  auto row = WarpRow();
  if (row < table.n_rows) {
    subset.ForRow(table, row, [=](std::uint32_t column, float value, EntryIdx) {
      values[row * subset.n_columns + column] = value;
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

SortedColumns::SortedColumns(RowTable table, std::vector<std::uint32_t> const& n_entries,
                             std::vector<FeatureIdx> const& features,
                             std::uint32_t const* column_of)
    : n_rows_{table.View().n_rows}, n_columns_{static_cast<std::uint32_t>(features.size())} {
  this->MakeColumns(n_entries, features);
  CubScratch scratch;
  row_offsets_.Reserve(std::size_t{n_rows_} + 1);
  ColumnSubset const subset{column_of, row_offsets_.Data(), n_columns_, n_entries_};
  FindRowOffsets(table.View(), subset, &scratch, row_offsets_.Data());
  this->WriteValues(table.View(), subset);
  SortedEntries sorted = SortByValue(std::move(table), subset);
  rows_ = std::move(sorted.rows);
  this->MarkValues(sorted.keys.Data());
  if (dense_) {
    row_offsets_.Release();
  }
}

void SortedColumns::MakeColumns(std::vector<std::uint32_t> const& n_entries,
                                std::vector<FeatureIdx> const& features) {
  std::vector<EntryIdx> offsets{0};
  std::vector<std::uint32_t> sparse, of_sparse;
  for (FeatureIdx f : features) {
    n_entries_ += n_entries[f];
    offsets.push_back(n_entries_);
    bool const is_dense = n_entries[f] == n_rows_;
    if (!is_dense) {
      of_sparse.push_back(static_cast<std::uint32_t>(sparse.size()));
    }
    sparse.push_back(is_dense ? SortedColumnsRef::kDense : n_sparse_++);
  }
  CopyAsync(offsets_.Reserve(offsets.size()), offsets.data(), offsets.size());
  CopyAsync(features_.Reserve(features.size()), features.data(), features.size());
  CopyAsync(sparse_.Reserve(sparse.size()), sparse.data(), sparse.size());
  CopyAsync(of_sparse_.Reserve(of_sparse.size()), of_sparse.data(), of_sparse.size());
}

void SortedColumns::WriteValues(CsrView const& table, ColumnSubset const& subset) {
  // A row's values lie side by side where most are present, else with their column.
  std::uint64_t const n = std::uint64_t{n_rows_} * n_columns_;
  dense_ = n <= 2 * n_entries_;
  if (!dense_) {
    LaunchRows("WriteSparse", WriteSparseKernel, n_rows_, table, subset,
               row_values_.Reserve(n_entries_));
    return;
  }
  dense_values_.Reserve(n);
  if (n_sparse_ != 0) {
    LaunchN("Fill", FillKernel, n, dense_values_.Data(), n, NAN);
  }
  LaunchRows("WriteDense", WriteDenseKernel, n_rows_, table, subset, dense_values_.Data());
}

void SortedColumns::MarkValues(std::uint64_t const* keys) {
  LaunchN("MarkValues", MarkValuesKernel, n_entries_, keys, n_entries_, rows_.Data());
  DeviceBuffer<std::uint32_t> n_values{"numbers of distinct values"};
  CubScratch scratch;
  n_values.Reserve(n_columns_);
  auto begins = thrust::make_transform_iterator(rows_.Data(), BeginsValue{});
  scratch.Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(storage, bytes, begins, n_values.Data(), n_columns_,
                                           offsets_.Data(), offsets_.Data() + 1, Stream());
  });
  n_values_ = ToHost(n_values.Data(), n_columns_);
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
