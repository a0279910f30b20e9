/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Combines values of the lanes of a warp. All 32 take part.
 */
#pragma once

#include <cstdint>

#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Set one bit for each lane before this one. */
__device__ inline std::uint32_t LaneMaskLt() { return (1u << threadIdx.x % 32) - 1; }

template <typename T>
__device__ T WarpSum(T value) {
  for (int step = 16; step > 0; step /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, step);
  }
  return value;
}
__device__ inline std::uint32_t WarpSum(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAllLanes, value);
#else
  return WarpSum<std::uint32_t>(value);
#endif
}

template <typename T>
__device__ T WarpMax(T value) {
  for (int step = 16; step > 0; step /= 2) {
    value = max(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}

__device__ inline std::uint32_t WarpMin(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kAllLanes, value);
#else
  for (int step = 16; step > 0; step /= 2) {
    value = min(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
#endif
}

__device__ inline std::uint32_t ShuffleUp(std::uint32_t value, int step) {
  return __shfl_up_sync(kAllLanes, value, step);
}
/** @brief Sum the lanes up to this one, its own included. */
template <typename T>
__device__ T WarpInclusiveSum(T value) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    T const below = ShuffleUp(value, step);
    value = threadIdx.x % 32 >= step ? value + below : value;
  }
  return value;
}

/** @brief Combine all lanes' bits by or. */
__device__ inline std::uint32_t WarpOr(std::uint32_t bits) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(kAllLanes, bits);
#else
  for (int step = 16; step > 0; step /= 2) {
    bits |= __shfl_xor_sync(kAllLanes, bits, step);
  }
  return bits;
#endif
}
}  // namespace gpu_exact
