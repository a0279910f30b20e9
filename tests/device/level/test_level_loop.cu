/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The level loop around a strategy that only plays its part: the order of the phases, what each
 *        is given, and what becomes of a phase that fails.
 */
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/builder/device_builder.cuh"
#include "device/level/level.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"
#include "tests/support/reference_gain.h"

namespace gpu_exact {
namespace {
constexpr FeatureIdx kFeatures = 5;
constexpr double kShare = 0.25;  // RefinedShare() that is played

/** @brief Says which nodes are split, and which phase fails. */
struct Script {
  std::function<bool(std::int32_t depth, LevelNode node)> splits;
  std::string fails_in{};
};

/** @brief Give the threshold of a node, which Partition() finds. */
float ThresholdOf(NodeIdx nidx) { return static_cast<float>(nidx) + 0.25f; }

/** @brief Rows of a node follow each other, and the first half of them goes left. */
class FakeStrategy final : public SplitStrategy {
 public:
  FakeStrategy(RowIdx n_rows, Script const& script, std::vector<std::string>* log)
      : n_rows_{n_rows},
        script_{script},
        log_{*log},
        n_present_{ToDevice(std::vector<std::uint32_t>(kFeatures, n_rows))},
        value_offsets_{ToDevice(std::vector<ValueId>{0, 9, 18, 27, 36, 45})},
        positions_{n_rows} {}

  [[nodiscard]] ColumnsRef Candidates() const override {
    ColumnsRef columns{};
    columns.n_present = n_present_.Data();
    columns.value_offsets = value_offsets_.Data();
    columns.n_rows = n_rows_;
    columns.n_features = kFeatures;
    return columns;
  }

  void BeginTree(TreeStart const& start, Level* root) override {
    EXPECT_EQ(start.rows.n_rows, n_rows_);
    EXPECT_EQ(root->depth, 0);
    EXPECT_TRUE(root->parents.empty());
    param_ = start.param;
    quantiser_ = start.quantiser;
    gpair_ = ToHost(start.rows.gpair, n_rows_);
    of_node_ = {{0, n_rows_}};
    first_ = kRoot;
    nodes_ = of_node_;
    root->row_ranges = nodes_;
    this->Enter("BeginTree");
  }

  void FindSplits(Level const& level, LevelResult* out) override {
    this->CheckLevel(level);
    auto const states = ToHost(level.ref.nodes, level.nodes.n);
    this->CheckStates(level, states);
    auto const best = ToHost(level.ref.best, level.nodes.n);
    for (std::uint64_t key : best) {
      EXPECT_EQ(key, best.front()) << "the nodes of a level have the same to beat";
      EXPECT_LT(key, kFound) << "what the level before has found";
    }
    CopyFromHost(level.ref.best, std::vector<std::uint64_t>(best.size(), kFound).data(),
                 best.size());
    masks_.push_back(
        level.ref.mask == nullptr
            ? std::vector<std::uint32_t>{}
            : ToHost(level.ref.mask,
                     level.ref.mask_words * (level.ref.mask_per_node ? level.nodes.n : 1)));
    results_.clear();
    for (LevelNode b = 0; b < level.nodes.n; ++b) {
      bool const splits = nodes_[b].end - nodes_[b].begin >= 2 && script_.splits(level.depth, b);
      Split const split{splits ? 100.0f - static_cast<float>(level.depth) : 0.0f, b % kFeatures,
                        0.0f, b % 2};
      results_.push_back({states[b], split});
    }
    CopyAsync(out, results_.data(), results_.size());
    this->Enter("FindSplits", level);
  }

  void AwaitSplits() override {
    SplitStrategy::AwaitSplits();
    this->Enter("AwaitSplits");
  }

  void EndSearch(Level const& level) override { this->Enter("EndSearch", level); }

