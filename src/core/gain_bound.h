/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Bounds gains from above, cheaply in single precision: of a split or of all splits inside a
 *        range of values: only candidates that may beat the best so far are worth the exact gain,
 *        with its divisions in double precision.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/gain.h"
#include "core/platform.h"
#include "core/quantise.h"

namespace gpu_exact {
/** @brief Compute 1 / x within 2^-22; on the host, where bounds are tested, less by as much. */
GPU_EXACT_HD inline float ApproxInverse(float x) {
#if defined(__CUDA_ARCH__)
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
#else
  return (1.0f - 1.0f / (1 << 22)) / x;
#endif
}

/**
 * @brief Counts coarse units of |gradient| in fixed point: 32 bits hold the sum of all rows, each
 *        rounded up. For fewer than 2^31 rows.
 *
 * Their gradients' magnitudes add up to at most 2^62 (Quantiser), which is 2^31 coarse units, and
 * rounding up takes less than one more from each row: the sum stays below 2^32.
 */
struct Magnitude {
  static constexpr int kShift = 31;

  /** @brief Round |grad| up, GradientUnits of at most 2^62: 0 only for 0. */
  GPU_EXACT_HD static std::uint32_t Of(float grad) {
    float const coarse = std::fabs(grad) * (1.0f / (1u << kShift));  // exact: a power of two
#if defined(__CUDA_ARCH__)
    return __float2uint_ru(coarse);
#else
    return static_cast<std::uint32_t>(std::ceil(coarse));
#endif
  }
  /** @brief Bound the sum of |gradient| from above, in fixed point. @param magnitude Below 2^32. */
  GPU_EXACT_HD static std::int64_t ToFixed(std::uint64_t magnitude) {
    return static_cast<std::int64_t>(magnitude << kShift);
  }
};

/** @brief Bounds the left child's sums: each of the two lies between its own ends. */
struct SumBox {
  FixedSum low;
  FixedSum high;

