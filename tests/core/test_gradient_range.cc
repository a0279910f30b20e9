/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Trees of gradients rounded to fixed point against those of the gradients themselves, where
 *        magnitudes lie far apart: equal, or refused.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/quantise.h"
#include "core/tree_grower.h"
#include "gpu_exact/device.h"
#include "tests/support/reference_builder.h"

namespace gpu_exact {
namespace {
/** @brief A dense table and gradients of random magnitudes. */
struct Problem {
  std::vector<EntryIdx> offsets{0};
  std::vector<CsrEntry> entries;
  std::vector<GradientPair> gradients;
  FeatureIdx n_features;
  GrowParam param;

  /** @param log2_range Largest over smallest magnitude; the largest is about 2^log2_most. */
  Problem(std::uint32_t seed, int log2_range, int log2_most) {
    std::mt19937 rng{seed};
    auto const pick = [&](auto const& choices) { return choices[rng() % std::size(choices)]; };
    std::uniform_real_distribution<double> uniform;
    auto const n = static_cast<RowIdx>(20 + rng() % 800);
    n_features = 1 + rng() % 3;
    bool const by_feature = rng() % 2 == 0;          // rows of one magnitude lie side by side
    bool const weights = rng() % 2 == 0;             // hessians are as far apart, too
    double const half = rng() % 3 == 0 ? 0.5 : 0.0;  // of the rows have the least magnitude
    for (RowIdx r = 0; r < n; ++r) {
      double const at = uniform(rng) < half ? 0.0 : uniform(rng);
      for (FeatureIdx f = 0; f < n_features; ++f) {
        double const value = f == 0 && by_feature ? at : uniform(rng);
        entries.push_back({f, static_cast<float>(value)});
      }
      offsets.push_back(entries.size());
      double const magnitude = std::ldexp(1.0, log2_most) * std::exp2((at - 1.0) * log2_range);
      double const sign = uniform(rng) < 0.3 ? -1.0 : 1.0;
      gradients.push_back({static_cast<float>(sign * magnitude * (0.6 + 0.4 * uniform(rng))),
                           static_cast<float>(weights ? magnitude : 1.0)});
    }
    param.max_depth = 1 + static_cast<std::int32_t>(rng() % 6);
    param.reg_lambda = pick(std::vector<float>{0.0f, 1.0f, 1.0f});
    param.min_child_weight = pick(std::vector<float>{0.0f, 1.0f, 1.0f});
    if (rng() % 5 == 0) {
      param.monotone_constraints = {1, -1};
    }
  }

