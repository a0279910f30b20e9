/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "row_sampler.h"

#include <algorithm>
#include <random>

namespace gpu_exact {
std::vector<std::uint8_t> SampleRows(std::vector<xgboost::GradientPair> const& gradients,
                                     float subsample, xgboost::RandomEngine* rng) {
  std::bernoulli_distribution keep{subsample};
  std::vector<std::uint8_t> included(gradients.size());
  std::transform(gradients.cbegin(), gradients.cend(), included.begin(), [&](auto const& gpair) {
    return static_cast<std::uint8_t>(!(gpair.GetHess() < 0.0f) && keep(*rng));
  });
  return included;
}
}  // namespace gpu_exact
