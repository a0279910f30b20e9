/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements node_states.cuh.
 */
#include <algorithm>

#include "device/level/node_states.cuh"

namespace gpu_exact {
namespace {
/** @brief Compute weight and gain within the bounds, which stay as they are. */
__device__ void Complete(GainParam const& param, Quantiser const& quantiser,
                         WeightBounds const& bounds, NodeState* state) {
  GradientSum sum = quantiser.Real(state->sum);
  state->weight = CalcWeight(param, sum, bounds);
  state->gain = CalcGain(param, sum, state->weight);
  state->bounds = bounds;
}

// one thread a feature; own_bounds limit the root's own weight, bounds its splits
__global__ void CompleteRootKernel(LevelRef lv, DefaultDirection direction, float opt_dense_col,
                                   std::uint32_t max_cat_to_onehot, std::int32_t const* monotone,
                                   WeightBounds own_bounds, WeightBounds bounds,
                                   std::uint64_t to_beat, FeatureRule* rules, NodeState* root) {
  WaitForPreviousKernel();
  auto f = GlobalIdx();
  if (f == 0) {
    Complete(lv.gain, lv.quantiser, own_bounds, root);
    root->bounds = bounds;
    lv.best[0] = to_beat;
  }
  ColumnsRef const& columns = lv.columns;
  if (f < columns.n_features) {
    auto n_present = columns.n_present[f];
    auto n_distinct = columns.value_offsets[f + 1] - columns.value_offsets[f];
    std::int32_t const constraint =
        monotone == nullptr ? 0 : monotone[lv.features.Of(ColumnIdx{static_cast<FeatureIdx>(f)})];
    std::uint32_t const n = columns.n_categories == nullptr ? 0 : columns.n_categories[f];
    rules[f] = n != 0 ? FeatureRule::MakeCategorical(direction, n < max_cat_to_onehot, constraint)
                      : FeatureRule::Make(ScanPlan::Make(direction, opt_dense_col, columns.n_rows,
                                                         n_present, n_distinct),
                                          constraint);
  }
}

// one thread a parent
__global__ void CompleteChildrenKernel(GainParam param, Quantiser quantiser,
                                       std::int32_t const* monotone, NodeSplit const* node_splits,
                                       NodeState const* parents, LevelNode n_parents,
                                       NodeIdx first_child, std::uint64_t to_beat,
                                       NodeState* children, std::uint64_t* best) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= n_parents || node_splits[i].left == kNoNode) {
    return;
  }
  auto const b = static_cast<LevelNode>(node_splits[i].left - first_child);
  NodeState* left = children + b;
  NodeState* right = left + 1;
  // As in XGBoost: the children's own weights keep to the parent's bounds, their splits to theirs.
  Complete(param, quantiser, parents[i].bounds, left);
  Complete(param, quantiser, parents[i].bounds, right);
  SplitBounds(parents[i].bounds, monotone == nullptr ? 0 : monotone[node_splits[i].feature],
              left->weight, right->weight, &left->bounds, &right->bounds);
  best[b] = best[b + 1] = to_beat;
}
}  // namespace

void CompleteRoot(GrowParam const& param, std::int32_t const* monotone, std::uint64_t to_beat,
                  FeatureRule* out_rules, Level* root) {
  GainParam const& gain = root->ref.gain;
  LaunchN("CompleteRoot", CompleteRootKernel, std::max(root->ref.columns.n_features, FeatureIdx{1}),
          root->ref, param.default_direction, param.opt_dense_col, param.max_cat_to_onehot,
          monotone, WeightBounds::OfRoot(gain.bounded && !gain.Old()),
          WeightBounds::OfRoot(gain.bounded), to_beat, out_rules, root->states.Data());
}

void CompleteChildren(Level const& level, NodeSplit const* node_splits,
                      std::int32_t const* monotone, std::uint64_t to_beat, Level* children) {
  LaunchN("CompleteChildren", CompleteChildrenKernel, level.nodes.n, level.ref.gain,
          level.ref.quantiser, monotone, node_splits, level.states.Data(), level.nodes.n,
          children->nodes.first, to_beat, children->states.Data(), children->best.Data());
}
}  // namespace gpu_exact
