/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares what the level loop asks of a strategy. A strategy decides how the table lies in device
 *        memory and how it follows the rows; gains, splits and the tree are the same for all.
 *
 * A tree goes through phases. What a phase needs of a level is in the Level that it is given; a strategy
 * keeps the order of rows as it is now, and nothing of the levels before.
 *
 *     BeginTree    all rows are in the root
 *     FindSplits   reads the nodes: offers every candidate, writes the best splits; may begin to move rows
 *     AwaitSplits  waits until the host can read these
 *     EndSearch    learns what the search took
 *     Partition    makes the level of the children: all rows are in it, and their gradients are added up
 *     EndTree      every row has its position
 */
#pragma once

#include <memory>
#include <vector>

#include "device/level/level.cuh"
#include "device/level/row_positions.cuh"
#include "device/level/training_rows.cuh"
#include "device/runtime/device_context.cuh"
#include "plan/memory_plan.h"

namespace gpu_exact {
class SplitExchange;

/** @brief Holds what is known of a tree about to grow. */
struct TreeStart {
  GrowParam const& param;
  TrainingRows rows;
  RowIdx n_left_out;
  Quantiser quantiser;
  SplitExchange* exchange{nullptr};  // with the workers that have the other columns, if any
};

class SplitStrategy {
 public:
  virtual ~SplitStrategy() = default;

  /** @brief Give the columns, whose value ids number the candidates: LevelRef::columns. */
  [[nodiscard]] virtual ColumnsRef Candidates() const = 0;

  /** @brief Put all trained rows into the root. @param root Gets its row ranges, if it has them. */
  virtual void BeginTree(TreeStart const& start, Level* root) = 0;
  /**
   * @brief Search a level: offer every candidate, write the best splits. With several workers these are the
   *        best of all. Thresholds may be left to Partition().
   * @param out Device memory or page-locked memory, shape: (level.nodes.n); with several workers
   *            device memory
   */
  virtual void FindSplits(Level const& level, LevelResult* out) = 0;
  /** @brief Wait for page-locked memory that FindSplits() writes. The rest of what it began may run on,
   *         while the host decides what is split. */
  virtual void AwaitSplits() { Synchronize(); }
  /** @brief Learn what the search took. Its splits have been waited for. */
  virtual void EndSearch(Level const&) {}
  /**
   * @brief Move rows to the children, and add up the gradients of these.
   * @param splits   Get their thresholds, unless they have them.
   * @param children Their nodes are known, their sums are 0; gets row ranges, if it has them.
   */
  virtual void Partition(Level const& level, LevelSplits const& splits, Level* children) = 0;
  /**
   * @brief Give every row its position.
   * @param level Its nodes are leaves, and so are those of the levels before that were not split.
   * @param tree  A split or a leaf for each node.
   */
  virtual void EndTree(Level const& level, std::vector<NodeSplit> const& tree) = 0;
  /** @brief Tell which categories a node of the tree sends right, as TreeNode::categories, after EndTree().
   *         The stream was waited for. */
  [[nodiscard]] virtual std::vector<std::uint32_t> Categories(NodeIdx) const { return {}; }

  [[nodiscard]] virtual RowPositions& Positions() = 0;

  /**
   * @brief Estimate the share of the entries of nodes searched by bins, since BeginTree(), that lay in
   *        ranges that were looked into. -1: no node was searched in ranges.
   */
  [[nodiscard]] virtual double RefinedShare() const { return -1.0; }
};
}  // namespace gpu_exact
