/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Sums in fixed point among threads: no order of addition changes them.
 */
#pragma once

#include "src/device/runtime.cuh"
#include "src/quantise.h"

namespace gpu_exact {
__device__ inline void AtomicAdd(FixedSum* sum, FixedSum const& value) {
  using U = unsigned long long;
  atomicAdd(reinterpret_cast<U*>(&sum->grad), static_cast<U>(value.grad));
  atomicAdd(reinterpret_cast<U*>(&sum->hess), static_cast<U>(value.hess));
}

// All lanes of a warp.
__device__ inline FixedSum ShuffleUp(FixedSum const& s, int step) {
  return {__shfl_up_sync(kAllLanes, s.grad, step), __shfl_up_sync(kAllLanes, s.hess, step)};
}
__device__ inline FixedSum Shuffle(FixedSum const& s, int lane) {
  return {__shfl_sync(kAllLanes, s.grad, lane), __shfl_sync(kAllLanes, s.hess, lane)};
}
__device__ inline FixedSum ShuffleXor(FixedSum const& s, int step) {
  return {__shfl_xor_sync(kAllLanes, s.grad, step), __shfl_xor_sync(kAllLanes, s.hess, step)};
}
}  // namespace gpu_exact
