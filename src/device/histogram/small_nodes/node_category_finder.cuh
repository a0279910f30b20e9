/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches categorical columns of nodes of few rows: a block sorts a node's rows by category. It
 *        costs as many steps as the node has rows, however many categories there are.
 */
#pragma once

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/category_tiles.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "plan/histogram_memory.h"

namespace gpu_exact {
class NodeCategoryFinder {
 public:
  /** @brief Limits the rows of a node. */
  static constexpr RowIdx kMaxRows = 1024;

  /**
   * @param table     Outlives the finder.
   * @param max_words Limits the words of the sets found at a time, unless those of a node have more.
   */
  explicit NodeCategoryFinder(BinnedTable const& table,
                              std::uint64_t max_words = HistogramMemory::kSetWordsAtOnce);

  /**
   * @brief Offer the best split by each feature, and write the sets of those that are the best of their
   *        nodes. Does not wait, but where memory grows.
   * @param lv    Its columns are the candidates of the finest resolution.
   * @param nodes Device memory; at most kMaxRows rows each.
   */
  void Find(LevelRef const& lv, RowsRef const& rows, SearchedNode const* nodes,
            std::uint32_t n_nodes, LevelSetsRef const& out);

 private:
  BinnedTable const& table_;
  std::uint64_t max_words_;
  CategoryTiles tiles_;
};
}  // namespace gpu_exact
