/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Noticing that XGBoost went on with `hist` where a user had named `grow_gpu_exact`.
 *
 * XGBoost takes the parameter `updater` from the parameters set last alone: when others are set
 * later, or a configuration is loaded, it destroys the updaters named before and makes those of
 * `tree_method` in their place, without a word.
 */
#pragma once

#include <xgboost/context.h>

namespace gpu_exact {
/** @brief An updater that a user named is destroyed. The context may be gone: it is not read. */
void NoteDropped(xgboost::Context const* ctx);

/** @brief From now on a `hist` updater made in the place of one dropped warns when it trains. */
void WatchHist();
}  // namespace gpu_exact
