/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Bounds are never below the exact gains of what they bound, and close to them.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "core/gain_bound.h"

namespace gpu_exact {
namespace {
TEST(GainBound, NoCandidateThatReachesTheBarIsLost) {
  std::mt19937 rng{1};
  std::uniform_real_distribution<double> uniform;
  int n_tight{0};
  for (int i = 0; i < 200000; ++i) {
    GainParam p{};
    p.reg_lambda = i % 3 == 0 ? 0.0f : static_cast<float>(uniform(rng) * 3.0);
    p.reg_alpha = i % 2 == 0 ? 0.0f : static_cast<float>(uniform(rng) * 5.0);
    p.max_delta_step = i % 5 == 0 ? 0.3f : 0.0f;
    auto scale = static_cast<float>(std::ldexp(1.0, i % 40 - 20));
    auto q = Quantiser::Make(scale, 1.0f, 1000000);
    auto bound = GainBound::Make(p, q);
    ASSERT_TRUE(bound.enabled);
    auto random_sum = [&] {
      double n = std::exp(uniform(rng) * 13.0);
      return FixedSum{std::llrint(n * (uniform(rng) - 0.5) * scale / q.grad_unit),
                      std::llrint(n * uniform(rng) / q.hess_unit)};
    };
    FixedSum left = random_sum(), right = random_sum();
    float gain = CalcLossChange(p, q.Real(left), q.Real(right), WeightBounds::None(), 0, 0.0f);
    float node_gain = gain * static_cast<float>(uniform(rng));
    float loss = gain - node_gain;
    if (loss > 0.0f && std::isfinite(loss)) {
      ASSERT_TRUE(bound.MayReach(bound.GainToBeat(loss, node_gain), left, right)) << "case " << i;
      n_tight += !bound.MayReach(bound.GainToBeat(loss + 1e-4f * gain, node_gain), left, right);
    }
  }
  EXPECT_GT(n_tight, 100000);  // it does bar candidates that are only a little too small
}

TEST(GainBound, IsOffWhereFloatsWouldOverflow) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  auto q = Quantiser::Make(1e-38f, 1e-38f, 10);
  auto bound = GainBound::Make(p, q);
  EXPECT_FALSE(bound.enabled);
  EXPECT_TRUE(bound.MayReach(bound.GainToBeat(1e30f, 0.0f), {1, 1}, {1, 1}));
  // Squares of weights are no normal floats where lambda and hessians together are huge.
  for (auto [lambda, hess] : {std::pair{1.0f, 1e7}, std::pair{1e24f, 1e7}, std::pair{1.0f, 4e7},
                              std::pair{2e26f, 1e7}, std::pair{8e25f, 1e7}}) {
    p.reg_lambda = lambda;
    q.grad_unit = 1e4;
    q.hess_unit = hess;
    bool const is_small = lambda + std::ldexp(hess, 62) < 1e26;
    EXPECT_EQ(GainBound::Make(p, q).enabled, is_small) << lambda << ", " << hess;
  }
}

TEST(GainBound, TiesAreKeptWhereTheSumCancels) {
  GainParam p{};
  auto q = Quantiser::Make(1.0f, 1.0f, 1000);
  auto bound = GainBound::Make(p, q);
  // Two candidates of gain 1.03 and 0.98 have one loss change as floats.
  float node_gain = -std::ldexp(1.0f, 20);
  ASSERT_EQ(1.03f - node_gain, 0.98f - node_gain);
  EXPECT_LT(bound.GainToBeat(1.03f - node_gain, node_gain), 0.98f * bound.unit);
}

TEST(GainBound, NegativeGainsLowerTheBar) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  auto q = Quantiser::Make(1.0f, 1.0f, 1000);
  auto bound = GainBound::Make(p, q);
  EXPECT_LT(bound.GainToBeat(0.0f, -5.0f), -5.0f * bound.unit);
}

/** @brief Draws for millions of cases. */
class Random {
 public:
  explicit Random(std::uint64_t seed) : rng_{seed} {}

  double Uniform() { return static_cast<double>(rng_() >> 11) * 0x1p-53; }
  double Uniform(double low, double high) { return low + (high - low) * this->Uniform(); }
  int Below(int n) { return static_cast<int>(rng_() % static_cast<std::uint64_t>(n)); }
  bool OneIn(int n) { return this->Below(n) == 0; }
  /** @brief All magnitudes are as likely. */
  double Magnitude(double low, double high) {
    return std::exp(this->Uniform(std::log(low), std::log(high)));
  }

 private:
  std::mt19937_64 rng_;
};

/** @brief Parameters, and sums of a node, over all that bounds depend on. */
struct BoundProblem {
  RowIdx n_rows;  // that sums leave room for
  float grad_scale;
  float hess_scale;
  GainParam p{};
  Quantiser q{};
  GainBound bound{};
  WeightBounds bounds{WeightBounds::None()};
  int monotone{0};

