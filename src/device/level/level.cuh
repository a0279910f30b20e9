/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds one level of a tree, which the phases of the level loop hand on: BeginTree() makes the
 *        root, FindSplits() searches a level, Partition() makes the level of its children.
 */
#pragma once

#include <vector>

#include "device/level/level_ref.cuh"
#include "device/level/rows_ref.cuh"
#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Names the nodes of a level, whose ids follow one another. */
struct LevelNodes {
  NodeIdx first{kRoot};
  LevelNode n{1};
};

/**
 * @brief Holds the nodes of a level, what is known of them, and where their rows are.
 *
 * Made of another level it keeps its memory, and nothing else of that level.
 */
struct Level {
  std::int32_t depth{0};
  LevelNodes nodes;
  bool is_searched{false};  // its nodes may be split
  bool is_last{false};      // its children are not searched
  // Nodes of the level before, each of which was split into the next two here; none: this is the root.
  std::vector<LevelNode> parents;
  LevelRef ref{};                                       // lends all of it to kernels
  DeviceBuffer<NodeState> states{"node states"};        // shape: (nodes.n)
  DeviceBuffer<std::uint64_t> best{"best candidates"};  // shape: (nodes.n), CandidateKey
  // Slots of each node's rows, by node, where a strategy keeps rows by node:
  std::vector<RowRange> row_ranges;
  DeviceBuffer<RowRange> device_row_ranges{"rows of nodes"};

  /** @brief Count the slots up to the last node's end, gaps that leaves have left included. */
  [[nodiscard]] RowIdx NumSlots() const { return row_ranges.empty() ? 0 : row_ranges.back().end; }
};

/** @brief Holds the splits of a level, by node; their features are those of the whole table. */
struct LevelSplits {
  std::vector<NodeSplit>* node_splits;  // what was decided
  NodeSplit const* device_node_splits;  // the same
};
}  // namespace gpu_exact
