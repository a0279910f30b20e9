/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements value_sort.cuh.
 */
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "device/runtime/device_context.cuh"
#include "device/table/value_sort.cuh"

namespace gpu_exact {
namespace {
// one warp a row
__global__ void CountKeptKernel(CsrView table, ColumnSubset subset, EntryIdx* counts) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  EntryIdx n_kept{0};
  WalkRow(table, row, [&](EntryIdx i, bool has) {
    bool const kept = has && subset.Column(table.entries[i].feature) != ColumnSubset::kLeftOut;
    n_kept += __popc(__ballot_sync(kAllLanes, kept));
  });
  if (threadIdx.x % 32 == 0) {
    counts[row + 1] = n_kept;
  }
}

// one warp a row; rows: nullptr where they are not wanted
__global__ void MakeKeysKernel(CsrView table, ColumnSubset subset, std::uint64_t* keys,
                               RowIdx* rows) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row < table.n_rows) {
    subset.ForRow(table, row, [=](std::uint32_t column, float value, EntryIdx to) {
      keys[to] = ValueKey::Make(column, RadixKey(value));
      if (rows != nullptr) {
        rows[to] = static_cast<RowIdx>(row);
      }
    });
  }
}

/** @brief Sorts keys and rows in their place; keeps its memory for the next ones. */
class KeySorter {
 public:
  explicit KeySorter(std::uint32_t n_columns) : n_bits_{ValueKey::NumBits(n_columns)} {}

  /** @brief Does not wait. */
  void Sort(std::uint64_t* keys, RowIdx* rows, EntryIdx n) {
    if (n == 0) {
      return;
    }
    cub::DoubleBuffer<std::uint64_t> key_halves{keys, keys_.Reserve(n)};
    cub::DoubleBuffer<RowIdx> row_halves{rows, rows_.Reserve(n)};
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, key_halves, row_halves, n, 0, n_bits_,
                                             Stream());
    });
    if (key_halves.selector != 0) {
      CopyAsync(keys, keys_.Data(), n);
    }
    if (row_halves.selector != 0) {
      CopyAsync(rows, rows_.Data(), n);
    }
  }

 private:
  int n_bits_;
  DeviceBuffer<std::uint64_t> keys_{"sort keys, second half"};
  DeviceBuffer<RowIdx> rows_{"rows to sort, second half"};
};

/** @brief Find the first column of each part, and the end: as many columns a part as fit, at least
 *         one. */
std::vector<std::uint32_t> DivideColumns(std::vector<EntryIdx> const& entry_offsets,
                                         EntryIdx sorted_at_once) {
  std::vector<std::uint32_t> firsts{0};
  auto const n_columns = static_cast<std::uint32_t>(entry_offsets.size() - 1);
  while (firsts.back() != n_columns) {
    auto const first = entry_offsets.cbegin() + firsts.back();
    auto const past = std::upper_bound(first + 1, entry_offsets.cend(), *first + sorted_at_once);
    auto const n_fit = static_cast<std::uint32_t>(past - first) - 1;
    firsts.push_back(firsts.back() + std::max(n_fit, 1u));
  }
  return firsts;
}
}  // namespace

void FindRowOffsets(CsrView const& table, ColumnSubset const& subset, EntryIdx* out_row_offsets) {
  LaunchRows("CountKept", CountKeptKernel, table.n_rows, table, subset, out_row_offsets);
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, out_row_offsets,
                                         std::uint64_t{table.n_rows} + 1, Stream());
  });
}

void MakeKeys(CsrView const& table, ColumnSubset const& subset, std::uint64_t* out_keys,
              RowIdx* out_rows) {
  LaunchRows("MakeKeys", MakeKeysKernel, table.n_rows, table, subset, out_keys, out_rows);
}

SortedEntries SortByValue(RowTable table, ColumnSubset const& subset) {
  SortedEntries sorted;
  MakeKeys(table.View(), subset, sorted.keys.Reserve(subset.n_entries),
           sorted.rows.Reserve(subset.n_entries));
  Synchronize();
  table.Release();
  KeySorter sorter{subset.n_columns};
  sorter.Sort(sorted.keys.Data(), sorted.rows.Data(), subset.n_entries);
  Synchronize();  // the second halves go
  return sorted;
}

SortedEntries SortByValue(RowTable table, std::vector<EntryIdx> const& entry_offsets,
                          EntryIdx sorted_at_once) {
  std::vector<std::uint32_t> const firsts = DivideColumns(entry_offsets, sorted_at_once);
  SortedEntries sorted;
  std::uint64_t* keys = sorted.keys.Reserve(entry_offsets.back());
  RowIdx* rows = sorted.rows.Reserve(entry_offsets.back());
  DeviceBuffer<EntryIdx> row_offsets{"row offsets of some columns"};
  ZeroAsync(row_offsets.Reserve(std::size_t{table.View().n_rows} + 1), 1);
  for (std::size_t i = 0; i + 1 < firsts.size(); ++i) {
    EntryIdx const begin = entry_offsets[firsts[i]];
    ColumnSubset const part{nullptr, row_offsets.Data(), firsts[i + 1] - firsts[i],
                            entry_offsets[firsts[i + 1]] - begin, firsts[i]};
    FindRowOffsets(table.View(), part, row_offsets.Data());
    MakeKeys(table.View(), part, keys + begin, rows + begin);
  }
  Synchronize();
  row_offsets.Release();
  table.Release();
  KeySorter sorter{firsts.back()};
  for (std::size_t i = 0; i + 1 < firsts.size(); ++i) {
    EntryIdx const begin = entry_offsets[firsts[i]];
    sorter.Sort(keys + begin, rows + begin, entry_offsets[firsts[i + 1]] - begin);
  }
  Synchronize();  // the second halves go
  return sorted;
}
}  // namespace gpu_exact
