/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements row_table.cuh.
 */
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cstddef>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <stdexcept>
#include <string>

#include "device/runtime/device_context.cuh"
#include "device/runtime/host_copy.cuh"
#include "device/table/row_table.cuh"

namespace gpu_exact {
namespace {
constexpr unsigned kCountThreads = 256;
/** @brief Sets how many features a block counts by itself: entries of a full column would all
 *         meet. */
constexpr FeatureIdx kBlockFeatures = 8192;
/** @brief Sets how many bytes are worth taking page-locked memory for one copy. */
constexpr std::size_t kWorthPinning = std::size_t{1} << 24;
/** @brief Sets how many bytes make an array one part of many: calls that copy more each soon save
 *         what more page-locked memory takes. */
constexpr std::size_t kPartOfMany = std::size_t{1} << 27;

CopyPlan PlanForOnce(std::size_t n_bytes) {
  CopyPlan plan;
  plan.min_bytes = kWorthPinning;
  if (n_bytes >= kPartOfMany) {
    plan.chunk_bytes *= 4;
  }
  return plan;
}

struct RowFaults {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t beyond;     // least row << 32 | feature that is not in the table, or kNone
  std::uint64_t duplicate;  // least row << 32 | feature that is there twice, or kNone
  std::uint64_t unsorted;   // whether a row is
};

__device__ void AddFault(std::uint64_t* least, std::uint64_t row, FeatureIdx feature) {
  atomicMin(reinterpret_cast<unsigned long long*>(least),
            static_cast<unsigned long long>((row << 32) | feature));
}

// one warp a row
__global__ void CheckRowsKernel(CsrView table, RowFaults* out) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForEachEntry(table, row, [&](EntryIdx i) {
    FeatureIdx const feature = table.entries[i].feature;
    if (feature >= table.n_features) {
      AddFault(&out->beyond, row, feature);
    }
    if (i == table.offsets[row]) {
      return;
    }
    FeatureIdx const before = table.entries[i - 1].feature;
    if (before > feature) {
      out->unsorted = 1;  // whoever writes, writes the same
    } else if (before == feature) {
      AddFault(&out->duplicate, row, feature);
    }
  });
}

/**
 * @brief Find out whether rows are in order; refuse a feature beyond the table's columns, and one that
 *        is given twice. Waits.
 * @param first_row Number of the first one.
 */
bool AreSorted(CsrView const& table, RowIdx first_row) {
  DeviceBuffer<RowFaults> faults{"faults of rows"};
  RowFaults found{RowFaults::kNone, RowFaults::kNone, 0};
  CopyFromHost(faults.Reserve(1), &found, 1);
  LaunchRows("CheckRows", CheckRowsKernel, table.n_rows, table, faults.Data());
  found = ToHost(faults.Data(), 1)[0];
  auto const row = [&](std::uint64_t fault) {
    return "Row " + std::to_string(first_row + (fault >> 32));
  };
  auto const feature = [](std::uint64_t fault) { return std::to_string(fault & 0xffffffffu); };
  if (found.beyond != RowFaults::kNone) {
    throw std::invalid_argument{row(found.beyond) + " has a value of feature " +
                                feature(found.beyond) + ", but the table has " +
                                std::to_string(table.n_features) +
                                " columns, counted from 0; give it a shape that has them all."};
  }
  if (found.duplicate != RowFaults::kNone) {
    throw std::invalid_argument{row(found.duplicate) + " has two values of feature " +
                                feature(found.duplicate) +
                                "; give one. SciPy's sum_duplicates() makes one of them."};
  }
  return found.unsorted == 0;
}

// one warp a row, in turns; counts: shape (n_features), added to
__global__ void CountEntriesKernel(CsrView table, std::uint32_t* counts) {
  WaitForPreviousKernel();
  __shared__ std::uint32_t of_block[kBlockFeatures];
  FeatureIdx const n_block = min(kBlockFeatures, table.n_features);
  for (FeatureIdx f = threadIdx.x; f < n_block; f += kCountThreads) {
    of_block[f] = 0;
  }
  __syncthreads();
  std::uint64_t const n_warps = std::uint64_t{gridDim.x} * (kCountThreads / 32);
  for (auto row = WarpRow(); row < table.n_rows; row += n_warps) {
    ForEachEntry(table, row, [&](EntryIdx i) {
      FeatureIdx const f = table.entries[i].feature;
      if (f < n_block) {
        atomicAdd(of_block + f, 1u);
      } else {
        atomicAdd(counts + f, 1u);
      }
    });
  }
  __syncthreads();
  for (FeatureIdx f = threadIdx.x; f < n_block; f += kCountThreads) {
    if (of_block[f] != 0) {
      atomicAdd(counts + f, of_block[f]);
    }
  }
}

/** @brief Gives row offsets as CUB counts them: from the first row of a part, in an int. */
struct FromBase {
  EntryIdx base;
  __host__ __device__ int operator()(EntryIdx offset) const {
    return static_cast<int>(offset - base);
  }
};
}  // namespace

void RowTable::Load(CsrView const& table, RowIdx first_row, EntryIdx sorted_at_once) {
  bool const on_device = table.memory == Memory::kDevice;
  std::size_t const n_offsets = std::size_t{table.n_rows} + 1;
  view_ = table;
  view_.memory = Memory::kDevice;
  view_.pages = nullptr;
  if (!on_device) {
    view_.offsets = row_offsets_.Reserve(n_offsets);
    view_.entries = entries_.Reserve(table.n_entries);
    this->Upload(table);
  }
  if (AreSorted(view_, first_row)) {
    return;
  }
  if (on_device) {
    view_.entries = entries_.Reserve(table.n_entries);
    CopyAsync(entries_.Data(), table.entries, table.n_entries);
  }
  this->SortRows(ToHost(view_.offsets, n_offsets).data(), sorted_at_once);
  // Values given twice are neighbours now.
  static_cast<void>(AreSorted(view_, first_row));
}

