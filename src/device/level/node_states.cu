/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements node_states.cuh.
 */
#include "device/level/node_states.cuh"

namespace gpu_exact {
namespace {
// one thread a feature
__global__ void RulesKernel(DefaultDirection direction, float opt_dense_col,
                            std::uint32_t max_cat_to_onehot, ColumnsRef columns,
                            std::int32_t const* monotone, ColumnFeatures features,
                            FeatureRule* rules) {
  WaitForPreviousKernel();
  auto f = GlobalIdx();
  if (f < columns.n_features) {
    auto n_present = columns.n_present[f];
    auto n_distinct = columns.value_offsets[f + 1] - columns.value_offsets[f];
    std::int32_t const constraint =
        monotone == nullptr ? 0 : monotone[features.Of(ColumnIdx{static_cast<FeatureIdx>(f)})];
    std::uint32_t const n = columns.n_categories == nullptr ? 0 : columns.n_categories[f];
    rules[f] = n != 0 ? FeatureRule::MakeCategorical(direction, n < max_cat_to_onehot, constraint)
                      : FeatureRule::Make(ScanPlan::Make(direction, opt_dense_col, columns.n_rows,
                                                         n_present, n_distinct),
                                          constraint);
  }
}

/** @brief Compute weight and gain within the bounds, which stay as they are. */
__device__ void Complete(GainParam const& param, Quantiser const& quantiser,
                         WeightBounds const& bounds, NodeState* state) {
  GradientSum sum = quantiser.Real(state->sum);
  state->weight = CalcWeight(param, sum, bounds);
  state->gain = CalcGain(param, sum, state->weight);
  state->bounds = bounds;
}

/** @param own_bounds Limit the root's own weight. @param bounds Limit its splits. */
__global__ void CompleteRootKernel(GainParam param, Quantiser quantiser, WeightBounds own_bounds,
                                   WeightBounds bounds, std::uint64_t to_beat, NodeState* root,
                                   std::uint64_t* best) {
  WaitForPreviousKernel();
  Complete(param, quantiser, own_bounds, root);
  root->bounds = bounds;
  *best = to_beat;
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

void MakeRules(GrowParam const& param, ColumnsRef const& columns, std::int32_t const* monotone,
               FeatureRule* out_rules, ColumnFeatures const& features) {
  LaunchN("Rules", RulesKernel, columns.n_features, param.default_direction, param.opt_dense_col,
          param.max_cat_to_onehot, columns, monotone, features, out_rules);
}

void CompleteRoot(std::uint64_t to_beat, Level* root) {
  GainParam const& gain = root->ref.gain;
  Launch("CompleteRoot", CompleteRootKernel, 1, 1, gain, root->ref.quantiser,
         WeightBounds::OfRoot(gain.bounded && !gain.Old()), WeightBounds::OfRoot(gain.bounded),
         to_beat, root->states.Data(), root->best.Data());
}

void CompleteChildren(Level const& level, NodeSplit const* node_splits,
                      std::int32_t const* monotone, std::uint64_t to_beat, Level* children) {
  LaunchN("CompleteChildren", CompleteChildrenKernel, level.nodes.n, level.ref.gain,
          level.ref.quantiser, monotone, node_splits, level.states.Data(), level.nodes.n,
          children->nodes.first, to_beat, children->states.Data(), children->best.Data());
}
}  // namespace gpu_exact