  GPU_EXACT_HD friend SumBox operator+(SumBox const& box, FixedSum const& shift) {
    return {box.low + shift, box.high + shift};
  }
};

/**
 * @brief Make the box of the left sums of all candidates inside a range of a column's values, in a
 *        node.
 *
 * That is where missing values go right; where they go left it is the box + their sum. A candidate
 * passes some of the range's rows. Of their gradients it has at most all positive ones, P, and at
 * least all negative ones, -N; of their hessians, none of which is negative, between none and all.
 * P + N is the magnitude and P - N the sum: P = (magnitude + sum) / 2, N = (magnitude - sum) / 2.
 * The magnitude is an upper bound, which makes both larger. The true P and N are whole numbers, so
 * that they are kept where a half is dropped.
 *
 * No overflow: with the true magnitude a corner, and what it leaves of the total, are sums over
 * some of the node's rows, within 2^62. Rounding up adds less than 2^31 to the magnitude for each
 * of less than 2^31 rows, half of which, 2^61, reaches a corner. Magnitude + sum, twice P, is
 * positive and below 2^64: hence without a sign.
 *
 * @param before    Sum of the node's rows with values below the range.
 * @param sum       Sum of the node's rows with values in the range.
 * @param magnitude Sum of Magnitude::Of their gradients.
 */
GPU_EXACT_HD inline SumBox BoxInside(FixedSum const& before, FixedSum const& sum,
                                     std::uint32_t magnitude) {
  auto both = static_cast<std::uint64_t>(Magnitude::ToFixed(magnitude));
  auto grad = static_cast<std::uint64_t>(sum.grad);
  auto positive = static_cast<std::int64_t>((both + grad) >> 1);
  auto negative = static_cast<std::int64_t>((both - grad) >> 1);
  return {{before.grad - negative, before.hess}, {before.grad + positive, before.hess + sum.hess}};
}

/** @brief Bounds the weights of a split's two children, in units of gradient / hessian. */
struct WeightLimits {
  float lower;
  float upper;
  int monotone;  // 1: the left one is not above the right one; -1: not below; 0: no matter
};

/**
 * @brief Bounds the gain of two children by max(|G| - alpha, 0)^2 / (H + lambda) of each.
 *
 * That is the gain at the best weight; max_delta_step and monotone bounds only take from it, which
 * LargestWithin() knows, and takes longer. All in fixed point units, so that sums need no scaling;
 * the exact gain is of the same sums, so that it does not matter how gradients were rounded to units.
 *
 * Many candidates at once. Largest bounds all splits of a node whose left sums (G, H) lie in a box.
 * At weights v and w of the two children, whatever they are, the gain is
 *
 *     -(2 G v + (H + lambda) v^2 + 2 alpha |v|) - (2 G' w + (H' + lambda) w^2 + 2 alpha |w|)
 *
 * where the right child's (G', H') is the total less (G, H). Given v and w that is linear in G and
 * H, so that at a point of the box it is at most what it is at one of the four corners; and there
 * the best weights gain no less. So the greatest of the four corners' gains at best weights bounds
 * the gain of any split in the box, at its own best weights or at any others. (In other words
 * max(|G| - alpha, 0)^2 / (H + lambda) is convex in G and H together, so is the right child's, an
 * affine image, and their sum is greatest at a corner.)
 * - Corners need not be splits of any rows. Both children only need H + lambda > 0 there.
 * - A split is allowed only if both hessians are positive and at least min_child_weight. The box is
 *   first cut to those, H >= min_hess and total - H >= min_hess: it still holds all splits that are
 *   allowed, and has lost corners that bound nothing real, such as an infinite gain without hessian
 *   where lambda is 0. If nothing is left, no split is allowed. min_hess is at least one unit, so
 *   that no division is by less.
 * - Missing values only move the box: each direction has its own.
 * - A tie reaches: a split of the same loss change as the best one has the same gain to beat, and
 *   the bound is not below it.
 * - Where weights are limited, v and w above are those within limits: at each corner the best such
 *   weights gain no less than any others. These are the best weights at all, cut to the limits; or,
 *   where a monotone constraint forbids these two together, one and the same weight for both
 *   children, as what each of them gains falls on either side of its best weight.
 *
 * Relative errors, in units of 2^-24. |G| is converted, 1, and less by alpha, 1; as |G| - alpha may
 * cancel, alpha is less by kMargin, 64: where |G| < 32 alpha that makes up for what the conversion
 * lost, elsewhere at most 1/31 of |G| - alpha cancelled. Squared, that is 4.2, and 1 for the
 * product. H is converted, lambda too, 1, and added, 1; its approximate inverse has 4, the product
 * with it 1, the sum of the children 1. The exact gain exceeds the one at the best weight by less
 * than 4: it squares the weight in single precision, 1, and rounds two gains to floats, 1, and
 * their sum, 1; a weight further off loses more than its square's rounding adds. What double
 * precision loses where |G| - alpha cancels is below 2^-50 |G|, again made up for by alpha. The
 * gain to beat has the errors of the loss change, 1, its sum with the node's gain, 1, the
 * subtraction, 1, the unit, 1, and the product, 1. These are 23 of kMargin's 64.
 *
 * Within limits a child may lose, and gains cancel. There errors are units of 2^-24 of a child's
 * 2 |G| |v| + (H + lambda) v^2 + 2 alpha |v|, of which each split in the box has at most what the
 * greatest |G|, H and |v| of the corners make (a weight grows or falls with G, and with H where G keeps
 * its sign, and so do weights that are cut): converted, multiplied and added, 8, and the exact gain's own
 * of above, 4. A limit is scaled to units with two errors, by which a weight that it cuts is off, 4; one
 * that is no normal float in units is moved outwards to the least that is. The bound is greater by
 * kMargin of these sums. It may so be above Largest() too: the smaller one counts.
 *
 * Under a monotone constraint a box may have no allowed split at all. A weight falls with G, and rises or
 * falls with H where G keeps its sign, so that both weights are extreme at corners. If the least one of
 * the child that must not be above is greater than the greatest one of the other child, by more than
 * both may be off, every split in the box is forbidden. They are off by less than 2 kMargin of what they
 * are and of |G| / (H + lambda), which holds for alpha too, and by what is no normal float.
 *
 * By the old rules of gain (src/core/gain.h) the above holds with the following changes.
 * - Where weights may be limited, alpha is only in the weights: at any weight a child gains at most
 *   -(2 G v + (H + lambda) v^2), so that alpha is 0 here, and with an alpha no split is known to be
 *   forbidden. Where none is, the gain is the one at the best weight.
 * - It is computed in single precision. Without limits that is 3: the square, H + lambda, and their
 *   quotient; all are normal floats, or the gain is below the least loss change, as the least hessian
 *   is held against kLeastDivisor. At a weight, 2 |G v| has 3 and (H + lambda) v^2 has 5, with the
 *   subtraction: 11 of the child's greatest gain, of which the former is at most twice and the latter
 *   once; a weight further off loses more. These are 31 of kMargin's 64, where they were 23. Within
 *   limits it is 6 of the sums, where it was 4.
 *
 * Sums of at most 2^62, 2^63 at corners, over at least one unit: no bound is above 2^127, a finite
 * float, and none is a NaN; LargestWithin()'s may be, of the greatest H and weights of different
 * corners, and is infinity then, which reaches any gain to beat. Products of sums, below the normal
 * floats, belong to gains far below XGBoost's least loss change, or to such as the gain to beat's
 * margin covers.
 */
struct GainBound {
  static constexpr float kMargin = 1.0f / (1 << 18);
  static constexpr double kLeastDivisor = 1e-31;

