/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Spares XGBoost's updater `prune` the trees that are pruned already.
 *
 * `tree_method="exact"` stands for the updaters `grow_colmaker,prune`. The second one walks over the
 * positions of all rows on the host, even if it takes nothing back: with gradients on the GPU that
 * takes as long as growing the tree. Ours prunes inside, where rows are moved to their leaves.
 */
#pragma once

namespace gpu_exact {
class PositionedUpdater;

/**
 * @brief Marks, while one lives, that this thread makes the updaters of such a list:
 *        `grow_colmaker`, and right after it `prune`.
 */
class PruneFollows {
 public:
  PruneFollows();
  ~PruneFollows();
  PruneFollows(PruneFollows const&) = delete;
  PruneFollows& operator=(PruneFollows const&) = delete;

  /** @brief Give that of this thread; nullptr: there is none. */
  [[nodiscard]] static PruneFollows* Current();

  /** @brief Tell what was made as `grow_colmaker`, and prunes inside: `prune` will do nothing, and
   *         answer as this does. */
  void Claim(PositionedUpdater const* updater) { updater_ = updater; }
  /** @brief Give the updater before `prune` that prunes inside; nullptr: it does not. */
  [[nodiscard]] PositionedUpdater const* Claimed() const { return updater_; }

 private:
  PruneFollows* outer_;
  PositionedUpdater const* updater_{nullptr};
};

/** @brief Answer for `prune` in XGBoost's registry. To be called once. */
void RegisterPruner();
}  // namespace gpu_exact
