/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells an updater, which is told of one tree alone, what its booster is about.
 */
#pragma once

#include <cstdint>

namespace gpu_exact {
/** @brief Names the round that a thread's booster trains, from when it is made until it goes. */
class Round {
 public:
  /**
   * @param before Rounds that the model has.
   * @param groups Groups of trees that the round adds, one for each class.
   */
  Round(std::uint32_t before, std::uint32_t groups);
  ~Round();
  Round(Round const&) = delete;
  Round& operator=(Round const&) = delete;

  /** @brief Give that of this thread; nullptr: no booster of ours. */
  [[nodiscard]] static Round const* Current();

  std::uint32_t const n_before;
  std::uint32_t const n_groups;

 private:
  Round const* outer_;
};
}  // namespace gpu_exact
