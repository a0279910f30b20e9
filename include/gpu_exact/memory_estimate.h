/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Estimates the device memory of a builder before there is one.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief Name a strategy as a user writes it: "sort", "histogram"; "" for kAuto. */
[[nodiscard]] char const* NameOf(Strategy strategy);

/**
 * @brief Estimate, as JSON: of each strategy the bytes of every array at every stage, the peak, and
 *        the least that it can do with, as much as can be in the host's memory. Of the kind of GPU
 *        that takes most.
 *
 * {"sort": {"peak": 1, "least": 1,
 *           "stages": {"reading": {"table by row": 1}, "sorting": {}, "growing": {}}},
 *  "histogram": ...}
 *
 * @param max_depth    The depth of the trees; 0: no limit.
 * @param n_categories How many each categorical column has: one more than its greatest code.
 * @throw std::invalid_argument for sizes that no table has.
 */
[[nodiscard]] std::string MemoryEstimate(std::uint64_t n_rows, std::uint64_t n_features,
                                         std::uint64_t n_entries, std::int32_t max_depth,
                                         std::vector<std::uint32_t> const& n_categories = {});
}  // namespace gpu_exact
