/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Sets the device of exact boosters that name none.
 */
#pragma once

#include <string>

namespace gpu_exact {
/**
 * @brief Choose it for boosters that are configured from now on. At first it is `cpu`, as XGBoost's.
 *
 * @param device `cpu`, `cuda` or `cuda:<ordinal>`; throws std::invalid_argument for anything else.
 */
void SetDefaultDevice(std::string const& device);

/** @brief Give its CUDA ordinal; negative: it is the CPU. */
[[nodiscard]] int DefaultOrdinal();
}  // namespace gpu_exact
