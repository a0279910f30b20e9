/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements tree_grower.h.
 */
#include "core/tree_grower.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace gpu_exact {
namespace {
/** @brief Records what a node has as a leaf that was never searched. */
TreeNode AsLeaf(TreeNode const& node, NodeIdx parent) {
  TreeNode leaf;
  leaf.parent = parent;
  leaf.weight = node.weight;
  leaf.sum_grad = node.sum_grad;
  leaf.sum_hess = node.sum_hess;
  return leaf;
}
}  // namespace

TreeGrower::TreeGrower(GrowParam const& param, Quantiser const& quantiser)
    : param_{param},
      quantiser_{quantiser},
      nodes_(1),
      least_loss_change_{param.min_split_loss},
      has_room_{this->HasRoom(0)} {}

bool TreeGrower::MaySplit() const {
  return NumLive() != 0 && (param_.max_depth == 0 || depth_ < param_.max_depth) && has_room_;
}

std::vector<LiveNode> TreeGrower::LiveNodes() const {
  std::vector<LiveNode> nodes;
  for (auto nidx = first_live_; nidx < static_cast<NodeIdx>(nodes_.size()); ++nidx) {
    NodeIdx parent = nodes_[nidx].parent;
    nodes.push_back({nidx, parent, parent == kNoNode ? 0 : nodes_[parent].feature});
  }
  return nodes;
}

std::vector<NodeSplit> TreeGrower::Expand(std::vector<LevelResult> const& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto nidx = static_cast<NodeIdx>(first_live_ + i);
    RecordStatistics(nidx, results[i].state);
    nodes_[nidx].loss_change = results[i].split.loss_change;
  }
  bool const by_loss = param_.grow_policy == GrowPolicy::kLossGuide;
  std::vector<bool> const chosen = by_loss ? this->ChooseByLoss() : this->ChooseByDepth();
  std::vector<NodeSplit> node_splits(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto nidx = static_cast<NodeIdx>(first_live_ + i);
    Split const& split = results[i].split;
    node_splits[i] = {split.feature, kNoNode, split.threshold, split.default_left != 0};
    if (!chosen[i]) {
      continue;
    }
    auto left = static_cast<NodeIdx>(nodes_.size());
    node_splits[i].left = left;
    TreeNode& node = nodes_[nidx];
    node.left = left;
    node.right = left + 1;
    node.feature = split.feature;
    node.threshold = split.threshold;
    node.default_left = split.default_left != 0;
    TreeNode child;
    child.parent = nidx;
    nodes_.insert(nodes_.end(), 2, child);
  }
  first_live_ += static_cast<NodeIdx>(results.size());
  ++depth_;
  return node_splits;
}

void TreeGrower::SetThresholds(std::vector<NodeSplit> const& node_splits) {
  for (NodeSplit const& split : node_splits) {
    if (split.left != kNoNode) {
      nodes_[nodes_[split.left].parent].threshold = split.threshold;
    }
  }
}

void TreeGrower::Close(std::vector<NodeState> const& states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    RecordStatistics(static_cast<NodeIdx>(first_live_ + i), states[i]);
  }
  first_live_ += static_cast<NodeIdx>(states.size());
}

FinishedTree TreeGrower::Finish() {
  if (param_.grow_policy == GrowPolicy::kDepthWise) {
    return {std::move(nodes_), {}};
  }
  FinishedTree out{{AsLeaf(nodes_[kRoot], kNoNode)}, std::vector<NodeIdx>(nodes_.size(), kNoNode)};
  GrownTree& tree = out.tree;
  out.final_ids[kRoot] = kRoot;
  for (NodeIdx const nidx : this->BestFirst()) {
    NodeIdx const final_id = out.final_ids[nidx];
    NodeIdx const parent = tree[final_id].parent;
    auto const left = static_cast<NodeIdx>(tree.size());
    tree[final_id] = nodes_[nidx];
    tree[final_id].parent = parent;
    tree[final_id].left = left;
    tree[final_id].right = left + 1;
    out.final_ids[nodes_[nidx].left] = left;
    out.final_ids[nodes_[nidx].right] = left + 1;
    tree.push_back(AsLeaf(nodes_[nodes_[nidx].left], final_id));
    tree.push_back(AsLeaf(nodes_[nodes_[nidx].right], final_id));
  }
  for (std::size_t nidx = 0; nidx < nodes_.size(); ++nidx) {  // parents come before their children
    if (out.final_ids[nidx] == kNoNode) {
      out.final_ids[nidx] = out.final_ids[nodes_[nidx].parent];
    }
  }
  return out;
}

void TreeGrower::RecordStatistics(NodeIdx nidx, NodeState const& state) {
  GradientSum sum = quantiser_.Real(state.sum);
  nodes_[nidx].weight = state.weight;
  nodes_[nidx].sum_grad = sum.grad;
  nodes_[nidx].sum_hess = sum.hess;
}

