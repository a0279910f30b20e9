/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Hands trees over to XGBoost's own exact builder.
 */
#pragma once

#include <xgboost/context.h>
#include <xgboost/tree_updater.h>

#include <functional>
#include <vector>

#include "train/param.h"

namespace gpu_exact {
/** @brief Makes an updater, as XGBoost's registry stores it. */
using UpdaterFactory =
    std::function<xgboost::TreeUpdater*(xgboost::Context const*, xgboost::ObjInfo const*)>;

/**
 * @brief Grow trees by XGBoost's `grow_colmaker` on a CPU copy of the booster's context: trees,
 *        positions and random numbers are those of a booster whose first DMatrix is this one.
 *
 * By a new one each time: one that has grown trees before has kept what it knew of another DMatrix, or of
 * other constraints.
 */
void GrowByColMaker(
    UpdaterFactory const& colmaker, xgboost::Context const* ctx, xgboost::ObjInfo const* task,
    ColMakerParam const& colmaker_param, xgboost::tree::TrainParam const* param,
    xgboost::GradientContainer* gradients, xgboost::DMatrix* data,
    xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>> out_position,
    std::vector<xgboost::RegTree*> const& trees);
}  // namespace gpu_exact