  float lambda;           // in units of the hessian
  float alpha;            // in units of the gradient, rounded down
  float unit;             // multiplies a gain to have it in units
  float weight_unit;      // multiplies a weight to have it in units
  float max_step;         // no weight is further from 0 for its own sake
  bool enabled;           // the units are such that no float overflows
  bool limited;           // weights may have limits: LargestWithin() is closer
  bool knows_weights;     // those of children, up to rounding
  std::int64_t min_hess;  // no child has less, in units; at least 1

  static GainBound Make(GainParam const& p, Quantiser const& q) {
    // All that gains depend on: with a parameter that is not bounded here this does not compile.
    auto const& [min_child_weight, reg_lambda, reg_alpha, max_delta_step, rules, bounded] = p;
    bool const old = rules == GainRules::kOld;
    bool const has_step = max_delta_step != 0.0f;
    bool const may_limit = bounded || has_step;
    double lambda = reg_lambda / q.hess_unit;
    double alpha = old && may_limit ? 0.0 : reg_alpha / q.grad_unit;
    double unit = q.hess_unit / (q.grad_unit * q.grad_unit);
    double weight_unit = q.hess_unit / q.grad_unit;
    constexpr double kHuge = 1e30;
    auto fits = [](double x) { return x < kHuge && x > 1.0 / kHuge; };
    bool enabled = lambda < kHuge && fits(unit);
    // Weights so small that their squares are no normal floats would be taken for larger gains.
    enabled = enabled && reg_lambda + std::ldexp(q.hess_unit, 62) < 1e26;
    enabled = enabled && !(old && reg_lambda + q.hess_unit < kLeastDivisor);
    return {static_cast<float>(lambda),
            static_cast<float>(alpha * (1.0 - kMargin)),
            static_cast<float>(unit),
            static_cast<float>(weight_unit),
            has_step ? max_delta_step : std::numeric_limits<float>::infinity(),
            enabled,
            may_limit && fits(weight_unit),
            !old || reg_alpha == 0.0f,
            MinHess(min_child_weight / q.hess_unit)};
  }

  /** @brief Compute the limits of the weights of a node's children. @param monotone The
   *         constraint of the feature: -1, 0, 1. */
  [[nodiscard]] GPU_EXACT_HD WeightLimits Limits(WeightBounds const& node, int monotone) const {
    auto cut = [&](float weight, float outwards) {
      float const limit = std::fmin(std::fmax(weight, node.lower), node.upper);
      float const scaled = limit * weight_unit;
      return limit != 0.0f && std::fabs(scaled) < std::numeric_limits<float>::min() ? outwards
                                                                                    : scaled;
    };
    constexpr float kLeast = std::numeric_limits<float>::min();
    return {cut(-max_step, -kLeast), cut(max_step, kLeast), monotone};
  }

