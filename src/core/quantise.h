/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Converts gradients to 64-bit fixed point: sums do not depend on the order of addition, so
 *        neither thread timing nor tile size changes a tree, and differences of sums are exact.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/gain.h"
#include "core/platform.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Sums gradient pairs in fixed point. Sums can be subtracted: they form a group under
 *         addition. */
struct FixedSum {
  std::int64_t grad;
  std::int64_t hess;

  GPU_EXACT_HD friend FixedSum operator+(FixedSum const& a, FixedSum const& b) {
    return {a.grad + b.grad, a.hess + b.hess};
  }
  GPU_EXACT_HD friend FixedSum operator-(FixedSum const& a, FixedSum const& b) {
    return {a.grad - b.grad, a.hess - b.hess};
  }
  GPU_EXACT_HD friend bool operator==(FixedSum const& a, FixedSum const& b) {
    return a.grad == b.grad && a.hess == b.hess;
  }
};

/**
 * @brief Holds the gradients of a row in fixed point, as floats of half the size. They are exact,
 *        as a float is rounded to its own 24 bits or fewer.
 */
struct alignas(8) GradientUnits {
  float grad;
  float hess;

  [[nodiscard]] GPU_EXACT_HD FixedSum Fixed() const {
    return {static_cast<std::int64_t>(grad), static_cast<std::int64_t>(hess)};
  }
};

/** @brief Holds absolute errors of gradients and hessians, in 1 / kPerUnit of a unit of fixed
 *         point. */
struct RoundingError {
  static constexpr double kPerUnit = 1 << 20;

  std::uint64_t grad;
  std::uint64_t hess;

  GPU_EXACT_HD friend RoundingError operator+(RoundingError const& a, RoundingError const& b) {
    return {a.grad + b.grad, a.hess + b.hess};
  }
};

/** @brief Adds up the rounding errors of some rows; the order does not matter. */
struct Rounding {
  RoundingError all;
  RoundingError few_bits;    // of gradients and hessians that keep fewer than Quantiser::kBits
  std::uint32_t n_few_bits;  // rows that have such

  GPU_EXACT_HD friend Rounding operator+(Rounding const& a, Rounding const& b) {
    return {a.all + b.all, a.few_bits + b.few_bits, a.n_few_bits + b.n_few_bits};
  }
};

/** @brief Holds 2^exponent as two factors, each of which is a normal float. */
struct PowerOfTwo {
  float first;
  float second;

  GPU_EXACT_HD static PowerOfTwo Make(int exponent) {
    int half = exponent / 2;
    return {std::ldexp(1.0f, half), std::ldexp(1.0f, exponent - half)};
  }
  /** @brief Multiply; exact unless the product leaves the normal floats. */
  [[nodiscard]] GPU_EXACT_HD float Times(float x) const { return x * first * second; }
};

/**
 * @brief Holds the powers of two between gradients and fixed point.
 *
 * A sum over all rows stays within 2^62, once refined within 2^61; BoxInside needs bits above. Made
 * from the largest gradient alone, a gradient keeps 62 - ceil(log2(n_rows)) bits below it: 38 bits
 * at 10 million rows, where a float has 24. Refined by the sum of all magnitudes, a few large
 * gradients among many small ones cost no bits.
 */
struct Quantiser {
  PowerOfTwo grad_scale;
  PowerOfTwo hess_scale;
  double grad_unit;  // 1 / grad_scale
  double hess_unit;
  float max_grad;  // largest absolute gradient
  float max_hess;

  /**
   * @param max_grad Largest absolute gradient, finite.
   * @param max_hess Largest hessian, finite.
   */
  GPU_EXACT_HD static Quantiser Make(float max_grad, float max_hess, RowIdx n_rows) {
    int row_bits{0};
    while ((std::uint64_t{1} << row_bits) < n_rows) {
      ++row_bits;
    }
    auto exponent = [row_bits](float largest) {
      int e{0};
      std::frexp(largest, &e);  // largest < 2^e
      return 62 - row_bits - (largest > 0.0f ? e : 0);
    };
    return OfExponents(exponent(max_grad), exponent(max_hess), max_grad, max_hess);
  }

  /**
   * @brief Use as many bits as the sums leave room for.
   * @param magnitudes Sums of the absolute gradients and of the hessians, by this quantiser.
   */
  [[nodiscard]] Quantiser Refined(FixedSum const& magnitudes, RowIdx n_rows) const {
    auto exponent = [n_rows](std::int64_t sum, double unit) {
      int e{0};
      // Rounding takes less than one unit a row from a sum, here and once refined.
      std::frexp((static_cast<double>(sum) + n_rows) * unit, &e);
      return 61 - e;
    };
    return OfExponents(exponent(magnitudes.grad, grad_unit), exponent(magnitudes.hess, hess_unit),
                       max_grad, max_hess);
  }

