/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The tree's bookkeeping, level by level.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "core/tree_grower.h"

namespace gpu_exact {
namespace {
LevelResult Result(float loss_change, FeatureIdx feature = 0, float weight = 0.0f) {
  LevelResult r{};
  r.state.weight = weight;
  r.state.sum = {4, 8};
  r.split = {loss_change, feature, 0.5f, 1};
  return r;
}

Quantiser Ones() { return Quantiser::OfExponents(0, 0, 1.0f, 1.0f); }

TEST(TreeGrower, SplitsWhatIsWorthIt) {
  GrowParam param;
  TreeGrower grower{param, Ones()};
  auto node_splits = grower.Expand({Result(2.0f, 7)});
  EXPECT_EQ(node_splits[0].left, 1);
  EXPECT_EQ(node_splits[0].feature, 7u);
  EXPECT_EQ(node_splits[0].threshold, 0.5f);
  EXPECT_TRUE(node_splits[0].default_left);
  EXPECT_EQ(grower.FirstLive(), 1);
  EXPECT_EQ(grower.NumLive(), 2u);
  node_splits = grower.Expand({Result(1e-6f), Result(1.1e-6f, 2)});
  EXPECT_EQ(node_splits[0].left, kNoNode);
  EXPECT_EQ(node_splits[1].left, 3);
  node_splits[0].threshold = 3.0f;  // of a leaf
  node_splits[1].threshold = 1.25f;
  grower.SetThresholds(node_splits);
  grower.Close({NodeState{}, NodeState{}});
  auto const [tree, final_ids] = grower.Finish();
  EXPECT_TRUE(final_ids.empty());  // they are what they were
  ASSERT_EQ(tree.size(), 5u);
  EXPECT_EQ(tree[0].left, 1);
  EXPECT_EQ(tree[0].right, 2);
  EXPECT_EQ(tree[0].feature, 7u);
  EXPECT_EQ(tree[0].threshold, 0.5f);
  EXPECT_EQ(tree[2].threshold, 1.25f);
  EXPECT_TRUE(tree[0].default_left);
  EXPECT_EQ(tree[2].left, 3);
  EXPECT_TRUE(tree[1].IsLeaf());
  EXPECT_EQ(tree[1].loss_change, 1e-6f);  // kept although it was not enough
  EXPECT_EQ(tree[2].right, 4);
  EXPECT_EQ(tree[4].parent, 2);
  EXPECT_EQ(tree[0].sum_hess, 8.0);
}

TEST(TreeGrower, NamesTheFeatureOfTheParent) {
  GrowParam param;
  TreeGrower grower{param, Ones()};
  EXPECT_EQ(grower.LiveNodes()[0].parent, kNoNode);
  static_cast<void>(grower.Expand({Result(2.0f, 7)}));
  auto nodes = grower.LiveNodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1].nidx, 2);
  EXPECT_EQ(nodes[1].parent, 0);
  EXPECT_EQ(nodes[1].parent_feature, 7u);
}

TEST(TreeGrower, StopsAtMaxDepth) {
  GrowParam param;
  param.max_depth = 1;
  TreeGrower grower{param, Ones()};
  ASSERT_TRUE(grower.MaySplit());
  static_cast<void>(grower.Expand({Result(2.0f)}));
  EXPECT_EQ(grower.NumLive(), 2u);
  EXPECT_FALSE(grower.MaySplit());
}

TEST(TreeGrower, StopsAtMaxLeaves) {
  GrowParam param;
  param.max_depth = 0;
  param.max_leaves = 3;
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(2.0f)}));
  auto node_splits = grower.Expand({Result(2.0f), Result(3.0f)});
  EXPECT_NE(node_splits[0].left, kNoNode);
  EXPECT_EQ(node_splits[1].left, kNoNode);
  EXPECT_FALSE(grower.MaySplit());
}

TEST(TreeGrower, ALevelWithoutSplitsEndsTheTree) {
  GrowParam param;
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(0.0f)}));
  EXPECT_EQ(grower.NumLive(), 0u);
  EXPECT_FALSE(grower.MaySplit());
  EXPECT_EQ(grower.Finish().tree.size(), 1u);
}

/** @brief Results of a node whose rows all go left, and of the children. */
TEST(TreeGrower, RowsThatStayTogetherEndATreeWithoutDepth) {
  for (std::int32_t max_depth : {0, 9}) {
    GrowParam param;
    param.max_depth = max_depth;
    TreeGrower grower{param, Ones()};
    static_cast<void>(grower.Expand({Result(2.0f)}));
    LevelResult none = Result(0.0f);
    none.state.sum = {0, 0};
    auto const node_splits = grower.Expand({Result(2.0f), none});
    EXPECT_EQ(node_splits[0].left == kNoNode, max_depth == 0);
  }
}