  void Partition(Level const& level, LevelSplits const& splits, Level* children) override {
    this->CheckLevel(level);
    ASSERT_EQ(splits.node_splits->size(), level.nodes.n);
    auto const on_device = ToHost(splits.device_node_splits, level.nodes.n);
    std::vector<LevelNode> parents;
    std::vector<RowRange> next;
    NodeIdx const first_child = level.nodes.first + static_cast<NodeIdx>(level.nodes.n);
    for (LevelNode b = 0; b < level.nodes.n; ++b) {
      NodeSplit& split = (*splits.node_splits)[b];
      EXPECT_EQ(on_device[b].left, split.left);
      ASSERT_EQ(split.left != kNoNode, results_[b].split.loss_change > 0.0f);
      if (split.left == kNoNode) {
        continue;
      }
      EXPECT_EQ(on_device[b].feature, results_[b].split.feature);
      split.threshold = ThresholdOf(level.nodes.first + static_cast<NodeIdx>(b));
      EXPECT_EQ(on_device[b].default_left, results_[b].split.default_left != 0);
      EXPECT_EQ(split.left, first_child + static_cast<NodeIdx>(next.size()));
      parents.push_back(b);
      RowIdx const middle = (nodes_[b].begin + nodes_[b].end) / 2;
      next.push_back({nodes_[b].begin, middle});
      next.push_back({middle, nodes_[b].end});
    }
    EXPECT_EQ(children->parents, parents);
    EXPECT_EQ(children->nodes.first, first_child);
    ASSERT_EQ(children->nodes.n, next.size());
    EXPECT_EQ(children->depth, level.depth + 1);
    EXPECT_EQ(children->is_searched, children->depth != param_.max_depth);
    auto states = ToHost(children->states.Data(), next.size());
    for (LevelNode b = 0; b < next.size(); ++b) {
      EXPECT_TRUE((states[b].sum == FixedSum{0, 0})) << "sums are added to others, node " << b;
      states[b].sum = this->SumOf(next[b]);
    }
    CopyFromHost(children->states.Data(), states.data(), states.size());
    parent_states_ = ToHost(level.states.Data(), level.nodes.n);
    parents_ = parents;
    first_ = first_child;
    nodes_ = next;
    of_node_.insert(of_node_.end(), next.cbegin(), next.cend());
    children->row_ranges = next;
    this->Enter("Partition", level);
  }

  void EndTree(Level const& level, std::vector<NodeSplit> const& tree) override {
    this->CheckLevel(level);
    ASSERT_EQ(tree.size(), of_node_.size());
    std::vector<NodeIdx> positions(n_rows_);
    for (std::size_t i = 0; i < tree.size(); ++i) {
      for (RowIdx row = of_node_[i].begin; tree[i].left == kNoNode && row < of_node_[i].end;
           ++row) {
        positions[row] = EncodePosition(static_cast<NodeIdx>(i), true);
      }
    }
    CopyFromHost(positions_.Data(), positions.data(), positions.size());
    this->Enter("EndTree");
  }

  [[nodiscard]] RowPositions& Positions() override { return positions_; }
  [[nodiscard]] double RefinedShare() const override { return kShare; }

  /** @brief Give the rows of each node that grew. */
  [[nodiscard]] std::vector<RowRange> const& OfNode() const { return of_node_; }
  /** @brief Give the masks of each level that was searched; empty ones where all features are open. */
  [[nodiscard]] std::vector<std::vector<std::uint32_t>>& Masks() { return masks_; }
  [[nodiscard]] reference::Sums SumsOf(RowRange const& rows) const {
    reference::Sums sums;
    for (RowIdx row = rows.begin; row < rows.end; ++row) {
      sums.Add(gpair_[row]);
    }
    return sums;
  }

 private:
  static constexpr std::uint64_t kFound = ~std::uint64_t{0};  // what a search leaves in Level::best

