/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Gradients as 64-bit fixed point: sums do not depend on the order of addition, so neither
 *        thread timing nor tile size changes a tree, and differences of sums are exact.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gpu_exact/types.h"
#include "src/gain.h"
#include "src/platform.h"

namespace gpu_exact {
/** @brief Sum of gradient pairs in fixed point. A group under addition: sums can be subtracted. */
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
 * @brief The gradients of a row in fixed point, as floats of half the size: whole numbers, exact, as
 *        a float is rounded to its own 24 bits or fewer.
 */
struct alignas(8) GradientUnits {
  float grad;
  float hess;

  [[nodiscard]] GPU_EXACT_HD FixedSum Fixed() const {
    return {static_cast<std::int64_t>(grad), static_cast<std::int64_t>(hess)};
  }
};

/** @brief 2^exponent as two factors, each of which is a normal float. */
struct PowerOfTwo {
  float first;
  float second;

  GPU_EXACT_HD static PowerOfTwo Make(int exponent) {
    int half = exponent / 2;
    return {std::ldexp(1.0f, half), std::ldexp(1.0f, exponent - half)};
  }
  /** @brief Exact unless the product leaves the normal floats. */
  [[nodiscard]] GPU_EXACT_HD float Times(float x) const { return x * first * second; }
};

/**
 * @brief Powers of two between gradients and fixed point.
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
   * @brief As many bits as the sums leave room for.
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

  /** @brief Nearest fixed point. A positive hessian stays positive: zero means "no weight". */
  [[nodiscard]] GPU_EXACT_HD FixedSum Fixed(GradientPair const& g) const {
    FixedSum sum{std::llrint(grad_scale.Times(g.grad)), std::llrint(hess_scale.Times(g.hess))};
    if (sum.hess == 0 && g.hess > 0.0f) {
      sum.hess = 1;
    }
    return sum;
  }

  /**
   * @brief Whether some rows may keep few bits: their sums are so far above single gradients.
   *
   * Below 2^-34, which is sums of magnitudes up to 2^27, what keeps few bits gains next to nothing:
   * usual objectives on 100 million rows are never asked further.
   */
  [[nodiscard]] bool MayCrush() const { return std::max(grad_unit, hess_unit) > kFineUnit; }
  /** @brief Whether a row's gradient or hessian is not zero and keeps less than 10 bits. */
  [[nodiscard]] GPU_EXACT_HD bool Crushes(GradientPair const& g) const {
    float const grad = std::fabs(grad_scale.Times(g.grad));
    float const hess = hess_scale.Times(g.hess);
    return (grad_unit > kFineUnit && g.grad != 0.0f && grad < kCrushed) ||
           (hess_unit > kFineUnit && g.hess > 0.0f && hess < kCrushed);
  }
  /** @brief Whether so many crushed rows among those trained on may make other trees. */
  [[nodiscard]] static bool TooMany(std::uint64_t n_crushed, std::uint64_t n_trained) {
    return 16 * n_crushed > n_trained;
  }
  static constexpr double kFineUnit = 1.0 / (std::uint64_t{1} << 34);
  static constexpr float kCrushed = 1 << 10;

  /** @brief Fixed(g) as floats. */
  [[nodiscard]] GPU_EXACT_HD GradientUnits Units(GradientPair const& g) const {
    FixedSum sum = this->Fixed(g);
    return {static_cast<float>(sum.grad), static_cast<float>(sum.hess)};
  }

  [[nodiscard]] GPU_EXACT_HD GradientSum Real(FixedSum const& sum) const {
    return {static_cast<double>(sum.grad) * grad_unit, static_cast<double>(sum.hess) * hess_unit};
  }

  GPU_EXACT_HD static Quantiser OfExponents(int g, int h, float max_grad, float max_hess) {
    return {PowerOfTwo::Make(g),
            PowerOfTwo::Make(h),
            std::ldexp(1.0, -g),
            std::ldexp(1.0, -h),
            max_grad,
            max_hess};
  }
};
}  // namespace gpu_exact
