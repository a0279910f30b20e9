/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds a long row of bits, and how many are set before each.
 */
#pragma once

#include "device/runtime/runtime.cuh"
#include "plan/bin_layout.h"

namespace gpu_exact {
/** @brief Holds 32 bits, and how many of all lower ones are set. */
struct alignas(8) RankWord {
  std::uint32_t bits;
  std::uint32_t n_before;

  [[nodiscard]] __device__ bool Has(std::uint32_t i) const { return (bits >> i % 32 & 1u) != 0; }
  /** @brief Count the set bits before this one. */
  [[nodiscard]] __device__ std::uint32_t Rank(std::uint32_t i) const {
    return n_before + __popc(bits & ((1u << i % 32) - 1));
  }
};

/** @brief Lends the bits to kernels. */
struct RankBitVectorRef {
  RankWord* words;

  [[nodiscard]] __device__ std::uint32_t Rank(std::uint64_t i) const {
    return words[i / 32].Rank(static_cast<std::uint32_t>(i % 32));
  }
};

/** @brief Owns the bits. Memory: 1/4 B a bit. */
class RankBitVector {
 public:
  explicit RankBitVector(char const* what) : words_{what} {}

  /** @brief Make room for n bits and one position more; content is lost where it grows. */
  RankBitVectorRef Reserve(std::uint64_t n) { return {words_.Reserve(NumRankWords(n))}; }
  void ClearAsync(std::uint64_t n) { ZeroAsync(words_.Data(), NumRankWords(n)); }
  /** @brief Count what is set before each of n bits and their end. Does not wait. */
  void Count(std::uint64_t n);
  [[nodiscard]] RankBitVectorRef Ref() const { return {words_.Data()}; }

 private:
  DeviceBuffer<RankWord> words_;
  unsigned max_blocks_{0};  // of a cluster that counts; 0: not asked yet
};
}  // namespace gpu_exact
