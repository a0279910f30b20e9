/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Turns the best splits of a level into its children: keeps the tree's books, on the host.
 *
 * Leaf-wise growth splits one node at a time, of all leaves the one that gains most, up to a number of
 * leaves. Here such a tree grows level by level as well. When a level is searched, the order of splits
 * is known as far as the nodes so far go. Nodes below them can only come in between, and push others
 * back. So a node that is not among the first now will not be, and stays a leaf; the others of the
 * level are split. Some of them are pushed back later: Finish() leaves out what grew below.
 */
#pragma once

#include <cstdint>
#include <vector>

#include "core/level.h"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief Holds a tree, and where the rows are that moved while it grew. */
struct FinishedTree {
  GrownTree tree;
  // shape: (nodes that grew), the node's id in the tree, or that of the leaf above it; empty: ids are
  // what they were
  std::vector<NodeIdx> final_ids;
};

/** @brief Grows a tree level by level. Ids are given in the order of the nodes, left then right. */
class TreeGrower {
 public:
  TreeGrower(GrowParam const& param, Quantiser const& quantiser);

  /** @brief Tell whether the live nodes may be split further. */
  [[nodiscard]] bool MaySplit() const;
  /** @brief Give the id of the first live node. */
  [[nodiscard]] NodeIdx FirstLive() const { return first_live_; }
  [[nodiscard]] std::size_t NumLive() const { return nodes_.size() - first_live_; }
  [[nodiscard]] std::int32_t Depth() const { return depth_; }
  [[nodiscard]] std::vector<LiveNode> LiveNodes() const;
  /** @brief Give the loss change below which live nodes stay leaves. */
  [[nodiscard]] float LeastLossChange() const { return least_loss_change_; }

  /**
   * @brief Record the level's results and split the nodes whose best split is worth it.
   * @param results shape: (NumLive()); splits below LeastLossChange() may be left out
   * @return One NodeSplit for each node of the level; their children are the live nodes from now on.
   */
  std::vector<NodeSplit> Expand(std::vector<LevelResult> const& results);

  /** @brief Record thresholds that were not known to Expand(), which has made the splits. */
  void SetThresholds(std::vector<NodeSplit> const& node_splits);

  /** @brief Record the statistics of live nodes that stay leaves; none is live afterwards. */
  void Close(std::vector<NodeState> const& states);

  /** @brief Give all nodes that grew. */
  [[nodiscard]] GrownTree* Nodes() { return &nodes_; }
  /** @brief Make the tree of these nodes, which go. Leaf-wise ids are given anew, in the order of
   *         splits. */
  [[nodiscard]] FinishedTree Finish();

 private:
  void RecordStatistics(NodeIdx nidx, NodeState const& state);
  [[nodiscard]] bool IsWorthIt(NodeIdx nidx) const;
  /** @brief Tell whether a tree of n_splits splits may have another one. */
  [[nodiscard]] bool HasRoom(std::size_t n_splits) const;
  /** @brief Choose the level's nodes to split, by node; updates has_room_. */
  [[nodiscard]] std::vector<bool> ChooseByDepth();
  [[nodiscard]] std::vector<bool> ChooseByLoss();
  /** @brief List the splits of leaf-wise growth in their order, as far as nodes are searched. */
  [[nodiscard]] std::vector<NodeIdx> BestFirst() const;

  GrowParam const& param_;
  Quantiser quantiser_;
  GrownTree nodes_;
  NodeIdx first_live_{kRoot};
  std::int32_t depth_{0};
  float least_loss_change_;
  std::size_t n_worth_{0};  // splits made; leaf-wise: splits worth it
  bool has_room_;           // for a split of a live node
};
/**
 * @brief Set the sums and weights of all nodes by sums of the leaves.
 * @param leaves Gradient sum of each leaf, by node; that of other nodes is not looked at.
 */
void SetSums(GrowParam const& param, std::vector<GradientSum> const& leaves, GrownTree* tree);
}  // namespace gpu_exact
