/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Reads the best candidate of each node back from its key; with several workers it makes the splits
 *        of the own columns, and tells which rows they send left.
 */
#pragma once

#include "device/histogram/build/searched_node.cuh"
#include "device/histogram/rows/split_sides.cuh"
#include "device/level/level_ref.cuh"

namespace gpu_exact {
/** @brief Lends candidates inside of ranges to kernels. */
struct RefinedCandidates {
  FoundCandidate const* found;  // shape: (n_nodes, n_columns); nullptr: no bin is a range
  std::uint32_t n_columns;      // of the resolution; 0: one for all, shape (n_nodes)
};

class ThresholdFinder {
 public:
  explicit ThresholdFinder(BinnedTableRef const& table) : table_{table} {}

  /**
   * @brief Read the best candidates of some nodes of a level: in any order, each once. Does not wait.
   * @param lv         Its columns are those of the nodes' resolution.
   * @param refined    The best candidate of a node, if it is inside of a range; others are of no
   *                   meaning.
   * @param out        By node; their thresholds are not known yet.
   */
  void Read(LevelRef const& lv, BinMatrixRef const& binned, SearchedNode const* nodes,
            LevelNode n_nodes, RefinedCandidates const& refined, LevelResult* out);
  /** @brief Lend what sends rows to the children, without what workers tell. */
  [[nodiscard]] SplitSidesRef Sides(LevelSetsRef const& sets) const {
    return {table_, points_.Data(), sets, {}};
  }
  /**
   * @brief Find the thresholds of the candidates of a level, and which rows they send left. Does not wait.
   * @param n_slots  Level::NumSlots().
   * @param out_left One bit a row of the table, all of them 0.
   */
  void Resolve(SplitSidesRef const& sides, RowsRef const& rows, LevelNode n_nodes, RowIdx n_slots,
               std::uint32_t* out_left, LevelResult* out) const;

 private:
  BinnedTableRef table_;
  DeviceBuffer<NodeThreshold> points_{"best splits to resolve"};
};

/** @brief Find the first values in the next bins, where values are the host's. Does not wait. */
void FindValuesBeyond(SplitSidesRef const& sides, RowsRef const& rows, LevelNode n_nodes,
                      RowIdx n_slots);
}  // namespace gpu_exact
