/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What lies before an entry of a node that is being split: sums and counts by child.
 */
#pragma once

#include "src/quantise.h"

namespace gpu_exact {
/** @brief Of a run of entries of one node and feature. Joins with the run that follows it. */
struct SplitPrefix {
  static constexpr std::uint32_t kNewLeft = 1;   // a value begins after the last left entry
  static constexpr std::uint32_t kNewRight = 2;  // or after the last right one

  FixedSum left;         // of entries that go left
  FixedSum all;          // of all entries
  std::uint32_t n_left;  //
  std::uint32_t n;       // entries
  std::uint32_t flags;
  std::uint32_t unused;  // no padding: copied as a whole

  /** @brief Of no entry, at the beginning of a node's column: whatever follows is a new value. */
  __host__ __device__ static SplitPrefix Begin() {
    return {{0, 0}, {0, 0}, 0, 0, kNewLeft | kNewRight, 0};
  }
  /** @brief Of no entry: the neutral element. */
  __host__ __device__ static SplitPrefix None() { return {{0, 0}, {0, 0}, 0, 0, 0, 0}; }
};

/** @brief The sums of a prefix. */
struct SplitSums {
  FixedSum left;
  FixedSum all;

  __device__ friend SplitSums operator+(SplitSums const& a, SplitSums const& b) {
    return {a.left + b.left, a.all + b.all};
  }
};

struct SplitPrefixOp {
  __device__ SplitPrefix operator()(SplitPrefix const& a, SplitPrefix const& b) const {
    // A value that begins in a counts until b has an entry of the child.
    std::uint32_t keep = (b.n_left == 0 ? SplitPrefix::kNewLeft : 0) |
                         (b.n == b.n_left ? SplitPrefix::kNewRight : 0);
    return {a.left + b.left,
            a.all + b.all,
            a.n_left + b.n_left,
            a.n + b.n,
            b.flags | (a.flags & keep),
            0};
  }
};
}  // namespace gpu_exact
