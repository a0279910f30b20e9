/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Calls a function of XGBoost, which is fine, and reads a variable, which is not.
 */
namespace xgboost {
extern int number;
int Function(int);
}  // namespace xgboost

int UsesData() { return xgboost::Function(xgboost::number); }
