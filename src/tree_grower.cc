/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of tree_grower.h.
 */
#include "src/tree_grower.h"

namespace gpu_exact {
TreeGrower::TreeGrower(GrowParam const& param, Quantiser const& quantiser)
    : param_{param}, quantiser_{quantiser}, tree_(1) {}

bool TreeGrower::MaySplit() const {
  return NumOpen() != 0 && (param_.max_depth == 0 || depth_ < param_.max_depth) && RoomForSplit();
}

std::vector<OpenNode> TreeGrower::OpenNodes() const {
  std::vector<OpenNode> nodes;
  for (auto nidx = first_open_; nidx < static_cast<NodeIdx>(tree_.size()); ++nidx) {
    NodeIdx parent = tree_[nidx].parent;
    nodes.push_back({nidx, parent, parent == kNoNode ? 0 : tree_[parent].feature});
  }
  return nodes;
}

std::vector<SplitOrder> TreeGrower::Expand(std::vector<LevelResult> const& results) {
  std::vector<SplitOrder> orders(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto nidx = static_cast<NodeIdx>(first_open_ + i);
    Split const& split = results[i].split;
    RecordStatistics(nidx, results[i].state);
    tree_[nidx].loss_change = split.loss_change;
    orders[i] = {split.feature, kNoNode, split.first_right, split.threshold,
                 split.default_left != 0};
    if (!(split.loss_change > kMinLossChange) || !RoomForSplit()) {
      continue;
    }
    auto left = static_cast<NodeIdx>(tree_.size());
    orders[i].left = left;
    TreeNode& node = tree_[nidx];
    node.left = left;
    node.right = left + 1;
    node.feature = split.feature;
    node.threshold = split.threshold;
    node.default_left = split.default_left != 0;
    ++n_leaves_;
    TreeNode child;
    child.parent = nidx;
    tree_.insert(tree_.end(), 2, child);
  }
  first_open_ += static_cast<NodeIdx>(results.size());
  ++depth_;
  return orders;
}

void TreeGrower::Close(std::vector<NodeState> const& states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    RecordStatistics(static_cast<NodeIdx>(first_open_ + i), states[i]);
  }
  first_open_ += static_cast<NodeIdx>(states.size());
}

void TreeGrower::RecordStatistics(NodeIdx nidx, NodeState const& state) {
  GradientSum sum = quantiser_.Real(state.sum);
  tree_[nidx].weight = state.weight;
  tree_[nidx].sum_grad = sum.grad;
  tree_[nidx].sum_hess = sum.hess;
}

bool TreeGrower::RoomForSplit() const {
  return param_.max_leaves == 0 || n_leaves_ < param_.max_leaves;
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
