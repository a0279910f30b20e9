/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What exact tree building refuses, in XGBoost's order and wording, with the remedy.
 */
#pragma once

#include <xgboost/data.h>
#include <xgboost/gradient.h>
#include <xgboost/tree_model.h>

#include <vector>

#include "src/tree/param.h"

namespace gpu_exact {
/** @brief Throws dmlc::Error for what XGBoost's own exact builder refuses too. */
void RefuseUnsupported(xgboost::tree::TrainParam const& param,
                       xgboost::GradientContainer const& gradients, xgboost::DMatrix const& data,
                       std::vector<xgboost::RegTree*> const& trees);

/** @brief Throws dmlc::Error for a depth that only XGBoost's own exact builder takes. */
void RefuseDepth(xgboost::tree::TrainParam const& param);
}  // namespace gpu_exact
