/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Counts the categories of categorical features: their codes are 0 to the greatest one of the
 *        table, also those that no row has. Likewise the entries of columns, which the memory plan is told.
 */
#pragma once

#include <vector>

#include "gpu_exact/types.h"
#include "plan/bin_bound.h"
#include "plan/histogram_memory.h"

namespace gpu_exact {
/** @brief Holds the categories of a table. */
struct TableCategories {
  std::vector<std::uint32_t> of_feature;  // 0 where it is numerical, or has no entries
  CategoricalColumns columns;             // what the memory plan is told
};

/**
 * @brief Count the categories of a table, whose rows are read once for it if any feature is categorical.
 *        Waits.
 * @param at_once The entries of the host's table on the device at a time, unless a row has more: as few as
 *                every memory plan has room for.
 * @throw InvalidCategory for the first value, by row and feature, that is none.
 */
[[nodiscard]] TableCategories CountCategories(
    CsrView const& table, EntryIdx at_once = HistogramMemory::All().back().ReadAtOnce(0));
}  // namespace gpu_exact