  /** @brief Round to the nearest fixed point. A positive hessian stays positive: zero means
   *         "no weight". */
  [[nodiscard]] GPU_EXACT_HD FixedSum Fixed(GradientPair const& g) const {
    FixedSum sum{std::llrint(grad_scale.Times(g.grad)), std::llrint(hess_scale.Times(g.hess))};
    if (sum.hess == 0 && g.hess > 0.0f) {
      sum.hess = 1;
    }
    return sum;
  }

  /**
   * @brief Tell whether gradients and hessians of at least these sizes are right to six digits.
   * @param least_grad Least absolute gradient that is not 0; infinity where all are.
   * @param least_hess Least positive hessian; infinity where there is none.
   */
  [[nodiscard]] bool IsFine(float least_grad, float least_hess) const {
    constexpr float kFine = 1 << 20;
    return grad_scale.Times(least_grad) >= kFine && hess_scale.Times(least_hess) >= kFine;
  }
  /** @brief Compute the rounding error of a row. */
  [[nodiscard]] GPU_EXACT_HD Rounding Rounded(GradientPair const& g) const {
    FixedSum const fixed = this->Fixed(g);
    float const grad = grad_scale.Times(g.grad);
    float const hess = hess_scale.Times(g.hess);
    RoundingError const all{Error(grad, fixed.grad, g.grad != 0.0f),
                            Error(hess, fixed.hess, g.hess > 0.0f)};
    RoundingError const few_bits{std::fabs(grad) < kFewBits ? all.grad : 0,
                                 hess < kFewBits ? all.hess : 0};
    return {all, few_bits, few_bits.grad + few_bits.hess != 0 ? 1u : 0u};
  }
  /**
   * @brief Tell whether rows that keep few bits may change a split.
   *
   * The hessian of a child, with lambda, is at least the least child weight with lambda, W. A node
   * whose gradients sum to G gains G^2 / (H + lambda), in which an error E of G and D of H are
   * 2 G E / W and, relatively, D / W. Harmless is D of less than 2^-15 W, as kBits allow for each
   * row, and E where 2^16 E^2 / W is less than 2^-22: then either G is above 2^15 E, and what it
   * gains right to 2^-14, or it is wrong by less than a quarter of the least loss change of a split.
   */
  [[nodiscard]] bool MayChangeSplits(Rounding const& rounding, GainParam const& p) const {
    double const least = double{p.min_child_weight} + p.reg_lambda;
    GradientSum const error = this->Sizes(rounding.few_bits);
    return error.hess > std::ldexp(least, -15) || error.grad * error.grad > std::ldexp(least, -38);
  }
  /** @brief Tell whether rounding may change a node's weight or hessian in the first four
   *         digits. */
  [[nodiscard]] bool MayChangeNode(Rounding const& rounding, GradientSum const& node) const {
    GradientSum const error = this->Sizes(rounding.all);
    return error.grad > std::ldexp(std::fabs(node.grad), -15) ||
           error.hess > std::ldexp(node.hess, -15);
  }

  /** @brief Give Fixed(g) as floats. */
  [[nodiscard]] GPU_EXACT_HD GradientUnits Units(GradientPair const& g) const {
    FixedSum sum = this->Fixed(g);
    return {static_cast<float>(sum.grad), static_cast<float>(sum.hess)};
  }

  [[nodiscard]] GPU_EXACT_HD GradientSum Real(FixedSum const& sum) const {
    return {static_cast<double>(sum.grad) * grad_unit, static_cast<double>(sum.hess) * hess_unit};
  }

  /** @brief Sets how many bits a gradient and a hessian should keep: half of the last bit is
   *         2^-15 of the value. */
  static constexpr int kBits = 14;

  GPU_EXACT_HD static Quantiser OfExponents(int g, int h, float max_grad, float max_hess) {
    return {PowerOfTwo::Make(g),
            PowerOfTwo::Make(h),
            std::ldexp(1.0, -g),
            std::ldexp(1.0, -h),
            max_grad,
            max_hess};
  }

 private:
  static constexpr float kFewBits = 1 << kBits;

  /** @brief Compute the error of x units that were fixed as that many; at least 1 where a value is
   *         not exact. */
  [[nodiscard]] GPU_EXACT_HD static std::uint64_t Error(float x, std::int64_t fixed,
                                                        bool has_value) {
    auto const error = std::fabs(static_cast<double>(x) - static_cast<double>(fixed));
    bool const exact = !has_value || (error == 0.0 && x != 0.0f);  // x may have been too small
    return exact ? 0 : static_cast<std::uint64_t>(error * RoundingError::kPerUnit) + 1;
  }
  [[nodiscard]] GradientSum Sizes(RoundingError const& error) const {
    return {static_cast<double>(error.grad) / RoundingError::kPerUnit * grad_unit,
            static_cast<double>(error.hess) / RoundingError::kPerUnit * hess_unit};
  }
};
}  // namespace gpu_exact
