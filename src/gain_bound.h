/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief A cheap upper bound of a split's gain in single precision: only candidates that may beat
 *        the best so far are worth the exact gain, with its divisions in double precision.
 */
#pragma once

#include <cmath>
#include <limits>

#include "src/gain.h"
#include "src/platform.h"
#include "src/quantise.h"

namespace gpu_exact {
/**
 * @brief Bounds the gain of two children by max(|G| - alpha, 0)^2 / (H + lambda) of each.
 *
 * That is the gain at the best weight; max_delta_step and monotone bounds only take from it. All in
 * fixed point units, so that sums need no scaling. Relative errors: the float conversions of G and
 * H and their sums 2^-24 each, the approximate division 2^-22, and the exact gain, whose weight is
 * rounded to a float, exceeds the best one by less than 2^-22. kMargin is above them all.
 */
struct GainBound {
  static constexpr float kMargin = 1.0f / (1 << 18);

  float lambda;  // in units of the hessian
  float alpha;   // in units of the gradient, rounded down
  float unit;    // multiplies a gain to have it in units
  bool enabled;  // the units are such that no float overflows

  static GainBound Make(GainParam const& p, Quantiser const& q) {
    double lambda = p.reg_lambda / q.hess_unit;
    double alpha = p.reg_alpha / q.grad_unit;
    double unit = q.hess_unit / (q.grad_unit * q.grad_unit);
    constexpr double kHuge = 1e30;
    bool enabled = lambda < kHuge && unit < kHuge && unit > 1.0 / kHuge;
    return {static_cast<float>(lambda), static_cast<float>(alpha * (1.0 - kMargin)),
            static_cast<float>(unit), enabled};
  }

  /** @brief What a bound must reach for a candidate to have this loss change, in units. */
  [[nodiscard]] GPU_EXACT_HD float Bar(float loss_change, float node_gain) const {
    // A node's gain may be negative under monotone constraints, and the sum then cancel.
    float rounding = (std::fabs(loss_change) + std::fabs(node_gain)) * kMargin;
    return enabled ? (loss_change + node_gain - rounding) * unit
                   : -std::numeric_limits<float>::infinity();
  }

  /** @brief Whether the exact loss change may reach the bar; false only if it can not. */
  [[nodiscard]] GPU_EXACT_HD bool MayReach(float bar, FixedSum const& left,
                                           FixedSum const& right) const {
    return !(Of(left) + Of(right) < bar);  // a NaN may
  }

 private:
  [[nodiscard]] GPU_EXACT_HD float Of(FixedSum const& sum) const {
    float grad = std::fmax(std::fabs(static_cast<float>(sum.grad)) - alpha, 0.0f);
    float hess = static_cast<float>(sum.hess) + lambda;
#if defined(__CUDA_ARCH__)
    return __fdividef(grad * grad, hess);
#else
    return grad * grad / hess;
#endif
  }
};
}  // namespace gpu_exact