GrowParam LeafWise(std::int32_t max_leaves, std::int32_t max_depth = 0) {
  GrowParam param;
  param.grow_policy = GrowPolicy::kLossGuide;
  param.max_leaves = max_leaves;
  param.max_depth = max_depth;
  return param;
}

TEST(TreeGrower, SplitsTheLeafThatGainsMost) {
  GrowParam const param = LeafWise(4);
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(1.0f, 0)}));
  auto node_splits = grower.Expand({Result(3.0f, 1), Result(4.0f, 2)});  // both may still be split
  EXPECT_EQ(node_splits[0].left, 3);
  EXPECT_EQ(node_splits[1].left, 5);
  node_splits = grower.Expand({Result(9.0f, 3), Result(0.0f), Result(2.0f, 4), Result(3.5f, 5)});
  EXPECT_EQ(node_splits[0].left, kNoNode);  // the node of feature 1 is not split any more
  EXPECT_EQ(node_splits[2].left, kNoNode);
  EXPECT_EQ(node_splits[3].left, 7);
  EXPECT_FALSE(grower.MaySplit());  // that was the last
  grower.Close({NodeState{}, NodeState{}});
  auto const [tree, final_ids] = grower.Finish();
  EXPECT_EQ(final_ids, (std::vector<NodeIdx>{0, 1, 2, 1, 1, 3, 4, 5, 6}));
  ASSERT_EQ(tree.size(), 7u);
  EXPECT_EQ(tree[0].left, 1);
  EXPECT_TRUE(tree[1].IsLeaf());
  EXPECT_EQ(tree[1].loss_change, 0.0f);  // of leaves it depends on how the tree was grown
  EXPECT_EQ(tree[1].feature, 0u);
  EXPECT_EQ(tree[2].left, 3);
  EXPECT_EQ(tree[2].feature, 2u);
  EXPECT_EQ(tree[4].left, 5);
  EXPECT_EQ(tree[4].feature, 5u);
  EXPECT_EQ(tree[4].loss_change, 3.5f);
  EXPECT_EQ(tree[6].parent, 4);
}

TEST(TreeGrower, AmongEqualsTheLowerIdIsSplit) {
  GrowParam const param = LeafWise(3);
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(1.0f)}));
  auto const node_splits = grower.Expand({Result(2.0f), Result(2.0f)});
  EXPECT_NE(node_splits[0].left, kNoNode);
  EXPECT_EQ(node_splits[1].left, kNoNode);
}

TEST(TreeGrower, DoesNotSearchWhatCannotBeSplit) {
  GrowParam const two = LeafWise(2);
  TreeGrower stump{two, Ones()};
  static_cast<void>(stump.Expand({Result(1.0f)}));
  EXPECT_EQ(stump.NumLive(), 2u);
  EXPECT_FALSE(stump.MaySplit());
  GrowParam const one = LeafWise(1);
  EXPECT_FALSE((TreeGrower{one, Ones()}.MaySplit()));
  GrowParam const depth = LeafWise(0, 1);
  TreeGrower shallow{depth, Ones()};
  static_cast<void>(shallow.Expand({Result(1.0f)}));
  EXPECT_FALSE(shallow.MaySplit());
}

TEST(TreeGrower, WhatGainsTooLittleEndsLeafWiseGrowth) {
  GrowParam param = LeafWise(9);
  param.min_split_loss = 2.0f;
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(2.0f)}));
  auto const node_splits = grower.Expand({Result(1.9f), Result(2.1f)});
  EXPECT_EQ(node_splits[0].left, kNoNode);
  EXPECT_NE(node_splits[1].left, kNoNode);
}

/** @brief A tree without end: nodes have numbers, children of n are 2 n + 1 and 2 n + 2. */
class EndlessTree {
 public:
  EndlessTree(unsigned seed, unsigned n_losses, unsigned one_in)
      : seed_{seed}, n_losses_{n_losses}, one_in_{one_in} {}

  /** @brief One of a few losses, so that many are equal; now and then 0. */
  [[nodiscard]] float Loss(std::int64_t node) const {
    std::seed_seq seeds{seed_, static_cast<unsigned>(node), static_cast<unsigned>(node >> 32)};
    std::mt19937 random{seeds};
    bool const none = random() % one_in_ == 0;
    return none ? 0.0f : 1.0f + static_cast<float>(random() % n_losses_);
  }
  /** @brief The number stands in the place of the gradients' sum. */
  [[nodiscard]] LevelResult Result(std::int64_t node) const {
    LevelResult r{};
    r.state.sum = {node, 1};
    r.split.loss_change = this->Loss(node);
    return r;
  }

 private:
  unsigned seed_, n_losses_, one_in_;
};

