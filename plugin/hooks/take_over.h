/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Who answers for `grow_colmaker`, the updater of `tree_method="exact"`.
 */
#pragma once

namespace gpu_exact {
/**
 * @brief This plugin, or XGBoost's own updater again. Boosters that are configured already keep the
 *        updater they have.
 */
void TakeOver(bool enable);
[[nodiscard]] bool IsTakenOver();
}  // namespace gpu_exact
