/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lends one level to kernels, which offer split candidates to it.
 */
#pragma once

#include <algorithm>

#include "core/gain_bound.h"
#include "core/level.h"
#include "device/runtime/warp.cuh"
#include "device/table/column_ids.cuh"
#include "device/table/column_store.cuh"
#include "device/table/value_key.cuh"

namespace gpu_exact {
/** @brief Tells how one feature is searched. One byte: a table may have millions of features. */
struct FeatureRule {
  bool forward : 1;  // as in ScanPlan; neither of a categorical feature
  bool backward : 1;
  std::int8_t monotone : 2;  // -1, 0 or 1
  bool categorical : 1;
  // Of a categorical feature:
  bool one_hot : 1;        // one category against the others; else two sets
  bool missing_left : 1;   // whether splits that send missing values left are tried
  bool missing_right : 1;  // whether those are that send them right

  /** @param constraint Its sign counts. */
  __device__ static FeatureRule Make(ScanPlan const& scan, std::int32_t constraint) {
    FeatureRule rule{};
    rule.forward = scan.forward;
    rule.backward = scan.backward;
    rule.monotone = (constraint > 0) - (constraint < 0);
    return rule;
  }
  /** @brief Make that of a categorical feature. */
  __device__ static FeatureRule MakeCategorical(DefaultDirection direction, bool one_hot,
                                                std::int32_t constraint) {
    FeatureRule rule = Make({false, false}, constraint);
    rule.categorical = true;
    rule.one_hot = one_hot;
    rule.missing_left = direction != DefaultDirection::kRight;
    rule.missing_right = direction != DefaultDirection::kLeft;
    return rule;
  }
};
static_assert(sizeof(FeatureRule) == 1);

/** @brief Reads the best candidate of a node back from its key. */
struct BestCandidate {
  FeatureIdx feature;
  ScanDirection direction;
  std::uint32_t bin;  // of the column, whose value or range it lies beside

  __device__ BestCandidate(ColumnsRef const& candidates, std::uint64_t key) {
    std::uint64_t const rank = CandidateKey::RankOf(key);
    feature = candidates.FeatureOf(CandidateKey::AnyValueOf(rank));
    ValueRange const bins = candidates.Values(feature);
    Candidate const c = Candidate::FromRank(bins, rank);
    direction = c.direction;
    if (direction == ScanDirection::kForward) {
      bin = static_cast<std::uint32_t>((c.present ? bins.end : c.value) - bins.begin - 1);
    } else {
      bin = static_cast<std::uint32_t>(c.present ? 0 : c.value - bins.begin);
    }
  }
};

/** @brief Holds the best of some candidates. In one scan, those inside a bin of several values that
 *         gain the same have the same key. */
struct FoundCandidate {
  std::uint64_t key;         // CandidateKey; 0: there is none
  std::uint32_t scan_value;  // ScanValue that it lies beside; kNone: not known

  [[nodiscard]] __device__ std::uint32_t Order() const { return scan_value; }
};
/**
 * @brief Chooses the better one of two; of equal keys the one that the scan meets first, whose Order() is
 *        the lesser. Without a branch: it takes the fewest registers.
 */
struct BetterCandidate {
  template <typename CandidateT>
  __device__ CandidateT operator()(CandidateT const& a, CandidateT const& b) const {
    std::uint32_t const of_greater = a.key > b.key ? a.Order() : b.Order();
    return {max(a.key, b.key), a.key == b.key ? min(a.Order(), b.Order()) : of_greater};
  }
};

/** @brief Lends one level to kernels. */
struct LevelRef {
  ColumnsRef columns;
  FeatureRule const* rules;   // shape: (n_features)
  NodeState const* nodes;     // shape: (n_nodes), by node
  std::uint32_t const* mask;  // shape: (n_nodes or 1, mask_words); nullptr: all are allowed
  std::size_t mask_words;     // 32-bit words a node
  bool mask_per_node;         // else one row serves every node
  std::uint64_t* best;        // shape: (n_nodes), CandidateKey
  GainParam gain;
  GainBound bound;
  Quantiser quantiser;
  std::int64_t hess_of_row;  // units of each row's hessian where all are alike, else 0
  LevelNode n_nodes;
  std::uint32_t max_cat_threshold;  // as GrowParam's
  ColumnFeatures features;          // of the columns, for what is told of a split

