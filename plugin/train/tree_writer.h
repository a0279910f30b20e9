/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Writes a grown tree as XGBoost stores it.
 */
#pragma once

#include <xgboost/tree_model.h>

#include <vector>

#include "gpu_exact/tree_builder.h"
#include "src/tree/param.h"

namespace gpu_exact {
/**
 * @brief Fill an empty tree: every array as `grow_colmaker` leaves it, categories as `hist` does.
 * @param will_prune Whether PruneTree() follows: what it makes a leaf is written without categories,
 *                   which a leaf would keep.
 */
void WriteTree(GrownTree const& grown, xgboost::tree::TrainParam const& param, bool will_prune,
               xgboost::RegTree* tree);

/**
 * @brief Take back splits that gain less than `gamma`, from the leaves up, as XGBoost's updater
 *        `prune` does.
 *
 * @return For every node the one that its rows are in now; empty where nothing was pruned.
 */
[[nodiscard]] std::vector<NodeIdx> PruneTree(xgboost::tree::TrainParam const& param,
                                             xgboost::RegTree* tree);
}  // namespace gpu_exact
