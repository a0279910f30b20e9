/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares the paper's strategy: entries stay sorted by column and value.
 */
#pragma once

#include <memory>

#include "device/level/split_strategy.cuh"

namespace gpu_exact {
[[nodiscard]] std::unique_ptr<SplitStrategy> MakeSortStrategy(CsrView const& table);
}  // namespace gpu_exact
