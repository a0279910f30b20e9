/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Computes weights, gains and bounds of a level's nodes from their gradient sums.
 */
#pragma once

#include "device/level/level.cuh"

namespace gpu_exact {
/**
 * @brief Decide how every column is searched, complete the root's state, whose sum is written, and begin its
 *        best candidate. Does not wait.
 * @param monotone  By feature, or nullptr.
 * @param to_beat   CandidateKey that a candidate must beat.
 * @param out_rules The root's, to be written.
 */
void CompleteRoot(GrowParam const& param, std::int32_t const* monotone, std::uint64_t to_beat,
                  FeatureRule* out_rules, Level* root);

/**
 * @brief Complete the children's states, whose sums are written, and begin their best candidates. Does
 *        not wait.
 * @param node_splits The splits of the level, device memory.
 * @param monotone    The constraint of each feature, or nullptr.
 */
void CompleteChildren(Level const& level, NodeSplit const* node_splits,
                      std::int32_t const* monotone, std::uint64_t to_beat, Level* children);
}  // namespace gpu_exact