  /** @brief Lend up to n of the nodes. */
  [[nodiscard]] LevelRef Part(LevelNode first, LevelNode n) const {
    LevelRef part = *this;
    part.nodes += first;
    part.best += first;
    part.mask += mask_per_node ? first * mask_words : 0;
    part.n_nodes = std::min(n, n_nodes - first);
    return part;
  }

  __device__ bool Allowed(LevelNode level_node, FeatureIdx f) const {
    if (mask == nullptr) {
      return true;
    }
    auto row = mask + (mask_per_node ? level_node * mask_words : 0);
    return (row[f / 32] >> (f % 32) & 1u) != 0;
  }

  /** @brief Tell whether the node may split on the feature that owns a value. */
  __device__ bool AllowsValue(LevelNode level_node, ValueId value) const {
    return mask == nullptr || this->Allowed(level_node, columns.FeatureOf(value));
  }

  /**
   * @brief Tell also whether children can be as heavy as they must: one of them has no more than
   *        the rows with a value of the feature, as missing ones go the other way.
   */
  __device__ bool MaySplit(LevelNode level_node, ValueId value, FixedSum const& present) const {
    return present.hess >= bound.min_hess && this->AllowsValue(level_node, value);
  }

  /** @brief Keep the candidate if it is the node's best so far, whatever the order of the calls. */
  __device__ void Offer(LevelNode level_node, std::uint64_t key) const {
    EXACT_DEVICE_CHECK(level_node < n_nodes);
    if (key > __ldcg(best + level_node)) {
      atomicMax(reinterpret_cast<unsigned long long*>(best + level_node),
                static_cast<unsigned long long>(key));
    }
  }

  /** @brief Offer the best of a warp's candidates at one node. All lanes. */
  __device__ void OfferByWarp(LevelNode level_node, std::uint64_t key) const {
    key = WarpMax(key);
    if (threadIdx.x % 32 == 0) {
      this->Offer(level_node, key);
    }
  }

  __device__ float LossChange(NodeState const& node, int monotone, FixedSum const& left,
                              FixedSum const& right) const {
    return CalcLossChange(gain, quantiser.Real(left), quantiser.Real(right), node.bounds, monotone,
                          node.gain);
  }

  /** @brief Give the loss change to beat at a node, in the units of bounds. */
  __device__ float GainToBeat(LevelNode level_node) const {
    return bound.GainToBeat(CandidateKey::LossChange(__ldcg(best + level_node)),
                            nodes[level_node].gain);
  }

  /** @brief Bound the gain of a candidate before a value id from above, in either scan; -infinity
   *         where neither is allowed. */
  __device__ float Bound(FixedSum const& total, FixedSum const& before, FixedSum const& present,
                         bool missing) const {
    float const gain = bound.OfAllowed(before, total - before);
    FixedSum const after = present - before;
    // With nothing missing both scans see the same children.
    return missing ? fmaxf(gain, bound.OfAllowed(total - after, after)) : gain;
  }
  /** @brief Tell whether a candidate before a value id may reach the gain to beat in either
   *         scan. */
  __device__ bool MayReach(float to_beat, FixedSum const& total, FixedSum const& before,
                           FixedSum const& present, bool missing) const {
    if (bound.MayReach(to_beat, before, total - before)) {
      return true;
    }
    // With nothing missing both scans see the same children.
    FixedSum after = present - before;
    return missing && bound.MayReach(to_beat, total - after, after);
  }

  /**
   * @brief Compute GainBound::LargestWithin() of splits of a node by a feature.
   * @param left Where the sums of their left children lie.
   *
   * Not inlined: it is for the few that the other bounds leave, and takes many registers.
   */
  __device__ __noinline__ float BoundWithin(LevelNode level_node, FeatureIdx f,
                                            SumBox const& left) const {
    NodeState const& node = nodes[level_node];
    return bound.LargestWithin(bound.Limits(node.bounds, rules[f].monotone), node.sum, left);
  }