  explicit BoundProblem(Random* rng) {
    constexpr RowIdx kRows[]{300, 10000, 1000000, 100000000, (RowIdx{1} << 31) - 1};
    n_rows = kRows[rng->Below(5)];
    grad_scale = std::ldexp(1.0f, rng->Below(41) - 20);
    hess_scale = rng->OneIn(2) ? 1.0f : std::ldexp(1.0f, rng->Below(31) - 20);
    q = Quantiser::Make(grad_scale, hess_scale, n_rows);
    auto some = [&](int one_in, double scale, double low, double high) {
      return rng->OneIn(one_in) ? static_cast<float>(scale * rng->Magnitude(low, high)) : 0.0f;
    };
    p.reg_lambda = rng->OneIn(3) ? 1.0f : some(2, hess_scale, 1e-9, 1e4);
    p.reg_alpha = some(2, grad_scale, 1e-3, 1e3);
    p.max_delta_step = some(4, grad_scale / hess_scale, 1e-2, 1e1);
    p.min_child_weight = rng->OneIn(3) ? 1.0f : some(2, hess_scale, 1e-3, 1e3);
    p.rules = rng->OneIn(2) ? GainRules::kOld : GainRules::kNew;
    p.bounded = rng->OneIn(3);
    bound = GainBound::Make(p, q);
    if (p.bounded) {
      monotone = rng->Below(3) - 1;
      bounds = WeightBounds::OfRoot(true);
      auto weight = [&] {
        double const size = rng->OneIn(2) ? 1.0 : rng->Magnitude(1e-6, 1.0);
        return static_cast<float>(grad_scale / hess_scale * size * rng->Uniform(-1.0, 1.0));
      };
      int const ends = rng->Below(4);  // the root has neither, another node one or both
      bounds.lower = ends % 2 == 1 ? weight() : bounds.lower;
      bounds.upper = ends >= 2 ? weight() : bounds.upper;
      if (bounds.lower > bounds.upper) {
        std::swap(bounds.lower, bounds.upper);
      }
    }
  }

  /** @brief The bound by limits of weights, of the same splits as GainBound::Largest(). */
  [[nodiscard]] float LargestWithin(FixedSum const& total, SumBox const& left) const {
    return bound.LargestWithin(bound.Limits(bounds, monotone), total, left);
  }

  /** @brief Sum of some of the rows that a candidate has on one side in any case. */
  FixedSum OtherRows(Random* rng) const {
    double n = rng->OneIn(8) ? n_rows / 4.0 : rng->Magnitude(1.0, n_rows / 4.0);
    double grad = rng->OneIn(4) ? 1.0 : rng->Uniform() * rng->Uniform();
    double hess = rng->OneIn(8) ? 0.0 : rng->Uniform();
    return rng->OneIn(5)
               ? FixedSum{0, 0}
               : FixedSum{
                     std::llrint(n * grad * (rng->OneIn(2) ? 1 : -1) * grad_scale / q.grad_unit),
                     std::llrint(n * hess * hess_scale / q.hess_unit)};
  }

  [[nodiscard]] float NodeGain(FixedSum const& total) const {
    GradientSum sum = q.Real(total);
    return CalcGain(p, sum, CalcWeight(p, sum, bounds));
  }
  /** @brief As the kernels have it; -infinity: not allowed. */
  [[nodiscard]] float LossChange(FixedSum const& total, FixedSum const& left,
                                 float node_gain) const {
    return CalcLossChange(p, q.Real(left), q.Real(total - left), bounds, monotone, node_gain);
  }
};

/** @brief Whether a split is allowed, and its gain is one of normal floats: far below the least loss
 *         change of a split the square of a weight may be none. */
bool Counts(float loss, float node_gain) {
  return std::isfinite(loss) && std::fabs(loss) + std::fabs(node_gain) > 1e-30f;
}

/** @brief What was seen of candidates and their box's bound. */
struct Seen {
  std::int64_t boxes{0};
  std::int64_t candidates{0};  // that are allowed
  std::int64_t tight{0};       // a little more gain would not have been let through
  std::int64_t refused{0};     // boxes where none is allowed

  /** @return Whether the bound holds for a candidate that is the best so far. */
  bool Holds(BoundProblem const& problem, float largest, float loss, float node_gain) {
    if (std::isnan(largest)) {
      return false;
    }
    if (!Counts(loss, node_gain)) {
      return true;
    }
    ++candidates;
    auto reaches = [&](float more) {
      return GainBound::Reaches(largest, problem.bound.GainToBeat(loss + more, node_gain));
    };
    tight += !reaches(1e-4f * (std::fabs(loss) + std::fabs(node_gain)));
    return largest >= 0.0f && reaches(0.0f);
  }
};

/** @brief Rows of one node in a range of values. */
std::vector<FixedSum> RowsOfRange(BoundProblem const& problem, Random* rng) {
  int n = rng->OneIn(50) ? 100 : 1 + rng->Below(8);
  int grads = rng->Below(7), hesses = rng->Below(6);
  double largest = rng->OneIn(2) ? 1.0 : rng->Magnitude(1e-12, 1.0);
  std::vector<FixedSum> rows;
  for (int i = 0; i < n; ++i) {
    double g = rng->Uniform(-1.0, 1.0);
    if (grads == 0) {
      g = std::fabs(g);
    } else if (grads == 1) {
      g = -std::fabs(g);
    } else if (grads == 2) {
      g = i % 2 == 0 ? 1.0 : -1.0;  // they cancel
    } else if (grads == 3) {
      g *= rng->OneIn(4) ? 1.0 : 1e-9;
    } else if (grads == 4) {
      g = rng->OneIn(2) ? 0.0 : g;
    }
    double h = rng->Uniform();
    if (hesses == 0) {
      h = 1.0;
    } else if (hesses == 1) {
      h = 0.0;
    } else if (hesses == 2) {
      h = rng->OneIn(2) ? 0.0 : h;
    } else if (hesses == 3) {
      h = g > 0.0 ? h : 0.0;  // so that candidates come near the corners
    } else if (hesses == 4) {
      h *= 1e-9;
    }
    rows.push_back(problem.q.Fixed({static_cast<float>(g * largest) * problem.grad_scale,
                                    static_cast<float>(h * largest) * problem.hess_scale}));
  }
  int order = rng->Below(4);
  std::sort(rows.begin(), rows.end(), [order](FixedSum const& a, FixedSum const& b) {
    return order == 0 ? a.grad < b.grad : order == 1 && a.grad > b.grad;
  });
  return rows;
}

