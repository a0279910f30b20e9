/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Turns the best candidate of each node into its split: feature, threshold, direction.
 */
#pragma once

#include "device/sort/interleaved_finder.cuh"
#include "device/sort/segmented_finder.cuh"

namespace gpu_exact {
/**
 * @brief Write what the host wants to know of every node of the level. Does not wait.
 *
 * A candidate lies before a value; the threshold needs the value that the node has below it, which
 * is looked up here, once a node. grid: one warp a node.
 *
 * @param out shape: (n_nodes), by node
 */
void FindThresholds(LevelRef const& level, InterleavedRef const& in, LevelResult* out);
void FindThresholds(LevelRef const& level, EntriesRef const& entries, NodeRangesRef const& ranges,
                    LevelResult* out);
}  // namespace gpu_exact
