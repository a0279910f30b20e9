/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Selects which features a level may use: XGBoost's column sampling and interaction
 *        constraints.
 */
#pragma once

#include <xgboost/context.h>
#include <xgboost/host_device_vector.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "load/release.h"
#include "src/tree/param.h"

namespace gpu_exact {
/**
 * @brief Names features that may be used together.
 *
 * A node may use the features of its path and those of every group that holds the whole path. Every
 * feature is open to the root; XGBoost's exact builder takes the number of rows for the number of
 * features there, and so bars features from the root where there are fewer rows than columns.
 */
class InteractionGroups {
 public:
  explicit InteractionGroups(std::string const& constraints);

  [[nodiscard]] bool Enabled() const { return enabled_; }
  /** @brief Select the features open to each node, one row for each. Siblings are asked for
   *         together. */
  void Select(std::vector<LiveNode> const& nodes, FeatureIdx n_features, FeatureMask* out_mask);

 private:
  using Features = std::vector<FeatureIdx>;  // ascending

  bool enabled_;  // `[]` is a constraint too: a path may use the root's feature only
  std::vector<Features> groups_;
  std::unordered_map<NodeIdx, Features> paths_;  // of nodes whose children may still come
};

/**
 * @brief Draws the features of one tree as its levels are searched.
 *
 * Sampling by node, which XGBoost's exact builder refuses, draws once for each node searched, in
 * the order of ids, after the draw of its level: as XGBoost's `hist` does.
 *
 * Leaf-wise levels draw as in `hist` too: it searches a node of each level that is searched here. Of
 * nodes this cannot be had: `hist` draws in the order in which it searches them, one split after the
 * other. Here a node's draw depends on its level's and on the way to it, so that it is the same whatever
 * else is searched.
 */
class TreeFeatures : public FeaturePolicy {
 public:
  /**
   * @param ctx     A CPU context, borrowed: XGBoost samples columns from another generator on a GPU.
   * @param weights shape: (n_features) or empty, of features
   */
  TreeFeatures(xgboost::Context const* ctx, xgboost::tree::TrainParam const& param,
               FeatureIdx n_features, xgboost::HostDeviceVector<float> const& weights);

  /** @brief Tell whether a tree of these parameters draws its features. */
  [[nodiscard]] static bool Sampled(xgboost::tree::TrainParam const& param);

  /** @brief Tell whether anything is restricted at all. */
  [[nodiscard]] bool Restricted() const { return sampled_ || groups_.Enabled(); }
  bool Select(std::int32_t depth, std::vector<LiveNode> const& nodes,
              FeatureMask* out_mask) override;

 private:
  /** @brief Make the generator for a node's own draw, by the way to it. */
  [[nodiscard]] RandomEngine EngineOf(std::int32_t depth, LiveNode const& node);

  xgboost::Context const* ctx_;
  FeatureIdx n_features_;
  bool sampled_;
  bool sampled_by_node_;
  bool sampled_by_way_;  // by node, leaf-wise
  ColumnSampler sampler_;
  InteractionGroups groups_;
  std::vector<RandomEngine> drawn_;                  // by way: after the draw of each level
  std::unordered_map<NodeIdx, std::uint32_t> ways_;  // numbers that stand for them
};
}  // namespace gpu_exact