/** @brief Splits one after the other, sums of both sides in single precision. */
TEST(PassingBound, NoSplitExceedsItsBound) {
  Random rng{5};
  std::int64_t n_splits{0}, n_tight{0}, n_cancel{0};
  for (int i = 0; i < 2'000'000; ++i) {
    BoundProblem const problem{&rng};
    std::vector<FixedSum> rows = RowsOfRange(problem, &rng);
    rows.resize(std::min<std::size_t>(rows.size(), PassingBound::kMost));
    FixedSum left = problem.OtherRows(&rng);
    if (rng.OneIn(4)) {  // what passes cancels
      left = left - rows.front();
      left.hess = std::max<std::int64_t>(left.hess, 0);
    }
    FixedSum total = left + problem.OtherRows(&rng);
    GradientUnits passing{0.0f, 0.0f};
    for (FixedSum const& row : rows) {
      total = total + row;
      passing = {passing.grad + std::fabs(static_cast<float>(row.grad)),
                 passing.hess + static_cast<float>(row.hess)};
    }
    float const node_gain = problem.NodeGain(total);
    PassingBound bound{problem.bound, left, total - left, passing};
    for (std::size_t k = 0;; ++k) {
      float const loss = problem.LossChange(total, left, node_gain);
      if (Counts(loss, node_gain)) {
        ASSERT_TRUE(bound.MayReach(problem.bound, problem.bound.GainToBeat(loss, node_gain)))
            << "case " << i << ", split " << k;
        float const more = 1e-4f * (std::fabs(loss) + std::fabs(node_gain));
        ++n_splits;
        n_tight +=
            bound.MayReach(problem.bound, problem.bound.GainToBeat(loss + more, node_gain)) ? 0 : 1;
        n_cancel += std::abs(left.grad) < std::abs(rows.front().grad) / 1000 ? 1 : 0;
      }
      if (k == rows.size()) {
        break;
      }
      bound.Pass({static_cast<float>(rows[k].grad), static_cast<float>(rows[k].hess)});
      left = left + rows[k];
    }
  }
  EXPECT_GT(n_splits, 1'000'000);
  EXPECT_GT(n_cancel, 10'000);
  EXPECT_GT(n_tight, n_splits / 3);
}

TEST(RangeBound, NoCandidateInARangeExceedsItsBound) {
  Random rng{1};
  Seen seen;
  for (int i = 0; i < 4000000; ++i) {
    BoundProblem problem{&rng};
    auto rows = RowsOfRange(problem, &rng);
    FixedSum before = problem.OtherRows(&rng), after = problem.OtherRows(&rng);
    FixedSum missing = rng.OneIn(2) ? problem.OtherRows(&rng) : FixedSum{0, 0};
    FixedSum sum{0, 0};
    std::uint32_t magnitude{0};
    for (auto const& row : rows) {
      sum = sum + row;
      magnitude += Magnitude::Of(static_cast<float>(row.grad));
    }
    FixedSum total = before + sum + after + missing;
    SumBox box = BoxInside(before, sum, magnitude);
    float right = problem.bound.Largest(total, box);
    float left = problem.bound.Largest(total, box + missing);
    ++seen.boxes;
    seen.refused += right < 0.0f;
    float node_gain = problem.NodeGain(total);
    // The range's ends too: they are in the box.
    for (std::size_t k = 0; k <= rows.size(); ++k) {
      float loss = problem.LossChange(total, before, node_gain);
      ASSERT_TRUE(seen.Holds(problem, right, loss, node_gain)) << "case " << i << ", " << k;
      loss = problem.LossChange(total, before + missing, node_gain);
      ASSERT_TRUE(seen.Holds(problem, left, loss, node_gain)) << "case " << i << ", " << k;
      before = k < rows.size() ? before + rows[k] : before;
    }
  }
  EXPECT_GT(seen.candidates, 3 * seen.boxes);
  EXPECT_GT(seen.tight, seen.candidates / 10);
  EXPECT_GT(seen.refused, seen.boxes / 20);
}

/** @brief Boxes whose splits' weights are limited. */
struct SeenWithin {
  std::int64_t boxes{0};
  std::int64_t candidates{0};  // that are allowed
  std::int64_t tight{0};       // a little more gain would not have been let through
  std::int64_t closer{0};      // boxes whose bound is well below the one without limits
  std::int64_t forbidden{0};   // boxes where monotone constraints allow no split

  void SeeBox(float largest, float within) {
    ++boxes;
    forbidden += within < 0.0f && largest >= 0.0f ? 1 : 0;
    closer += within < 0.9f * largest ? 1 : 0;
  }
  /** @return Whether the bound holds for a candidate that is the best so far. */
  bool Holds(BoundProblem const& problem, float within, float loss, float node_gain) {
    if (!Counts(loss, node_gain)) {
      return !std::isnan(within);
    }
    ++candidates;
    auto reaches = [&](float more) {
      return GainBound::Reaches(within, problem.bound.GainToBeat(loss + more, node_gain));
    };
    tight += !reaches(1e-3f * (std::fabs(loss) + std::fabs(node_gain)));
    return reaches(0.0f);
  }
};

TEST(RangeBound, NoCandidateExceedsItsBoundWithinLimits) {
  Random rng{6};
  SeenWithin ranges, splits;
  for (int i = 0; i < 4000000; ++i) {
    BoundProblem problem{&rng};
    auto rows = RowsOfRange(problem, &rng);
    FixedSum before = problem.OtherRows(&rng), after = problem.OtherRows(&rng);
    FixedSum missing = rng.OneIn(2) ? problem.OtherRows(&rng) : FixedSum{0, 0};
    if (!problem.bound.limited) {
      continue;
    }
    FixedSum sum{0, 0};
    std::uint32_t magnitude{0};
    for (auto const& row : rows) {
      sum = sum + row;
      magnitude += Magnitude::Of(static_cast<float>(row.grad));
    }
    FixedSum const total = before + sum + after + missing;
    SumBox const box = BoxInside(before, sum, magnitude) + missing;
    float const within = problem.LargestWithin(total, box);
    ranges.SeeBox(problem.bound.Largest(total, box), within);
    float const node_gain = problem.NodeGain(total);
    FixedSum left = before + missing;
    for (std::size_t k = 0; k <= rows.size(); ++k) {
      float const loss = problem.LossChange(total, left, node_gain);
      ASSERT_TRUE(ranges.Holds(problem, within, loss, node_gain)) << "case " << i << ", " << k;
      float const of_split = problem.LargestWithin(total, {left, left});
      splits.SeeBox(problem.bound.OfAllowed(left, total - left), of_split);
      ASSERT_TRUE(splits.Holds(problem, of_split, loss, node_gain)) << "case " << i << ", " << k;
      left = k < rows.size() ? left + rows[k] : left;
    }
  }
  EXPECT_GT(ranges.boxes, 1'000'000);
  EXPECT_GT(ranges.candidates, ranges.boxes);
  EXPECT_GT(ranges.closer, ranges.boxes / 4);
  EXPECT_GT(ranges.forbidden, ranges.boxes / 50);
  EXPECT_GT(splits.closer, splits.boxes / 4);
  EXPECT_GT(splits.tight, splits.candidates / 2);
}

TEST(RangeBound, NoPointOfABoxExceedsItsBound) {
  Random rng{2};
  Seen seen;
  SeenWithin seen_within;
  for (int i = 0; i < 1000000; ++i) {
    BoundProblem problem{&rng};
    FixedSum low = problem.OtherRows(&rng), after = problem.OtherRows(&rng);
    FixedSum width = problem.OtherRows(&rng);
    width.grad = std::abs(width.grad);
    SumBox box{low, low + width};
    FixedSum total = box.high + after;
    float largest = problem.bound.Largest(total, box);
    float const within = problem.LargestWithin(total, box);
    ++seen.boxes;
    float node_gain = problem.NodeGain(total);
    for (int k = 0; k < 8; ++k) {
      auto part = [&](std::int64_t of) {  // often an end
        int end = rng.Below(3);
        return end == 0 ? 0 : end == 1 ? of : std::llrint(rng.Uniform() * static_cast<double>(of));
      };
      FixedSum left = low + FixedSum{part(width.grad), part(width.hess)};
      float loss = problem.LossChange(total, left, node_gain);
      ASSERT_TRUE(seen.Holds(problem, largest, loss, node_gain)) << "case " << i;
      if (problem.bound.limited) {
        ASSERT_TRUE(seen_within.Holds(problem, within, loss, node_gain)) << "case " << i;
      }
    }
  }
  EXPECT_GT(seen_within.candidates, seen.boxes / 4);
  EXPECT_GT(seen.candidates, seen.boxes);
  EXPECT_GT(seen.tight, seen.candidates / 10);
}

/** @brief A node of many rows along one column, in ranges of as many rows each. */
struct RangesOfColumn {
  std::vector<float> largest_inside;  // exact, of each range
  std::vector<float> bounds;
  float best{0.0f};  // of all ends of ranges

  RangesOfColumn(GainParam const& p, double signal, int n_rows, int n_ranges) {
    Random rng{3};
    int per_range = n_rows / n_ranges;
    auto q = Quantiser::Make(4.0f, 1.0f, n_rows);
    std::vector<FixedSum> rows;
    FixedSum total{0, 0};
    for (int i = 0; i < n_rows; ++i) {
      double x = static_cast<double>(i) / n_rows;
      double g = rng.Uniform(-1.0, 1.0) + signal * (x < 0.3 ? -0.7 : 0.3);
      rows.push_back(q.Fixed({static_cast<float>(g), static_cast<float>(rng.Uniform())}));
      total = total + rows.back();
    }
    auto bound = GainBound::Make(p, q);
    FixedSum before{0, 0};
    auto gain = [&](FixedSum const& left) {
      return CalcLossChange(p, q.Real(left), q.Real(total - left), WeightBounds::None(), 0, 0.0f);
    };
    for (int range = 0; range < n_ranges; ++range) {
      FixedSum sum{0, 0};
      std::uint32_t magnitude{0};
      float inside{0.0f};
      best = std::fmax(best, gain(before));
      for (int i = range * per_range; i < (range + 1) * per_range; ++i) {
        sum = sum + rows[i];
        magnitude += Magnitude::Of(static_cast<float>(rows[i].grad));
        inside = std::fmax(inside, gain(before + sum));
      }
      bounds.push_back(bound.Largest(total, BoxInside(before, sum, magnitude)) / bound.unit);
      largest_inside.push_back(inside);
      before = before + sum;
    }
  }
};

TEST(RangeBound, IsCloseWhereRangesAreNarrow) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  RangesOfColumn column{p, 1.0, 500000, 5000};
  int n_close{0};
  for (std::size_t i = 0; i < column.bounds.size(); ++i) {
    ASSERT_GE(column.bounds[i] * (1.0f + GainBound::kMargin), column.largest_inside[i]);
    n_close += column.bounds[i] <= 1.03f * column.largest_inside[i];
  }
  EXPECT_GT(n_close, 4500);  // not at the column's ends, where sums are small
}

