/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Gains against numbers worked out by hand.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "core/gain.h"
#include "tests/support/reference_gain.h"

namespace gpu_exact {
namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();

GainParam Plain() {
  GainParam p{};
  p.min_child_weight = 1.0f;
  p.reg_lambda = 1.0f;
  return p;
}

TEST(Gain, WeightIsMinusGradientOverHessian) {
  EXPECT_EQ(CalcWeight(Plain(), {6.0, 3.0}, WeightBounds::None()), -1.5f);
  EXPECT_EQ(CalcWeight(Plain(), {6.0, 0.0}, WeightBounds::None()), 0.0f);
}

TEST(Gain, AlphaShrinksTowardsZero) {
  GainParam p = Plain();
  p.reg_alpha = 2.0f;
  EXPECT_EQ(CalcWeight(p, {6.0, 3.0}, WeightBounds::None()), -1.0f);
  EXPECT_EQ(CalcWeight(p, {-6.0, 3.0}, WeightBounds::None()), 1.0f);
  EXPECT_EQ(CalcWeight(p, {1.5, 3.0}, WeightBounds::None()), 0.0f);
}

TEST(Gain, MaxDeltaStepClips) {
  GainParam p = Plain();
  p.max_delta_step = 0.5f;
  EXPECT_EQ(CalcWeight(p, {6.0, 3.0}, WeightBounds::None()), -0.5f);
  EXPECT_EQ(CalcWeight(p, {-6.0, 3.0}, WeightBounds::None()), 0.5f);
}

TEST(Gain, BoundsHoldTheWeight) {
  EXPECT_EQ(CalcWeight(Plain(), {6.0, 3.0}, {-1.0f, 1.0f}), -1.0f);
  EXPECT_EQ(CalcWeight(Plain(), {-6.0, 3.0}, {-1.0f, 1.0f}), 1.0f);
}

/** @brief Of no gradient it is -0, which XGBoost passes on, too. */
TEST(Gain, AWeightAtItsBoundKeepsTheSignOfItsZero) {
  EXPECT_TRUE(std::signbit(CalcWeight(Plain(), {0.0, 3.0}, {0.0f, 1.0f})));
  EXPECT_TRUE(std::signbit(CalcWeight(Plain(), {0.0, 3.0}, {-1.0f, 0.0f})));
}

TEST(Gain, GainOfTheBestWeightIsGradientSquaredOverHessian) {
  float w = CalcWeight(Plain(), {6.0, 3.0}, WeightBounds::None());
  EXPECT_EQ(CalcGain(Plain(), {6.0, 3.0}, w), 9.0f);
  EXPECT_EQ(CalcGain(Plain(), {6.0, 0.0}, w), 0.0f);
}

TEST(Gain, LossChangeOfASplit) {
  // Children -8/(1+1), 8/(1+1): gain 32 each; the node itself has none.
  EXPECT_EQ(CalcLossChange(Plain(), {8.0, 1.0}, {-8.0, 1.0}, WeightBounds::None(), 0, 0.0f), 64.0f);
  EXPECT_EQ(CalcLossChange(Plain(), {8.0, 1.0}, {-8.0, 1.0}, WeightBounds::None(), 0, 4.0f), 60.0f);
}

TEST(Gain, LightChildrenAreRefused) {
  EXPECT_EQ(CalcLossChange(Plain(), {8.0, 0.5}, {-8.0, 1.0}, WeightBounds::None(), 0, 0.0f), -kInf);
  GainParam p = Plain();
  p.min_child_weight = 0.0f;
  EXPECT_EQ(CalcLossChange(p, {8.0, 0.0}, {-8.0, 1.0}, WeightBounds::None(), 0, 0.0f), -kInf);
}

TEST(Gain, MonotoneConstraintsRefuseTheWrongOrder) {
  // Left weight -4, right weight 4.
  EXPECT_EQ(CalcLossChange(Plain(), {8.0, 1.0}, {-8.0, 1.0}, WeightBounds::None(), 1, 0.0f), 64.0f);
  EXPECT_EQ(CalcLossChange(Plain(), {8.0, 1.0}, {-8.0, 1.0}, WeightBounds::None(), -1, 0.0f),
            -kInf);
}

TEST(Gain, MonotoneConstraintsAllowEqualWeights) {
  for (int monotone : {-1, 0, 1}) {
    EXPECT_EQ(CalcLossChange(Plain(), {8.0, 1.0}, {8.0, 1.0}, WeightBounds::None(), monotone, 0.0f),
              64.0f)
        << monotone;
  }
}

/** @brief The rules up to XGBoost 3.3. */
GainParam Old() {
  GainParam p = Plain();
  p.rules = GainRules::kOld;
  return p;
}

TEST(OldGain, IsAQuotientWhateverTheWeightIs) {
  GainParam p = Old();
  p.reg_alpha = 2.0f;
  EXPECT_EQ(CalcGain(p, {6.0, 3.0}, 100.0f), 4.0f);
  EXPECT_EQ(CalcGain(p, {6.0, 0.0}, 100.0f), 0.0f);
  // In single precision: 2^24 + 1 is no float.
  EXPECT_EQ(CalcGain(p, {1.0 + 0x1p24 + 2.0, 0.0 + 0x1p24}, 0.0f),
            static_cast<float>((1.0 + 0x1p24) * (1.0 + 0x1p24)) / 0x1p24f);
}

TEST(OldGain, KnowsNoAlphaBesideTheWeights) {
  for (bool bounded : {true, false}) {
    GainParam p = Old();
    p.reg_alpha = 2.0f;
    p.bounded = bounded;
    p.max_delta_step = bounded ? 0.0f : 10.0f;
    float const w = CalcWeight(p, {6.0, 3.0}, WeightBounds::None());
    EXPECT_EQ(w, -1.0f);
    EXPECT_EQ(CalcGain(p, {6.0, 3.0}, w), 8.0f);  // 2 * 6 - 4; 4 by the new rules
  }
}

TEST(OldGain, ALightNodeWeighsNothing) {
  EXPECT_EQ(CalcWeight(Old(), {6.0, 0.5}, WeightBounds::None()), 0.0f);
  EXPECT_EQ(CalcWeight(Old(), {6.0, 0.5}, {1.0f, 2.0f}), 1.0f);
  EXPECT_EQ(CalcWeight(Plain(), {6.0, 0.5}, WeightBounds::None()), -4.0f);
}

TEST(OldGain, ConstraintsOfZerosAreConstraints) {
  GrowParam grow;
  EXPECT_FALSE(GainParam{grow}.bounded);
  grow.monotone_constraints = {0, 0};
  EXPECT_FALSE(GainParam{grow}.bounded);
  grow.gain_rules = GainRules::kOld;
  EXPECT_TRUE(GainParam{grow}.bounded);
  grow.monotone_constraints = {};
  EXPECT_FALSE(GainParam{grow}.bounded);
}

/** @brief Written apart, from the same XGBoost. */
TEST(Gain, IsThatOfTheReference) {
  std::mt19937 rng{1};
  auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>{low, high}(rng);
  };
  auto pick = [&](auto... of) {
    std::common_type_t<decltype(of)...> const all[]{of...};
    return all[rng() % sizeof...(of)];
  };
  int n_allowed{0};
  for (int i = 0; i < 300000; ++i) {
    GrowParam grow;
    grow.gain_rules = pick(GainRules::kNew, GainRules::kOld);
    grow.min_child_weight = pick(0.0f, 0.0f, 1.0f, 0.3f);
    grow.reg_lambda = pick(0.0f, 1.0f, 0.37f);
    grow.reg_alpha = pick(0.0f, 0.0f, 0.7f);
    grow.max_delta_step = pick(0.0f, 0.0f, 0.5f);
    int const monotone = pick(-1, 0, 1);
    grow.monotone_constraints.assign(pick(0, 1), monotone);
    GainParam const p{grow};
    double const scale = std::exp2(uniform(-20.0, 20.0));
    auto hess = [&] { return pick(0, 1, 1) * uniform(0.0, 2.0); };
    GradientSum const left{scale * uniform(-1.0, 1.0), hess()};
    GradientSum const right{scale * uniform(-1.0, 1.0), hess()};
    auto bounds = reference::Bounds::OfRoot(grow);
    if (p.bounded && pick(false, true)) {
      bounds = {static_cast<float>(-scale * uniform(-0.1, 1.0)),
                static_cast<float>(scale * uniform(0.2, 1.0))};
    }
    int const sign = grow.monotone_constraints.empty() ? 0 : monotone;
    float const got = CalcLossChange(p, left, right, {bounds.lower, bounds.upper}, sign, 0.0f);
    float const want =
        reference::SplitGain(grow, {left.grad, left.hess}, {right.grad, right.hess}, bounds, sign);
    ASSERT_EQ(got, want) << "case " << i;
    n_allowed += std::isfinite(got) ? 1 : 0;
  }
  EXPECT_GT(n_allowed, 75000);
}

TEST(Gain, SplitBoundsMeetInTheMiddle) {
  WeightBounds left, right;
  SplitBounds(WeightBounds::OfRoot(true), 1, 1.0f, 2.0f, &left, &right);
  EXPECT_EQ(left.upper, 1.5f);
  EXPECT_EQ(right.lower, 1.5f);
  EXPECT_EQ(left.lower, WeightBounds::OfRoot(true).lower);
  SplitBounds(WeightBounds::OfRoot(true), -1, 2.0f, 1.0f, &left, &right);
  EXPECT_EQ(left.lower, 1.5f);
  EXPECT_EQ(right.upper, 1.5f);
  SplitBounds({-3.0f, 3.0f}, 0, 2.0f, 1.0f, &left, &right);
  EXPECT_EQ(left.lower, -3.0f);
  EXPECT_EQ(right.upper, 3.0f);
}
}  // namespace
}  // namespace gpu_exact