  void Enter(std::string const& phase) {
    log_.push_back(phase);
    if (phase == script_.fails_in) {
      throw std::runtime_error{"planted"};
    }
  }
  void Enter(std::string const& phase, Level const& level) {
    this->Enter(phase + " " + std::to_string(level.depth));
  }
  [[nodiscard]] FixedSum SumOf(RowRange const& rows) const {
    FixedSum sum{0, 0};
    for (RowIdx row = rows.begin; row < rows.end; ++row) {
      sum = sum + quantiser_.Fixed(gpair_[row]);
    }
    return sum;
  }
  /** @brief The level is the one that the phase before has made. */
  void CheckLevel(Level const& level) const {
    EXPECT_EQ(level.nodes.first, first_);
    ASSERT_EQ(level.nodes.n, nodes_.size());
    EXPECT_EQ(level.ref.n_nodes, nodes_.size());
    EXPECT_EQ(level.ref.nodes, level.states.Data());
    EXPECT_EQ(level.is_last, level.depth + 1 == param_.max_depth);
    ASSERT_EQ(level.row_ranges.size(), nodes_.size()) << "what the strategy has put there";
    for (std::size_t b = 0; b < nodes_.size(); ++b) {
      EXPECT_EQ(level.row_ranges[b].begin, nodes_[b].begin);
    }
  }
  /** @brief Weights keep to the bounds of the parent, and split them where there is a constraint. */
  void CheckStates(Level const& level, std::vector<NodeState> const& states) const {
    for (LevelNode b = 0; b < level.nodes.n; ++b) {
      EXPECT_TRUE(states[b].sum == this->SumOf(nodes_[b])) << "node " << b;
      reference::Bounds bounds = reference::Bounds::OfRoot(param_);
      if (level.depth != 0) {
        auto const& parent = parent_states_[parents_[b / 2]].bounds;
        bounds = {parent.lower, parent.upper};
      }
      EXPECT_EQ(states[b].weight, reference::Weight(param_, this->SumsOf(nodes_[b]), bounds));
      auto const sign = level.depth == 0 ? 0 : param_.Monotone(parents_[b / 2] % kFeatures);
      float const middle = sign == 0 ? 0.0f : (states[b].weight + states[b ^ 1].weight) / 2.0f;
      bool const is_lower = (sign > 0) == (b % 2 == 0);  // of the two siblings
      EXPECT_EQ(states[b].bounds.lower, sign != 0 && !is_lower ? middle : bounds.lower);
      EXPECT_EQ(states[b].bounds.upper, sign != 0 && is_lower ? middle : bounds.upper);
    }
  }

  RowIdx n_rows_;
  Script const& script_;
  std::vector<std::string>& log_;
  DeviceBuffer<std::uint32_t> n_present_;
  DeviceBuffer<ValueId> value_offsets_;
  RowPositions positions_;
  GrowParam param_;
  Quantiser quantiser_{};
  std::vector<GradientPair> gpair_;
  std::vector<RowRange> of_node_;  // of all that grew, by id
  NodeIdx first_{kRoot};
  std::vector<RowRange> nodes_;     // of the level
  std::vector<LevelNode> parents_;  // of its nodes, two of each
  std::vector<NodeState> parent_states_;
  std::vector<LevelResult> results_;
  std::vector<std::vector<std::uint32_t>> masks_;
};

class LevelLoopTest : public DeviceTest {
 protected:
  static constexpr RowIdx kRows = 1500;

  void SetUp() override {
    DeviceTest::SetUp();
    Random random{1};
    gpair_ = MakeGradients(kRows, 0.0, 0.0, &random);
    param_.max_depth = 10;  // the last level that is searched has 512 nodes
  }
  void Make() {
    auto context = std::make_shared<DeviceContext>(-1);
    DeviceContext::Scope const scope{*context};
    auto strategy = std::make_unique<FakeStrategy>(kRows, script_, &log_);
    strategy_ = strategy.get();
    builder_ = MakeTreeBuilder(std::move(context), kRows, std::move(strategy));
  }
  GrownTree Build(FeaturePolicy* features = nullptr) {
    log_.clear();
    strategy_->Masks().clear();
    return builder_->Build(param_, {gpair_.data(), Memory::kHost}, nullptr, features);
  }
  /** @brief What the phases have done is in the tree. */
  void CheckTree(GrownTree const& tree) {
    auto const& rows = strategy_->OfNode();
    ASSERT_EQ(tree.size(), rows.size());
    std::vector<NodeIdx> want(kRows);
    for (std::size_t i = 0; i < tree.size(); ++i) {
      auto const sums = strategy_->SumsOf(rows[i]);
      ASSERT_EQ(tree[i].sum_grad, sums.grad) << "node " << i;
      ASSERT_EQ(tree[i].sum_hess, sums.hess) << "node " << i;
      if (!tree[i].IsLeaf()) {
        ASSERT_EQ(tree[i].threshold, ThresholdOf(static_cast<NodeIdx>(i)));
        ASSERT_EQ(rows[tree[i].left].begin, rows[i].begin);
        ASSERT_EQ(rows[tree[i].right].end, rows[i].end);
      }
      for (RowIdx row = rows[i].begin; tree[i].IsLeaf() && row < rows[i].end; ++row) {
        want[row] = EncodePosition(static_cast<NodeIdx>(i), true);
      }
    }
    EXPECT_EQ(Positions(builder_.get(), kRows), want);
    EXPECT_EQ(builder_->Stats().refined_share, kShare);
  }