TEST(RangeBound, FewRangesReachTheBest) {
  GainParam p{};
  p.reg_lambda = 1.0f;
  p.min_child_weight = 1.0f;
  for (double signal : {0.0, 0.02, 1.0}) {
    RangesOfColumn column{p, signal, 500000, 2000};
    auto n_reaching = std::count_if(column.bounds.cbegin(), column.bounds.cend(),
                                    [&](float bound) { return bound >= column.best; });
    EXPECT_GT(n_reaching, 0);
    EXPECT_LT(n_reaching, signal == 0.0 ? 2000 / 5 : 2000 / 10) << signal;
  }
}

constexpr std::int64_t kCoarse = std::int64_t{1} << Magnitude::kShift;
constexpr float kNone = -std::numeric_limits<float>::infinity();

TEST(Magnitude, RoundsUpAndKeepsZero) {
  constexpr auto kUnit = static_cast<float>(kCoarse);
  EXPECT_EQ(Magnitude::Of(0.0f), 0u);
  EXPECT_EQ(Magnitude::Of(1.0f), 1u);
  EXPECT_EQ(Magnitude::Of(-1.0f), 1u);
  EXPECT_EQ(Magnitude::Of(kUnit), 1u);
  EXPECT_EQ(Magnitude::Of(-kUnit), 1u);
  EXPECT_EQ(Magnitude::Of(std::nextafter(kUnit, 2.0f * kUnit)), 2u);
  EXPECT_EQ(Magnitude::Of(-std::nextafter(kUnit, 2.0f * kUnit)), 2u);
  EXPECT_EQ(Magnitude::Of(std::ldexp(-1.0f, 62)), std::uint32_t{1} << 31);
}

