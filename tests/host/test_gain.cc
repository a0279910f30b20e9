/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Gains against numbers worked out by hand.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/gain.h"

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
