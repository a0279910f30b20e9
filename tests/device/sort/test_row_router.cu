/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Rows, node sums and positions against loops on the host.
 */
#include "device/sort/row_router.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using RowRouterTest = DeviceTest;

/** @brief Rows of many nodes at once: node r % n_nodes by a column of that value. */
TEST_F(RowRouterTest, RoutesAndSums) {
  constexpr RowIdx kRows = 3000;
  for (int default_left : {0, 1}) {
    std::vector<GradientPair> gpair(kRows);
    std::vector<ColumnEntry> column;
    for (RowIdx r = 0; r < kRows; ++r) {
      gpair[r] = {static_cast<float>(r % 7), r % 11 == 0 ? -1.0f : 1.0f};
      if (r % 3 != 0) {  // every third row misses the value
        column.push_back({r, r % 100});
      }
    }
    auto d_gpair = ToDevice(gpair);
    auto d_column = ToDevice(column);
    RowRouter rows{kRows};
    auto q = Quantiser::Make(7.0f, 1.0f, kRows);
    rows.Reset({d_gpair.Data(), nullptr, kRows}, q);
    auto node_splits = ToDevice(std::vector<NodeSplit>{{0, 1, 40.0f, default_left != 0}});
    auto first_right = ToDevice(std::vector<std::uint64_t>{40});
    LevelNodes const root{kRoot, 1};
    LevelNodes const children{1, 2};
    rows.Route(d_column.Data(), {{{0, column.size()}, 0}}, root, node_splits.Data(),
               first_right.Data());
    rows.RouteMissing(root, node_splits.Data(), children);
    DeviceBuffer<NodeState> states{"states"};
    ZeroAsync(states.Reserve(2), 2);
    rows.SumNodes(children, states.Data());
    auto got = ToHost(states.Data(), 2);
    std::vector<NodeIdx> positions(kRows);
    HostCopier copier;
    rows.Positions().Write(0, kRows, {}, Memory::kHost, positions.data(), &copier);
    GradientSum want[2]{{0, 0}, {0, 0}};
    for (RowIdx r = 0; r < kRows; ++r) {
      int child = r % 3 == 0 ? 1 - default_left : (r % 100 < 40 ? 0 : 1);
      bool trained = r % 11 != 0;
      ASSERT_EQ(positions[r], EncodePosition(1 + child, trained)) << r;
      if (trained) {
        want[child].grad += gpair[r].grad;
        want[child].hess += gpair[r].hess;
      }
    }
    for (int c : {0, 1}) {
      EXPECT_EQ(q.Real(got[c].sum).grad, want[c].grad);
      EXPECT_EQ(q.Real(got[c].sum).hess, want[c].hess);
    }
  }
}

/** @brief Sums in shared memory, in several copies and in one, and in global memory. */
TEST_F(RowRouterTest, SumsOfManyNodes) {
  constexpr RowIdx kRows = 20000;
  for (int levels : {1, 4, 7, 9, 11}) {
    std::vector<GradientPair> gpair(kRows);
    for (RowIdx r = 0; r < kRows; ++r) {
      gpair[r] = {static_cast<float>(r % 13) - 6.0f, 1.0f};
    }
    auto d_gpair = ToDevice(gpair);
    RowRouter rows{kRows};
    auto q = Quantiser::Make(6.0f, 1.0f, kRows);
    rows.Reset({d_gpair.Data(), nullptr, kRows}, q);
    LevelNodes nodes{};
    for (int level = 0; level < levels; ++level) {  // bit "level" of the row decides
      std::vector<ColumnEntry> column;
      for (RowIdx r = 0; r < kRows; ++r) {
        column.push_back({r, r >> level & 1});
      }
      std::vector<NodeSplit> node_splits;
      LevelNodes const children{static_cast<NodeIdx>(nodes.first + nodes.n), 2 * nodes.n};
      for (LevelNode b = 0; b < nodes.n; ++b) {
        node_splits.push_back({0, static_cast<NodeIdx>(children.first + 2 * b), 1.0f, false});
      }
      auto d_column = ToDevice(column);
      auto d_node_splits = ToDevice(node_splits);
      auto d_first_right = ToDevice(std::vector<std::uint64_t>(nodes.n, 1));
      rows.Route(d_column.Data(), {{{0, column.size()}, 0}}, nodes, d_node_splits.Data(),
                 d_first_right.Data());
      rows.RouteMissing(nodes, d_node_splits.Data(), children);
      nodes = children;
    }
    LevelNode const n{nodes.n};
    DeviceBuffer<NodeState> states{"states"};
    ZeroAsync(states.Reserve(n), n);
    rows.SumNodes(nodes, states.Data());
    auto got = ToHost(states.Data(), n);
    auto const positions = ToHost(rows.Positions().Data(), kRows);
    std::vector<GradientSum> want(n, {0, 0});
    for (RowIdx r = 0; r < kRows; ++r) {
      LevelNode level_node{0};
      for (int level = 0; level < levels; ++level) {
        level_node = 2 * level_node + (r >> level & 1);
      }
      want[level_node].grad += gpair[r].grad;
      want[level_node].hess += 1.0;
      ASSERT_EQ(positions[r], nodes.first + static_cast<NodeIdx>(level_node));
    }
    for (LevelNode b = 0; b < n; ++b) {
      ASSERT_EQ(q.Real(got[b].sum).grad, want[b].grad) << n << " nodes, " << b;
      ASSERT_EQ(q.Real(got[b].sum).hess, want[b].hess) << n << " nodes, " << b;
    }
  }
}
}  // namespace
}  // namespace gpu_exact
