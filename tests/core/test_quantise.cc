/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Fixed point: exact for dyadic gradients, within range for any.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/quantise.h"

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

GainParam Default() { return GainParam{GrowParam{}}; }

/** @brief All that is known of some rows before a tree grows. */
struct Range {
  Quantiser quantiser{};
  bool is_fine{false};
  Rounding rounding{};

  explicit Range(std::vector<GradientPair> const& rows) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float max_grad{0.0f}, max_hess{0.0f}, least_grad{kInfinity}, least_hess{kInfinity};
    for (auto const& g : rows) {
      float const grad = std::fabs(g.grad);
      max_grad = std::max(max_grad, grad);
      max_hess = std::max(max_hess, g.hess);
      least_grad = grad == 0.0f ? least_grad : std::min(least_grad, grad);
      least_hess = g.hess == 0.0f ? least_hess : std::min(least_hess, g.hess);
    }
    auto const n = static_cast<RowIdx>(rows.size());
    auto const first = Quantiser::Make(max_grad, max_hess, n);
    FixedSum magnitudes{0, 0};
    for (auto const& g : rows) {
      magnitudes = magnitudes + first.Fixed({std::fabs(g.grad), g.hess});
    }
    quantiser = first.Refined(magnitudes, n);
    is_fine = quantiser.IsFine(least_grad, least_hess);
    for (auto const& g : rows) {
      rounding = rounding + quantiser.Rounded(g);
    }
  }
};

/** @brief n rows like the last one, after one like the first. */
Range OneBeside(GradientPair one, GradientPair others, std::size_t n = 1000) {
  std::vector<GradientPair> rows(n, others);
  rows.front() = one;
  return Range{rows};
}

TEST(Rounding, OfUsualGradientsIsNotLookedAt) {
  EXPECT_TRUE(OneBeside({1.0f, 1.0f}, {0.7f, 0.3f}).is_fine);
  EXPECT_TRUE(OneBeside({1e5f, 1.0f}, {1e3f, 1.0f}).is_fine);
  EXPECT_TRUE(OneBeside({0.0f, 0.0f}, {0.7f, 0.3f}).is_fine) << "of nothing nothing is lost";
  EXPECT_TRUE(OneBeside({1e30f, 1e30f}, {1e22f, 1e22f}).is_fine);
}

TEST(Rounding, OfAnOutlierIsThatOfTheOthers) {
  auto const far = OneBeside({1e18f, 1.0f}, {0.7f, 1.0f});
  EXPECT_FALSE(far.is_fine);
  EXPECT_EQ(far.rounding.n_few_bits, 999u);
  EXPECT_EQ(far.rounding.few_bits.hess, 0u);
  double const error =
      std::fabs(0.7f / far.quantiser.grad_unit - std::rint(0.7f / far.quantiser.grad_unit));
  EXPECT_NEAR(static_cast<double>(far.rounding.few_bits.grad) / RoundingError::kPerUnit,
              999 * error, 1e-2);
  EXPECT_TRUE(far.quantiser.MayChangeSplits(far.rounding, Default()));

  auto const exact = OneBeside({std::ldexp(1.0f, 57), 1.0f}, {16.0f, 1.0f});
  EXPECT_FALSE(exact.is_fine);
  EXPECT_EQ(exact.rounding.n_few_bits, 0u) << "few bits, but none is lost";
  EXPECT_FALSE(exact.quantiser.MayChangeSplits(exact.rounding, Default()));
}

TEST(Rounding, OfLightRowsMattersUnlessChildrenAreHeavy) {
  auto const light = OneBeside({1.0f, 1.0f}, {0.3f, 1e-16f});
  EXPECT_FALSE(light.is_fine);
  EXPECT_FALSE(light.quantiser.MayChangeSplits(light.rounding, Default()))
      << "a child weighs 1, lambda is 1";
  GainParam none = Default();
  none.min_child_weight = none.reg_lambda = 0.0f;
  EXPECT_TRUE(light.quantiser.MayChangeSplits(light.rounding, none));
  auto const heavy = OneBeside({1.0f, 0.7f}, {0.3f, 1e15f});
  EXPECT_TRUE(heavy.quantiser.MayChangeSplits(heavy.rounding, Default()));
}

TEST(Rounding, OfWhatGainsNothingDoesNotMatter) {
  auto const small = OneBeside({1.0f, 1.0f}, {0.7e-15f, 1.0f});
  EXPECT_FALSE(small.is_fine);
  EXPECT_FALSE(small.quantiser.MayChangeSplits(small.rounding, Default()));
  EXPECT_TRUE(small.quantiser.MayChangeNode(small.rounding, {10 * 0.7e-15, 10.0}));
  EXPECT_FALSE(small.quantiser.MayChangeNode(small.rounding, {1e-3, 10.0}));
  auto const scaled = OneBeside({1e15f, 1.0f}, {0.7f, 1.0f});
  EXPECT_TRUE(scaled.quantiser.MayChangeSplits(scaled.rounding, Default())) << "there it gains";
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
