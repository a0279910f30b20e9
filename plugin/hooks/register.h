/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes the plugin's entries in XGBoost's registries.
 */
#pragma once

namespace gpu_exact {
/**
 * @brief Register `grow_gpu_exact`, and what stands in for XGBoost's `prune` and `gbtree`. To be
 *        called once, when XGBoost is bound.
 */
void Register();
}  // namespace gpu_exact
