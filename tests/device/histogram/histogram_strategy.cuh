/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes the histogram strategy of a test's table, and builders by a strategy.
 */
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "device/builder/device_builder.cuh"
#include "device/histogram/histogram_strategy.cuh"

namespace gpu_exact {
/** @param max_bins Of a column in each resolution; empty: chosen by the table. */
inline std::unique_ptr<SplitStrategy> MakeHistogramStrategy(
    CsrView const& table, HistogramMemory const& memory,
    std::vector<std::uint32_t> const& max_bins = {}, RowIdx max_sorted = ~0u) {
  return MakeHistogramStrategy(std::make_unique<BinnedTable>(table, max_bins, memory), memory,
                               max_sorted);
}

/** @brief A builder on the first device. @param make Its strategy. */
template <typename FnT>
std::unique_ptr<TreeBuilder> MakeBuilder(RowIdx n_rows, FnT&& make) {
  auto context = std::make_shared<DeviceContext>(-1);
  DeviceContext::Scope const scope{*context};
  auto strategy = make();
  return MakeTreeBuilder(std::move(context), n_rows, std::move(strategy));
}
}  // namespace gpu_exact