  /** @brief Compute what a bound must reach for a candidate to have this loss change, in units. */
  [[nodiscard]] GPU_EXACT_HD float GainToBeat(float loss_change, float node_gain) const {
    // A node's gain may be negative under monotone constraints, and the sum then cancel.
    float rounding = (std::fabs(loss_change) + std::fabs(node_gain)) * kMargin;
    return enabled ? (loss_change + node_gain - rounding) * unit
                   : -std::numeric_limits<float>::infinity();
  }

  /** @brief Bound the gain of one split from above, in units as GainToBeat. Never NaN. */
  [[nodiscard]] GPU_EXACT_HD float OfSplit(FixedSum const& left, FixedSum const& right) const {
    float const gain = Of(left) + Of(right);
    return std::isnan(gain) ? std::numeric_limits<float>::infinity() : gain;
  }

  /** @brief Bound it; -infinity where a child is lighter than any split allows. */
  [[nodiscard]] GPU_EXACT_HD float OfAllowed(FixedSum const& left, FixedSum const& right) const {
    return left.hess < min_hess || right.hess < min_hess ? -std::numeric_limits<float>::infinity()
                                                         : this->OfSplit(left, right);
  }

  /** @brief Tell whether the exact loss change may reach the gain to beat; false only if it can
   *         not. */
  [[nodiscard]] GPU_EXACT_HD bool MayReach(float to_beat, FixedSum const& left,
                                           FixedSum const& right) const {
    return Reaches(this->OfSplit(left, right), to_beat);
  }

  /**
   * @brief Bound from above, in units as GainToBeat, the gain of any allowed split of a node whose
   *        left child's sums lie in the box; -infinity where no split there is allowed. Never NaN.
   *
   * @param total The node's sum. What it has beyond the box's ends stays in 64 bits.
   */
  [[nodiscard]] GPU_EXACT_HD float Largest(FixedSum const& total, SumBox const& left) const {
    std::int64_t const low = this->LeastHess(left);
    std::int64_t const high = this->MostHess(total, left);
    if (low > high) {
      return -std::numeric_limits<float>::infinity();
    }
    // At either end of the gradients, for the left child and the right one.
    float left_low = Numerator(left.low.grad);
    float left_high = Numerator(left.high.grad);
    float right_low = Numerator(total.grad - left.low.grad);
    float right_high = Numerator(total.grad - left.high.grad);
    float l = Inverse(low);
    float r = Inverse(total.hess - low);
    float at_low = std::fmax(left_low * l + right_low * r, left_high * l + right_high * r);
    l = Inverse(high);
    r = Inverse(total.hess - high);
    float at_high = std::fmax(left_low * l + right_low * r, left_high * l + right_high * r);
    return std::fmax(at_low, at_high);
  }