  std::vector<GradientPair> gpair_;
  GrowParam param_;
  Script script_{[](std::int32_t, LevelNode) { return true; }};
  std::vector<std::string> log_;
  FakeStrategy* strategy_{nullptr};
  std::unique_ptr<TreeBuilder> builder_;
};

/** @brief As many levels as may be: the children of the last one are made, and not searched. Splits of
 *         many nodes are copied, and the strategy does not wait as well. */
TEST_F(LevelLoopTest, PhasesInTheirOrder) {
  this->Make();
  auto const first = this->Build();
  std::vector<std::string> want{"BeginTree"};
  for (int depth = 0; depth < param_.max_depth; ++depth) {
    want.push_back("FindSplits " + std::to_string(depth));
    if (depth <= 8) {
      want.push_back("AwaitSplits");
    }
    want.push_back("EndSearch " + std::to_string(depth));
    want.push_back("Partition " + std::to_string(depth));
  }
  want.push_back("EndTree");
  EXPECT_EQ(log_, want);
  EXPECT_EQ(first.size(), 2047u);
  this->CheckTree(first);
  ExpectSameTree(this->Build(), first, "the second tree, in the memory of the first one");
  EXPECT_EQ(log_, want);
}

/** @brief Some nodes stay leaves, and where none is split nothing moves. */
TEST_F(LevelLoopTest, NodesThatStayLeaves) {
  script_.splits = [](std::int32_t depth, LevelNode b) {
    return depth < 4 && (b % 3 != 1 || b == 1);
  };
  this->Make();
  this->CheckTree(this->Build());
  EXPECT_EQ(log_[log_.size() - 4], "FindSplits 4");
  EXPECT_EQ(log_[log_.size() - 3], "AwaitSplits");
  EXPECT_EQ(log_[log_.size() - 2], "EndSearch 4");
  EXPECT_EQ(log_.back(), "EndTree");

  script_.splits = [](std::int32_t, LevelNode) { return false; };
  EXPECT_EQ(this->Build().size(), 1u);
  EXPECT_EQ(log_, (std::vector<std::string>{"BeginTree", "FindSplits 0", "AwaitSplits",
                                            "EndSearch 0", "EndTree"}));
}

TEST_F(LevelLoopTest, BoundsOfMonotoneConstraints) {
  param_.monotone_constraints = {1, 0, -1};
  param_.max_depth = 6;
  this->Make();
  this->CheckTree(this->Build());
}

/** @brief Masks come to the level that they were asked for, and to no other. */
TEST_F(LevelLoopTest, MasksOfEachLevel) {
  struct Policy : FeaturePolicy {
    std::vector<std::vector<std::uint32_t>> given;
    bool Select(std::int32_t depth, std::vector<LiveNode> const& nodes, FeatureMask* out) override {
      given.emplace_back();
      if (depth % 3 == 1) {
        return false;
      }
      out->n_words = 2;  // long masks do not go with a launch, but through page-locked memory
      for (std::size_t b = 0; b < out->n_words * (depth % 3 == 0 ? 1 : nodes.size()); ++b) {
        given.back().push_back(static_cast<std::uint32_t>(1000 * depth + b));
      }
      out->bits = given.back();
      return true;
    }
  } policy;
  this->Make();
  this->CheckTree(this->Build(&policy));
  EXPECT_EQ(policy.given.size(), static_cast<std::size_t>(param_.max_depth));
  EXPECT_EQ(strategy_->Masks(), policy.given);
}

/** @brief A phase that fails ends the tree with its error; the next tree is as if nothing had been. */
TEST_F(LevelLoopTest, FaultsInEachPhase) {
  param_.max_depth = 4;
  this->Make();
  auto const want = this->Build();
  for (char const* phase : {"BeginTree", "FindSplits 0", "AwaitSplits", "EndSearch 2",
                            "Partition 0", "Partition 3", "EndTree"}) {
    script_.fails_in = phase;
    EXPECT_THROW(this->Build(), std::runtime_error) << phase;
    EXPECT_EQ(log_.back(), phase) << "nothing comes after the fault";
    script_.fails_in.clear();
    ExpectSameTree(this->Build(), want, std::string{"after a fault in "} + phase);
    this->CheckTree(want);
  }
}
}  // namespace
}  // namespace gpu_exact
