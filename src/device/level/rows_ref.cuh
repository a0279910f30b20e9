/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lends rows in the order of the live nodes to kernels.
 */
#pragma once

#include "core/level.h"
#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Holds the number of a node in two bytes, so that those of 20 million rows stay in the cache. */
using ShortLevelNode = std::uint16_t;
inline constexpr ShortLevelNode kNowhere = 0xffffu;
/** @brief Lends the trained rows of the live nodes to kernels, node by node, those of a node in any order. */
struct RowsRef {
  RowIdx const* rows;          // the row in each slot
  GradientUnits const* units;  // and its gradients
  RowRange const*
      nodes;  // slots of each live node, by node, shape: (n_nodes); with gaps where leaves were
  // For those who come from sorted columns, by row of the table, not by slot:
  ShortLevelNode const* node_of;  // the number of the row's node; kNowhere: it is in no live one;
                                  // nullptr: there are more nodes than numbers
  LevelNode const* numbers;       // of the live nodes, shape: (n_nodes)
  GradientUnits const* units_of_row;
  bool are_all;  // whether one live node has every row of the table
};
}  // namespace gpu_exact
