/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Weights and gains in the float widths of XGBoost's CPU code.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gpu_exact/tree_builder.h"

namespace gpu_exact::reference {
struct Sums {
  double grad{0.0};
  double hess{0.0};

  void Add(GradientPair const& gpair) {
    grad += static_cast<double>(gpair.grad);
    hess += static_cast<double>(gpair.hess);
  }
  [[nodiscard]] Sums Minus(Sums const& that) const { return {grad - that.grad, hess - that.hess}; }
};

/** @brief What monotone constraints leave of the weights below a node. */
struct Bounds {
  float lower{-std::numeric_limits<float>::infinity()};
  float upper{std::numeric_limits<float>::infinity()};

  /** @brief The root's. Where there is a constraint XGBoost clips weights that are infinite. */
  static Bounds OfRoot(GrowParam const& param) {
    constexpr float kMost = std::numeric_limits<float>::max();
    return Constrained(param) ? Bounds{-kMost, kMost} : Bounds{};
  }

  /** @brief Whether XGBoost keeps bounds at all; the old rules do for a list of zeros, too. */
  static bool Constrained(GrowParam const& param) {
    auto const& constraints = param.monotone_constraints;
    if (param.gain_rules == GainRules::kOld) {
      return !constraints.empty();
    }
    return std::any_of(constraints.cbegin(), constraints.cend(),
                       [](std::int32_t sign) { return sign != 0; });
  }
};

inline float Weight(GrowParam const& param, Sums const& sums, Bounds const& bounds) {
  float weight = 0.0f;
  bool const light = param.gain_rules == GainRules::kOld &&
                     sums.hess < static_cast<double>(param.min_child_weight);
  if (sums.hess > 0.0 && !light) {
    double const alpha = param.reg_alpha;
    double const shrunk = sums.grad > alpha    ? sums.grad - alpha
                          : sums.grad < -alpha ? sums.grad + alpha
                                               : 0.0;
    double step = -shrunk / (sums.hess + static_cast<double>(param.reg_lambda));
    double const limit = param.max_delta_step;
    if (limit != 0.0 && std::abs(step) > limit) {
      step = std::copysign(limit, step);
    }
    weight = static_cast<float>(step);
  }
  // Written out: std::clamp would not keep a NaN as XGBoost does.
  return weight < bounds.lower ? bounds.lower : weight > bounds.upper ? bounds.upper : weight;
}

/** @brief By the old rules, all in single precision but the square of the gradient. */
inline float OldGain(GrowParam const& param, Sums const& sums, float weight) {
  if (param.max_delta_step == 0.0f && !Bounds::Constrained(param)) {
    double const alpha = param.reg_alpha;
    double const shrunk = std::abs(sums.grad) > alpha ? std::abs(sums.grad) - alpha : 0.0;
    auto const square = static_cast<float>(shrunk * shrunk);
    auto const divisor = static_cast<float>(sums.hess + static_cast<double>(param.reg_lambda));
    return square / divisor;
  }
  float const linear = 2.0f * static_cast<float>(sums.grad) * weight;
  float const divisor = static_cast<float>(sums.hess) + param.reg_lambda;
  float const square = weight * weight;
  return -(linear + divisor * square);
}

inline float Gain(GrowParam const& param, Sums const& sums, float weight) {
  if (sums.hess <= 0.0) {
    return 0.0f;
  }
  if (param.gain_rules == GainRules::kOld) {
    return OldGain(param, sums, weight);
  }
  float const square = weight * weight;
  double const lambda = param.reg_lambda;
  double const alpha = param.reg_alpha;
  return static_cast<float>(-(2.0 * sums.grad * static_cast<double>(weight) +
                              (sums.hess + lambda) * static_cast<double>(square) +
                              2.0 * alpha * static_cast<double>(std::abs(weight))));
}

/** @brief The gain of both children; minus infinity for a split that is not allowed. */
inline float SplitGain(GrowParam const& param, Sums const& left, Sums const& right,
                       Bounds const& bounds, std::int32_t monotone) {
  constexpr float kNotAllowed = -std::numeric_limits<float>::infinity();
  double const least = param.min_child_weight;
  bool const both = left.hess > 0.0 && right.hess > 0.0;
  if (!(left.hess >= least && right.hess >= least && both)) {
    return kNotAllowed;
  }
  auto const w_left = Weight(param, left, bounds);
  auto const w_right = Weight(param, right, bounds);
  if ((monotone > 0 && !(w_left <= w_right)) || (monotone < 0 && !(w_left >= w_right))) {
    return kNotAllowed;
  }
  return Gain(param, left, w_left) + Gain(param, right, w_right);
}
}  // namespace gpu_exact::reference
