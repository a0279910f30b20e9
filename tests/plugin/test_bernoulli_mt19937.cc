/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Draws and end states against the standard library's.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/spaced_numbers.h"
#include "train/bernoulli_mt19937.h"

namespace gpu_exact {
namespace {
/** @brief A generator that says what it is told. */
struct Script {
  // NOLINTBEGIN: names of the standard library
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  // NOLINTEND
  result_type operator()() {
    auto const word = static_cast<result_type>(rest);
    rest >>= 32;
    return word;
  }
  std::uint64_t rest;  // the low word comes first
};

bool StandardDraw(double p, std::uint64_t v) {
  Script script{v};
  return std::bernoulli_distribution{p}(script);
}

std::vector<float> Rates() {
  std::vector<float> rates{0.0f, 1e-45f, 1e-38f, 1e-20f, 1e-6f, 0.1f,
                           0.3f, 0.5f,   0.63f,  0.7f,   0.9f};
  for (int i = 1; i < 70; ++i) {
    auto const power = std::ldexp(1.0f, -i);
    rates.insert(rates.end(), {std::nextafter(power, 0.0f), power, std::nextafter(power, 1.0f)});
  }
  rates.push_back(std::nextafter(1.0f, 0.0f));
  std::mt19937 rng{0};
  for (int i = 0; i < 200; ++i) {
    rates.push_back(std::uniform_real_distribution<float>{0.0f, 0.999f}(rng));
  }
  return rates;
}

TEST(BernoulliThreshold, DividesYesFromNo) {
  auto const last = std::numeric_limits<std::uint64_t>::max();
  for (double p : Rates()) {
    auto const threshold = BernoulliThreshold(p);
    EXPECT_FALSE(StandardDraw(p, threshold)) << p;
    EXPECT_FALSE(StandardDraw(p, last)) << p;
    if (threshold == 0) {
      EXPECT_EQ(p, 0.0);
      continue;
    }
    EXPECT_TRUE(StandardDraw(p, threshold - 1)) << p;
    EXPECT_TRUE(StandardDraw(p, 0)) << p;
  }
}

TEST(DrawBernoulli, ADrawAtTheThresholdIsNo) {
  for (std::uint32_t seed = 0; seed < 100'000; ++seed) {
    std::mt19937 rng{seed};
    std::uint64_t const low = rng();
    std::uint64_t const draw = std::uint64_t{rng()} << 32 | low;
    if (draw >> 53 != 0) {
      continue;
    }
    // Exact: the draw is its threshold.
    double const p = std::ldexp(static_cast<double>(draw), -64);
    ASSERT_EQ(BernoulliThreshold(p), draw);
    std::uint8_t drawn[] = {2, 2};
    for (std::uint8_t* out : {&drawn[0], &drawn[1]}) {
      rng.seed(seed);
      DrawBernoulli(out == drawn ? p : std::nextafter(p, 1.0), 1, &rng, out);
    }
    EXPECT_EQ(drawn[0], 0);
    EXPECT_EQ(drawn[1], 1);
    return;
  }
  FAIL() << "no draw is small enough";
}

TEST(BernoulliThreshold, CountsTheRoundingOfTheDraw) {
  // Below one half doubles are 2^10 apart; what is at most half of it away is rounded up to p.
  EXPECT_EQ(BernoulliThreshold(0.5), (std::uint64_t{1} << 63) - (std::uint64_t{1} << 9));
}

/** @brief On both sides of the number from which draws are made in blocks. */
TEST(DrawBernoulli, DrawsAndEndsAsTheStandardLibrary) {
  for (std::size_t start : {0, 1, 2, 311, 622, 623, 624, 625, 1001}) {
    for (std::size_t n : {0, 1, 2, 312, 313, 624, 5000, 8191, 8192, 8193, 20000}) {
      for (float p : {0.0f, 0.1f, 0.5f, 0.999f}) {
        std::mt19937 expected{static_cast<std::uint32_t>(start + n)};
        expected.discard(start);
        auto engine = expected;
        std::vector<std::uint8_t> drawn(n);
        DrawBernoulli(p, n, &engine, drawn.data());
        std::bernoulli_distribution keep{p};
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_EQ(drawn[i] != 0, keep(expected)) << i << " of " << n << " from " << start;
        }
        ASSERT_EQ(engine, expected) << n << " draws from " << start;
      }
    }
  }
}

/** @brief The state of a generator is told as text. */
TEST(DrawBernoulli, NumbersOfTheProgramMayLookOtherwise) {
  std::mt19937 expected{3};
  std::mt19937 engine{3};
  std::vector<std::uint8_t> drawn(20000);
  std::vector<std::uint8_t> spaced(20000);
  DrawBernoulli(0.5f, drawn.size(), &expected, drawn.data());
  {
    SpacedNumbers const spaces;
    DrawBernoulli(0.5f, spaced.size(), &engine, spaced.data());
  }
  EXPECT_EQ(spaced, drawn);
  EXPECT_EQ(engine, expected);
}

TEST(DrawBernoulli, AMillionDrawsInTwoGoes) {
  std::mt19937 expected{1};
  auto engine = expected;
  std::vector<std::uint8_t> drawn(1000000);
  DrawBernoulli(0.7f, 123457, &engine, drawn.data());
  DrawBernoulli(0.7f, drawn.size() - 123457, &engine, drawn.data() + 123457);
  std::bernoulli_distribution keep{0.7f};
  std::size_t n_wrong{0};
  for (auto included : drawn) {
    n_wrong += (included != 0) != keep(expected);
  }
  ASSERT_EQ(n_wrong, 0u);
  ASSERT_EQ(engine, expected);
}
}  // namespace
}  // namespace gpu_exact
