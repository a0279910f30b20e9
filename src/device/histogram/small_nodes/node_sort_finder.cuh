/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches nodes of few rows: a block, or a warp, sorts a node's rows by a column and looks
 *        at every candidate.
 *
 * An entry costs more than in a histogram, but no bins are cleared, written or searched, no range
 * is left open, and a level of a small table is one kernel.
 */
#pragma once

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/uploader.cuh"

namespace gpu_exact {
class NodeSortFinder {
 public:
  /** @brief Limits the rows of a node. */
  static constexpr RowIdx kMaxRows = kMaxSortedRows;

  /**
   * @param table      Outlives the finder.
   * @param max_blocks Limits the blocks of a launch, unless a node has more columns; changes no result.
   */
  explicit NodeSortFinder(BinnedTable const& table, std::uint64_t max_blocks = kMaxGrid);

  /**
   * @brief Offer every candidate of some nodes by numerical features. Does not wait.
   * @param lv    Its columns are the candidates of the finest resolution.
   * @param nodes At most kMaxRows each.
   */
  void Find(LevelRef const& lv, RowsRef const& rows, std::vector<SearchedNode> const& nodes);

  /** @brief Give the nodes of the last call, device memory. */
  [[nodiscard]] SearchedNode const* Nodes() const { return nodes_; }
  /** @brief Give RefinedCandidates::found, the best candidate of each node and column. */
  [[nodiscard]] FoundCandidate const* Found() const { return found_.Data(); }
  [[nodiscard]] std::uint32_t NumColumns() const { return n_columns_; }

 private:
  BinnedTable const& table_;
  std::uint64_t max_blocks_;
  std::uint32_t n_columns_;
  bool any_numerical_;
  std::vector<std::uint64_t> pairs_at_once_;  // by size of nodes; a node and a column each
  SearchedNode const* nodes_{nullptr};
  Uploader uploaded_{"nodes of few rows"};
  DeviceBuffer<SearchedNode> launched_{"a few of them"};
  DeviceBuffer<FoundCandidate> found_{"best candidates by column"};
};
}  // namespace gpu_exact
