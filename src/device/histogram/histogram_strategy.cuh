/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Declares the strategy of histograms that bound the gain: only ranges of values that may win are
 *        searched exactly.
 */
#pragma once

#include <memory>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/rows/row_partitioner.cuh"
#include "device/level/split_strategy.cuh"

namespace gpu_exact {
/**
 * @param memory     What the table keeps, and where.
 * @param max_sorted The most rows of a node that is sorted; capped by what a block can sort, which is the
 *                   default.
 * @param min_by_row The fewest rows of a table that are sent left or right in their own order.
 */
[[nodiscard]] std::unique_ptr<SplitStrategy> MakeHistogramStrategy(
    std::unique_ptr<BinnedTable> table, HistogramMemory const& memory, RowIdx max_sorted = ~0u,
    RowIdx min_by_row = kMinByRow);
}  // namespace gpu_exact
