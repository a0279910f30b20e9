/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lists the ranges of values in which a node's best split may yet lie: CLOUDS' alive
 *        intervals.
 */
#pragma once

#include "core/level.h"
#include "device/runtime/warp.cuh"
#include "plan/bin_layout.h"
#include "plan/histogram_memory.h"

namespace gpu_exact {
/** @brief Names a bin of a node that holds several values and may hold the best split. */
struct OpenRange {
  SearchedIdx node;
  std::uint32_t bin;    // of the resolution
  BinnedColumn column;  // of the resolution
  float bound;          // GainBound::Largest of what is inside
  FixedSum before;      // of the node's rows in the column's lower bins
  FixedSum present;     // of the node's rows with any value of the column
};

static_assert(sizeof(OpenRange) == HistogramMemory::kListedRangeBytes);

/** @brief Counts a list of open ranges; all zero before ranges are listed. */
struct OpenCounts {
  std::uint64_t n_listed;         // ranges, by the best candidates while they were listed
  std::uint64_t n_taken;          // listed ranges that teams took, beyond those dealt out
  unsigned long long n_scanned;   // entries of the table in ranges that are open still
  unsigned long long n_gathered;  // of these about how many are of rows in the ranges' nodes
  unsigned long long n_entries;   // of nodes, gathered; about how many where ranges are scanned
  std::uint32_t n_open;           // ranges whose entries are gathered
  std::uint32_t n_ended;          // blocks that have measured
};

/** @brief Lends a list of them to kernels. */
struct OpenRangesRef {
  OpenRange* list;
  OpenCounts* counts;  // n_listed may end beyond the capacity; what is beyond is not written
  std::uint32_t capacity;

  /** @brief Count the listed ranges, as far as there is room. */
  [[nodiscard]] __device__ std::uint32_t Size() const {
    return static_cast<std::uint32_t>(min(counts->n_listed, std::uint64_t{capacity}));
  }
  /** @brief Append by any lanes of a warp: those that come here together count as one. */
  __device__ void Append(OpenRange const& range) const {
    unsigned const lanes = __activemask();
    int const leader = __ffs(static_cast<int>(lanes)) - 1;
    unsigned long long first{0};
    if (static_cast<int>(threadIdx.x % 32) == leader) {
      first = atomicAdd(reinterpret_cast<unsigned long long*>(&counts->n_listed),
                        static_cast<unsigned long long>(__popc(lanes)));
    }
    std::uint64_t const at = __shfl_sync(lanes, first, leader) + __popc(lanes & LaneMaskLt());
    if (at < capacity) {
      list[at] = range;
    }
  }
};
}  // namespace gpu_exact
