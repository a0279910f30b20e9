/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Every split that one node may take of one feature, in the order of XGBoost's CPU code.
 */
#pragma once

#include <cmath>
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

  /** @brief Better loss; on a tie the lower feature, and within a feature the first one found. */
  void Update(Split const& candidate) {
    if (std::isinf(candidate.loss_change)) {
      return;
    }
    bool const replace = feature <= candidate.feature ? candidate.loss_change > loss_change
                                                      : !(loss_change > candidate.loss_change);
    if (replace) {
      *this = candidate;
    }
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
    best_->Update({gain - node_.root_gain, fidx_, threshold, !forward_});
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
}  // namespace gpu_exact::reference