TEST(Magnitude, ThirtyTwoBitsHoldAllRows) {
  // One row has nearly all of 2^62, each of the others a unit.
  std::uint64_t others = (std::uint64_t{1} << 31) - 2;
  std::uint64_t sum = Magnitude::Of(std::ldexp(1.0f, 62)) + others * Magnitude::Of(1.0f);
  EXPECT_LE(sum, std::numeric_limits<std::uint32_t>::max());
  EXPECT_GE(Magnitude::ToFixed(sum), std::int64_t{1} << 62);
}

TEST(BoxInside, HoldsAllPositiveOrAllNegativeGradients) {
  // Gradients of 3 and -1 coarse units.
  SumBox box = BoxInside({100, 7}, {2 * kCoarse, 5}, 4);
  EXPECT_EQ(box.low, (FixedSum{100 - kCoarse, 7}));
  EXPECT_EQ(box.high, (FixedSum{100 + 3 * kCoarse, 12}));
  SumBox moved = box + FixedSum{-10, 1};
  EXPECT_EQ(moved.low, (FixedSum{90 - kCoarse, 8}));
  EXPECT_EQ(moved.high, (FixedSum{90 + 3 * kCoarse, 13}));
}

TEST(BoxInside, HoldsGradientsOfLessThanACoarseUnit) {
  SumBox box = BoxInside({0, 0}, {5 - 2, 0}, Magnitude::Of(5.0f) + Magnitude::Of(-2.0f));
  EXPECT_GE(box.high.grad, 5);
  EXPECT_LE(box.low.grad, -2);
}

TEST(BoxInside, DoesNotOverflow) {
  // All rows in one range, each rounded up by nearly a unit; and nearly all of them before it.
  std::int64_t most = std::int64_t{1} << 62;
  std::uint32_t rounding = (std::uint32_t{1} << 31) - 1;
  auto bound = GainBound::Make(GainParam{}, Quantiser::Make(1.0f, 1.0f, rounding));
  for (int sign : {-1, 1}) {
    FixedSum all{sign * most, most};
    SumBox box = BoxInside({0, 0}, all, (std::uint32_t{1} << 31) + rounding);
    EXPECT_GE(box.high.grad, std::max(all.grad, std::int64_t{0}));
    EXPECT_LE(box.low.grad, std::min(all.grad, std::int64_t{0}));
    EXPECT_TRUE(std::isfinite(bound.Largest(all, box)));
    box = BoxInside(all, {0, 0}, rounding);
    EXPECT_GE(box.high.grad, all.grad);
    EXPECT_LE(box.low.grad, all.grad);
    all.hess += 1;
    EXPECT_TRUE(std::isfinite(bound.Largest(all, box)));
  }
}

/** @brief Parameters of which each case changes some; a unit is 2^-20. */
struct PlainCase {
  GainParam p{};
  Quantiser q{Quantiser::OfExponents(20, 20, 1.0f, 1.0f)};

  [[nodiscard]] GainBound Bound() const { return GainBound::Make(p, q); }
  [[nodiscard]] float Gain(FixedSum const& total, FixedSum const& left) const {
    return CalcLossChange(p, q.Real(left), q.Real(total - left), WeightBounds::None(), 0, 0.0f);
  }
};

