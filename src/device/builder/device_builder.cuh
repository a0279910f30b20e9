/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares the level loop, which is the same for both strategies.
 */
#pragma once

#include <memory>

#include "device/level/split_strategy.cuh"
#include "device/workers/column_partition.cuh"

namespace gpu_exact {
/**
 * @brief Make a builder of trees by a strategy.
 * @param context   In whose scope the strategy was made.
 * @param n_rows    How many rows the whole table has.
 * @param stats     What is known before the first tree.
 * @param partition What the strategy holds of the table; nullptr: all of it.
 */
[[nodiscard]] std::unique_ptr<TreeBuilder> MakeTreeBuilder(
    std::shared_ptr<DeviceContext> context, RowIdx n_rows, std::unique_ptr<SplitStrategy> strategy,
    TreeStats const& stats = {}, std::unique_ptr<ColumnPartition> partition = nullptr);
}  // namespace gpu_exact
