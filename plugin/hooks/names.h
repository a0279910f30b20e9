/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lists names of updaters in XGBoost's registry.
 */
#pragma once

namespace gpu_exact {
inline constexpr char const* kOwnName = "grow_gpu_exact";
inline constexpr char const* kColMakerName = "grow_colmaker";  // XGBoost's own exact builder
}  // namespace gpu_exact
