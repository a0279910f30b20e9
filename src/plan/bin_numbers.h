/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Numbers the bins of a column. A bin's number is the quantile that its values begin in, so
 *        some bins have no value; a coarser bin is always a power of two of finer ones.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/platform.h"

namespace gpu_exact {
/** @brief Says how far numbers are shifted so that at most max_bins are left. */
[[nodiscard]] constexpr std::uint32_t ShiftOf(std::uint32_t n_numbers, std::uint32_t max_bins) {
  std::uint32_t shift{0};
  while (((n_numbers - 1) >> shift) + 1 > max_bins && n_numbers != 0) {
    ++shift;
  }
  return shift;
}

/**
 * @brief Counts the numbers of a column that has a bin for each value: up to twice as many as values, if
 *        these will be merged, so that a value of many entries has several and stays by itself.
 * @param coarsest Bins of the coarsest resolution.
 * @param most     Numbers.
 */
[[nodiscard]] constexpr std::uint32_t NumbersOfValues(std::uint32_t n_values,
                                                      std::uint32_t coarsest, std::uint32_t most) {
  std::uint64_t n{n_values};
  if (n_values > coarsest) {
    n = std::uint64_t{coarsest} << ShiftOf(n_values, coarsest);
  }
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(n_values, std::min<std::uint64_t>(n, most)));
}

/**
 * @brief Numbers the values of one column, ascending.
 *
 * Of a column of few values each has a number of its own. Of another one the quantiles are shorter
 * towards its ends: a quarter of the numbers goes to quantiles that have some times sqrt(m) entries, m
 * entries from an end, one at least; the others are alike. Gradients of m rows add up to about sqrt(m)
 * where nothing is to be found, and a bin's bound must not be far above that: splits that find little
 * cut few rows off, at an end. In the middle a quantile has at most 8/7 of the entries that it would
 * have if all were alike.
 */
class BinNumbers {
 public:
  /** @brief Has no numbers. */
  BinNumbers() = default;
  /** @brief Gives each of some values a number of its own, n at least as many. */
  [[nodiscard]] static BinNumbers OfValues(std::uint32_t n_entries, std::uint32_t n_values,
                                           std::uint32_t n) {
    BinNumbers numbers;
    numbers.n_entries_ = n_entries;
    numbers.n_ = n;
    numbers.n_more_ = n - n_values;
    numbers.of_values_ = true;
    return numbers;
  }
  /** @brief Numbers quantiles. */
  [[nodiscard]] static BinNumbers OfQuantiles(std::uint32_t n_entries, std::uint32_t n) {
    BinNumbers numbers;
    numbers.n_entries_ = n_entries;
    numbers.n_ = n;
    // At an end the slope, in quantiles an entry, is 1.
    double const slope = 2.0 * (static_cast<double>(n_entries) / n - 1.0 + kByLaw) / kByLaw - 1.0;
    if (slope > 1.0) {
      double const square = 1.0 / (slope * slope - 1.0);
      double const s = std::sqrt(square);
      numbers.square_ = square;
      numbers.s_ = s;
      numbers.factor_ = 0.5 * n * (std::sqrt(1.0 + square) + s);
    }
    return numbers;
  }

  [[nodiscard]] GPU_EXACT_HD std::uint32_t Size() const { return n_; }

  /**
   * @brief Gives the number of a value. One that covers whole quantiles gets the first of the largest
   *        block of them, aligned to its size: no other value is in that block, and so in none of the
   *        coarser bins that are as large or smaller. The last value has the last number.
   * @param i     Its number among the column's values.
   * @param begin Entries of lower values.
   * @param end   Entries of values up to it.
   */
  [[nodiscard]] GPU_EXACT_HD std::uint32_t Of(std::uint64_t i, std::uint64_t begin,
                                              std::uint64_t end) const {
    if (end == n_entries_) {
      return n_ - 1;
    }
    double const first = this->At(i, begin);
    auto const covered = static_cast<std::uint32_t>(std::ceil(first));
    auto const past = static_cast<std::uint32_t>(this->At(i + 1, end));
    return covered < past ? FirstOfBlock(covered, past) : static_cast<std::uint32_t>(first);
  }

 private:
  static constexpr double kByLaw = 0.25;  // part of the numbers; tried: 0.375, 0.5 (late trees
                                          // alike, the first ones up to 9% more)

  /** @brief Says where a value begins among the numbers. */
  [[nodiscard]] GPU_EXACT_HD double At(std::uint64_t i, std::uint64_t rank) const {
    if (of_values_) {
      return static_cast<double>(i) +
             static_cast<double>(rank * n_more_) / static_cast<double>(n_entries_);
    }
    bool const is_first_half = 2 * rank <= n_entries_;
    std::uint64_t const from_end = is_first_half ? rank : n_entries_ - rank;
    double below = static_cast<double>(from_end * n_) / static_cast<double>(n_entries_);
    if (factor_ != 0.0) {
      double const part = static_cast<double>(from_end) / static_cast<double>(n_entries_);
      double const by_law = factor_ * (std::sqrt(std::fma(2.0, part, square_)) - s_);
      // Fused by name: the host and the device, whose compiler fuses, get the same.
      below = std::fma(kByLaw, by_law, (1.0 - kByLaw) * below);
    }
    return is_first_half ? below : n_ - below;
  }
  /** @brief Finds the largest aligned block in [begin, end), which is not empty. */
  [[nodiscard]] GPU_EXACT_HD static std::uint32_t FirstOfBlock(std::uint32_t begin,
                                                               std::uint32_t end) {
    std::uint32_t size{1};
    while (2 * size <= end - begin) {
      size *= 2;
    }
    std::uint32_t first = (begin + size - 1) / size * size;
    while (first + size > end) {
      size /= 2;
      first = (begin + size - 1) / size * size;
    }
    return first;
  }

  std::uint32_t n_entries_{0};
  std::uint32_t n_{0};
  std::uint32_t n_more_{0};  // numbers beside one for each value
  bool of_values_{false};
  double s_{0.0};
  double square_{0.0};  // of s_
  double factor_{0.0};  // 0: all are alike
};
}  // namespace gpu_exact
