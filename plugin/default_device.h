/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The device of exact boosters that name none.
 */
#pragma once

#include <xgboost/context.h>

#include <string>

namespace gpu_exact {
/**
 * @brief Choose it for boosters that are configured from now on. At first it is `cpu`, as XGBoost's.
 *
 * @param device `cpu`, `cuda` or `cuda:<ordinal>`; throws std::invalid_argument for anything else.
 */
void SetDefaultDevice(std::string const& device);

/**
 * @brief Move a learner's context from the CPU to the default device.
 *
 * Does nothing where that GPU is not usable, and warns once where XGBoost is built without CUDA.
 *
 * @param ctx A member of a learner: only this view of it is constant.
 */
void MoveToDefaultDevice(xgboost::Context const* ctx);
}  // namespace gpu_exact