TEST(Largest, IsTheGreatestCorner) {
  PlainCase plain;
  auto bound = plain.Bound();
  // Left 6^2 / 2, right 10^2 / 2; all other corners have less.
  FixedSum total{-4, 4};
  EXPECT_FLOAT_EQ(bound.Largest(total, {{-3, 2}, {6, 2}}), 18.0f + 50.0f);
  EXPECT_FLOAT_EQ(bound.Largest(total, {{-10, 2}, {1, 2}}), 50.0f + 18.0f);
  // The least hessian, and the greatest one.
  EXPECT_FLOAT_EQ(bound.Largest({6, 4}, {{6, 1}, {6, 2}}), 36.0f);
  EXPECT_FLOAT_EQ(bound.Largest({6, 4}, {{0, 2}, {0, 3}}), 36.0f);
}

TEST(Largest, NoneIsAllowedWithoutHessian) {
  PlainCase plain;
  for (float lambda : {0.0f, 1.0f}) {
    plain.p.reg_lambda = lambda;
    auto bound = plain.Bound();
    EXPECT_EQ(bound.Largest({5, 9}, {{-3, 0}, {4, 0}}), kNone);
    EXPECT_EQ(bound.Largest({5, 9}, {{-3, 9}, {4, 9}}), kNone);
    EXPECT_EQ(bound.Largest({5, 1}, {{-3, 0}, {4, 1}}), kNone);
    EXPECT_EQ(bound.Largest({0, 0}, {{0, 0}, {0, 0}}), kNone);
    EXPECT_TRUE(GainBound::Reaches(kNone, kNone));
    EXPECT_FALSE(GainBound::Reaches(kNone, 0.0f));
  }
}

/** @brief At a weight that alpha makes smaller the old gain, which has no alpha, is the greater. */
TEST(Largest, ByTheOldRulesLimitsTakeAlphaFromTheBound) {
  PlainCase plain;
  plain.p.rules = GainRules::kOld;
  plain.p.bounded = true;
  plain.p.reg_alpha = std::ldexp(20.0f, -20);
  FixedSum const total{0, 4}, left{30, 2};
  GainBound const bound = plain.Bound();
  EXPECT_FLOAT_EQ(plain.Gain(total, left) * bound.unit, 500.0f);  // 2 (30^2 - 20^2) / 2
  EXPECT_FLOAT_EQ(bound.Largest(total, {left, left}), 900.0f);
  plain.p.bounded = false;
  EXPECT_NEAR(plain.Bound().Largest(total, {left, left}), 100.0f, 0.1f);
}

TEST(Largest, ByTheOldRulesItIsOffWhereAQuotientsPartsAreNoNormalFloats) {
  PlainCase plain;
  plain.p.rules = GainRules::kOld;
  plain.q.hess_unit = 1e-32;
  plain.q.grad_unit = 1e-16;
  EXPECT_FALSE(plain.Bound().enabled);
  plain.p.reg_lambda = 1e-3f;
  EXPECT_TRUE(plain.Bound().enabled);
  plain.p.reg_lambda = 0.0f;
  plain.p.rules = GainRules::kNew;
  EXPECT_TRUE(plain.Bound().enabled);
}

TEST(Largest, IsFiniteWhereACornerHasNoHessianAndLambdaIsZero) {
  PlainCase plain;
  auto bound = plain.Bound();
  EXPECT_FLOAT_EQ(bound.Largest({0, 9}, {{-3, 0}, {4, 9}}), 16.0f + 16.0f / 8.0f);
  EXPECT_EQ(bound.Largest({0, 9}, {{0, 0}, {0, 9}}), 0.0f);  // no 0 / 0
}

TEST(Largest, MinChildWeightRefusesOnlyWhatCanNotBe) {
  PlainCase plain;
  plain.p.min_child_weight = 3.0f;
  std::int64_t least = 3 << 20;
  auto bound = plain.Bound();
  EXPECT_EQ(bound.Largest({1, 4 * least}, {{1, 0}, {1, least - 1}}), kNone);
  EXPECT_GT(bound.Largest({1, 4 * least}, {{1, 0}, {1, least}}), 0.0f);
  EXPECT_EQ(bound.Largest({1, 4 * least}, {{1, 3 * least + 1}, {1, 4 * least}}), kNone);
  EXPECT_GT(bound.Largest({1, 4 * least}, {{1, 3 * least}, {1, 4 * least}}), 0.0f);
  EXPECT_EQ(bound.Largest({1, 2 * least - 1}, {{1, 0}, {1, 2 * least - 1}}), kNone);
  EXPECT_GT(bound.Largest({1, 2 * least}, {{1, 0}, {1, 2 * least}}), 0.0f);
  // Between two units.
  plain.p.min_child_weight = std::ldexp(5.5f, -20);
  bound = plain.Bound();
  EXPECT_EQ(bound.Largest({1, 100}, {{1, 5}, {1, 5}}), kNone);
  EXPECT_GT(bound.Largest({1, 100}, {{1, 6}, {1, 6}}), 0.0f);
}

TEST(Largest, MinChildWeightIsMetAsADouble) {
  // As a double the sum is rounded up to the weight.
  PlainCase plain;
  plain.p.min_child_weight = std::ldexp(1.0f, 40);
  std::int64_t least = (std::int64_t{1} << 60) - 64, most = std::int64_t{1} << 62;
  ASSERT_GE(plain.Gain({1, most}, {1, least}), 0.0f);
  ASSERT_EQ(plain.Gain({1, most}, {1, least - 1}), kNone);
  EXPECT_GT(plain.Bound().Largest({1, most}, {{1, least}, {1, least}}), 0.0f);
}