  /**
   * @brief Bound the gain of splits whose children's weights are within limits; -infinity where no split
   *        there is allowed.
   * @param left The box; of one split, its sum twice.
   */
  [[nodiscard]] GPU_EXACT_HD float LargestWithin(WeightLimits const& limits, FixedSum const& total,
                                                 SumBox const& left) const {
    std::int64_t const hess[]{this->LeastHess(left), this->MostHess(total, left)};
    if (hess[0] > hess[1]) {
      return -std::numeric_limits<float>::infinity();
    }
    Child const both{static_cast<float>(total.grad), static_cast<float>(total.hess) + 2.0f * lambda,
                     2.0f * alpha};
    float const alike = both.Gain(both.Weight(limits));
    Child most_left{0.0f, 0.0f, alpha}, most_right = most_left;
    float left_weight{0.0f}, right_weight{0.0f};
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    // Of the child whose weight must not be above the other's, and of that one.
    float least_below{kInfinity}, most_above{-kInfinity}, size{0.0f};
    float most = -std::numeric_limits<float>::infinity();
    for (std::int64_t h : hess) {
      for (std::int64_t g : {left.low.grad, left.high.grad}) {
        Child const l{static_cast<float>(g), static_cast<float>(h) + lambda, alpha};
        Child const r{static_cast<float>(total.grad - g),
                      static_cast<float>(total.hess - h) + lambda, alpha};
        float const v = l.Weight(limits), w = r.Weight(limits);
        bool const forbidden = limits.monotone > 0 ? v > w : limits.monotone < 0 && v < w;
        most = std::fmax(most, forbidden ? alike : l.Gain(v) + r.Gain(w));
        most_left.Include(l);
        most_right.Include(r);
        left_weight = std::fmax(left_weight, std::fabs(v));
        right_weight = std::fmax(right_weight, std::fabs(w));
        least_below = std::fmin(least_below, limits.monotone > 0 ? v : w);
        most_above = std::fmax(most_above, limits.monotone > 0 ? w : v);
        size = std::fmax(size, l.Size() + r.Size());
      }
    }
    float const off = 2.0f * kMargin * (size + left_weight + right_weight) +
                      4.0f * std::numeric_limits<float>::min() * std::fmax(weight_unit, 1.0f);
    if (knows_weights && limits.monotone != 0 && least_below - most_above > off) {
      return -kInfinity;
    }
    float const bound =
        most + kMargin * (most_left.Terms(left_weight) + most_right.Terms(right_weight));
    return std::isnan(bound) ? std::numeric_limits<float>::infinity() : bound;
  }

  /** @brief Tell whether what one of the above bounds may reach the gain to beat, or tie. */
  [[nodiscard]] GPU_EXACT_HD static bool Reaches(float bound, float to_beat) {
    return !(bound < to_beat);
  }

  /** @brief Compute max(|G| - alpha, 0)^2. @param slack Added to |G|. */
  [[nodiscard]] GPU_EXACT_HD float Numerator(float sum_grad, float slack = 0.0f) const {
    float grad = std::fmax(std::fabs(sum_grad) + (slack - alpha), 0.0f);
    return grad * grad;
  }

 private:
  /** @brief Holds the sums of a child in units, and tells what a weight makes of them. */
  struct Child {
    float grad;
    float hess;  // + lambda
    float alpha;

    /** @brief Find the best one within limits. */
    [[nodiscard]] GPU_EXACT_HD float Weight(WeightLimits const& limits) const {
      float const size = std::fmax(std::fabs(grad) - alpha, 0.0f) * ApproxInverse(hess);
      return std::fmin(std::fmax(grad > 0.0f ? -size : size, limits.lower), limits.upper);
    }
    /** @brief Compute |G| / (H + lambda). */
    [[nodiscard]] GPU_EXACT_HD float Size() const { return std::fabs(grad) * ApproxInverse(hess); }
    [[nodiscard]] GPU_EXACT_HD float Gain(float weight) const {
      return -(2.0f * grad * weight + hess * weight * weight + 2.0f * alpha * std::fabs(weight));
    }
    /** @brief Sum all that is added to or taken from the gain. @param weight Its absolute value. */
    [[nodiscard]] GPU_EXACT_HD float Terms(float weight) const {
      return weight * (2.0f * grad + hess * weight + 2.0f * alpha);
    }
    /** @brief Raise the sums to at least another child's. */
    GPU_EXACT_HD void Include(Child const& other) {
      grad = std::fmax(grad, std::fabs(other.grad));
      hess = std::fmax(hess, other.hess);
    }
  };

  /** @brief Cut the box's hessians to those that min_child_weight allows: the lower end. */
  [[nodiscard]] GPU_EXACT_HD std::int64_t LeastHess(SumBox const& left) const {
    return left.low.hess < min_hess ? min_hess : left.low.hess;
  }
  [[nodiscard]] GPU_EXACT_HD std::int64_t MostHess(FixedSum const& total,
                                                   SumBox const& left) const {
    std::int64_t const most = total.hess - min_hess;
    return left.high.hess > most ? most : left.high.hess;
  }