  [[nodiscard]] CsrView View() const {
    return {offsets.data(), entries.data(), entries.size(), static_cast<RowIdx>(gradients.size()),
            n_features,     Memory::kHost};
  }
  [[nodiscard]] GrownTree Build(std::vector<GradientPair> const& of,
                                std::vector<NodeIdx>* positions) const {
    auto const builder = MakeReferenceBuilder(this->View());
    auto tree = builder->Build(param, {of.data(), Memory::kHost}, nullptr, nullptr);
    positions->resize(of.size());
    builder->WritePositions({}, Memory::kHost, positions->data());
    return tree;
  }
};

Quantiser QuantiserOf(std::vector<GradientPair> const& rows) {
  auto const n = static_cast<RowIdx>(rows.size());
  float max_grad{0.0f}, max_hess{0.0f};
  for (auto const& g : rows) {
    max_grad = std::max(max_grad, std::fabs(g.grad));
    max_hess = std::max(max_hess, g.hess);
  }
  auto const first = Quantiser::Make(max_grad, max_hess, n);
  FixedSum magnitudes{0, 0};
  for (auto const& g : rows) {
    magnitudes = magnitudes + first.Fixed({std::fabs(g.grad), g.hess});
  }
  return first.Refined(magnitudes, n);
}

/** @brief The tree that the kernels grow: of rounded gradients, leaves added up once more. */
GrownTree BuildRounded(Problem const& problem) {
  auto const quantiser = QuantiserOf(problem.gradients);
  std::vector<GradientPair> rounded;
  Rounding rounding{};
  for (auto const& g : problem.gradients) {
    auto const real = quantiser.Real(quantiser.Fixed(g));
    rounded.push_back({static_cast<float>(real.grad), static_cast<float>(real.hess)});
    rounding = rounding + quantiser.Rounded(g);
  }
  std::vector<NodeIdx> positions;
  auto tree = problem.Build(rounded, &positions);
  bool const refine = std::any_of(tree.cbegin(), tree.cend(), [&](TreeNode const& node) {
    return quantiser.MayChangeNode(rounding, {node.sum_grad, node.sum_hess});
  });
  if (refine) {
    std::vector<GradientSum> leaves(tree.size(), {0.0, 0.0});
    for (std::size_t r = 0; r < positions.size(); ++r) {
      leaves[positions[r]].grad += problem.gradients[r].grad;
      leaves[positions[r]].hess += problem.gradients[r].hess;
    }
    SetSums(problem.param, leaves, &tree);
  }
  return tree;
}

bool AreClose(float a, float b) {
  return std::fabs(a - b) <= 1e-4f * std::max(std::fabs(a), std::fabs(b));
}

/** @brief What differs first; empty where nothing does. A tie of two splits ends the comparison. */
std::string Difference(GrownTree const& ours, GrownTree const& stock, std::size_t* n_ties) {
  for (std::size_t i = 0; i < std::min(ours.size(), stock.size()); ++i) {
    TreeNode const& a = ours[i];
    TreeNode const& b = stock[i];
    auto const where = "node " + std::to_string(i) + ": ";
    if (a.left != b.left || a.feature != b.feature || a.threshold != b.threshold) {
      float const change = std::fabs(a.loss_change - b.loss_change);
      if (change <= 1e-6f * std::fabs(b.loss_change) || change <= 1e-6f) {
        ++*n_ties;
        return "";
      }
      return where + "another split, of " + std::to_string(a.loss_change) + " for " +
             std::to_string(b.loss_change);
    }
    if (!AreClose(a.weight, b.weight)) {
      return where + "weight " + std::to_string(a.weight) + " for " + std::to_string(b.weight);
    }
    if (!AreClose(static_cast<float>(a.sum_hess), static_cast<float>(b.sum_hess))) {
      return where + "sum of hessians " + std::to_string(a.sum_hess) + " for " +
             std::to_string(b.sum_hess);
    }
  }
  return ours.size() == stock.size() ? "" : "another number of nodes";
}

/** @brief Grow so many; gives the share that is not refused. */
double CompareProblems(std::uint32_t n, int log2_range, int log2_most) {
  std::uint32_t n_grown{0};
  std::size_t n_ties{0};
  for (std::uint32_t seed = 0; seed < n; ++seed) {
    Problem const problem{seed, log2_range, log2_most};
    std::vector<NodeIdx> positions;
    GrownTree stock;
    try {
      stock = problem.Build(problem.gradients, &positions);
    } catch (GradientRange const&) {
      continue;
    }
    ++n_grown;
    EXPECT_EQ(Difference(BuildRounded(problem), stock, &n_ties), "")
        << "seed " << seed << ", magnitudes within 2^" << log2_range << " of 2^" << log2_most;
  }
  EXPECT_LE(n_ties, n / 50 + 1);
  return static_cast<double>(n_grown) / n;
}

TEST(GradientRange, EqualTreesOrNone) {
  for (int log2_range : {0, 10, 20, 30, 40, 45, 50, 60, 70, 90}) {
    for (int log2_most : {-20, 0, 10, 30, 60}) {
      double const share = CompareProblems(60, log2_range, log2_most);
      if (log2_range <= 40) {
        EXPECT_GE(share, 0.95) << "within 2^" << log2_range << " of 2^" << log2_most;
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
