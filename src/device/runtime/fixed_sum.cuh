/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Adds sums in fixed point among threads: no order of addition changes them.
 */
#pragma once

#include "core/quantise.h"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
/** @brief Add by an atomic operation; zeros take no access. */
__device__ inline void AtomicAdd(FixedSum* sum, FixedSum const& value) {
  auto add = [](std::int64_t* to, std::int64_t x) {
    if (x != 0) {
      atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
    }
  };
  add(&sum->grad, value.grad);
  add(&sum->hess, value.hess);
}

// All lanes of a warp.
__device__ inline FixedSum ShuffleUp(FixedSum const& s, int step) {
  return {__shfl_up_sync(kAllLanes, s.grad, step), __shfl_up_sync(kAllLanes, s.hess, step)};
}
__device__ inline FixedSum Shuffle(FixedSum const& s, int lane) {
  return {__shfl_sync(kAllLanes, s.grad, lane), __shfl_sync(kAllLanes, s.hess, lane)};
}
__device__ inline FixedSum WarpSum(FixedSum const& s) { return {WarpSum(s.grad), WarpSum(s.hess)}; }
}  // namespace gpu_exact
