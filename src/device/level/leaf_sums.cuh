/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Sums the gradients of the leaves of a grown tree, each in fixed point of its own.
 *
 * A tree's sums share a unit, made for all rows. Where some leaves have rows so light that they keep
 * few bits of it, these leaves are added up once more, by units made for the rows of each.
 */
#pragma once

#include <vector>

#include "device/level/training_rows.cuh"

namespace gpu_exact {
/**
 * @brief Sum the trained rows of each leaf; the result does not depend on the order. Waits.
 * @param positions The leaf of every row, encoded as by EncodePosition. Device memory.
 * @param n_nodes   How many nodes the tree has.
 * @return shape: (n_nodes), zero for nodes without rows.
 */
[[nodiscard]] std::vector<GradientSum> SumLeaves(TrainingRows const& rows, NodeIdx const* positions,
                                                 std::size_t n_nodes);
}  // namespace gpu_exact