TEST(Largest, MinChildWeightMayBeAnything) {
  PlainCase plain;
  for (float weight : {-1.0f, -std::numeric_limits<float>::infinity(), NAN}) {
    plain.p.min_child_weight = weight;
    EXPECT_GT(plain.Bound().Largest({1, 9}, {{1, 0}, {1, 9}}), 0.0f);
  }
  plain.p.min_child_weight = std::numeric_limits<float>::infinity();
  EXPECT_EQ(plain.Bound().Largest({1, std::int64_t{1} << 62}, {{1, 0}, {1, 9}}), kNone);
}

TEST(Largest, MissingValuesMoveTheBox) {
  PlainCase plain;
  auto bound = plain.Bound();
  FixedSum missing{100, 2}, total{0, 8};
  SumBox box{{-1, 2}, {1, 4}};
  EXPECT_FLOAT_EQ(bound.Largest(total, box), 0.5f + 1.0f / 6.0f);
  float left = bound.Largest(total, box + missing);
  EXPECT_FLOAT_EQ(left, 101.0f * 101.0f / 6.0f + 101.0f * 101.0f / 2.0f);
}

TEST(Largest, AlphaTakesFromEachChild) {
  PlainCase plain;
  plain.p.reg_alpha = std::ldexp(10.0f, -20);
  auto bound = plain.Bound();
  EXPECT_NEAR(bound.Largest({0, 4}, {{30, 2}, {30, 2}}), 400.0f, 0.1f);
  EXPECT_LT(bound.Largest({0, 4}, {{-10, 2}, {10, 2}}), 1e-6f);
  EXPECT_EQ(bound.Largest({0, 4}, {{-9, 2}, {9, 2}}), 0.0f);
  plain.p.reg_alpha = std::numeric_limits<float>::max();
  plain.q = Quantiser::OfExponents(60, 60, 1.0f, 1.0f);
  EXPECT_EQ(plain.Bound().Largest({0, 4}, {{30, 2}, {30, 2}}), 0.0f);
}

TEST(Largest, GradientsThatBarelyPassAlpha) {
  // |G| - alpha cancels: all of 24 bits and more.
  PlainCase plain;
  std::int64_t alpha = std::int64_t{1} << 50;
  plain.p.reg_alpha = std::ldexp(1.0f, 30);
  auto bound = plain.Bound();
  for (int more = 0; more < 50; ++more) {
    FixedSum left{alpha + (std::int64_t{1} << more), 1 << 20}, total{0, 2 << 20};
    float largest = bound.Largest(total, {left, left});
    EXPECT_TRUE(GainBound::Reaches(largest, bound.GainToBeat(plain.Gain(total, left), 0.0f)))
        << more;
  }
}

TEST(Largest, TiesReach) {
  PlainCase plain;
  plain.p.reg_lambda = 1.0f;
  auto bound = plain.Bound();
  FixedSum left{1234567, 7654321}, total{3456789, 9876543};
  for (float node_gain : {0.0f, 0.5f, 1e6f, -1e6f}) {
    float to_beat = bound.GainToBeat(plain.Gain(total, left) - node_gain, node_gain);
    EXPECT_TRUE(GainBound::Reaches(bound.Largest(total, {left, left}), to_beat));
  }
}

TEST(Largest, NoGainReachesWhereNoneIsFound) {
  PlainCase plain;
  plain.p.reg_lambda = 1.0f;
  auto bound = plain.Bound();
  float largest = bound.Largest({0, 8}, {{0, 2}, {0, 4}});
  EXPECT_EQ(largest, 0.0f);
  EXPECT_TRUE(GainBound::Reaches(largest, bound.GainToBeat(0.0f, 0.0f)));
  EXPECT_TRUE(GainBound::Reaches(largest, bound.GainToBeat(-0.0f, -0.0f)));
}

TEST(LargestWithin, IsTheGainAtTheBestWeightsWithinLimits) {
  PlainCase plain;
  auto bound = plain.Bound();
  constexpr float kNoLimit = std::numeric_limits<float>::infinity();
  FixedSum const left{5, 2}, total{6, 4};  // weights of -5/2 and -1/2
  FixedSum const middle{3, 2};             // weights of -3/2 both
  // A monotone constraint of -1 forbids all splits of the box but the middle.
  auto within = [&](WeightLimits const& limits) {
    return bound.LargestWithin(limits, total, {limits.monotone < 0 ? middle : left, left});
  };
  auto expect = [&](WeightLimits const& limits, float gain) {
    EXPECT_NEAR(within(limits), gain, 1e-3f * gain) << limits.lower << ", " << limits.monotone;
    EXPECT_GE(within(limits), gain);
  };
  expect({-kNoLimit, kNoLimit, 0}, 25.0f / 2.0f + 1.0f / 2.0f);
  expect({-kNoLimit, kNoLimit, 1}, 25.0f / 2.0f + 1.0f / 2.0f);
  expect({-kNoLimit, kNoLimit, -1}, 36.0f / 4.0f);  // one weight, -3/2, for both
  expect({-1.0f, kNoLimit, 0}, 8.0f + 1.0f / 2.0f);
  expect({-1.0f, kNoLimit, -1}, 8.0f);  // both at the limit
  expect({-1.0f, -0.75f, 1}, 8.0f + 0.375f);
  plain.p.reg_lambda = std::ldexp(2.0f, -20);
  bound = plain.Bound();
  expect({-kNoLimit, kNoLimit, -1}, 36.0f / 8.0f);
  EXPECT_EQ(bound.LargestWithin({-1.0f, 1.0f, 0}, {5, 1}, {{-3, 0}, {4, 1}}), kNone);
}

