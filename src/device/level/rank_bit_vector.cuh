/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Holds a long row of bits, and how many are set before each.
 */
#pragma once

#include "device/level/rows_ref.cuh"
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
  /** @brief Write the word that a warp's bits are. All lanes, i their own and consecutive. */
  __device__ void WriteWord(std::uint64_t i, bool is_set) const {
    EXACT_DEVICE_CHECK(i % 32 == threadIdx.x % 32);
    std::uint32_t const bits = __ballot_sync(kAllLanes, is_set);
    if (threadIdx.x % 32 == 0) {
      words[i / 32] = {bits, 0};
    }
  }
};

/** @brief Names ranges of bits, and where to write how many of each are set. */
struct BitRanges {
  RowRange const* ranges{nullptr};  // they end at the end of all bits at most
  LevelNode n{0};
  RowIdx* n_set{nullptr};
};

/** @brief Owns the bits. Memory: 1/4 B a bit. */
class RankBitVector {
 public:
  explicit RankBitVector(char const* what) : words_{what} {}

  /** @brief Make room for n bits and one position more; content is lost where it grows. */
  RankBitVectorRef Reserve(std::uint64_t n) { return {words_.Reserve(NumRankWords(n))}; }
  void ClearAsync(std::uint64_t n) { ZeroAsync(words_.Data(), NumRankWords(n)); }
  /**
   * @brief Count what is set before each of n bits and their end. Does not wait.
   * @param ranges Get how many of their bits are set.
   */
  void Count(std::uint64_t n, BitRanges const& ranges = {});
  [[nodiscard]] RankBitVectorRef Ref() const { return {words_.Data()}; }

 private:
  DeviceBuffer<RankWord> words_;
  unsigned max_blocks_{0};  // of a cluster that counts; 0: not asked yet
};
}  // namespace gpu_exact
