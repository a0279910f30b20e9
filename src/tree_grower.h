/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief From the best splits of a level to its children: the tree's bookkeeping, on the host.
 */
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "src/level.h"

namespace gpu_exact {
/** @brief Grows a tree breadth first. Ids are given in the order of the nodes, left then right. */
class TreeGrower {
 public:
  TreeGrower(GrowParam const& param, Quantiser const& quantiser);

  /** @brief Whether the open nodes may be split further. */
  [[nodiscard]] bool MaySplit() const;
  /** @brief Id of the first open node. */
  [[nodiscard]] NodeIdx FirstOpen() const { return first_open_; }
  [[nodiscard]] std::size_t NumOpen() const { return tree_.size() - first_open_; }
  [[nodiscard]] std::int32_t Depth() const { return depth_; }
  [[nodiscard]] std::vector<OpenNode> OpenNodes() const;

  /**
   * @brief Record the level's results and split every node whose best split is worth it.
   * @param results shape: (NumOpen())
   * @return One order for each node of the level; their children are the open nodes from now on.
   */
  std::vector<SplitOrder> Expand(std::vector<LevelResult> const& results);

  /** @brief Record the statistics of open nodes that stay leaves; none is open afterwards. */
  void Close(std::vector<NodeState> const& states);

  [[nodiscard]] GrownTree Finish() { return std::move(tree_); }

 private:
  void RecordStatistics(NodeIdx nidx, NodeState const& state);
  [[nodiscard]] bool RoomForSplit() const;

  GrowParam const& param_;
  Quantiser quantiser_;
  GrownTree tree_;
  NodeIdx first_open_{kRoot};
  std::int32_t depth_{0};
  std::int64_t n_leaves_{1};
};
/**
 * @brief Set the sums and weights of all nodes by sums of the leaves.
 * @param leaves Gradient sum of each leaf, by node; that of other nodes is not looked at.
 */
void SetSums(GrowParam const& param, std::vector<GradientSum> const& leaves, GrownTree* tree);
}  // namespace gpu_exact