void RowTable::Upload(CsrView const& table) {
  if (copier_ == nullptr) {
    copier_ = std::make_unique<HostCopier>(PlanForOnce(table.n_entries * sizeof(CsrEntry)));
  }
  if (table.pages == nullptr) {
    copier_->CopyToDevice(row_offsets_.Data(), table.offsets, std::size_t{table.n_rows} + 1);
    copier_->CopyToDevice(entries_.Data(), table.entries, table.n_entries);
    return;
  }
  EntryIdx n_before{0};
  std::vector<EntryIdx> offsets;
  ZeroAsync(row_offsets_.Data(), 1);
  table.pages->ForEach([&](CsrView const& page, RowIdx first_row) {
    offsets.assign(page.offsets, page.offsets + page.n_rows + 1);
    for (EntryIdx& offset : offsets) {
      offset += n_before;
    }
    CopyFromHost(row_offsets_.Data() + first_row, offsets.data(), offsets.size());
    copier_->CopyToDevice(entries_.Data() + n_before, page.entries, page.n_entries);
    n_before += page.n_entries;
  });
}

void RowTable::SortRows(EntryIdx const* h_offsets, EntryIdx sorted_at_once) {
  static_assert(sizeof(CsrEntry) == sizeof(std::uint64_t) && offsetof(CsrEntry, feature) == 0,
                "the lower half of an entry is its feature");
  DeviceBuffer<CsrEntry> alternate{"rows to sort"};
  auto words = [](auto* p) { return reinterpret_cast<std::uint64_t*>(p); };
  for (RowIdx first = 0; first < view_.n_rows;) {
    EntryIdx const base = h_offsets[first];
    auto const* end = h_offsets + std::min<std::uint64_t>(view_.n_rows, first + sorted_at_once);
    auto const* last = std::upper_bound(h_offsets + first + 1, end + 1, base + sorted_at_once) - 1;
    last = std::max(last, h_offsets + first + 1);
    auto const n = static_cast<int>(*last - base);
    auto const n_rows = static_cast<int>(last - (h_offsets + first));
    auto offsets = thrust::make_transform_iterator(view_.offsets + first, FromBase{base});
    first += n_rows;
    if (n == 0) {
      continue;
    }
    cub::DoubleBuffer<std::uint64_t> rows{words(entries_.Data() + base),
                                          words(alternate.Reserve(n))};
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceSegmentedRadixSort::SortKeys(storage, bytes, rows, n, n_rows, offsets,
                                                     offsets + 1, 0, BitsBelow(view_.n_features),
                                                     Stream());
    });
    if (rows.selector != 0) {
      CopyAsync(entries_.Data() + base, alternate.Data(), n);
    }
  }
  Synchronize();  // the second half goes
}

void AddEntries(CsrView const& table, std::uint32_t* counts) {
  constexpr std::uint64_t kMaxBlocks = 2048;
  auto grid = std::min(kMaxBlocks, CeilDiv(table.n_rows, kCountThreads / 32));
  Launch("CountEntries", CountEntriesKernel, grid, kCountThreads, table, counts);
}

std::vector<std::uint32_t> RowTable::CountEntries() const {
  DeviceBuffer<std::uint32_t> counts{"entries of columns"};
  ZeroAsync(counts.Reserve(view_.n_features), view_.n_features);
  AddEntries(view_, counts.Data());
  return ToHost(counts.Data(), view_.n_features);
}

void RowTable::Release() {
  copier_.reset();
  row_offsets_.Release();
  entries_.Release();
}

void ForEachPart(CsrView const& table, EntryIdx at_once,
                 std::function<void(CsrView const&, RowIdx)> const& fn, RowIdx first_row) {
  if (table.pages != nullptr) {
    table.pages->ForEach([&](CsrView const& page, RowIdx first_of_page) {
      ForEachPart(
          page, at_once,
          [&](CsrView const& rows, RowIdx first) { fn(rows, first_of_page + first); },
          first_row + first_of_page);
    });
    return;
  }
  constexpr RowIdx kAligned = 32;  // rows of a warp, which write a sector of memory together
  EntryIdx const sorted_at_once = at_once / 8;
  RowTable rows;
  if (table.memory == Memory::kDevice || table.n_entries <= at_once) {
    rows.Load(table, first_row, sorted_at_once);
    fn(rows.View(), 0);
    Synchronize();
    return;
  }
  std::vector<EntryIdx> offsets;
  for (RowIdx first = 0; first < table.n_rows;) {
    EntryIdx const base = table.offsets[first];
    auto const* past = std::upper_bound(table.offsets + first + 1, table.offsets + table.n_rows + 1,
                                        base + at_once);
    auto n_rows = std::max(static_cast<RowIdx>(past - table.offsets) - 1 - first, RowIdx{1});
    if (n_rows > kAligned && first + n_rows != table.n_rows) {
      n_rows = n_rows / kAligned * kAligned;
    }
    offsets.assign(table.offsets + first, table.offsets + first + n_rows + 1);
    for (EntryIdx& offset : offsets) {
      offset -= base;
    }
    rows.Load({offsets.data(), table.entries + base, offsets.back(), n_rows, table.n_features,
               Memory::kHost},
              first_row + first, sorted_at_once);
    fn(rows.View(), first);
    first += n_rows;
  }
  Synchronize();  // the rows go
}
}  // namespace gpu_exact
