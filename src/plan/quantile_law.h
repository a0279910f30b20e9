/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Says how long the quantiles of a column are.
 */
#pragma once

#include <cmath>
#include <cstdint>

#include "core/platform.h"

namespace gpu_exact {
/**
 * @brief Counts the quantiles of a column below a rank. They are shorter towards its ends.
 *
 * A quarter of them goes to quantiles that have some times sqrt(m) entries, m entries from an end,
 * one at least; the others are alike. Gradients of m rows add up to about sqrt(m) where nothing is to
 * be found, and a bin's bound must not be far above that: splits that find little cut few rows off, at
 * an end. In the middle a quantile has at most 8/7 of the entries that it would have if all were alike.
 */
struct QuantileLaw {
  // Part of the quantiles that are not alike; tried: 0.375, 0.5 (late trees the same, the first ones up
  // to 9% more).
  static constexpr double kByLaw = 0.25;

  std::uint32_t n_entries;
  std::uint32_t n_quantiles;

  [[nodiscard]] GPU_EXACT_HD double Below(std::uint64_t rank) const {
    bool const is_first_half = 2 * rank <= n_entries;
    std::uint64_t const from_end = is_first_half ? rank : n_entries - rank;
    double below = static_cast<double>(from_end * n_quantiles) / n_entries;
    // At an end the slope, in quantiles an entry, is 1. Fused by name: the host and the device, whose
    // compiler fuses, get the same.
    double const slope =
        2.0 * (static_cast<double>(n_entries) / n_quantiles - 1.0 + kByLaw) / kByLaw - 1.0;
    if (slope > 1.0) {
      double const square = 1.0 / std::fma(slope, slope, -1.0);
      double const s = std::sqrt(square);
      double const part = static_cast<double>(from_end) / n_entries;
      double const by_law = 0.5 * (std::sqrt(1.0 + square) + s) * n_quantiles *
                            (std::sqrt(std::fma(2.0, part, square)) - s);
      below = std::fma(kByLaw, by_law, (1.0 - kByLaw) * below);
    }
    return is_first_half ? below : n_quantiles - below;
  }
};
}  // namespace gpu_exact
