/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Names a node of the level that is searched in one resolution; sums the rows of its slots.
 */
#pragma once

#include <thrust/iterator/transform_iterator.h>

#include "device/level/rows_ref.cuh"

namespace gpu_exact {
struct SearchedNode {
  static constexpr std::uint32_t kNoHistogram = 0xffffffffu;

  RowRange rows;
  LevelNode level_node;
  std::uint32_t histogram;  // its first bin in the pool, or kNoHistogram
};

/** @brief Reads the gradients of a slot. */
struct SumOfSlot {
  GradientUnits const* units;
  __device__ FixedSum operator()(RowIdx slot) const { return units[slot].Fixed(); }
};
using SlotSums = thrust::transform_iterator<SumOfSlot, RowIdx const*, FixedSum, FixedSum>;
}  // namespace gpu_exact
