/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Picks a warp's candidates that are worth their exact gains: first the one whose bound is
 *        the greatest, then those that may still reach what it gains, which hardly another one
 *        does.
 */
#pragma once

#include "device/level/level_ref.cuh"

namespace gpu_exact {
/** @brief Holds the bounds of a lane's candidates. @tparam kItems At most. */
template <int kItems>
class BestBoundFirst {
 public:
  __device__ BestBoundFirst() {
#pragma unroll
    for (float& bound : bounds_) {
      bound = -INFINITY;
    }
  }
  /** @brief Set the bound of item k, which has candidates. @param bound Upper bound of their gains;
   *         -infinity: it has none. */
  __device__ void Set(int k, float bound) { bounds_[k] = bound; }

  /**
   * @brief Find the warp's item of the greatest bound, or one of each lane that has it. All lanes.
   * @return Bits of the lane's items; none in any lane where no bound reaches the gain to beat.
   */
  [[nodiscard]] __device__ std::uint32_t First(float to_beat) const {
    float greatest = -INFINITY;
    std::uint32_t item{0};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      item = bounds_[k] > greatest ? 1u << k : item;
      greatest = fmaxf(greatest, bounds_[k]);
    }
    bool const reaches = GainBound::Reaches(greatest, to_beat);
    float const of_warp = WarpMax(greatest);
    return reaches && greatest == of_warp ? item : 0;
  }
  /**
   * @brief Give the items whose bounds reach the gain to beat.
   * @param to_beat With what First() has gained.
   * @param first   Its result, which is left out.
   */
  [[nodiscard]] __device__ std::uint32_t Others(float to_beat, std::uint32_t first) const {
    std::uint32_t items{0};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      bool const may = bounds_[k] > -INFINITY && GainBound::Reaches(bounds_[k], to_beat);
      items |= may ? 1u << k : 0;
    }
    return items & ~first;
  }

  /**
   * @brief Offer the items that may be a node's best: the first, then the others. All lanes of a
   *        warp.
   * @param key_of key_of(items): the greatest exact key of a lane's items, at least one, given as
   *               bits.
   */
  template <typename KeyFn>
  __device__ void Offer(LevelRef const& lv, LevelNode level_node, KeyFn&& key_of) const {
    std::uint32_t items = this->First(lv.GainToBeat(level_node));
    if (__any_sync(kAllLanes, items != 0) == 0) {
      return;
    }
#pragma unroll 1  // one copy of the exact gain
    for (bool is_first : {true, false}) {
      lv.Offer(level_node, items != 0 ? key_of(items) : 0);
      if (is_first) {
        __syncwarp();  // what was offered is read
        items = this->Others(lv.GainToBeat(level_node), items);
      }
    }
  }

 private:
  float bounds_[kItems];
};
}  // namespace gpu_exact
