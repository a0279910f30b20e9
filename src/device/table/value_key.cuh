/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes integers of values that sort as these do: of a value, of one in the direction of a scan, of a
 *        column and a value.
 */
#pragma once

#include <cstdint>

#include "core/split.h"
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

/** @brief Makes values whole numbers that order as a scan meets them: less is met first. */
struct ScanValue {
  static constexpr std::uint32_t kNone = 0xffffffffu;  // a NaN has these bits, no value does

  [[nodiscard]] __device__ static std::uint32_t Make(ScanDirection d, float value) {
    std::uint32_t const bits = RadixKey(value);
    return d == ScanDirection::kForward ? bits : ~bits;
  }
  [[nodiscard]] __device__ static float Read(ScanDirection d, std::uint32_t scan_value) {
    return FromRadixKey(d == ScanDirection::kForward ? scan_value : ~scan_value);
  }
};

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

/** @brief Gives 1 where a (column, value) pair is met first among sorted keys, else 0. */
struct BeginsValue {
  std::uint64_t const* keys;
  __device__ std::uint32_t operator()(std::uint64_t i) const {
    return ValueKey::IsFirst(keys, i) ? 1 : 0;
  }
};
}  // namespace gpu_exact
