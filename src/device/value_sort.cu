/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of value_sort.cuh.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <utility>

#include "src/device/value_sort.cuh"

namespace gpu_exact {
namespace {
// one warp a row
__global__ void CountKeptKernel(CsrView table, std::uint32_t const* column_of, EntryIdx* counts) {
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  EntryIdx n_kept{0};
  EntryIdx const end = table.offsets[row + 1];
  for (EntryIdx base = table.offsets[row]; base < end; base += 32) {
    EntryIdx const i = base + threadIdx.x % 32;
    bool const kept = i < end && column_of[table.entries[i].feature] != ColumnSubset::kLeftOut;
    n_kept += __popc(__ballot_sync(kAllLanes, kept));
  }
  if (threadIdx.x % 32 == 0) {
    counts[row] = n_kept;
  }
}

// one warp a row
__global__ void MakeKeysKernel(CsrView table, ColumnSubset subset, std::uint64_t* keys,
                               RowIdx* rows) {
  auto row = WarpRow();
  if (row < table.n_rows) {
    subset.ForRow(table, row, [=](std::uint32_t column, float value, EntryIdx to) {
      keys[to] = ValueKey::Make(column, OrderedBits(value));
      rows[to] = static_cast<RowIdx>(row);
    });
  }
}
}  // namespace

void FindRowOffsets(CsrView const& table, std::uint32_t const* column_of, CubScratch* scratch,
                    EntryIdx* out_row_offsets) {
  LaunchRows("CountKept", CountKeptKernel, table.n_rows, table, column_of, out_row_offsets);
  ZeroAsync(out_row_offsets + table.n_rows, 1);
  scratch->Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, out_row_offsets,
                                         std::uint64_t{table.n_rows} + 1, Stream());
  });
}

SortedEntries SortByValue(RowTable table, ColumnSubset const& subset) {
  auto const n = subset.n_entries;
  SortedEntries sorted;
  DeviceBuffer<std::uint64_t> keys_alt{"sort keys, second half"};
  DeviceBuffer<RowIdx> rows_alt{"rows to sort, second half"};
  sorted.keys.Reserve(n);
  sorted.rows.Reserve(n);
  LaunchRows("MakeKeys", MakeKeysKernel, table.View().n_rows, table.View(), subset,
             sorted.keys.Data(), sorted.rows.Data());
  Synchronize();
  table.Release();
  cub::DoubleBuffer<std::uint64_t> keys{sorted.keys.Data(), keys_alt.Reserve(n)};
  cub::DoubleBuffer<RowIdx> rows{sorted.rows.Data(), rows_alt.Reserve(n)};
  CubScratch scratch;
  if (n != 0) {
    scratch.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, rows, n, 0,
                                             ValueKey::NumBits(subset.n_columns), Stream());
    });
  }
  Synchronize();  // the second halves go
  if (keys.selector != 0) {
    std::swap(sorted.keys, keys_alt);
  }
  if (rows.selector != 0) {
    std::swap(sorted.rows, rows_alt);
  }
  return sorted;
}
}  // namespace gpu_exact