  /** @brief Least whole number that may, as a double, be at least this; 1 or more. */
  static std::int64_t MinHess(double min_child_weight) {
    // Above 2^53 a sum may be rounded up to it. No sum is above 2^62.
    double least = std::ceil(min_child_weight * (1.0 - std::ldexp(1.0, -52)));
    constexpr std::int64_t kLargest = std::int64_t{1} << 62;
    if (!(least > 1.0)) {
      return 1;
    }
    return least < static_cast<double>(kLargest) ? static_cast<std::int64_t>(least) : kLargest;
  }

  [[nodiscard]] GPU_EXACT_HD float Of(FixedSum const& sum) const {
    return Numerator(sum.grad) * Inverse(sum.hess);
  }
  [[nodiscard]] GPU_EXACT_HD float Numerator(std::int64_t sum_grad) const {
    return this->Numerator(static_cast<float>(sum_grad));
  }
  [[nodiscard]] GPU_EXACT_HD float Inverse(std::int64_t sum_hess) const {
    return ApproxInverse(static_cast<float>(sum_hess) + lambda);
  }
};

/**
 * @brief Bounds as GainBound::MayReach one split after the other, each of which has a row more on
 *        the left: in single precision alone, where 64-bit sums would have to be converted each time.
 *
 * The sums of the first split are converted, then rows are added on the left and taken away on the
 * right. A conversion or an addition errs by at most 2^-24 of its result; no result is above the
 * larger sum of the first split and all that is passed, `most` here. With kMost rows that is five
 * errors, for which |G| is larger and H less by eight, 2^-21 most: G may have cancelled, so that what
 * is relative to G itself does not suffice. An allowed split has H >= min_hess all the same. Of
 * kMargin this takes 3 more than GainBound: |G| and H are added to once more, and min_hess converted.
 */
class PassingBound {
 public:
  static constexpr int kMost = 4;  // rows that may pass

  /**
   * @param left, right Sums of the first split's children.
   * @param passing     Absolute gradients and hessians of all rows that will pass, added up.
   */
  GPU_EXACT_HD PassingBound(GainBound const& bound, FixedSum const& left, FixedSum const& right,
                            GradientUnits const& passing)
      : left_{ToFloats(left)},
        right_{ToFloats(right)},
        slack_{Slack(left_.grad, right_.grad, passing.grad),
               Slack(left_.hess, right_.hess, passing.hess)},
        least_hess_{static_cast<float>(bound.min_hess)} {}

  /** @brief Tell whether the exact loss change may reach the gain to beat; false only if it can
   *         not. */
  [[nodiscard]] GPU_EXACT_HD bool MayReach(GainBound const& bound, float to_beat) const {
    return !(this->Of(bound, left_) + this->Of(bound, right_) < to_beat);
  }
  /** @brief Move a row from the right child to the left one. */
  GPU_EXACT_HD void Pass(GradientUnits const& row) {
    left_ = {left_.grad + row.grad, left_.hess + row.hess};
    right_ = {right_.grad - row.grad, right_.hess - row.hess};
  }

 private:
  [[nodiscard]] GPU_EXACT_HD static GradientUnits ToFloats(FixedSum const& sum) {
    return {static_cast<float>(sum.grad), static_cast<float>(sum.hess)};
  }
  [[nodiscard]] GPU_EXACT_HD static float Slack(float left, float right, float passing) {
    constexpr float kErrors = 1.0f / (1 << 21);
    return (std::fmax(std::fabs(left), std::fabs(right)) + passing) * kErrors;
  }
  [[nodiscard]] GPU_EXACT_HD float Of(GainBound const& bound, GradientUnits const& sum) const {
    return bound.Numerator(sum.grad, slack_.grad) *
           ApproxInverse(std::fmax(sum.hess - slack_.hess, least_hess_) + bound.lambda);
  }

  GradientUnits left_;
  GradientUnits right_;
  GradientUnits slack_;
  float least_hess_;
};
}  // namespace gpu_exact
