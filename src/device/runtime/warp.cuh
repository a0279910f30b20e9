/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Combines values of the lanes of a warp. All 32 take part.
 */
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdint>

#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Set one bit for each lane before this one. */
__device__ inline std::uint32_t LaneMaskLt() { return (1u << threadIdx.x % 32) - 1; }

/** @brief Name the lanes that this thread is one of; blocks have one dimension. */
__device__ inline auto ThisWarp() {
  return cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
}

/** @brief Combine all lanes' values by op(a, b), whose order does not matter. */
template <typename T, typename FnT>
__device__ T WarpReduce(T const& value, FnT&& op) {
  return cooperative_groups::reduce(ThisWarp(), value, op);
}
template <typename T>
__device__ T WarpSum(T const& value) {
  return cooperative_groups::reduce(ThisWarp(), value, cooperative_groups::plus<T>{});
}
template <typename T>
__device__ T WarpMax(T value) {
  return cooperative_groups::reduce(ThisWarp(), value, cooperative_groups::greater<T>{});
}
template <typename T>
__device__ T WarpMin(T value) {
  return cooperative_groups::reduce(ThisWarp(), value, cooperative_groups::less<T>{});
}
/** @brief Sum the lanes up to this one, its own included. */
template <typename T>
__device__ T WarpInclusiveSum(T const& value) {
  return cooperative_groups::inclusive_scan(ThisWarp(), value, cooperative_groups::plus<T>{});
}
/** @brief Combine all lanes' bits by or. */
__device__ inline std::uint32_t WarpOr(std::uint32_t bits) {
  return cooperative_groups::reduce(ThisWarp(), bits, cooperative_groups::bit_or<std::uint32_t>{});
}
}  // namespace gpu_exact