  /**
   * @brief Make the CandidateKey of the better candidate before a value id, of both scans.
   * @param before  Sum of the node's rows with a lower value of the feature.
   * @param present Sum of the node's rows with any value of it; the rest is missing.
   */
  __device__ std::uint64_t BoundaryKey(NodeState const& node, FeatureIdx f, ValueId value,
                                       FixedSum const& before, FixedSum const& present) const {
    return max(this->ScanBoundaryKey(node, f, ScanDirection::kForward, value, before, present),
               this->ScanBoundaryKey(node, f, ScanDirection::kBackward, value, before, present));
  }
  /** @brief Make that of one scan's candidate; 0 where the other scan has it. */
  __device__ std::uint64_t ScanBoundaryKey(NodeState const& node, FeatureIdx f,
                                           ScanDirection direction, std::uint64_t value,
                                           FixedSum const& before, FixedSum const& present) const {
    FeatureRule const rule = rules[f];
    bool const forward = direction == ScanDirection::kForward;
    FixedSum const after = forward ? node.sum - before : present - before;
    // A scan proposes nothing before it has met a hessian. With nothing missing both see the same
    // children, and forward comes first.
    if (forward ? !rule.forward || before.hess == 0
                : !rule.backward || after.hess == 0 ||
                      (rule.forward && before.hess != 0 && present == node.sum)) {
      return 0;
    }
    float loss = LossChange(node, rule.monotone, node.sum - after, after);
    return CandidateKey::Make(loss, CandidateKey::Rank(columns.Values(f), direction, value));
  }
  /**
   * @brief Make that of one scan's candidate beside an entry, if it may reach the gain to beat; else 0.
   * @param value  Numbers the entry's value or bin.
   * @param before Sum of the node's rows below the candidate.
   */
  __device__ std::uint64_t ScanKeyBeside(float to_beat, NodeState const& node, FeatureIdx f,
                                         ScanDirection direction, std::uint64_t value,
                                         FixedSum const& before, FixedSum const& present) const {
    FixedSum const after = (direction == ScanDirection::kForward ? node.sum : present) - before;
    return bound.MayReach(to_beat, node.sum - after, after)
               ? this->ScanBoundaryKey(node, f, direction, CandidateKey::Beside(direction, value),
                                       before, present)
               : 0;
  }
  /** @brief Make the CandidateKey of the better candidate between the rows with any value of the feature
   *         and those without, of both scans. */
  __device__ std::uint64_t PresentKey(NodeState const& node, FeatureIdx f,
                                      FixedSum const& present) const {
    ValueRange values = columns.Values(f);
    return max(this->ScanPresentKey(node, f, ScanDirection::kForward, values.end, present),
               this->ScanPresentKey(node, f, ScanDirection::kBackward, values.begin, present));
  }
  /**
   * @brief Make that of one scan's; 0 where the feature is not scanned so.
   * @param value Numbers the candidate: it lies before this value id, in a forward scan past the
   *              last one at most.
   */
  __device__ std::uint64_t ScanPresentKey(NodeState const& node, FeatureIdx f,
                                          ScanDirection direction, std::uint64_t value,
                                          FixedSum const& present) const {
    FeatureRule rule = rules[f];
    bool const forward = direction == ScanDirection::kForward;
    FixedSum missing = node.sum - present;
    if (missing == FixedSum{0, 0} || !(forward ? rule.forward : rule.backward)) {
      return 0;
    }
    float loss = forward ? LossChange(node, rule.monotone, present, missing)
                         : LossChange(node, rule.monotone, missing, present);
    return CandidateKey::Make(loss, CandidateKey::Rank(columns.Values(f), direction, value));
  }

  /** @brief Make the split of a node's best candidate, by a column of this device. */
  [[nodiscard]] __device__ Split SplitOf(LevelNode level_node, FeatureIdx column,
                                         ScanDirection direction, float threshold) const {
    return {CandidateKey::LossChange(best[level_node]), features.Of(ColumnIdx{column}), threshold,
            direction == ScanDirection::kForward ? 0u : 1u};
  }

  /** @brief Rank the candidate of a categorical feature: a node is offered one alone of each. */
  [[nodiscard]] __device__ std::uint64_t CategoryRank(FeatureIdx f, bool missing_left) const {
    return 2 * std::uint64_t{columns.value_offsets[f]} + (missing_left ? 0 : 1);
  }
  /** @brief Tell whether a candidate of a categorical feature sends missing values left. */
  [[nodiscard]] __device__ bool SendsMissingLeft(FeatureIdx f, std::uint64_t key) const {
    return CandidateKey::RankOf(key) == this->CategoryRank(f, true);
  }
};
}  // namespace gpu_exact
