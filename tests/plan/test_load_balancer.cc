/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests that slices of work have every row of every segment once.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "plan/load_balancer.h"

namespace gpu_exact {
namespace {
/** @brief A group's elements, and its bins. */
struct Group {
  std::uint64_t n_elements;
  std::uint32_t n_bins;
};

/** @brief Cuts work on nodes of so many rows, and goes along the slices as
 * blocks do. */
class Slicing {
 public:
  Slicing(std::vector<Group> const& groups, std::vector<RowIdx> const& rows, RowIdx n_rows)
      : rows_{rows} {
    for (Group const& g : groups) {
      slicer_.AddGroup(g.n_elements, n_rows, g.n_bins);
    }
    std::uint64_t before{0};
    for (RowIdx n : rows) {
      nodes_.push_back({0, static_cast<std::uint32_t>(nodes_.size()), before});
      before += n;
    }
    nodes_.push_back({0, 0, before});
  }

  void Check(std::uint32_t max_slices) const {
    auto const slices = slicer_.Slices(nodes_, max_slices);
    auto const n_slices = slices.size() - 1;
    auto const n_nodes = static_cast<std::uint32_t>(rows_.size());
    ASSERT_GE(slices.size(), 2u);
    ASSERT_LE(n_slices, std::max(max_slices, 1u));
    std::map<std::pair<std::uint32_t, std::uint32_t>, RowIdx> done;  // rows of each segment
    std::vector<double> costs;
    double total{0.0};
    for (std::size_t s = 0; s < n_slices; ++s) {
      ASSERT_FALSE(slices[s + 1] < slices[s]);
      double cost{0.0};
      WorkOffset point = slices[s];
      while (point < slices[s + 1]) {
        ASSERT_LT(point.built, n_nodes);
        ASSERT_LT(point.group, slicer_.NumGroups());
        bool const ends_cut = point.SameSegment(slices[s + 1]);
        RowIdx const n = rows_[point.built];
        RowIdx const last = ends_cut ? slices[s + 1].row : n;
        ASSERT_LE(last, n);
        ASSERT_TRUE(point.row < last || n == 0) << "no row, for which a histogram is written";
        auto const [segment, is_new] = done.insert({{point.built, point.group}, 0});
        ASSERT_EQ(is_new, point.row == 0) << "an empty segment twice, or one begun in its middle";
        ASSERT_EQ(segment->second, point.row) << "rows twice, or left out";
        segment->second = last;
        cost += this->Cost(point, last, !ends_cut);
        point = point.group + 1 < slicer_.NumGroups() ? WorkOffset{point.built, point.group + 1, 0}
                                                      : WorkOffset{point.built + 1, 0, 0};
      }
      costs.push_back(cost);
      total += cost;
    }
    for (auto const& [segment, n_rows] : done) {
      ASSERT_EQ(n_rows, rows_[segment.first]) << "node " << segment.first;
    }
    ASSERT_EQ(done.size(), std::size_t{n_nodes} * slicer_.NumGroups());
    ASSERT_EQ(slices.back().built, n_nodes);
    // A row and the bins of a segment are not divided, at the begin and at the
    // end of a slice.
    double most{0.0};
    for (std::uint32_t g = 0; g < slicer_.NumGroups(); ++g) {
      most = std::max(most, this->Cost({0, g, 0}, 1, true));
    }
    double const share = total / static_cast<double>(n_slices);
    EXPECT_LE(*std::max_element(costs.begin(), costs.end()), share + 2.0 * most + 1.0);
    if (n_slices > 1) {
      EXPECT_GE(share, static_cast<double>(LoadBalancer::kMinSlice));
    }
    if (n_slices < max_slices) {
      EXPECT_LT(share, 2.0 * static_cast<double>(LoadBalancer::kMinSlice));
    }
  }

 private:
  [[nodiscard]] double Cost(WorkOffset const& point, RowIdx last, bool ends) const {
    GroupCost const& before = slicer_.Costs()[point.group];
    GroupCost const& after = slicer_.Costs()[point.group + 1];
    return static_cast<double>(last - point.row) * static_cast<double>(after.row - before.row) +
           (ends ? static_cast<double>(after.segment - before.segment) : 0.0);
  }