/** @brief Leaf-wise growth of an endless tree, one split after the other; numbers of nodes, by id. */
std::vector<std::int64_t> SplitOneByOne(EndlessTree const& endless, GrowParam const& param) {
  std::vector<std::int64_t> nodes;
  std::vector<float> losses;  // 0 where a node is not to be split, or is split
  std::vector<int> depths;
  auto const add = [&](std::int64_t node, int depth) {
    float const loss = endless.Loss(node);
    bool const may_split = param.max_depth == 0 || depth < param.max_depth;
    nodes.push_back(node);
    losses.push_back(may_split && loss >= param.min_split_loss ? loss : 0.0f);
    depths.push_back(depth);
  };
  add(0, 0);
  for (std::int32_t n_leaves = 1; n_leaves != param.max_leaves; ++n_leaves) {
    auto const best = std::max_element(losses.begin(), losses.end());  // the first of equals
    if (*best == 0.0f) {
      break;
    }
    *best = 0.0f;
    auto const parent = static_cast<std::size_t>(best - losses.begin());
    add(2 * nodes[parent] + 1, depths[parent] + 1);
    add(2 * nodes[parent] + 2, depths[parent] + 1);
  }
  return nodes;
}

TEST(TreeGrower, IsTheTreeOfOneSplitAfterTheOther) {
  std::mt19937 random{5};
  std::size_t n_in_vain{0};
  std::size_t n_left_out{0};
  for (unsigned i = 0; i < 2000; ++i) {
    GrowParam param = LeafWise(static_cast<std::int32_t>(random() % 40),
                               static_cast<std::int32_t>(random() % 12));
    if (param.max_depth == 0 && param.max_leaves == 0) {
      param.max_leaves = 7;
    }
    param.min_split_loss = static_cast<float>(random() % 3);
    std::string const what = "tree " + std::to_string(i);
    EndlessTree const endless{i, 1 + static_cast<unsigned>(random() % 12),
                              2 + static_cast<unsigned>(random() % 5)};
    std::vector<std::int64_t> const want = SplitOneByOne(endless, param);

    TreeGrower grower{param, Ones()};
    std::vector<std::int64_t> level{0};
    std::vector<std::int64_t> grown;
    while (grower.MaySplit()) {
      ASSERT_EQ(level.size(), grower.NumLive()) << what;
      std::vector<LevelResult> results;
      for (std::int64_t node : level) {
        results.push_back(endless.Result(node));
        float* const loss = &results.back().split.loss_change;
        if (*loss < grower.LeastLossChange()) {  // need not be found
          n_left_out += *loss != 0.0f ? 1 : 0;
          *loss = 0.0f;
        }
      }
      grown.insert(grown.end(), level.begin(), level.end());
      auto const node_splits = grower.Expand(results);
      std::vector<std::int64_t> children;
      for (std::size_t b = 0; b < node_splits.size(); ++b) {
        if (node_splits[b].left != kNoNode) {
          children.insert(children.end(), {2 * level[b] + 1, 2 * level[b] + 2});
        }
      }
      level = children;
      ASSERT_TRUE(param.max_leaves == 0 || grower.NumLive() <= 2u * param.max_leaves) << what;
    }
    std::vector<NodeState> states;
    for (std::int64_t node : level) {
      states.push_back(endless.Result(node).state);
    }
    grown.insert(grown.end(), level.begin(), level.end());
    grower.Close(states);

    auto const [tree, final_ids] = grower.Finish();
    ASSERT_EQ(tree.size(), want.size()) << what;
    for (std::size_t n = 0; n < tree.size(); ++n) {
      ASSERT_EQ(static_cast<std::int64_t>(tree[n].sum_grad), want[n]) << what << ", node " << n;
      NodeIdx const left = tree[n].left;
      if (left != kNoNode) {
        ASSERT_EQ(tree[n].right, left + 1) << what;
        ASSERT_EQ(want[left], 2 * want[n] + 1) << what;
        ASSERT_EQ(tree[left].parent, static_cast<NodeIdx>(n)) << what;
        ASSERT_EQ(tree[n].loss_change, endless.Loss(want[n])) << what;
      }
    }
    ASSERT_EQ(final_ids.size(), grown.size()) << what;
    for (std::size_t n = 0; n < grown.size(); ++n) {  // rows are in the leaf above what is left out
      std::int64_t node = grown[n];
      while (std::find(want.begin(), want.end(), node) == want.end()) {
        node = (node - 1) / 2;
      }
      ASSERT_EQ(want[final_ids[n]], node) << what;
    }
    n_in_vain += grown.size() - want.size();
  }
  EXPECT_GT(n_in_vain, 1000u);  // else nothing was to be left out
  EXPECT_GT(n_left_out, 1000u);
}
}  // namespace
}  // namespace gpu_exact
