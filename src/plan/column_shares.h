/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Decides which worker searches which columns of a table.
 */
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_exact/types.h"

namespace gpu_exact {
/**
 * @brief Choose the worker of each column, so that all have about as many entries: the longest
 *        column first, each to the worker with the fewest. Of columns as long as each other lower
 *        numbers come first; workers with as many entries take turns, which the golden ratio mixes.
 *
 * @param n_entries How many each column has. @return The workers, shape: (n_columns)
 */
[[nodiscard]] std::vector<std::int32_t> ShareColumns(std::vector<std::uint64_t> const& n_entries,
                                                     std::int32_t n_workers);
}  // namespace gpu_exact
