/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Computes weights, gains and bounds of a level's nodes from their gradient sums.
 */
#pragma once

#include "device/level/level_ref.cuh"

namespace gpu_exact {
/**
 * @brief Decide how every column is searched. Does not wait.
 * @param monotone By feature, or nullptr.
 * @param features Of the columns; nullptr: they are all features.
 */
void MakeRules(GrowParam const& param, ColumnsRef const& columns, std::int32_t const* monotone,
               FeatureRule* out_rules, FeatureIdx const* features = nullptr);

/** @brief Names what the search of a level's nodes and the move to their children add to. It is
 *         cleared with the nodes' states; nullptr: they are not split. */
struct LevelZeros {
  std::uint64_t* best;    // shape: (n_nodes), becomes bar
  NodeState* children;    // shape: (2 n_nodes), becomes 0
  std::uint64_t to_beat;  // CandidateKey
};

/** @brief Complete the root's state, whose sum is written. Does not wait. */
void CompleteRoot(GainParam const& param, Quantiser const& quantiser, NodeState* root,
                  LevelZeros const& out_zeros);

/**
 * @brief Complete the children's states, whose sums are written. Does not wait.
 * @param monotone By feature, or nullptr.
 * @param node_splits   Of their level, shape: (n_parents).
 * @param parents  States of that level.
 * @param children By node; first_child is the id of the first.
 */
void CompleteChildren(GainParam const& param, Quantiser const& quantiser,
                      std::int32_t const* monotone, NodeSplit const* node_splits,
                      NodeState const* parents, LevelNode n_parents, NodeIdx first_child,
                      NodeState* children, LevelZeros const& out_zeros);
}  // namespace gpu_exact
