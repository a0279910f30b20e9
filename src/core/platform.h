/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Marks pure functions that kernels call too, so that g++ alone compiles and tests them; and
 *        ranges and bisection, which all of them share.
 */
#pragma once

#if defined(__CUDACC__)
#define GPU_EXACT_HD __host__ __device__
#else
#define GPU_EXACT_HD
#endif

namespace gpu_exact {
/** @brief Bounds a range: [begin, end). */
template <typename IndexT>
struct Range {
  IndexT begin;
  IndexT end;

  [[nodiscard]] GPU_EXACT_HD IndexT Size() const { return end - begin; }
};

/** @brief Find the first index in [begin, end) for which above(index) holds; above is monotone. */
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <typename IndexT, typename FnT>
GPU_EXACT_HD IndexT PartitionPoint(IndexT begin, IndexT end, FnT&& above) {
  while (begin < end) {
    IndexT mid = begin + (end - begin) / 2;
    if (above(mid)) {
      end = mid;
    } else {
      begin = mid + 1;
    }
  }
  return begin;
}
}  // namespace gpu_exact
