/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Every split that one node may take of one feature, in the order of XGBoost's CPU code.
 */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/support/reference_gain.h"

namespace gpu_exact::reference {
inline constexpr float kEps = 1e-6f;

struct Entry {
  RowIdx row;
  float value;
};
using Column = std::vector<Entry>;

struct Node {
  NodeIdx nidx{kRoot};
  std::vector<RowIdx> rows;     // all of them, also those left out
  std::vector<Column> columns;  // entries of the rows that take part, ascending by value
  Sums total;
  float root_gain{0.0f};
  Bounds bounds;
};

struct Split {
  float loss_change{0.0f};
  FeatureIdx feature{0};
  float threshold{0.0f};
  bool default_left{false};
  std::vector<std::uint32_t> categories;  // as of TreeNode

  /** @brief Better loss; on a tie the lower feature, and within a feature the first one found. */
  bool Update(Split const& candidate) {
    if (std::isinf(candidate.loss_change)) {
      return false;
    }
    bool const replace = feature <= candidate.feature ? candidate.loss_change > loss_change
                                                      : !(loss_change > candidate.loss_change);
    if (replace) {
      *this = candidate;
    }
    return replace;
  }
};

/** @brief One pass over a node's entries of one feature, in one direction. */
class Scan {
 public:
  Scan(GrowParam const& param, Node const& node, FeatureIdx fidx, bool forward, Split* best)
      : param_{param}, node_{node}, fidx_{fidx}, forward_{forward}, best_{best} {
    if (fidx < param.monotone_constraints.size()) {
      monotone_ = param.monotone_constraints[fidx];
    }
  }

  /** @brief Nothing is proposed before a hessian was seen. */
  void Visit(float value, GradientPair const& gpair) {
    if (value != last_ && seen_.hess != 0.0) {
      float const middle = (value + last_) * 0.5f;
      this->Propose(middle == value ? last_ : middle);
    }
    seen_.Add(gpair);
    last_ = value;
  }

  /** @brief All present values on one side, all missing ones on the other. */
  void Finish() {
    float const gap = std::abs(last_) + kEps;
    this->Propose(forward_ ? last_ + gap : last_ - gap);
  }

 private:
  void Propose(float threshold) {
    auto const rest = node_.total.Minus(seen_);
    double const least = param_.min_child_weight;
    if (!(seen_.hess >= least && rest.hess >= least)) {
      return;
    }
    auto const& left = forward_ ? seen_ : rest;
    auto const& right = forward_ ? rest : seen_;
    auto const gain = SplitGain(param_, left, right, node_.bounds, monotone_);
    best_->Update({gain - node_.root_gain, fidx_, threshold, !forward_, {}});
  }

  GrowParam const& param_;
  Node const& node_;
  FeatureIdx fidx_;
  bool forward_;
  Split* best_;
  std::int32_t monotone_{0};
  Sums seen_;
  float last_{0.0f};
};

/** @brief Give the category of a value that is one. */
inline std::size_t CategoryOf(float value) { return static_cast<std::size_t>(value); }

/** @brief Tries every split that one node may take of one categorical feature, in the order of XGBoost's CPU
 *         `hist`. */
class CategorySearch {
 public:
  /** @param n_categories Of the whole table: those that the node does not have count, too. */
  CategorySearch(GrowParam const& param, Node const& node, FeatureIdx fidx,
                 std::size_t n_categories, std::vector<GradientPair> const& gpair, Split* best)
      : param_{param}, node_{node}, fidx_{fidx}, sums_(n_categories), best_{best} {
    for (auto const& entry : node.columns[fidx]) {
      sums_[CategoryOf(entry.value)].Add(gpair[entry.row]);
      present_.Add(gpair[entry.row]);
    }
    order_.resize(n_categories);
    std::iota(order_.begin(), order_.end(), 0);
  }

  void Run() {
    if (sums_.size() < param_.max_cat_to_onehot) {
      this->OneAgainstOthers();
    } else {
      this->TwoSets();
    }
  }

 private:
  void OneAgainstOthers() {
    auto const missing = node_.total.Minus(present_);
    for (auto const& category : order_) {
      auto const& sums = sums_[category];
      this->Propose(sums, true, true, &category, 1);
      this->Propose({sums.grad + missing.grad, sums.hess + missing.hess}, true, false, &category,
                    1);
    }
  }

  /** @brief Try cuts of the order of weights: the first ones go right, and then the last ones left. */
  void TwoSets() {
    std::vector<float> weights;
    for (auto const& sums : sums_) {
      weights.push_back(Weight(param_, sums, Bounds{}));
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](auto lhs, auto rhs) { return weights[lhs] < weights[rhs]; });
    auto const n = order_.size();
    auto const n_tried = std::min(n, static_cast<std::size_t>(param_.max_cat_threshold));
    Sums seen;
    auto const see = [&](std::size_t category) {
      seen = {seen.grad + sums_[category].grad, seen.hess + sums_[category].hess};
    };
    for (std::size_t k = 1; k < n_tried; ++k) {
      see(order_[k - 1]);
      this->Propose(seen, true, true, order_.data(), k);
    }
    seen = {};
    for (std::size_t k = 1; k < n_tried; ++k) {
      see(order_[n - k]);
      this->Propose(seen, false, false, order_.data(), n - k);
    }
  }

  /**
   * @param seen      Gradients of one side.
   * @param are_right Whether it is the right one.
   * @param right     shape: (n_right), categories that go right
   */
  void Propose(Sums const& seen, bool are_right, bool default_left, std::size_t const* right,
               std::size_t n_right) {
    auto const barred = default_left ? DefaultDirection::kRight : DefaultDirection::kLeft;
    if (param_.default_direction == barred) {
      return;
    }
    auto const rest = node_.total.Minus(seen);
    auto const monotone =
        fidx_ < param_.monotone_constraints.size() ? param_.monotone_constraints[fidx_] : 0;
    auto const gain =
        SplitGain(param_, are_right ? rest : seen, are_right ? seen : rest, node_.bounds, monotone);
    if (best_->Update({gain - node_.root_gain, fidx_, 0.0f, default_left, {}})) {
      best_->categories.assign((sums_.size() + 31) / 32, 0);
      std::for_each(right, right + n_right, [&](std::size_t category) {
        best_->categories[category / 32] |= 1u << (category % 32);
      });
    }
  }

  GrowParam const& param_;
  Node const& node_;
  FeatureIdx fidx_;
  std::vector<Sums> sums_;          // by category
  std::vector<std::size_t> order_;  // of categories
  Split* best_;
  Sums present_;
};
}  // namespace gpu_exact::reference
