/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/feature_sampler.h"

#include <xgboost/logging.h>

#include <algorithm>
#include <utility>

namespace gpu_exact {
namespace {
constexpr FeatureIdx kWordBits = 32;

std::vector<std::uint32_t> BitsOf(std::vector<FeatureIdx> const& features, FeatureIdx n_features,
                                  std::size_t n_words) {
  std::vector<std::uint32_t> bits(n_words);
  for (auto fidx : features) {
    if (fidx < n_features) {
      bits[fidx / kWordBits] |= std::uint32_t{1} << (fidx % kWordBits);
    }
  }
  return bits;
}
}  // namespace

InteractionGroups::InteractionGroups(std::string const& constraints)
    : enabled_{!constraints.empty()} {
  if (!enabled_) {
    return;
  }
  try {
    xgboost::ParseInteractionConstraint(constraints, &groups_);
  } catch (dmlc::Error const& e) {
    LOG(FATAL) << "Failed to parse feature interaction constraint:\n"
               << constraints << "\nWith error:\n"
               << e.what() << "\nGive lists of features, such as [[0, 1], [2, 3, 4]].";
  }
  for (auto& group : groups_) {
    std::sort(group.begin(), group.end());
  }
}

void InteractionGroups::Select(std::vector<LiveNode> const& nodes, FeatureIdx n_features,
                               FeatureMask* out_mask) {
  out_mask->bits.clear();
  for (auto const& node : nodes) {
    if (node.nidx == kRoot) {
      paths_[kRoot] = {};
      out_mask->bits.insert(out_mask->bits.end(), out_mask->n_words, ~std::uint32_t{0});
      continue;
    }
    auto path = paths_.at(node.parent);
    auto const place = std::lower_bound(path.begin(), path.end(), node.parent_feature);
    if (place == path.end() || *place != node.parent_feature) {
      path.insert(place, node.parent_feature);
    }
    auto open = path;
    for (auto const& group : groups_) {
      if (std::includes(group.cbegin(), group.cend(), path.cbegin(), path.cend())) {
        open.insert(open.end(), group.cbegin(), group.cend());
      }
    }
    auto const bits = BitsOf(open, n_features, out_mask->n_words);
    out_mask->bits.insert(out_mask->bits.end(), bits.cbegin(), bits.cend());
    paths_[node.nidx] = std::move(path);
  }
  for (auto const& node : nodes) {
    paths_.erase(node.parent);
  }
}

TreeFeatures::TreeFeatures(xgboost::Context const* ctx, xgboost::tree::TrainParam const& param,
                           FeatureIdx n_features, xgboost::HostDeviceVector<float> const& weights)
    : ctx_{ctx},
      n_features_{n_features},
      sampled_{Sampled(param)},
      sampled_by_node_{param.colsample_bynode != 1.0f},
      sampled_by_way_{sampled_by_node_ &&
                      param.grow_policy == xgboost::tree::TrainParam::kLossGuide},
      sampler_{ctx},
      groups_{param.interaction_constraints} {
  if (sampled_) {
    sampler_.Init(ctx_, n_features_, weights, param.colsample_bynode, param.colsample_bylevel,
                  param.colsample_bytree);
  }
}

bool TreeFeatures::Sampled(xgboost::tree::TrainParam const& param) {
  return param.colsample_bytree != 1.0f || param.colsample_bylevel != 1.0f ||
         param.colsample_bynode != 1.0f;
}

bool TreeFeatures::Select(std::int32_t depth, std::vector<LiveNode> const& nodes,
                          FeatureMask* out_mask) {
  auto const n_words = (static_cast<std::size_t>(n_features_) + kWordBits - 1) / kWordBits;
  out_mask->n_words = n_words;
  if (groups_.Enabled()) {
    groups_.Select(nodes, n_features_, out_mask);
  } else {
    out_mask->bits.assign(sampled_by_node_ ? nodes.size() * n_words : n_words, ~std::uint32_t{0});
  }
  if (!sampled_) {
    return true;
  }
  if (sampled_by_way_ && static_cast<std::size_t>(depth) == drawn_.size()) {
    static_cast<void>(sampler_.GetFeatureSet(ctx_, depth));  // of the level, and of no node
    drawn_.push_back(RandomOf(ctx_));
  }
  for (std::size_t first = 0; first < out_mask->bits.size();) {
    if (sampled_by_way_) {
      RandomOf(ctx_) = this->EngineOf(depth, nodes[first / n_words]);
    }
    auto const drawn =
        BitsOf(sampler_.GetFeatureSet(ctx_, depth)->ConstHostVector(), n_features_, n_words);
    auto const end = sampled_by_node_ ? first + n_words : out_mask->bits.size();
    for (; first < end; ++first) {
      out_mask->bits[first] &= drawn[first % n_words];
    }
  }
  if (sampled_by_way_) {
    RandomOf(ctx_) = drawn_.back();
  }
  return true;
}

RandomEngine TreeFeatures::EngineOf(std::int32_t depth, LiveNode const& node) {
  auto& way = ways_[node.nidx];
  std::seed_seq{ways_[node.parent], static_cast<std::uint32_t>(node.nidx % 2)}.generate(&way,
                                                                                        &way + 1);
  auto engine = drawn_[depth];
  std::seed_seq seeds{static_cast<std::uint32_t>(engine()), way};
  engine.seed(seeds);
  return engine;
}
}  // namespace gpu_exact
