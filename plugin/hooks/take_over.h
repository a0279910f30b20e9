/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Decides who answers for `grow_colmaker`, the updater of `tree_method="exact"`.
 */
#pragma once

namespace gpu_exact {
/**
 * @brief Take over, or give back to XGBoost's own updater. Boosters that are configured already
 *        keep the updater they have.
 */
void TakeOver(bool enable);
[[nodiscard]] bool IsTakenOver();
}  // namespace gpu_exact
