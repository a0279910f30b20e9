/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The bound is never below the exact gain, and close to it.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/gain_bound.h"

namespace gpu_exact {
namespace {
TEST(GainBound, NoCandidateThatReachesTheBarIsLost) {
  std::mt19937 rng{1};
  std::uniform_real_distribution<double> uniform;
  int n_tight{0};
  for (int i = 0; i < 200000; ++i) {
    GainParam p{};
    p.reg_lambda = i % 3 == 0 ? 0.0f : static_cast<float>(uniform(rng) * 3.0);
    p.reg_alpha = i % 2 == 0 ? 0.0f : static_cast<float>(uniform(rng) * 5.0);
    p.max_delta_step = i % 5 == 0 ? 0.3f : 0.0f;
    auto scale = static_cast<float>(std::ldexp(1.0, i % 40 - 20));
    auto q = Quantiser::Make(scale, 1.0f, 1000000);
    auto bound = GainBound::Make(p, q);
    ASSERT_TRUE(bound.enabled);
    auto random_sum = [&] {
      double n = std::exp(uniform(rng) * 13.0);
      return FixedSum{std::llrint(n * (uniform(rng) - 0.5) * scale / q.grad_unit),
                      std::llrint(n * uniform(rng) / q.hess_unit)};
    };
    FixedSum left = random_sum(), right = random_sum();
    float gain = CalcLossChange(p, q.Real(left), q.Real(right), WeightBounds::None(), 0, 0.0f);
    float node_gain = gain * static_cast<float>(uniform(rng));
    float loss = gain - node_gain;
    if (loss > 0.0f && std::isfinite(loss)) {
      ASSERT_TRUE(bound.MayReach(bound.Bar(loss, node_gain), left, right)) << "case " << i;
      n_tight += !bound.MayReach(bound.Bar(loss + 1e-4f * gain, node_gain), left, right);
    }
  }
  EXPECT_GT(n_tight, 100000);  // it does bar candidates that are only a little too small
}

TEST(GainBound, IsOffWhereFloatsWouldOverflow) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  auto q = Quantiser::Make(1e-38f, 1e-38f, 10);
  auto bound = GainBound::Make(p, q);
  EXPECT_FALSE(bound.enabled);
  EXPECT_TRUE(bound.MayReach(bound.Bar(1e30f, 0.0f), {1, 1}, {1, 1}));
}

TEST(GainBound, TiesAreKeptWhereTheSumCancels) {
  GainParam p{};
  auto q = Quantiser::Make(1.0f, 1.0f, 1000);
  auto bound = GainBound::Make(p, q);
  // Two candidates of gain 1.03 and 0.98 have one loss change as floats.
  float node_gain = -std::ldexp(1.0f, 20);
  ASSERT_EQ(1.03f - node_gain, 0.98f - node_gain);
  EXPECT_LT(bound.Bar(1.03f - node_gain, node_gain), 0.98f * bound.unit);
}

TEST(GainBound, NegativeGainsLowerTheBar) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  auto q = Quantiser::Make(1.0f, 1.0f, 1000);
  auto bound = GainBound::Make(p, q);
  EXPECT_LT(bound.Bar(0.0f, -5.0f), -5.0f * bound.unit);
}
}  // namespace
}  // namespace gpu_exact
