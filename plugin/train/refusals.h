/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Refuses what exact tree building cannot do, in XGBoost's order and wording, with the
 *        remedy.
 */
#pragma once

#include <xgboost/data.h>
#include <xgboost/gradient.h>
#include <xgboost/tree_model.h>

#include <string>
#include <vector>

#include "src/tree/param.h"

namespace gpu_exact {
/** @brief Throws dmlc::Error for what neither the GPU nor XGBoost's own exact builder can do. */
void RefuseUnsupported(xgboost::tree::TrainParam const& param,
                       xgboost::GradientContainer const& gradients, xgboost::DMatrix const& data,
                       std::vector<xgboost::RegTree*> const& trees);

/** @brief Say why XGBoost's own builder grows such trees, in one sentence; empty where the GPU does. */
std::string WhyNotOnGpu(xgboost::tree::TrainParam const& param);

/**
 * @brief Say what of a tree only the GPU can do, with the remedy; empty where there is nothing.
 *
 * @param reason Why the GPU is not used: a sentence.
 */
std::string WhyNotOnCpu(xgboost::tree::TrainParam const& param, xgboost::DMatrix const& data,
                        std::string const& reason);
}  // namespace gpu_exact