  LoadBalancer slicer_;
  std::vector<RowIdx> rows_;
  std::vector<BuiltNode> nodes_;
};

void CheckSlices(std::vector<Group> const& groups, std::vector<RowIdx> const& rows, RowIdx n_rows) {
  Slicing const slicing{groups, rows, n_rows};
  for (std::uint32_t max_slices : {0u, 1u, 2u, 3u, 132u, 2048u, 100'000u}) {
    slicing.Check(max_slices);
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << max_slices << " slices";
  }
}

TEST(LoadBalancer, NoRowsAndOneRow) {
  for (RowIdx n : {0u, 1u}) {
    CheckSlices({{n, 1}}, {n}, n);
    CheckSlices({{n, 2}, {5 * n, 10'000}, {0, 3}}, {n}, n);
  }
  CheckSlices({{1000, 60'000}, {1, 60'000}}, {0, 0, 1, 0, 0, 1, 0}, 1000);
}

TEST(LoadBalancer, OneLargeNodeBesideThousandsOfSmallOnes) {
  std::vector<RowIdx> rows(5000, 3);
  for (std::size_t at : {std::size_t{0}, std::size_t{2500}, rows.size() - 1}) {
    rows[at] = 3'000'000;
    CheckSlices({{30'000'000, 500}, {3'000'000, 9000}, {100, 2}}, rows, 3'100'000);
    rows[at] = 3;
  }
}

TEST(LoadBalancer, RowsOfMoreCostThanASlice) {
  // 4000 elements a row: several slices begin at the same row, and all but one
  // have nothing to do.
  CheckSlices({{4'000'000, 10'000}, {1000, 10}}, {10, 0, 1, 989}, 1000);
}

TEST(LoadBalancer, MoreThan32BitsOfRowsTimesGroups) {
  constexpr RowIdx kRows = std::numeric_limits<std::int32_t>::max();
  std::vector<Group> const groups(9, Group{std::uint64_t{1} << 30, 10'000});
  CheckSlices(groups, {kRows}, kRows);
  CheckSlices(groups, {kRows / 2, 0, 17, kRows / 2 - 100}, kRows);
}

TEST(LoadBalancer, RandomNodesAndGroups) {
  std::mt19937 engine{3};
  auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); };
  for (int i = 0; i < 300; ++i) {
    std::vector<RowIdx> rows;
    std::uint64_t n_rows{1};
    for (std::uint32_t n = 1 + below(40); n > 0; --n) {
      rows.push_back(below(4) == 0 ? 0 : below(below(5) == 0 ? 100'000 : 100));
      n_rows += rows.back();
    }
    std::vector<Group> groups;
    for (std::uint32_t n = 1 + below(6); n > 0; --n) {
      groups.push_back({n_rows * below(200) / (1 + below(300)), 1 + below(12'000)});
    }
    Slicing const slicing{groups, rows, static_cast<RowIdx>(n_rows)};
    slicing.Check(1 + below(500));
    ASSERT_FALSE(HasFatalFailure()) << i;
  }
}

/** @brief A slicer of so many alike groups, and nodes of so many rows, one after the other. */
struct Parts {
  LoadBalancer slicer;
  std::vector<BuiltNode> nodes;

  Parts(std::uint32_t n_groups, std::vector<RowIdx> const& rows) {
    for (std::uint32_t g = 0; g < n_groups; ++g) {
      slicer.AddGroup(1000, 1000, 10);
    }
    RowIdx begin{7};
    std::uint64_t before{0};
    for (RowIdx n : rows) {
      nodes.push_back({begin, 2 * static_cast<std::uint32_t>(nodes.size()), before});
      begin += n + 3;
      before += n;
    }
    nodes.push_back({0, 0, before});
  }
};

TEST(LoadBalancer, PartsAreAllRowsOnceTheLargestNodeFirst) {
  std::mt19937 engine{5};
  auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); };
  int n_cut{0};
  for (int i = 0; i < 500; ++i) {
    std::vector<RowIdx> rows(1 + below(20));
    for (RowIdx& n : rows) {
      n = below(3) == 0 ? below(5) : below(below(4) == 0 ? 100'000'000 : 100'000);
    }
    Parts const whole{2 + below(60), rows};
    std::uint32_t const n_blocks = 1 + below(200);
    auto const parts = whole.slicer.Parts(whole.nodes, {n_blocks, 1000});
    if (parts.empty()) {
      continue;
    }
    ++n_cut;
    ASSERT_EQ(parts.back().before, whole.nodes.back().before);
    std::map<std::uint32_t, RowIdx> done;  // rows of each node
    RowIdx last_size = ~RowIdx{0};
    for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
      auto const n = static_cast<RowIdx>(parts[p + 1].before - parts[p].before);
      BuiltNode const& node = whole.nodes[parts[p].node / 2];
      RowIdx const size = rows[parts[p].node / 2];
      RowIdx& of_node = done[parts[p].node];
      ASSERT_EQ(parts[p].begin, node.begin + of_node) << "rows twice, or left out";
      ASSERT_EQ(parts[p].part, n == size      ? NodePart::kWhole
                               : of_node == 0 ? NodePart::kFirst
                                              : NodePart::kLater);
      ASSERT_LE(size, last_size);
      last_size = size;
      of_node += n;
    }
    ASSERT_EQ(done.size(), rows.size());
    for (auto const& [node, n_done] : done) {
      ASSERT_EQ(n_done, rows[node / 2]);
    }
  }
  EXPECT_GT(n_cut, 300);
}

TEST(LoadBalancer, PartsKeepAllBlocksBusy) {
  constexpr std::uint32_t kBlocks = 132;
  for (std::uint32_t n_groups = 2; n_groups <= kBlocks / 2; ++n_groups) {
    for (std::vector<RowIdx> const& rows :
         {std::vector<RowIdx>{10'000'000}, {4'000'000, 2'345'678}, {3'000'000, 1, 2'500'000}}) {
      Parts const whole{n_groups, rows};
      auto const parts = whole.slicer.Parts(whole.nodes, {kBlocks, 2'000'000});
      std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> blocks;
      for (std::uint32_t b = 0; b < kBlocks; ++b) {
        blocks.push(0);
      }
      std::uint64_t end{0};
      for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
        for (std::uint32_t g = 0; g < n_groups; ++g) {  // the block that is done first goes on
          std::uint64_t const done = blocks.top() + parts[p + 1].before - parts[p].before;
          blocks.pop();
          blocks.push(done);
          end = std::max(end, done);
        }
      }
      double const least = static_cast<double>(whole.nodes.back().before) * n_groups / kBlocks;
      EXPECT_LE(static_cast<double>(end), 1.3 * least) << n_groups << " groups, " << rows.size();
      EXPECT_EQ(whole.slicer.Segments(3).size(), 3 * n_groups + 1);
    }
  }
}

/** @brief 33 groups fill one to four rounds of 132 blocks, of which the most are taken; 9 groups fill three,
 *         and leave 6 of 528 blocks idle in four. */
TEST(LoadBalancer, MoreRoundsOfThoseThatFillAlike) {
  constexpr std::uint32_t kBlocks = 132;
  for (std::uint32_t n_groups : {9, 33}) {
    Parts const whole{n_groups, {10'000'000}};
    auto const n_parts = whole.slicer.Parts(whole.nodes, {kBlocks, 1000}).size() - 1;
    EXPECT_EQ(n_parts * n_groups % kBlocks, 0u) << "a round is not full";
    EXPECT_GE(n_parts * n_groups, 3 * kBlocks) << n_groups << " groups";
  }
}

TEST(LoadBalancer, WhereOnePartMoreIsTheNodeOfTheLongestGetsIt) {
  Parts const whole{33, {690'000, 510'000, 400'000}};  // 6.9, 5.1 and 4 of 16 parts
  std::map<std::uint32_t, int> n_parts;
  auto const parts = whole.slicer.Parts(whole.nodes, {132, 1000});
  for (std::size_t p = 0; p + 1 < parts.size(); ++p) {
    ++n_parts[parts[p].node / 2];
  }
  EXPECT_EQ(n_parts, (std::map<std::uint32_t, int>{{0, 7}, {1, 5}, {2, 4}}));
}

TEST(LoadBalancer, SegmentsAreASliceEach) {
  constexpr std::uint32_t kNodes = 3;
  Parts const whole{4, {10, 20, 30}};
  auto const slices = whole.slicer.Segments(kNodes);
  ASSERT_EQ(slices.size(), 4 * kNodes + 1);
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i].built, i / 4);
    EXPECT_EQ(slices[i].group, i % 4) << "the last one ends all, where a node would begin";
    EXPECT_EQ(slices[i].row, 0u);
  }
}

TEST(LoadBalancer, WhatTheCacheHoldsIsNotCut) {
  Parts const whole{20, {1000, 2000}};
  EXPECT_TRUE(whole.slicer.Parts(whole.nodes, {132, 3000}).empty());
  EXPECT_FALSE(whole.slicer.Parts(whole.nodes, {132, 2999}).empty());
  Parts const one_group{1, {1000, 2000}};
  EXPECT_TRUE(one_group.slicer.Parts(one_group.nodes, {132, 0}).empty());
  Parts const many_nodes{20, std::vector<RowIdx>(1000, 1000)};
  EXPECT_TRUE(many_nodes.slicer.Parts(many_nodes.nodes, {132, 0}).empty());
  Parts const many_groups{5000, {1000, 2000}};
  EXPECT_TRUE(many_groups.slicer.Parts(many_groups.nodes, {132, 0}).empty());
}

TEST(LoadBalancer, WithoutGroupsThereIsNoWork) {
  LoadBalancer const slicer;
  auto const slices = slicer.Slices({{0, 0, 0}, {0, 0, 100}}, 132);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_FALSE(slices[0] < slices[1]);
}
}  // namespace
}  // namespace gpu_exact
