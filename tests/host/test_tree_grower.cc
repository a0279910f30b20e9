/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The tree's bookkeeping, level by level.
 */
#include <gtest/gtest.h>

#include "src/tree_grower.h"

namespace gpu_exact {
namespace {
LevelResult Result(float loss_change, FeatureIdx feature = 0, float weight = 0.0f) {
  LevelResult r{};
  r.state.weight = weight;
  r.state.sum = {4, 8};
  r.split = {loss_change, feature, 0.5f, 1, 3};
  return r;
}

Quantiser Ones() { return Quantiser::OfExponents(0, 0, 1.0f, 1.0f); }

TEST(TreeGrower, SplitsWhatIsWorthIt) {
  GrowParam param;
  TreeGrower grower{param, Ones()};
  auto orders = grower.Expand({Result(2.0f, 7)});
  EXPECT_EQ(orders[0].left, 1);
  EXPECT_EQ(orders[0].feature, 7u);
  EXPECT_EQ(orders[0].first_right, 3u);
  EXPECT_EQ(grower.FirstOpen(), 1);
  EXPECT_EQ(grower.NumOpen(), 2u);
  orders = grower.Expand({Result(1e-6f), Result(1.1e-6f, 2)});
  EXPECT_EQ(orders[0].left, kNoNode);
  EXPECT_EQ(orders[1].left, 3);
  grower.Close({NodeState{}, NodeState{}});
  auto tree = grower.Finish();
  ASSERT_EQ(tree.size(), 5u);
  EXPECT_EQ(tree[0].left, 1);
  EXPECT_EQ(tree[0].right, 2);
  EXPECT_EQ(tree[0].feature, 7u);
  EXPECT_EQ(tree[0].threshold, 0.5f);
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
  EXPECT_EQ(grower.OpenNodes()[0].parent, kNoNode);
  static_cast<void>(grower.Expand({Result(2.0f, 7)}));
  auto nodes = grower.OpenNodes();
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
  EXPECT_EQ(grower.NumOpen(), 2u);
  EXPECT_FALSE(grower.MaySplit());
}

TEST(TreeGrower, StopsAtMaxLeaves) {
  GrowParam param;
  param.max_depth = 0;
  param.max_leaves = 3;
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(2.0f)}));
  auto orders = grower.Expand({Result(2.0f), Result(3.0f)});
  EXPECT_NE(orders[0].left, kNoNode);
  EXPECT_EQ(orders[1].left, kNoNode);
  EXPECT_FALSE(grower.MaySplit());
}

TEST(TreeGrower, ALevelWithoutSplitsEndsTheTree) {
  GrowParam param;
  TreeGrower grower{param, Ones()};
  static_cast<void>(grower.Expand({Result(0.0f)}));
  EXPECT_EQ(grower.NumOpen(), 0u);
  EXPECT_FALSE(grower.MaySplit());
  EXPECT_EQ(grower.Finish().size(), 1u);
}
}  // namespace
}  // namespace gpu_exact
