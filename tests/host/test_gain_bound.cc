/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The bound is never below the exact gain, and close to it.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

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

/** @brief Entries of one node and feature in a row, and a candidate before each. */
struct WalkProblem {
  GainParam p{};
  Quantiser q{};
  std::vector<FixedSum> before;
  std::vector<GradientPair> units;
  FixedSum present{0, 0};
  FixedSum total{0, 0};

  WalkProblem(std::mt19937* rng, int i) {
    std::uniform_real_distribution<double> uniform;
    p.reg_lambda = i % 3 == 0 ? 0.0f : static_cast<float>(uniform(*rng) * 3.0);
    p.reg_alpha = i % 2 == 0 ? 0.0f : static_cast<float>(uniform(*rng) * 2.0);
    auto scale = static_cast<float>(std::ldexp(1.0, i % 40 - 20));
    q = Quantiser::Make(scale, 1.0f, 1000000);
    auto random = [&](bool heavy) {
      double g = uniform(*rng) - 0.5;
      double small = heavy && uniform(*rng) < 0.9 ? 1e-5 : 1.0;
      return GradientPair{static_cast<float>(g * small) * scale,
                          static_cast<float>(uniform(*rng) * small)};
    };
    auto random_sum = [&](double n) {
      return FixedSum{std::llrint(n * (uniform(*rng) - 0.5) * scale / q.grad_unit),
                      std::llrint(n * uniform(*rng) / q.hess_unit)};
    };
    FixedSum sum = i % 4 == 0 ? FixedSum{0, 0} : random_sum(std::exp(uniform(*rng) * 13.0));
    for (int k = 0; k < GainBound::kMaxWalk; ++k) {
      before.push_back(sum);
      units.push_back(q.Units(random(i % 7 == 0)));
      sum = sum + Quantiser::FromUnits(units.back());
    }
    present = sum + random_sum(i % 5 == 0 ? 1.0 : std::exp(uniform(*rng) * 13.0));
    total = i % 2 == 0 ? present : present + random_sum(std::exp(uniform(*rng) * 13.0));
  }

  /** @brief The greater gain of the two scans' candidates, without the node's own. */
  [[nodiscard]] float Gain(int k) const {
    auto gain = [&](FixedSum const& left) {
      return CalcLossChange(p, q.Real(left), q.Real(total - left), WeightBounds::None(), 0, 0.0f);
    };
    return std::fmax(gain(before[k]), gain(before[k] + total - present));
  }
  /** @brief Whether the k-th candidate may reach the bar, on a walk from the first one. */
  [[nodiscard]] bool MayReach(GainBound const& bound, float bar, int k) const {
    WalkBound walk{bound, NodeBound::Make(total, present, bar), before[0]};
    for (int i = 0; i < k; ++i) {
      walk.Pass(units[i]);
    }
    return total == present ? walk.MayReach<false>() : walk.MayReach<true>();
  }
};

TEST(WalkBound, NoCandidateThatReachesTheBarIsLost) {
  std::mt19937 rng{2};
  std::uniform_real_distribution<float> uniform;
  int n_tight{0}, n_candidates{0};
  for (int i = 0; i < 50000; ++i) {
    WalkProblem problem{&rng, i};
    auto bound = GainBound::Make(problem.p, problem.q);
    ASSERT_TRUE(bound.enabled);
    for (int k = 0; k < GainBound::kMaxWalk; ++k) {
      float gain = problem.Gain(k);
      float node_gain = gain * uniform(rng);
      float loss = gain - node_gain;
      if (loss > 0.0f && std::isfinite(loss)) {
        ++n_candidates;
        ASSERT_TRUE(problem.MayReach(bound, bound.Bar(loss, node_gain), k)) << "case " << i;
        n_tight += !problem.MayReach(bound, bound.Bar(loss + 1e-3f * gain, node_gain), k);
      }
    }
  }
  EXPECT_GT(n_candidates, 100000);
  EXPECT_GT(n_tight, n_candidates / 4 * 3);  // it does bar what is only a little too small
}

TEST(WalkBound, BarsAllWhereNoneIsWanted) {
  GainParam p{};
  auto q = Quantiser::Make(1.0f, 1.0f, 1000);
  auto bound = GainBound::Make(p, q);
  FixedSum left{1 << 20, 0}, total{1 << 21, 1};  // a hessian of zero: no bound is known
  EXPECT_TRUE((WalkBound{bound, NodeBound::Make(total, total, 1e9f), left}.MayReach<false>()));
  EXPECT_FALSE((WalkBound{bound, NodeBound::Make(total, total, NAN), left}.MayReach<false>()));
}

TEST(WalkBound, IsOffWhereFloatsWouldOverflow) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  auto q = Quantiser::Make(1e-38f, 1e-38f, 10);
  auto bound = GainBound::Make(p, q);
  float bar = bound.Bar(1e30f, 0.0f);
  EXPECT_TRUE((WalkBound{bound, NodeBound::Make({2, 2}, {2, 2}, bar), {1, 1}}.MayReach<false>()));
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
