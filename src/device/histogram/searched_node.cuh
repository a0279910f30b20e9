/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief A node of the level that is searched in one resolution.
 */
#pragma once

#include "src/device/histogram/rows_ref.cuh"

namespace gpu_exact {
struct SearchedNode {
  static constexpr std::uint32_t kNoSlot = 0xffffffffu;

  RowRange rows;
  Bucket bucket;
  std::uint32_t slot;  // of its kept histogram, or kNoSlot
};
}  // namespace gpu_exact
