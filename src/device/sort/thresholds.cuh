/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Turns the best candidate of each node into its split: feature, threshold, direction.
 */
#pragma once

#include "device/sort/column_finder.cuh"

namespace gpu_exact {
/**
 * @brief Write what the host wants to know of every node. Does not wait.
 *
 * A candidate lies before a value; the threshold needs the value that the node has below it, which
 * is looked up here, once a node. grid: one warp a node.
 *
 * @param tiles Their sums are those of the level's nodes.
 * @param out   shape: (n_nodes), by node
 * @param out_first_right The first value id that goes right, which may be past the last one, of nodes with
 *                        a split; shape: (n_nodes).
 */
void FindThresholds(LevelRef const& lv, TilesRef const& tiles, RowNodesRef const& rows,
                    LevelResult* out, std::uint64_t* out_first_right);
}  // namespace gpu_exact
