/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests which numbers the bins of a column have.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "plan/bin_numbers.h"

namespace gpu_exact {
namespace {
/** @brief Gives the number of each value. @param counts Entries of each. */
std::vector<std::uint32_t> NumberAll(BinNumbers const& numbers,
                                     std::vector<std::uint32_t> const& counts) {
  std::vector<std::uint32_t> out;
  std::uint64_t begin{0};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    out.push_back(numbers.Of(i, begin, begin + counts[i]));
    begin += counts[i];
  }
  return out;
}

TEST(ShiftOf, TheLeastThatIsEnough) {
  EXPECT_EQ(ShiftOf(0, 4), 0u);
  EXPECT_EQ(ShiftOf(4, 4), 0u);
  EXPECT_EQ(ShiftOf(5, 4), 1u);
  EXPECT_EQ(ShiftOf(8, 4), 1u);
  EXPECT_EQ(ShiftOf(9, 4), 2u);
  EXPECT_EQ(ShiftOf(10'240, 255), 6u);
}

TEST(NumbersOfValues, AsManyAsValuesThatAreNotMerged) {
  EXPECT_EQ(NumbersOfValues(0, 255, 10'240), 0u);
  EXPECT_EQ(NumbersOfValues(255, 255, 10'240), 255u);
  EXPECT_EQ(NumbersOfValues(256, 255, 10'240), 510u);
  EXPECT_EQ(NumbersOfValues(5'827, 255, 10'240), 8'160u);
  EXPECT_EQ(NumbersOfValues(9'000, 255, 10'240), 10'240u) << "no more than there is room for";
  EXPECT_EQ(NumbersOfValues(9'000, ~0u, 10'240), 9'000u);
}

/** @brief Of different values every quantile has some, so that none is wasted; towards the ends they are
 *         shorter, in the middle at most 8/7 as long as if all were alike. */
TEST(BinNumbers, QuantilesOfDifferentValues) {
  for (std::uint32_t n_entries : {100u, 12'289u, 200'000u, 3'000'000u}) {
    for (std::uint32_t n : {2u, 3u, 31u, 100u, 2'136u, 10'240u}) {
      if (n > n_entries) {
        continue;
      }
      BinNumbers const numbers = BinNumbers::OfQuantiles(n_entries, n);
      std::vector<std::uint32_t> of_number(n, 0);
      std::uint32_t last{0};
      for (std::uint32_t rank = 0; rank < n_entries; ++rank) {
        std::uint32_t const number = numbers.Of(rank, rank, rank + 1);
        ASSERT_LE(last, number);
        ASSERT_LT(number, n);
        ++of_number[number];
        last = number;
      }
      double const alike = static_cast<double>(n_entries) / n;
      for (std::uint32_t k = 0; k < n; ++k) {
        ASSERT_GE(of_number[k], 1u) << n_entries << " entries, number " << k << " of " << n;
        ASSERT_LE(of_number[k], 8.0 / 7.0 * alike + 2.0);
      }
      if (alike >= 20.0 && n >= 31) {
        EXPECT_LT(of_number.front(), 0.5 * alike);
        EXPECT_LT(of_number.back(), 0.5 * alike);
      }
    }
  }
}

/** @brief Those that begin m entries from an end hold some times sqrt(m), whatever m is. */
TEST(BinNumbers, QuantilesNearAnEnd) {
  constexpr std::uint32_t kEntries = 10'000'000;
  BinNumbers const numbers = BinNumbers::OfQuantiles(kEntries, 5'120);
  for (std::uint32_t m : {1'000u, 10'000u, 100'000u}) {
    std::uint32_t const length = 16 * static_cast<std::uint32_t>(std::sqrt(m));
    std::uint32_t const n =
        numbers.Of(m + length, m + length, m + length + 1) - numbers.Of(m, m, m + 1);
    EXPECT_GE(n, 2u) << m;
    EXPECT_LE(n, 5u) << m;
  }
}

/** @brief Any lengths of values, some of which are most of the column. */
TEST(BinNumbers, LongValuesStayByThemselves) {
  std::mt19937 engine{1};
  for (int turn = 0; turn < 3000; ++turn) {
    bool const of_values = turn % 2 == 0;
    std::uint32_t const n_values = 1 + engine() % 300;
    std::vector<std::uint32_t> counts;
    for (std::uint32_t i = 0; i < n_values; ++i) {
      counts.push_back(engine() % 10 == 0 ? 1 + engine() % 5000 : 1 + engine() % 20);
    }
    auto const n_entries = std::accumulate(counts.cbegin(), counts.cend(), 0u);
    std::uint32_t const n =
        of_values ? n_values + engine() % (2 * n_values) : 1 + engine() % std::min(n_entries, 500u);
    BinNumbers const of_column = of_values ? BinNumbers::OfValues(n_entries, n_values, n)
                                           : BinNumbers::OfQuantiles(n_entries, n);
    ASSERT_EQ(of_column.Size(), n);
    std::vector<std::uint32_t> const numbers = NumberAll(of_column, counts);
    ASSERT_TRUE(std::is_sorted(numbers.cbegin(), numbers.cend()));
    ASSERT_EQ(numbers.back(), n - 1);
    if (of_values) {
      ASSERT_EQ(std::adjacent_find(numbers.cbegin(), numbers.cend()), numbers.cend())
          << "two values have one number";
    }
    // A value that is longer than four bins of the middle, which are the longest, is alone in each.
    double const longest = of_values ? 0.0 : 8.0 / 7.0 * n_entries / n + 1.0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      for (std::uint32_t shift = 0; shift < 5 && !of_values; ++shift) {
        if (counts[i] < 4.0 * longest * (1u << shift)) {
          break;
        }
        ASSERT_TRUE(i == 0 || numbers[i - 1] >> shift != numbers[i] >> shift) << turn;
        ASSERT_TRUE(i + 1 == counts.size() || numbers[i + 1] >> shift != numbers[i] >> shift)
            << turn;
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
