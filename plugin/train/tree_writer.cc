/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/tree_writer.h"

#include <xgboost/logging.h>

#include "src/common/categorical.h"

namespace gpu_exact {
namespace {
using xgboost::RegTree;
using xgboost::tree::TrainParam;

/** @brief Find the parent of a leaf if both its children are leaves and it gains too little. */
NodeIdx WeakParent(TrainParam const& param, NodeIdx leaf, RegTree* tree) {
  if ((*tree)[leaf].IsRoot()) {
    return kNoNode;
  }
  auto const parent = (*tree)[leaf].Parent();
  bool const childless = (*tree)[(*tree)[parent].LeftChild()].IsLeaf() &&
                         (*tree)[(*tree)[parent].RightChild()].IsLeaf();
  // No node is deeper than max_depth, so the rule for depth never holds.
  return childless && param.NeedPrune(tree->Stat(parent).loss_chg, 0) ? parent : kNoNode;
}

/** @brief Tell, by node, whether it is a split that PruneTree() does not take back. */
std::vector<bool> KeptSplits(GrownTree const& grown, TrainParam const& param) {
  std::vector<bool> kept(grown.size());
  for (auto nidx = grown.size(); nidx-- > 0;) {  // children come after their parents
    auto const& node = grown[nidx];
    kept[nidx] = !node.IsLeaf() &&
                 (kept[node.left] || kept[node.right] || !param.NeedPrune(node.loss_change, 0));
  }
  return kept;
}

/** @brief Give a set of categories as XGBoost keeps it. */
std::vector<xgboost::common::CatBitField::value_type> BitsOf(TreeNode const& node) {
  std::vector<xgboost::common::CatBitField::value_type> words(node.categories.size());
  xgboost::common::CatBitField bits{words};
  for (std::size_t c = 0; c < 32 * words.size(); ++c) {
    if ((node.categories[c / 32] >> (c % 32) & 1u) != 0) {
      bits.Set(c);
    }
  }
  return words;
}
}  // namespace

void WriteTree(GrownTree const& grown, TrainParam const& param, bool will_prune, RegTree* tree) {
  auto const kept = KeptSplits(grown, param);
  for (std::size_t left = 1; left < grown.size(); left += 2) {  // splits in their order
    auto const nidx = grown[left].parent;
    auto const& node = grown[nidx];
    if (node.categories.empty() || (will_prune && !kept[nidx])) {
      tree->ExpandNode(nidx, node.feature, node.threshold, node.default_left, node.weight, 0.0f,
                       0.0f, node.loss_change, 0.0f, 0.0f, 0.0f);
    } else {
      tree->ExpandCategorical(nidx, node.feature, BitsOf(node), node.default_left, node.weight,
                              0.0f, 0.0f, node.loss_change, 0.0f, 0.0f, 0.0f);
    }
    CHECK_EQ((*tree)[nidx].LeftChild(), node.left) << "Node ids must be in the order of splits.";
  }
  CHECK_EQ(tree->NumNodes(), static_cast<NodeIdx>(grown.size()));
  for (std::size_t i = 0; i < grown.size(); ++i) {
    auto const nidx = static_cast<NodeIdx>(i);
    auto const& node = grown[i];
    if (node.IsLeaf()) {
      (*tree)[nidx].SetLeaf(node.weight * param.learning_rate);
    }
    tree->Stat(nidx) = {node.loss_change, static_cast<float>(node.sum_hess), node.weight};
  }
}

std::vector<NodeIdx> PruneTree(TrainParam const& param, RegTree* tree) {
  auto const n_nodes = tree->NumNodes();
  for (NodeIdx nidx = 0; nidx < n_nodes; ++nidx) {
    if (!(*tree)[nidx].IsLeaf() || (*tree)[nidx].IsDeleted()) {
      continue;
    }
    for (auto parent = WeakParent(param, nidx, tree); parent != kNoNode;
         parent = WeakParent(param, parent, tree)) {
      tree->ChangeToLeaf(parent, param.learning_rate * tree->Stat(parent).base_weight);
    }
  }
  if (tree->NumValidNodes() == n_nodes) {
    return {};
  }
  std::vector<NodeIdx> remap(n_nodes);
  for (NodeIdx nidx = 0; nidx < n_nodes; ++nidx) {  // parents come before their children
    auto const& node = (*tree)[nidx];
    remap[nidx] = node.IsDeleted() ? remap[node.Parent()] : nidx;
  }
  return remap;
}
}  // namespace gpu_exact
