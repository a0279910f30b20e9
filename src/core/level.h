/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What host and device exchange about the nodes of one level.
 *
 * The open nodes of a level have consecutive ids; a LevelNode is an id less the first one.
 */
#pragma once

#include <cstdint>

#include "core/gain.h"
#include "core/quantise.h"
#include "core/split.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
using LevelNode = std::uint32_t;

/** @brief Statistics of one open node. */
struct NodeState {
  FixedSum sum;
  float weight;
  float gain;  // of the node unsplit
  WeightBounds bounds;
};

/** @brief A range of entries in one layout of them. */
struct EntryRange {
  EntryIdx begin;
  EntryIdx end;

  [[nodiscard]] GPU_EXACT_HD EntryIdx Size() const { return end - begin; }
};

/** @brief All that the host learns of one open node, once a level; without padding. */
struct LevelResult {
  NodeState state;
  Split split;
  EntryRange entries;  // of the node, where entries are sorted by node
  EntryRange winner;   // of the split feature among them
};

/** @brief What the device learns of one open node once the host has decided. */
struct NodeSplit {
  FeatureIdx feature;
  NodeIdx left;  // id of the left child, right is the next; kNoNode: the node stays a leaf
  std::uint64_t first_right;  // value id, where entries have them
  float threshold;
  bool default_left;
};
}  // namespace gpu_exact
