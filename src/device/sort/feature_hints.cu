/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements feature_hints.cuh.
 */
#include "device/sort/feature_hints.cuh"

namespace gpu_exact {
namespace {
constexpr FeatureIdx kFewFeatures = 64;  // are bisected in few steps anyway

// one thread a hint
__global__ void HintsKernel(ColumnsRef columns, std::uint64_t n_hints, FeatureIdx* hints) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_hints) {
    hints[i] = columns.FeatureOf(min(i * kHintValues, columns.n_values - 1));
  }
}
}  // namespace

FeatureHints::FeatureHints(ColumnsRef const& columns) {
  if (columns.n_features <= kFewFeatures || columns.n_values == 0) {
    return;
  }
  auto n_hints = CeilDiv(columns.n_values, kHintValues) + 1;
  LaunchN("Hints", HintsKernel, n_hints, columns, n_hints, hints_.Reserve(n_hints));
}
}  // namespace gpu_exact
