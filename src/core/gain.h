/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Compute weights, gains and the loss change of a split in the float widths of XGBoost's
 *        split_evaluator.h and param.h, so that trees come out the same to the last bit.
 *
 * XGBoost changed its rules once. By the old ones, up to release 3.3,
 * - a gain is computed in single precision, and knows no alpha beside the weight's;
 * - where no weight may be limited, it is G^2 / (H + lambda) whatever the weight is;
 * - a node lighter than min_child_weight weighs nothing;
 * - monotone constraints that are all 0 are constraints.
 * That a child may then have no hessian, where min_child_weight is 0, is not done here: XGBoost's own
 * builder grows those trees, see WhyNotOnGpu() in plugin/train/refusals.cc.
 *
 * Compiled without contraction to fused multiply-add on either side.
 *
 * GainBound (gain_bound.h) bounds these formulas from above. Change both together: a gain above its
 * bound is never looked at, and trees are silently no longer exact. tests/core/test_gain_bound.cc
 * holds each gain against its bound, and a parameter that GainBound does not know does not compile.
 */
#pragma once

#include <cmath>
#include <limits>

#include "core/platform.h"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief Holds the training parameters that gains depend on. */
struct GainParam {
  float min_child_weight;
  float reg_lambda;
  float reg_alpha;
  float max_delta_step;
  GainRules rules;
  bool bounded;  // monotone constraints keep weights within bounds

  GainParam() = default;
  explicit GainParam(GrowParam const& p)
      : min_child_weight{p.min_child_weight},
        reg_lambda{p.reg_lambda},
        reg_alpha{p.reg_alpha},
        max_delta_step{p.max_delta_step},
        rules{p.gain_rules},
        bounded{p.gain_rules == GainRules::kOld ? !p.monotone_constraints.empty()
                                                : p.HasMonotone()} {}

  [[nodiscard]] GPU_EXACT_HD bool Old() const { return rules == GainRules::kOld; }
};

/** @brief Sums gradient pairs. */
struct GradientSum {
  double grad;
  double hess;
};

/** @brief Holds the bounds that monotone constraints set to the weight of a node. */
struct WeightBounds {
  float lower;
  float upper;

  /** @brief Give bounds that no weight meets, an infinite one included. */
  GPU_EXACT_HD static WeightBounds None() {
    return {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  }
  /** @brief Give the root's bounds: finite ones where there is a monotone constraint. */
  static WeightBounds OfRoot(bool has_monotone) {
    constexpr float kMost = std::numeric_limits<float>::max();
    return has_monotone ? WeightBounds{-kMost, kMost} : None();
  }
};

/** @brief Compute sign(grad) * max(|grad| - alpha, 0) */
GPU_EXACT_HD inline double ThresholdL1(double grad, float alpha) {
  if (grad > +alpha) {
    return grad - alpha;
  }
  if (grad < -alpha) {
    return grad + alpha;
  }
  return 0.0;
}

/** @brief Compute the weight of a leaf with these sums, before the learning rate. */
GPU_EXACT_HD inline float CalcWeight(GainParam const& p, GradientSum const& sum,
                                     WeightBounds const& bounds) {
  double weight{0.0};
  if (sum.hess > 0.0 && !(p.Old() && sum.hess < p.min_child_weight)) {
    weight = -ThresholdL1(sum.grad, p.reg_alpha) / (sum.hess + p.reg_lambda);
    if (p.max_delta_step != 0.0f && std::fabs(weight) > p.max_delta_step) {
      weight = std::copysign(static_cast<double>(p.max_delta_step), weight);
    }
  }
  auto w = static_cast<float>(weight);
  return w < bounds.lower ? bounds.lower : (w > bounds.upper ? bounds.upper : w);
}

/** @brief Compute CalcGain() by the old rules. The hessian is positive. */
GPU_EXACT_HD inline float CalcOldGain(GainParam const& p, GradientSum const& sum, float weight) {
  if (p.max_delta_step == 0.0f && !p.bounded) {
    double const grad = ThresholdL1(sum.grad, p.reg_alpha);
    return static_cast<float>(grad * grad) / static_cast<float>(sum.hess + p.reg_lambda);
  }
  auto const grad = static_cast<float>(sum.grad);
  auto const hess = static_cast<float>(sum.hess);
  return -(2.0f * grad * weight + (hess + p.reg_lambda) * (weight * weight));
}

/** @brief Compute how much a leaf of this weight lowers the loss, doubled. */
GPU_EXACT_HD inline float CalcGain(GainParam const& p, GradientSum const& sum, float weight) {
  if (sum.hess <= 0.0) {
    return 0.0f;
  }
  if (p.Old()) {
    return CalcOldGain(p, sum, weight);
  }
  // The square is a float product in XGBoost, the rest is double.
  return static_cast<float>(-(2.0 * sum.grad * weight +
                              (sum.hess + p.reg_lambda) * (weight * weight) +
                              2.0 * p.reg_alpha * std::fabs(weight)));
}

/**
 * @brief Compute the loss change of a split; -infinity where the split is not allowed.
 *
 * @param bounds    Limit the weights of the node's children.
 * @param monotone  Constraint of the feature: -1, 0, 1.
 * @param node_gain Gain of the node unsplit.
 */
GPU_EXACT_HD inline float CalcLossChange(GainParam const& p, GradientSum const& left,
                                         GradientSum const& right, WeightBounds const& bounds,
                                         int monotone, float node_gain) {
  constexpr float kRefused = -std::numeric_limits<float>::infinity();
  bool valid = left.hess >= p.min_child_weight && right.hess >= p.min_child_weight &&
               left.hess > 0.0 && right.hess > 0.0;
  if (!valid) {
    return kRefused;
  }
  float w_left = CalcWeight(p, left, bounds);
  float w_right = CalcWeight(p, right, bounds);
  if ((monotone > 0 && !(w_left <= w_right)) || (monotone < 0 && !(w_left >= w_right))) {
    return kRefused;
  }
  float gain = CalcGain(p, left, w_left) + CalcGain(p, right, w_right);
  return gain - node_gain;
}

/** @brief Set the bounds of two children from their parent's, after a split on a constrained
 *         feature. */
GPU_EXACT_HD inline void SplitBounds(WeightBounds const& parent, int monotone, float w_left,
                                     float w_right, WeightBounds* out_left,
                                     WeightBounds* out_right) {
  *out_left = *out_right = parent;
  float mid = (w_left + w_right) / 2.0f;
  if (monotone < 0) {
    out_left->lower = out_right->upper = mid;
  } else if (monotone > 0) {
    out_left->upper = out_right->lower = mid;
  }
}
}  // namespace gpu_exact
