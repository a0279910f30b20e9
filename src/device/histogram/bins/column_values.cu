/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements column_values.cuh.
 */
#include <algorithm>
#include <numeric>
#include <utility>

#include "device/histogram/bins/column_values.cuh"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
namespace {
constexpr unsigned kTileRows = 32;
constexpr unsigned kTileColumns = 64;
constexpr unsigned kTileThreads = 256;
constexpr unsigned kTileWarps = kTileThreads / 32;

// grid: 32 rows a block; they pass through shared memory 64 columns at a time, so that a warp writes
// 32 rows of a column side by side; counts: added to
__global__ __launch_bounds__(kTileThreads) void WriteColumnsKernel(CsrView table, RowIdx first_row,
                                                                   float* const* columns,
                                                                   std::uint32_t* counts) {
  WaitForPreviousKernel();
  constexpr unsigned kRowsOfWarp = kTileRows / kTileWarps;
  __shared__ float tile[kTileColumns][kTileRows + 1];
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  RowIdx const begin = blockIdx.x * kTileRows;
  EntryIdx next[kRowsOfWarp];  // entry of each row of the warp
  EntryIdx end[kRowsOfWarp];
#pragma unroll
  for (unsigned k = 0; k < kRowsOfWarp; ++k) {
    RowIdx const row = begin + warp * kRowsOfWarp + k;
    next[k] = row < table.n_rows ? table.offsets[row] : 0;
    end[k] = row < table.n_rows ? table.offsets[row + 1] : 0;
  }
  for (FeatureIdx base = 0; base < table.n_features; base += kTileColumns) {
#pragma unroll
    for (unsigned k = 0; k < kRowsOfWarp; ++k) {
      unsigned const r = warp * kRowsOfWarp + k;
      for (unsigned c = lane; c < kTileColumns; c += 32) {
        tile[c][r] = NAN;
      }
      __syncwarp();
      unsigned taken{0};
      do {
        EntryIdx const i = next[k] + lane;
        CsrEntry const e = i < end[k] ? table.entries[i] : CsrEntry{table.n_features, 0.0f};
        // Features ascend: those of the tile come first.
        bool const takes = i < end[k] && e.feature - base < kTileColumns;
        if (takes) {
          tile[e.feature - base][r] = e.value == 0.0f ? 0.0f : e.value;  // never -0
        }
        taken = __popc(__ballot_sync(kAllLanes, takes));
        next[k] += taken;
      } while (taken == 32);
    }
    __syncthreads();
    FeatureIdx const n_columns = min(kTileColumns, table.n_features - base);
    for (FeatureIdx c = warp; c < n_columns; c += kTileWarps) {
      float* const to = columns[base + c];
      if (to != nullptr) {
        bool const has_row = begin + lane < table.n_rows;
        float const value = tile[c][lane];
        if (has_row) {
          to[first_row + begin + lane] = value;
        }
        unsigned const n = __popc(__ballot_sync(kAllLanes, has_row && !isnan(value)));
        if (lane == 0 && n != 0) {
          atomicAdd(counts + base + c, n);
        }
      }
    }
    __syncthreads();  // the tile is written again
  }
}
}  // namespace

ColumnValues::ColumnValues(CsrView const& table, std::vector<bool> const& kept, Memory at,
                           EntryIdx at_once, std::uint64_t part)
    : at_{at}, n_rows_{table.n_rows}, n_features_{table.n_features} {
  auto const n_kept = static_cast<std::uint64_t>(std::count(kept.cbegin(), kept.cend(), true));
  part = part == 0 ? PartOf(n_kept * n_rows_) : part;
  of_part_ = std::max<std::uint64_t>(1, part / std::max(n_rows_, 1u));
  for (std::uint64_t first = 0; first < n_kept; first += of_part_) {
    parts_.emplace_back("values by column", at_);
    parts_.back().Reserve(std::min(of_part_, n_kept - first) * n_rows_);
  }
  this->Place(kept);
  DeviceBuffer<std::uint32_t> counts{"entries of columns"};
  ZeroAsync(counts.Reserve(n_features_), n_features_);
  if (n_kept != 0) {
    ForEachPart(table, at_once, [&](CsrView const& rows, RowIdx first_row) {
      Launch("WriteColumns", WriteColumnsKernel, CeilDiv(rows.n_rows, kTileRows), kTileThreads,
             rows, first_row, columns_.Data(), counts.Data());
    });
  }
  n_entries_ = ToHost(counts.Data(), n_features_);
}

void ColumnValues::Place(std::vector<bool> const& kept) {
  std::uint64_t n{0};
  h_columns_.clear();
  for (bool const is_kept : kept) {
    h_columns_.push_back(is_kept ? this->KeptColumn(n) : nullptr);
    n += is_kept ? 1 : 0;
  }
  CopyFromHost(columns_.Reserve(n_features_), h_columns_.data(), n_features_);
}

void ColumnValues::Keep(std::vector<bool> const& kept) {
  std::uint64_t n{0};
  for (FeatureIdx f = 0; f < n_features_; ++f) {
    if (kept[f]) {
      float* const to = this->KeptColumn(n++);
      if (to != h_columns_[f]) {  // towards the begin, where nothing is wanted any more
        CopyAsync(to, h_columns_[f], n_rows_);
      }
    }
  }
  Synchronize();
  parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(CeilDiv(n, of_part_)), parts_.end());
  std::uint64_t const n_last = parts_.empty() ? 0 : (n - (parts_.size() - 1) * of_part_) * n_rows_;
  if (n_last * sizeof(float) < (parts_.empty() ? 0 : parts_.back().Bytes())) {
    PlacedBuffer<float> exact{"values by column", at_};
    CopyAsync(exact.Reserve(n_last), parts_.back().Data(), n_last);
    Synchronize();
    std::swap(parts_.back(), exact);
  }
  this->Place(kept);
}

std::uint64_t ColumnValues::ValueBytes() const {
  return std::accumulate(parts_.cbegin(), parts_.cend(), std::uint64_t{0},
                         [](std::uint64_t sum, auto const& part) { return sum + part.Bytes(); });
}
}  // namespace gpu_exact
