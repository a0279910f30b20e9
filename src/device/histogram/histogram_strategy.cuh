/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares the strategy of histograms that bound the gain: only ranges of values that may win are
 *        searched exactly.
 */
#pragma once

#include <memory>

#include "device/histogram/bins/binned_table.cuh"
#include "device/level/split_strategy.cuh"

namespace gpu_exact {
/**
 * @param memory     What the table keeps, and where.
 * @param max_sorted The most rows of a node that is sorted; capped by what a block can sort, which is the
 *                   default.
 */
[[nodiscard]] std::unique_ptr<SplitStrategy> MakeHistogramStrategy(
    std::unique_ptr<BinnedTable> table, HistogramMemory const& memory, RowIdx max_sorted = ~0u);
}  // namespace gpu_exact
