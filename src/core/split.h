/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Split candidates of one feature, their total order, and their thresholds.
 *
 * Distinct values of the table are numbered by (feature, value): the value id. Feature f owns ids
 * [begin, end). A candidate lies before the value id v, or between all present values and the
 * missing ones; it is searched forward (missing goes right) or backward (missing goes left).
 */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/platform.h"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
using ValueId = std::uint32_t;

/** @brief Equals XGBoost's kRtEps: a node is split when its loss change is greater. */
inline constexpr float kMinLossChange = 1e-6f;

using ValueRange = Range<std::uint64_t>;  // value ids of one feature

enum class ScanDirection : std::uint8_t { kForward, kBackward };

/**
 * @brief A split candidate as one number: a greater key is a better candidate, 0 is none.
 *
 * XGBoost takes the greatest loss change as a float; among equals the lower feature, then forward
 * before backward, then the earlier one of the scan. So: 31 bits of a positive float, then 33 bits
 * of the candidate's rank in that order, complemented. Feature f's ranks are [2 begin, 2 end).
 */
class CandidateKey {
 public:
  static constexpr int kRankBits = 33;
  static constexpr std::uint64_t kRankMask = (std::uint64_t{1} << kRankBits) - 1;

  /**
   * @brief Rank the candidate before value id v, begin < v < end; between present and missing
   *        values it is v = end forward, v = begin backward.
   */
  GPU_EXACT_HD static std::uint64_t Rank(ValueRange r, ScanDirection d, std::uint64_t v) {
    return d == ScanDirection::kForward ? r.begin + v - 1 : 2 * r.end - 1 - (v - r.begin);
  }
  /** @brief Number the candidate beside an entry of a value or a bin: it lies before the value id that
   *         this gives, so after the entry in a forward scan, and before it in a backward one. */
  GPU_EXACT_HD static std::uint64_t Beside(ScanDirection d, std::uint64_t v) {
    return d == ScanDirection::kForward ? v + 1 : v;
  }
  /** @brief Make the key; 0 unless the loss change is positive and finite. */
  GPU_EXACT_HD static std::uint64_t Make(float loss_change, std::uint64_t rank) {
    if (!(loss_change > 0.0f) || !(loss_change <= std::numeric_limits<float>::max())) {
      return 0;
    }
    std::uint32_t bits;
    std::memcpy(&bits, &loss_change, sizeof(bits));
    return (static_cast<std::uint64_t>(bits) << kRankBits) | (kRankMask - rank);
  }

  GPU_EXACT_HD static float LossChange(std::uint64_t key) {
    auto bits = static_cast<std::uint32_t>(key >> kRankBits);
    float loss_change;
    std::memcpy(&loss_change, &bits, sizeof(bits));
    return loss_change;
  }
  GPU_EXACT_HD static std::uint64_t RankOf(std::uint64_t key) {
    return kRankMask - (key & kRankMask);
  }
  /** @brief Make a key below all candidates of this loss change: those that gain less are not
   *         looked for. */
  GPU_EXACT_HD static std::uint64_t GainToBeat(float loss_change) {
    return Make(loss_change, kRankMask);
  }
  /** @brief Tell whether the key is that of an own candidate. */
  GPU_EXACT_HD static bool IsLocal(std::uint64_t key) { return (key & kRankMask) != 0; }
  /** @brief Give a value id of the candidate's feature. */
  GPU_EXACT_HD static std::uint64_t AnyValueOf(std::uint64_t rank) { return rank / 2; }
};

/** @brief Reads a candidate back from its rank. */
struct Candidate {
  ScanDirection direction;
  bool present;   // between present and missing values
  ValueId value;  // else: before this value id

  GPU_EXACT_HD static Candidate FromRank(ValueRange r, std::uint64_t rank) {
    std::uint64_t n = r.end - r.begin;
    std::uint64_t k = rank - 2 * r.begin;
    bool forward = k < n;
    std::uint64_t step = forward ? k : k - n;  // of the scan
    bool present = step == n - 1;
    std::uint64_t value = forward ? r.begin + step + 1 : r.end - 1 - step;
    return {forward ? ScanDirection::kForward : ScanDirection::kBackward, present,
            static_cast<ValueId>(present ? r.begin : value)};
  }
};

/** @brief Compute the threshold between two neighbouring values of a node, in the order of the scan. */
GPU_EXACT_HD inline float MidThreshold(float last_scanned, float beyond) {
  float mid = (beyond + last_scanned) * 0.5f;
  // Neighbouring floats. Forward, rows at the threshold then go right although their gradients were
  // counted left; XGBoost does the same.
  return mid == beyond ? last_scanned : mid;
}

/** @brief Compute the threshold past the last value scanned: every present value goes one way. */
GPU_EXACT_HD inline float PresentThreshold(ScanDirection d, float last_scanned) {
  float gap = std::fabs(last_scanned) + kMinLossChange;
  return d == ScanDirection::kForward ? last_scanned + gap : last_scanned - gap;
}

/** @brief Tells which scans a feature needs; both may be set. */
struct ScanPlan {
  bool forward;
  bool backward;

  /**
   * @param n_present  Rows with a value.
   * @param n_distinct Distinct values; a constant column is never searched forward.
   */
  GPU_EXACT_HD static ScanPlan Make(DefaultDirection direction, float opt_dense_col,
                                    std::uint64_t n_rows, std::uint64_t n_present,
                                    std::uint64_t n_distinct) {
    float density = 1.0f - static_cast<float>(n_rows - n_present) / static_cast<float>(n_rows);
    return {direction == DefaultDirection::kRight || (direction == DefaultDirection::kLearn &&
                                                      density < opt_dense_col && n_distinct != 1),
            direction != DefaultDirection::kRight};
  }
};

/** @brief Holds the best split of a node. */
struct Split {
  float loss_change;  // 0: no candidate
  FeatureIdx feature;
  float threshold;
  std::uint32_t default_left;  // 0 or 1; not a bool, so that the struct has no padding
};
}  // namespace gpu_exact
