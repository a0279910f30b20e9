/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lends the node of each row, and its gradients. Kernels gather them by entries: they stay in the
 *        L2 cache unless rows are very many.
 */
#pragma once

#include "core/level.h"
#include "core/platform.h"

namespace gpu_exact {
/** @brief Sets the bits of a LevelNode beside which a number has room for a column of a tile. */
inline constexpr int kNodeBits = 20;
/** @brief Stands for the node of rows that are in none of those that are searched. Its last bits, as many
 *         as tell these apart, are ones: it sorts behind them. */
inline constexpr LevelNode kNoLevelNode = (LevelNode{1} << kNodeBits) - 1;

struct RowNodesRef {
  NodeIdx const* positions;    // shape: (n_rows), encoded as by EncodePosition
  GradientUnits const* units;  // shape: (n_rows)
  NodeIdx first;               // of the nodes that are searched
  LevelNode n;                 // of these, up to kNoLevelNode where NodeOf() is asked

  [[nodiscard]] __device__ LevelNode NodeOf(RowIdx row) const {
    auto const level_node = static_cast<LevelNode>(positions[row] - first);
    return level_node < n ? level_node : kNoLevelNode;
  }
  /** @brief Lend some of the nodes. */
  [[nodiscard]] RowNodesRef Part(LevelNode from, LevelNode n_nodes) const {
    return {positions, units, first + static_cast<NodeIdx>(from), n_nodes};
  }
};
}  // namespace gpu_exact
