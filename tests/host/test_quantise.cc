/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Fixed point: exact for dyadic gradients, within range for any.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "src/quantise.h"

namespace gpu_exact {
namespace {
TEST(FixedSum, EqualWhereBothSumsAre) {
  FixedSum const sum{1, 2};
  EXPECT_TRUE(sum == (FixedSum{1, 2}));
  EXPECT_FALSE(sum == (FixedSum{1, 3}));
  EXPECT_FALSE(sum == (FixedSum{3, 2}));
}

TEST(PowerOfTwo, IsOfTwoNormalFloats) {
  for (int exponent = -252; exponent <= 254; ++exponent) {
    auto const [first, second] = PowerOfTwo::Make(exponent);
    EXPECT_TRUE(std::isnormal(first) && std::isnormal(second)) << exponent;
    EXPECT_EQ(double{first} * second, std::ldexp(1.0, exponent));
  }
}

TEST(Quantiser, DyadicGradientsComeBackUnchanged) {
  auto q = Quantiser::Make(4.0f, 2.0f, 1000);
  FixedSum sum{0, 0};
  double grad{0}, hess{0};
  for (int i = -64; i <= 64; ++i) {
    GradientPair g{static_cast<float>(i) / 16.0f, static_cast<float>(i + 65) / 65536.0f};
    sum = sum + q.Fixed(g);
    grad += g.grad;
    hess += g.hess;
  }
  EXPECT_EQ(q.Real(sum).grad, grad);
  EXPECT_EQ(q.Real(sum).hess, hess);
}

TEST(Quantiser, SumsOfTheLargestStayInRange) {
  for (RowIdx n : {1u, 2u, 3u, 1000u, 4294967295u}) {
    for (float largest : {1e-38f, 0.3f, 1.0f, 3e38f}) {
      auto q = Quantiser::Make(largest, largest, n);
      auto one = q.Fixed({largest, largest});
      EXPECT_LE(static_cast<double>(one.grad) * n, std::ldexp(1.0, 62)) << n << " x " << largest;
      EXPECT_GT(static_cast<double>(one.grad) * n, std::ldexp(1.0, 60)) << n << " x " << largest;
      EXPECT_EQ(one.grad, one.hess);
    }
  }
}

TEST(Quantiser, PositiveHessiansStayPositive) {
  auto q = Quantiser::Make(1.0f, 1.0f, 10000000);
  EXPECT_EQ(q.Fixed({0.0f, 1e-16f}).hess, 1);
  EXPECT_EQ(q.Fixed({0.0f, 0.0f}).hess, 0);
}

TEST(Quantiser, OrderDoesNotMatter) {
  std::mt19937 rng{3};
  std::normal_distribution<float> normal;
  auto q = Quantiser::Make(8.0f, 8.0f, 1000);
  std::vector<GradientPair> g(1000);
  for (auto& x : g) {
    x = {normal(rng), std::fabs(normal(rng))};
  }
  FixedSum up{0, 0}, down{0, 0};
  for (std::size_t i = 0; i < g.size(); ++i) {
    up = up + q.Fixed(g[i]);
    down = down + q.Fixed(g[g.size() - 1 - i]);
  }
  EXPECT_EQ(up, down);
}

TEST(Quantiser, RefinedSumsStayInRangeAndKeepMoreBits) {
  for (RowIdx n : {1u, 1000u, 1000000u}) {
    auto first = Quantiser::Make(1.0f, 1.0f, n);
    GradientPair small{1e-6f, 1e-6f};
    FixedSum sum = first.Fixed({1.0f, 1.0f});  // one large gradient, the others small
    sum.grad += first.Fixed(small).grad * (n - 1);
    sum.hess += first.Fixed(small).hess * (n - 1);
    auto q = first.Refined(sum, n);
    double total = static_cast<double>(q.Fixed({1.0f, 1.0f}).grad) +
                   static_cast<double>(q.Fixed(small).grad) * (n - 1);
    EXPECT_LT(total, std::ldexp(1.0, 61)) << n;
    EXPECT_GE(total, std::ldexp(1.0, 58)) << n;
    EXPECT_LE(q.grad_unit, 4 * first.grad_unit) << n;
  }
}

TEST(Quantiser, UnitsAreExact) {
  std::mt19937 rng{4};
  std::normal_distribution<float> normal;
  for (int exponent = -140; exponent <= 120; exponent += 20) {
    float scale = std::ldexp(1.0f, exponent);
    auto q = Quantiser::Make(8.0f * scale, 8.0f * scale, 1000);
    for (int i = 0; i < 1000; ++i) {
      float shrink = std::ldexp(1.0f, -(i % 60));
      GradientPair g{normal(rng) * scale * shrink, std::fabs(normal(rng)) * scale * shrink};
      EXPECT_EQ(q.Units(g).Fixed(), q.Fixed(g)) << g.grad << " " << g.hess;
    }
  }
}

/** @brief By n gradients of which one is `largest` and the others are `small`. */
Quantiser RefinedBy(float largest, float small, RowIdx n) {
  auto first = Quantiser::Make(largest, 1.0f, n);
  FixedSum sum = first.Fixed({largest, 1.0f});
  sum.grad += first.Fixed({small, 1.0f}).grad * (n - 1);
  sum.hess += first.Fixed({small, 1.0f}).hess * (n - 1);
  return first.Refined(sum, n);
}

TEST(Quantiser, OneHugeGradientCrushesTheOthers) {
  auto q = RefinedBy(1e18f, 1.0f, 1000);
  EXPECT_TRUE(q.MayCrush());
  EXPECT_TRUE(q.Crushes({1.0f, 1.0f}));
  EXPECT_TRUE(q.Crushes({-1.0f, 1.0f}));
  EXPECT_FALSE(q.Crushes({1e18f, 1.0f}));
  EXPECT_FALSE(q.Crushes({0.0f, 1.0f})) << "of nothing nothing is lost";
  auto with_bits = RefinedBy(1e12f, 1.0f, 1000);
  EXPECT_TRUE(with_bits.MayCrush());
  EXPECT_FALSE(with_bits.Crushes({1.0f, 1.0f}));
  EXPECT_TRUE(with_bits.Crushes({1e-5f, 1.0f}));
}

TEST(Quantiser, UsualGradientsAreNotLookedAt) {
  EXPECT_FALSE(RefinedBy(1.0f, 1.0f, 100'000'000).MayCrush());
  EXPECT_FALSE(RefinedBy(1.0f, 1e-12f, 1000).MayCrush()) << "what is so small gains nothing";
  EXPECT_FALSE(RefinedBy(1e5f, 1e3f, 1000).MayCrush());
}

TEST(Quantiser, HugeHessiansCrushToo) {
  auto q = Quantiser::Make(1.0f, 1e18f, 1000).Refined({1 << 20, std::int64_t{1} << 52}, 1000);
  EXPECT_TRUE(q.MayCrush());
  EXPECT_TRUE(q.Crushes({1.0f, 1.0f}));
  EXPECT_FALSE(q.Crushes({1.0f, 0.0f}));
}

TEST(Quantiser, ASixteenthIsTooMany) {
  EXPECT_FALSE(Quantiser::TooMany(10, 160));
  EXPECT_TRUE(Quantiser::TooMany(11, 160));
}

TEST(Quantiser, RefinedByNothing) {
  auto q = Quantiser::Make(0.0f, 0.0f, 7).Refined({0, 0}, 7);
  EXPECT_EQ(q.Fixed({0.0f, 0.0f}), (FixedSum{0, 0}));
}

TEST(Quantiser, NoGradientsAtAll) {
  auto q = Quantiser::Make(0.0f, 0.0f, 5);
  EXPECT_EQ(q.Fixed({0.0f, 0.0f}), (FixedSum{0, 0}));
  EXPECT_EQ(q.Real({0, 0}).hess, 0.0);
}
}  // namespace
}  // namespace gpu_exact
