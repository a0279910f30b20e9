/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Packs a column and a value into one integer, so that sorting the one sorts by the other.
 */
#pragma once

#include <cstdint>

#include "device/runtime/runtime.cuh"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Make a float an unsigned integer of the same order; the two zeros are one. */
__device__ inline std::uint32_t RadixKey(float value) {
  auto bits = __float_as_uint(value == 0.0f ? 0.0f : value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ inline float FromRadixKey(std::uint32_t bits) {
  return __uint_as_float((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

/** @brief Packs a column in the upper half, RadixKey() in the lower. */
struct ValueKey {
  __device__ static std::uint64_t Make(std::uint32_t column, std::uint32_t radix_key) {
    return (static_cast<std::uint64_t>(column) << 32) | radix_key;
  }
  __device__ static std::uint64_t Column(std::uint64_t key) { return key >> 32; }
  __device__ static float Value(std::uint64_t key) {
    return FromRadixKey(static_cast<std::uint32_t>(key));
  }
  /** @brief Tell whether a pair is met first, among sorted keys. */
  __device__ static bool IsFirst(std::uint64_t const* keys, std::uint64_t i) {
    return i == 0 || keys[i] != keys[i - 1];
  }
  /** @brief Count the bits that differ among keys of n_columns columns. */
  static int NumBits(std::uint32_t n_columns) { return 32 + BitsBelow(n_columns); }
};
}  // namespace gpu_exact