TEST(LargestWithin, NoneIsAllowedWhereAMonotoneConstraintForbidsAll) {
  PlainCase plain;
  plain.p.bounded = true;
  FixedSum const total{6, 4};
  auto within = [&](WeightLimits const& limits, FixedSum const& low, FixedSum const& high) {
    return plain.Bound().LargestWithin(limits, total, {low, high});
  };
  constexpr float kNoLimit = std::numeric_limits<float>::infinity();
  WeightLimits const rising{-kNoLimit, kNoLimit, 1}, falling{-kNoLimit, kNoLimit, -1};
  EXPECT_EQ(within(falling, {5, 2}, {5, 2}), kNone);  // weights of -5/2 and -1/2
  EXPECT_EQ(within(falling, {4, 1}, {5, 2}), kNone);
  EXPECT_GT(within(falling, {3, 2}, {5, 2}), 0.0f) << "at 3 the weights are alike";
  EXPECT_GT(within(falling, {4, 1}, {5, 3}), 0.0f) << "no split has both -5/3 and -2";
  EXPECT_GT(within(rising, {5, 2}, {5, 2}), 0.0f);
  EXPECT_EQ(within(rising, {1, 2}, {1, 2}), kNone);
  EXPECT_GT(within({-kNoLimit, -3.0f, -1}, {5, 2}, {5, 2}), 0.0f) << "both are cut to -3";
  plain.p.reg_alpha = std::ldexp(1.0f, -21);
  EXPECT_EQ(within(falling, {5, 2}, {5, 2}), kNone);
  plain.p.rules = GainRules::kOld;
  EXPECT_GT(within(falling, {5, 2}, {5, 2}), 0.0f) << "weights are not known";
}

TEST(LargestWithin, LimitsAreThoseOfTheNodeAndOfTheStep) {
  PlainCase plain;
  plain.p.max_delta_step = 0.5f;
  auto const bound = plain.Bound();
  EXPECT_TRUE(bound.limited);
  auto limits = bound.Limits(WeightBounds::None(), 1);
  EXPECT_EQ(limits.lower, -0.5f);
  EXPECT_EQ(limits.upper, 0.5f);
  EXPECT_EQ(limits.monotone, 1);
  limits = bound.Limits({0.25f, 2.0f}, 0);
  EXPECT_EQ(limits.lower, 0.25f);
  EXPECT_EQ(limits.upper, 0.5f);
  limits = bound.Limits({1.0f, 2.0f}, 0);
  EXPECT_EQ(limits.lower, 1.0f) << "the node's limits are the last word";
  EXPECT_EQ(limits.upper, 1.0f);
  EXPECT_FALSE(GainBound::Make({}, plain.q).limited);
  plain.p = {};
  plain.p.bounded = true;
  EXPECT_TRUE(plain.Bound().limited);
  plain.p.rules = GainRules::kOld;
  EXPECT_TRUE(plain.Bound().limited);
}

/** @brief A limit that is no normal float in units bounds what it allows all the same. */
TEST(LargestWithin, HoldsForLimitsBelowTheNormalFloats) {
  Random rng{7};
  int n_below{0};
  for (int i = 0; i < 300000; ++i) {
    auto const scale = [&](double low, double high) {
      return static_cast<float>(rng.Magnitude(low, high));
    };
    GradientPair const rows[]{{scale(1e12, 1e30), scale(1e-4, 1e14)},
                              {-scale(1e12, 1e30), scale(1e-4, 1e14)}};
    GainParam p{};
    p.max_delta_step = scale(1e-37, 1e-10);
    auto const q = Quantiser::Make(std::max(rows[0].grad, -rows[1].grad),
                                   std::max(rows[0].hess, rows[1].hess), 2);
    auto const bound = GainBound::Make(p, q);
    FixedSum const left = q.Fixed(rows[0]);
    FixedSum const total = left + q.Fixed(rows[1]);
    GradientSum const node = q.Real(total);
    float const node_gain = CalcGain(p, node, CalcWeight(p, node, WeightBounds::None()));
    float const loss =
        CalcLossChange(p, q.Real(left), q.Real(total - left), WeightBounds::None(), 0, node_gain);
    if (!bound.enabled || !bound.limited || !(loss > 1e-6f)) {
      continue;
    }
    n_below += p.max_delta_step * bound.weight_unit < std::numeric_limits<float>::min() ? 1 : 0;
    float const within =
        bound.LargestWithin(bound.Limits(WeightBounds::None(), 0), total, {left, left});
    ASSERT_TRUE(GainBound::Reaches(within, bound.GainToBeat(loss, node_gain)))
        << "case " << i << ": step " << p.max_delta_step << ", loss change " << loss << ", bound "
        << within;
  }
  EXPECT_GT(n_below, 1000);
}

TEST(Largest, IsNoNanWhereFloatsWouldOverflow) {
  std::int64_t most = std::int64_t{1} << 62;
  SumBox box{{-most, 0}, {most, most}};
  for (int exponent : {-90, 0, 160}) {
    for (float lambda : {0.0f, 1.0f, std::numeric_limits<float>::max()}) {
      for (float alpha : {0.0f, 1.0f, std::numeric_limits<float>::max()}) {
        PlainCase plain;
        plain.p.reg_lambda = lambda;
        plain.p.reg_alpha = alpha;
        plain.q = Quantiser::OfExponents(exponent, exponent, 1.0f, 1.0f);
        auto bound = plain.Bound();
        EXPECT_GE(bound.Largest({0, most}, box), 0.0f);
        EXPECT_TRUE(bound.enabled || GainBound::Reaches(bound.Largest({0, most}, box),
                                                        bound.GainToBeat(1e30f, 0.0f)));
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
