/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Names a node of the level that is searched in one resolution.
 */
#pragma once

#include "device/level/rows_ref.cuh"

namespace gpu_exact {
struct SearchedNode {
  static constexpr std::uint32_t kNoHistogram = 0xffffffffu;

  RowRange rows;
  LevelNode level_node;
  std::uint32_t histogram;  // its first bin in the pool, or kNoHistogram
};
}  // namespace gpu_exact
