/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Counts the categories of categorical features: their codes are 0 to the greatest one of the
 *        table, also those that no row has.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/column_values.cuh"

namespace gpu_exact {
/**
 * @brief Count the categories of each feature; 0 where it is numerical, or has no entries. Waits.
 * @param table The table, as bins are made of it.
 * @param view  The same, with the types of features.
 * @throw InvalidCategory for the first value, by row and feature, that is none.
 */
[[nodiscard]] std::vector<std::uint32_t> CountCategories(TableSource const& table,
                                                         CsrView const& view);
}  // namespace gpu_exact
