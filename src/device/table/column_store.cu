/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements column_store.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/runtime/device_context.cuh"
#include "device/table/column_store.cuh"
#include "device/table/value_sort.cuh"

namespace gpu_exact {
namespace {
// one thread an entry; counts: distinct values up to and including the entry
__global__ void WriteEntriesKernel(RowIdx const* rows, std::uint32_t const* counts, EntryIdx n,
                                   ColumnEntry* entries) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n) {
    entries[i] = {rows[i], counts[i] - 1};
  }
}

// one thread an entry
__global__ void WriteValuesKernel(std::uint64_t const* keys, std::uint32_t const* counts,
                                  EntryIdx n, float* values) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n && ValueKey::IsFirst(keys, i)) {
    values[counts[i] - 1] = ValueKey::Value(keys[i]);
  }
}

// one thread a feature boundary, n_features + 1 of them
__global__ void FindValueOffsetsKernel(std::uint64_t const* keys, std::uint32_t const* counts,
                                       EntryIdx n, FeatureIdx n_features, ValueId* value_offsets) {
  WaitForPreviousKernel();
  auto f = GlobalIdx();
  if (f > n_features) {
    return;
  }
  auto first =
      PartitionPoint(EntryIdx{0}, n, [=](EntryIdx i) { return ValueKey::Column(keys[i]) >= f; });
  value_offsets[f] = first == 0 ? 0 : counts[first - 1];
}

constexpr FeatureIdx kFewFeatures = 64;  // are bisected in few steps anyway

// one thread a hint
__global__ void HintsKernel(ColumnsRef columns, std::uint64_t n_hints, FeatureIdx* hints) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_hints) {
    hints[i] = columns.FeatureOf(min(i * kHintValues, columns.n_values - 1));
  }
}

/** @brief Count distinct values; refuses a table with more than 32 bits number. Waits. */
void CheckDistinct(std::uint64_t const* sorted_keys, EntryIdx n) {
  DeviceBuffer<std::uint64_t> sum{"number of distinct values"};
  sum.Reserve(1);
  auto is_new = thrust::make_transform_iterator(thrust::make_counting_iterator(EntryIdx{0}),
                                                BeginsValue{sorted_keys});
  CallCub([&](void* storage, std::size_t& bytes) {
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

ColumnStore::ColumnStore(CsrView const& table, EntryIdx sorted_at_once, std::uint64_t host_values)
    : n_entries_{table.n_entries}, n_rows_{table.n_rows}, n_features_{table.n_features} {
  auto const n = n_entries_;
  RowTable rows{table};
  std::vector<std::uint32_t> const n_present = rows.CountEntries();
  h_entry_offsets_.resize(std::size_t{n_features_} + 1, 0);
  std::inclusive_scan(n_present.cbegin(), n_present.cend(), h_entry_offsets_.begin() + 1,
                      std::plus<>{}, EntryIdx{0});
  SortedEntries sorted = SortByValue(std::move(rows), h_entry_offsets_, sorted_at_once);
  DeviceBuffer<std::uint32_t> counts{"numbers of distinct values"};
  counts.Reserve(n);
  if (n > std::numeric_limits<ValueId>::max()) {
    CheckDistinct(sorted.keys.Data(), n);
  }
  if (n != 0) {
    auto is_new = thrust::make_transform_iterator(thrust::make_counting_iterator(EntryIdx{0}),
                                                  BeginsValue{sorted.keys.Data()});
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(storage, bytes, is_new, counts.Data(), n, Stream());
    });
  }
  CopyFromHost(n_present_.Reserve(n_features_), n_present.data(), n_features_);
  value_offsets_.Reserve(std::size_t{n_features_} + 1);
  LaunchN("FindValueOffsets", FindValueOffsetsKernel, std::uint64_t{n_features_} + 1,
          sorted.keys.Data(), counts.Data(), n, n_features_, value_offsets_.Data());
  CopyAsync(&n_values_, value_offsets_.Data() + n_features_, 1);
  Synchronize();
  values_at_ =
      n_values_ <= host_values ? host_values_.Reserve(n_values_) : values_.Reserve(n_values_);
  LaunchN("WriteValues", WriteValuesKernel, n, sorted.keys.Data(), counts.Data(), n, values_at_);
  Synchronize();
  sorted.keys.Release();  // before there is need of room for the entries
  LaunchN("WriteEntries", WriteEntriesKernel, n, sorted.rows.Data(), counts.Data(), n,
          entries_.Reserve(n));
  if (n_features_ > kFewFeatures && n_values_ != 0) {
    ColumnsRef const without_hints = this->Ref();
    auto const n_hints = CeilDiv(n_values_, kHintValues) + 1;
    LaunchN("Hints", HintsKernel, n_hints, without_hints, n_hints, hints_.Reserve(n_hints));
  }
  Synchronize();  // the sorted columns go
}

ColumnsRef ColumnStore::Ref() const {
  return {entries_.Data(), values_at_, n_present_.Data(), value_offsets_.Data(), n_entries_,
          n_values_,       n_rows_,    n_features_,       hints_.Data()};
}
}  // namespace gpu_exact
