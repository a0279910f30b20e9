/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Spares XGBoost's updater `prune` the trees that are pruned already.
 *
 * `tree_method="exact"` stands for the updaters `grow_colmaker,prune`. The second one walks over the
 * positions of all rows on the host, even if it takes nothing back: with gradients on the GPU that
 * takes as long as growing the tree. Ours prunes inside, where rows are moved to their leaves.
 */
#pragma once

namespace gpu_exact {
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

  /**
   * @brief Tell the updater that is made as `grow_colmaker` whether `prune` follows.
   *
   * Where it does, the updater must prune inside, as that `prune` will do nothing.
   */
  [[nodiscard]] static bool Claim();

  /** @brief Tell `prune` whether the updater before it prunes inside. */
  [[nodiscard]] static bool Claimed();

 private:
  PruneFollows* outer_;
  bool claimed_{false};
};

/** @brief Answer for `prune` in XGBoost's registry. To be called once. */
void RegisterPruner();
}  // namespace gpu_exact
