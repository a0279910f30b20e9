/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Tests how long quantiles are.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "plan/quantile_law.h"

namespace gpu_exact {
namespace {
/** @brief Of different values every quantile has some, so that coarser bins are whole numbers of finer
 *         ones; towards the ends they are shorter, in the middle at most 8/7 as long as if all were
 *         alike. */
TEST(QuantileLaw, QuantilesOfDifferentValues) {
  for (std::uint32_t n_entries : {100u, 12'289u, 200'000u, 3'000'000u}) {
    for (std::uint32_t n : {1u, 2u, 3u, 31u, 100u, 2'136u, 10'236u}) {
      if (n > n_entries) {
        continue;
      }
      QuantileLaw const law{n_entries, n};
      std::vector<std::uint32_t> of_quantile(n, 0);
      double last{-1.0};
      for (std::uint32_t rank = 0; rank < n_entries; ++rank) {
        double const quantile = law.Below(rank);
        ASSERT_LT(last, quantile);
        ASSERT_LT(quantile, n);
        ++of_quantile[static_cast<std::size_t>(quantile)];
        last = quantile;
      }
      ASSERT_EQ(law.Below(0), 0.0);
      ASSERT_EQ(law.Below(n_entries), n);
      double const alike = static_cast<double>(n_entries) / n;
      for (std::uint32_t k = 0; k < n; ++k) {
        ASSERT_GE(of_quantile[k], 1u) << n_entries << " entries, quantile " << k << " of " << n;
        ASSERT_LE(of_quantile[k], 8.0 / 7.0 * alike + 2.0);
      }
      if (alike >= 20.0 && n >= 31) {
        EXPECT_LT(of_quantile.front(), 0.5 * alike);
        EXPECT_LT(of_quantile.back(), 0.5 * alike);
      }
    }
  }
}

/** @brief Those that begin m entries from an end hold some times sqrt(m), whatever m is. */
TEST(QuantileLaw, QuantilesNearAnEnd) {
  QuantileLaw const law{10'000'000, 5'120};
  for (std::uint32_t m : {1'000u, 10'000u, 100'000u}) {
    auto const length = 16 * static_cast<std::uint32_t>(std::sqrt(m));
    double const n = law.Below(m + length) - law.Below(m);
    EXPECT_GE(n, 2.0) << m;
    EXPECT_LE(n, 5.0) << m;
    EXPECT_NEAR(law.Below(10'000'000 - m) - law.Below(10'000'000 - m - length), n, 1e-6) << m;
  }
}
}  // namespace
}  // namespace gpu_exact
