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
/** @brief 1 / x within 2^-22. */
GPU_EXACT_HD inline float ApproxInverse(float x) {
#if defined(__CUDA_ARCH__)
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
#else
  return 1.0f / x;
#endif
}

/**
 * @brief Bounds the gain of two children by max(|G| - alpha, 0)^2 / (H + lambda) of each.
 *
 * That is the gain at the best weight; max_delta_step and monotone bounds only take from it. All in
 * fixed point units, so that sums need no scaling. Relative errors: the float conversions of G and
 * H and their sums 2^-24 each, the approximate division 2^-22, and the exact gain, whose weight is
 * rounded to a float, exceeds the best one by less than 2^-22. kMargin is above them all; alpha is
 * less by it, as |G| - alpha may cancel.
 */
struct GainBound {
  static constexpr float kMargin = 1.0f / (1 << 18);
  static constexpr int kMaxWalk = 8;                     // entries that a WalkBound passes
  static constexpr float kWalkError = 1.0f / (1 << 20);  // of its sums

  float lambda;     // in units of the hessian
  float alpha;      // in units of the gradient, rounded down
  float unit;       // multiplies a gain to have it in units
  bool enabled;     // the units are such that no float overflows
  float walk_grad;  // what WalkBound adds to a gradient and a hessian, whatever they are
  float walk_hess;

  static GainBound Make(GainParam const& p, Quantiser const& q) {
    double lambda = p.reg_lambda / q.hess_unit;
    double alpha = p.reg_alpha / q.grad_unit;
    double unit = q.hess_unit / (q.grad_unit * q.grad_unit);
    constexpr double kHuge = 1e30;
    bool enabled = lambda < kHuge && unit < kHuge && unit > 1.0 / kHuge;
    // Weights so small that their squares are no normal floats would be taken for larger gains.
    enabled = enabled && p.reg_lambda + std::ldexp(q.hess_unit, 62) < 1e26;
    GainBound b{static_cast<float>(lambda),
                static_cast<float>(alpha * (1.0 - kMargin)),
                static_cast<float>(unit),
                enabled,
                0.0f,
                0.0f};
    // Rounding to units adds less than one to each gradient.
    auto steps = [](float largest, double step) {
      return static_cast<float>(kWalkError * kMaxWalk * (largest / step + 1.0));
    };
    b.walk_grad = steps(q.max_grad, q.grad_unit) - b.alpha;
    b.walk_hess = b.lambda - steps(q.max_hess, q.hess_unit);
    return b;
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
    return grad * grad * ApproxInverse(hess);
  }
};

/** @brief What all candidates of a node and a feature share, in single precision. */
struct NodeBound {
  float total_grad;
  float total_hess;
  float missing_grad;  // of rows without a value of the feature
  float missing_hess;
  float bar;          // GainBound::Bar; NaN: no candidate is wanted
  float has_missing;  // 0 or 1

  /** @param present Of rows with a value of the feature. */
  GPU_EXACT_HD static NodeBound Make(FixedSum const& total, FixedSum const& present, float bar) {
    FixedSum missing = total - present;
    return {static_cast<float>(total.grad),
            static_cast<float>(total.hess),
            static_cast<float>(missing.grad),
            static_cast<float>(missing.hess),
            bar,
            present == total ? 0.0f : 1.0f};
  }
};

/**
 * @brief GainBound for the candidates between neighbouring entries, whose sums it adds up in single
 *        precision: a tenth of the work of exact sums and their conversions.
 *
 * At most kMaxWalk entries are passed. Each addition errs by 2^-24 of what it adds up, so that all
 * sums here err by less than kWalkError of the magnitudes in them: 10 * 2^-24 of what was before
 * and was passed, 3 * 2^-24 of the missing ones and the total. Gradients are bounded by that much
 * more, hessians by that much less.
 */
class WalkBound {
 public:
  /** @param before Sum of the node's entries before the first candidate. */
  GPU_EXACT_HD WalkBound(GainBound const& bound, NodeBound const& node, FixedSum const& before)
      : node_{node},
        grad_{static_cast<float>(before.grad)},
        hess_{static_cast<float>(before.hess)} {
    constexpr float kError = GainBound::kWalkError;
    low_.grad = std::fmaf(kError, std::fabs(grad_), bound.walk_grad);
    low_.hess = std::fmaf(-kError, std::fabs(hess_), bound.walk_hess);
    float grad = std::fabs(node.total_grad) + std::fabs(node.missing_grad);
    float hess = std::fabs(node.total_hess) + std::fabs(node.missing_hess);
    high_.grad = std::fmaf(kError, grad, low_.grad);
    high_.hess = std::fmaf(-kError, hess, low_.hess);
  }

  /** @param gpair In units, whole numbers. */
  GPU_EXACT_HD void Pass(GradientPair const& gpair) {
    grad_ += gpair.grad;
    hess_ += gpair.hess;
  }

  /**
   * @brief Whether the candidate here may reach the node's bar in either scan.
   * @tparam kMissing Otherwise no row misses the feature, and both scans see the same children.
   */
  template <bool kMissing>
  [[nodiscard]] GPU_EXACT_HD bool MayReach() const {
    bool reaches = this->Reaches(grad_, hess_, low_);
    if (kMissing) {
      reaches |= this->Reaches(grad_ + node_.missing_grad, hess_ + node_.missing_hess, high_);
    }
    return reaches;
  }

 private:
  /** @brief Room for errors: added to magnitudes of gradients, less alpha, and to hessians. */
  struct Room {
    float grad;
    float hess;
  };

  [[nodiscard]] GPU_EXACT_HD bool Reaches(float grad, float hess, Room const& left) const {
    float l = Numerator(grad, left);
    float r = Numerator(node_.total_grad - grad, high_);
    float gain = l * Inverse(hess, left);
    return std::fmaf(r, Inverse(node_.total_hess - hess, high_), gain) >= node_.bar;
  }
  [[nodiscard]] GPU_EXACT_HD static float Numerator(float grad, Room const& room) {
    float g = std::fmax(std::fabs(grad) + room.grad, 0.0f);
    return g * g;
  }
  [[nodiscard]] GPU_EXACT_HD static float Inverse(float hess, Room const& room) {
    return ApproxInverse(std::fmax(hess + room.hess, std::numeric_limits<float>::min()));
  }

  NodeBound node_;
  float grad_;
  float hess_;
  Room low_;   // of sums of what lies before
  Room high_;  // of sums that the total or the missing ones are in
};
}  // namespace gpu_exact
