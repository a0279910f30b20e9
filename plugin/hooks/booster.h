/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes `tree_method="exact"` and `device="cuda"` go together, for XGBoost's tree booster.
 *
 * XGBoost refuses the two in `GBTree::Configure`, and forgets an explicit `updater` there when
 * other parameters are set later. A booster that is made from now on is one of ours, which owns
 * XGBoost's and hands every call on, see booster.cc. One that was made before stays as it was, and
 * until IsTakenOver() all are refused.
 */
#pragma once

namespace gpu_exact {
/** @brief Answer for `gbtree` in XGBoost's registry of boosters. To be called once. */
void RegisterBooster();
}  // namespace gpu_exact
