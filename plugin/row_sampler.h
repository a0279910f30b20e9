/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Row sampling as `grow_colmaker` does it.
 */
#pragma once

#include <xgboost/base.h>
#include <xgboost/context.h>

#include <cstdint>
#include <vector>

namespace gpu_exact {
/**
 * @brief Draw the rows of one tree.
 *
 * A draw takes two words of the generator for every row but the deleted ones (negative hessian), in
 * the order of rows; that makes it serial by nature.
 *
 * @return shape: (n_rows), 0 for a row left out.
 */
[[nodiscard]] std::vector<std::uint8_t> SampleRows(
    std::vector<xgboost::GradientPair> const& gradients, float subsample,
    xgboost::RandomEngine* rng);
}  // namespace gpu_exact
