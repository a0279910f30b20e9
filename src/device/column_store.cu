/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of column_store.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <limits>
#include <stdexcept>
#include <string>

#include "src/device/column_store.cuh"

namespace gpu_exact {
namespace {
constexpr EntryIdx kChunk = EntryIdx{1} << 25;  // entries copied at a time: 256 MiB

/** @brief A float as an unsigned integer of the same order; the two zeros are one. */
__device__ std::uint32_t OrderedBits(float value) {
  auto bits = __float_as_uint(value == 0.0f ? 0.0f : value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ float FromOrderedBits(std::uint32_t bits) {
  return __uint_as_float((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

// one thread an entry of the chunk, which holds the table's entries from base on, and the one before
__global__ void MakeKeysKernel(CsrEntry const* chunk, EntryIdx base, EntryIdx n,
                               EntryIdx const* row_offsets, RowIdx n_rows, std::uint64_t* keys,
                               RowIdx* rows, std::uint32_t* out_unsorted) {
  auto i = GlobalIdx();
  if (i >= n) {
    return;
  }
  CsrEntry e = chunk[i];
  keys[base + i] = (static_cast<std::uint64_t>(e.feature) << 32) | OrderedBits(e.value);
  auto row = FirstIndex(RowIdx{0}, n_rows, [=](RowIdx r) { return row_offsets[r + 1] > base + i; });
  rows[base + i] = row;
  if (base + i != row_offsets[row] && (chunk - 1)[i].feature >= e.feature) {
    *out_unsorted = 1;  // whoever writes, writes the same
  }
}

// one thread an entry of the feature
__global__ void MarkRowsKernel(RowIdx const* rows, EntryIdx n, FeatureIdx feature,
                               FeatureIdx* last_feature, std::uint64_t* out_duplicate) {
  auto i = GlobalIdx();
  if (i < n && atomicExch(last_feature + rows[i], feature) == feature) {
    *out_duplicate = (std::uint64_t{rows[i]} << 32) | feature;  // any will do
  }
}

/** @brief 1 where a (feature, value) pair is met first in the sorted keys. */
struct NewValue {
  std::uint64_t const* keys;
  __device__ std::uint32_t operator()(EntryIdx i) const {
    return i == 0 || keys[i] != keys[i - 1] ? 1 : 0;
  }
};

// one thread an entry; counts: distinct values up to and including the entry
__global__ void WriteEntriesKernel(RowIdx const* rows, std::uint32_t const* counts, EntryIdx n,
                                   ColumnEntry* entries) {
  auto i = GlobalIdx();
  if (i < n) {
    entries[i] = {rows[i], counts[i] - 1};
  }
}

// one thread an entry
__global__ void WriteValuesKernel(std::uint64_t const* keys, ColumnEntry const* entries, EntryIdx n,
                                  float* values) {
  auto i = GlobalIdx();
  if (i < n && NewValue{keys}(i) != 0) {
    values[entries[i].value] = FromOrderedBits(static_cast<std::uint32_t>(keys[i]));
  }
}

/** @brief Refuse a table with two values of one feature in a row. Waits. @param rows By feature. */
void CheckDuplicates(RowIdx const* rows, std::vector<EntryIdx> const& offsets, RowIdx n_rows) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  DeviceBuffer<FeatureIdx> last_feature{"features of rows"};
  DeviceBuffer<std::uint64_t> duplicate{"a value given twice"};
  EXACT_CUDA(
      cudaMemsetAsync(last_feature.Reserve(n_rows), 0xff, n_rows * sizeof(FeatureIdx), Stream()));
  CopyAsync(duplicate.Reserve(1), &kNone, 1);
  for (FeatureIdx f = 0; f + 1 < offsets.size(); ++f) {
    EntryIdx n = offsets[f + 1] - offsets[f];
    LaunchN("MarkRows", MarkRowsKernel, n, rows + offsets[f], n, f, last_feature.Data(),
            duplicate.Data());
  }
  std::uint64_t found = ToHost(duplicate.Data(), 1)[0];
  if (found != kNone) {
    throw std::invalid_argument{"Row " + std::to_string(found >> 32) +
                                " has two values of feature " +
                                std::to_string(found & 0xffffffffu) +
                                "; give one. SciPy's sum_duplicates() makes one of them."};
  }
}

// one thread a feature boundary, n_features + 1 of them
__global__ void FindOffsetsKernel(std::uint64_t const* keys, std::uint32_t const* counts,
                                  EntryIdx n, FeatureIdx n_features, EntryIdx* entry_offsets,
                                  std::uint64_t* value_offsets) {
  auto f = GlobalIdx();
  if (f > n_features) {
    return;
  }
  auto first = FirstIndex(EntryIdx{0}, n, [=](EntryIdx i) { return (keys[i] >> 32) >= f; });
  entry_offsets[f] = first;
  value_offsets[f] = first == 0 ? 0 : counts[first - 1];
}

/** @brief Value ids are 32 bit: refuse a table with more distinct values. Waits. */
void CheckDistinct(std::uint64_t const* sorted_keys, EntryIdx n, CubScratch* scratch) {
  DeviceBuffer<std::uint64_t> sum{"number of distinct values"};
  sum.Reserve(1);
  auto is_new = thrust::make_transform_iterator(thrust::make_counting_iterator(EntryIdx{0}),
                                                NewValue{sorted_keys});
  scratch->Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceReduce::Reduce(storage, bytes, is_new, sum.Data(), n, cuda::std::plus<>{},
                                     std::uint64_t{0}, Stream());
  });
  std::uint64_t n_distinct{0};
  CopyAsync(&n_distinct, sum.Data(), 1);
  Synchronize();
  if (n_distinct > std::numeric_limits<ValueId>::max()) {
    throw std::invalid_argument{"The table has " + std::to_string(n_distinct) +
                                " distinct values in its columns, and at most " +
                                std::to_string(std::numeric_limits<ValueId>::max()) +
                                " fit; round values, or train with fewer columns."};
  }
}
}  // namespace

ColumnStore::ColumnStore(CsrView const& table)
    : n_entries_{table.n_entries}, n_rows_{table.n_rows}, n_features_{table.n_features} {
  auto const n = n_entries_;
  DeviceBuffer<std::uint64_t> keys{"sort keys"}, keys_alt{"sort keys, second half"};
  DeviceBuffer<RowIdx> rows{"rows to sort"}, rows_alt{"rows to sort, second half"};
  DeviceBuffer<std::uint32_t> unsorted{"whether rows are unsorted"};
  CubScratch scratch;
  ZeroAsync(unsorted.Reserve(1), 1);
  keys.Reserve(n);
  rows.Reserve(n);
  {
    DeviceBuffer<EntryIdx> row_offsets{"row offsets"};
    DeviceBuffer<CsrEntry> chunk{"a chunk of the table"};
    bool const on_device = table.memory == Memory::kDevice;
    EntryIdx const* d_offsets = table.offsets;
    if (!on_device) {
      d_offsets = row_offsets.Reserve(std::size_t{n_rows_} + 1);
      CopyAsync(row_offsets.Data(), table.offsets, std::size_t{n_rows_} + 1);
      chunk.Reserve(std::min(n, kChunk) + 1);
    }
    for (EntryIdx base = 0; base < n; base += kChunk) {
      auto size = std::min(kChunk, n - base);
      CsrEntry const* d_entries = table.entries + base;
      if (!on_device) {
        EntryIdx const before = base == 0 ? 0 : 1;
        CopyAsync(chunk.Data(), d_entries - before, size + before);
        d_entries = chunk.Data() + before;
      }
      LaunchN("MakeKeys", MakeKeysKernel, size, d_entries, base, size, d_offsets, n_rows_,
              keys.Data(), rows.Data(), unsorted.Data());
    }
    Synchronize();  // the chunk goes
  }
  keys_alt.Reserve(n);
  rows_alt.Reserve(n);
  int feature_bits{0};
  while ((std::uint64_t{1} << feature_bits) < n_features_) {
    ++feature_bits;
  }
  cub::DoubleBuffer<std::uint64_t> key_buffers{keys.Data(), keys_alt.Data()};
  cub::DoubleBuffer<RowIdx> row_buffers{rows.Data(), rows_alt.Data()};
  if (n != 0) {
    scratch.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, key_buffers, row_buffers, n, 0,
                                             32 + feature_bits, Stream());
    });
  }
  auto const* sorted = key_buffers.Current();
  (sorted == keys.Data() ? keys_alt : keys).Release();
  auto* counts = row_buffers.Alternate();
  if (n > std::numeric_limits<ValueId>::max()) {
    CheckDistinct(sorted, n, &scratch);
  }
  if (n != 0) {
    auto is_new = thrust::make_transform_iterator(thrust::make_counting_iterator(EntryIdx{0}),
                                                  NewValue{sorted});
    scratch.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(storage, bytes, is_new, counts, n, Stream());
    });
  }
  entry_offsets_.Reserve(std::size_t{n_features_} + 1);
  value_offsets_.Reserve(std::size_t{n_features_} + 1);
  LaunchN("FindOffsets", FindOffsetsKernel, std::uint64_t{n_features_} + 1, sorted, counts, n,
          n_features_, entry_offsets_.Data(), value_offsets_.Data());
  h_entry_offsets_.resize(std::size_t{n_features_} + 1);
  CopyAsync(h_entry_offsets_.data(), entry_offsets_.Data(), h_entry_offsets_.size());
  CopyAsync(&n_values_, value_offsets_.Data() + n_features_, 1);
  Synchronize();
  if (ToHost(unsorted.Data(), 1)[0] != 0) {
    CheckDuplicates(row_buffers.Current(), h_entry_offsets_, n_rows_);
  }
  LaunchN("WriteEntries", WriteEntriesKernel, n, row_buffers.Current(), counts, n,
          entries_.Reserve(n));
  rows.Release();  // before there is need of room for the values
  rows_alt.Release();
  LaunchN("WriteValues", WriteValuesKernel, n, sorted, entries_.Data(), n,
          values_.Reserve(n_values_));
  Synchronize();  // the sort's buffers go
}

ColumnsRef ColumnStore::Ref() const {
  return {entries_.Data(),
          values_.Data(),
          entry_offsets_.Data(),
          value_offsets_.Data(),
          n_entries_,
          n_values_,
          n_rows_,
          n_features_};
}

std::uint64_t ColumnStore::Bytes() const {
  return entries_.Bytes() + values_.Bytes() + entry_offsets_.Bytes() + value_offsets_.Bytes();
}
}  // namespace gpu_exact
