/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Defines what host and device tell each other about the nodes of one level.
 *
 * The live nodes of a tree in progress are those of the deepest level: they may yet be split. They have
 * consecutive ids; a LevelNode is an id less the first one.
 */
#pragma once

#include <cstdint>

#include "core/gain.h"
#include "core/quantise.h"
#include "core/split.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
using LevelNode = std::uint32_t;
/** @brief Numbers a node among those of a level that are searched together. */
using SearchedIdx = std::uint32_t;

/** @brief Holds the statistics of one live node. */
struct NodeState {
  FixedSum sum;
  float weight;
  float gain;  // of the node unsplit
  WeightBounds bounds;
};

using EntryRange = Range<EntryIdx>;
using RowRange = Range<RowIdx>;  // of slots, where rows lie in the order of the nodes

/** @brief Tells the host the result of one live node, once a level. Has no padding. */
struct LevelResult {
  NodeState state;
  Split split;
};

/** @brief Tells the device what the host has decided for one live node. */
struct NodeSplit {
  FeatureIdx feature;
  NodeIdx left;  // id of the left child, right is the next; kNoNode: the node stays a leaf
  float threshold;
  bool default_left;
  bool by_categories{false};
  std::uint64_t first_set_word{
      0};  // of a split by categories, among the words of all sets of the tree
};
}  // namespace gpu_exact