bool TreeGrower::IsWorthIt(NodeIdx nidx) const {
  TreeNode const& node = nodes_[nidx];
  if (!(node.loss_change > kMinLossChange) || node.loss_change < param_.min_split_loss) {
    return false;
  }
  if (param_.max_depth != 0 || nidx == kRoot) {
    return true;
  }
  // Where rounding has put a threshold beside its values, all rows are in one child: it would be split
  // in the same way for ever.
  NodeIdx const left = nodes_[node.parent].left;
  return nodes_[left].sum_hess != 0.0 && nodes_[left + 1].sum_hess != 0.0;
}

bool TreeGrower::HasRoom(std::size_t n_splits) const {
  return param_.max_leaves == 0 || n_splits + 1 < static_cast<std::size_t>(param_.max_leaves);
}

std::vector<bool> TreeGrower::ChooseByDepth() {
  std::vector<bool> chosen(NumLive());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = HasRoom(n_worth_) && IsWorthIt(static_cast<NodeIdx>(first_live_ + i));
    n_worth_ += chosen[i] ? 1 : 0;
  }
  has_room_ = HasRoom(n_worth_);
  return chosen;
}

std::vector<bool> TreeGrower::ChooseByLoss() {
  std::vector<bool> chosen(NumLive());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = IsWorthIt(static_cast<NodeIdx>(first_live_ + i));
    n_worth_ += chosen[i] ? 1 : 0;
  }
  if (HasRoom(n_worth_)) {  // for all of them, and for more
    return chosen;
  }
  chosen.assign(chosen.size(), false);
  has_room_ = false;
  std::vector<NodeIdx> const splits = this->BestFirst();
  // A node that gains less than each of them never is among the first: whenever it comes first in the
  // queue, one of them is in the queue too, as they hang together.
  least_loss_change_ = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < splits.size(); ++i) {
    least_loss_change_ = std::min(least_loss_change_, nodes_[splits[i]].loss_change);
    if (splits[i] >= first_live_) {
      chosen[splits[i] - first_live_] = true;
      has_room_ = has_room_ || HasRoom(i + 1);
    }
  }
  return chosen;
}

std::vector<NodeIdx> TreeGrower::BestFirst() const {
  std::vector<NodeIdx> splits;
  std::vector<NodeIdx> nodes{kRoot};  // by final id
  // By loss change, and of equals the lower final id.
  std::priority_queue<std::pair<float, NodeIdx>> queue;
  auto const push = [&](NodeIdx final_id) {
    NodeIdx const nidx = nodes[final_id];
    if (nidx != kNoNode && IsWorthIt(nidx)) {
      queue.emplace(nodes_[nidx].loss_change, -final_id);
    }
  };
  push(kRoot);
  while (!queue.empty() && HasRoom(splits.size())) {
    NodeIdx const nidx = nodes[-queue.top().second];
    queue.pop();
    splits.push_back(nidx);
    auto const left = static_cast<NodeIdx>(nodes.size());
    nodes.push_back(nodes_[nidx].left);
    nodes.push_back(nodes_[nidx].right);
    push(left);
    push(left + 1);
  }
  return splits;
}

void SetSums(GrowParam const& param, std::vector<GradientSum> const& leaves, GrownTree* tree) {
  auto& nodes = *tree;
  for (std::size_t i = nodes.size(); i-- > 0;) {  // children have higher ids
    TreeNode& node = nodes[i];
    bool const leaf = node.IsLeaf();
    node.sum_grad = leaf ? leaves[i].grad : nodes[node.left].sum_grad + nodes[node.right].sum_grad;
    node.sum_hess = leaf ? leaves[i].hess : nodes[node.left].sum_hess + nodes[node.right].sum_hess;
  }
  GainParam const gain{param};
  auto const weigh = [&](NodeIdx nidx, WeightBounds const& bounds) {
    nodes[nidx].weight = CalcWeight(gain, {nodes[nidx].sum_grad, nodes[nidx].sum_hess}, bounds);
  };
  std::vector<WeightBounds> bounds(nodes.size(), WeightBounds::OfRoot(gain.bounded));
  weigh(kRoot, WeightBounds::OfRoot(gain.bounded && !gain.Old()));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    TreeNode const& node = nodes[i];
    if (!node.IsLeaf()) {
      weigh(node.left, bounds[i]);
      weigh(node.right, bounds[i]);
      SplitBounds(bounds[i], param.Monotone(node.feature), nodes[node.left].weight,
                  nodes[node.right].weight, &bounds[node.left], &bounds[node.right]);
    }
  }
}
}  // namespace gpu_exact
