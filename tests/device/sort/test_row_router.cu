/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows, node sums and positions against loops on the host.
 */
#include "device/sort/row_router.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using RowPartitionTest = DeviceTest;

/** @brief Rows of many nodes at once: node r % n_nodes by a column of that value. */
TEST_F(RowPartitionTest, RoutesAndSums) {
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
    RowPartition rows{kRows};
    rows.Reset({d_gpair.Data(), nullptr, kRows});
    auto orders = ToDevice(std::vector<SplitOrder>{{0, 1, 40, 40.0f, default_left != 0}});
    rows.SetOrders(orders.Data(), 1, kRoot);
    rows.Route(d_column.Data(), {{{0, column.size()}, 0}});
    rows.RouteMissing(1, 2);
    auto q = Quantiser::Make(7.0f, 1.0f, kRows);
    DeviceBuffer<NodeState> states{"states"};
    ZeroAsync(states.Reserve(2), 2);
    rows.SumNodes(d_gpair.Data(), q, 1, 2, states.Data());
    auto got = ToHost(states.Data(), 2);
    auto keys = ToHost(rows.RowKeys(), kRows);
    std::vector<NodeIdx> positions(kRows);
    HostCopier copier;
    rows.Positions().Write(0, kRows, {}, Memory::kHost, positions.data(), &copier);
    GradientSum want[2]{{0, 0}, {0, 0}};
    for (RowIdx r = 0; r < kRows; ++r) {
      int child = r % 3 == 0 ? 1 - default_left : (r % 100 < 40 ? 0 : 1);
      bool trained = r % 11 != 0;
      ASSERT_EQ(positions[r], EncodePosition(1 + child, trained)) << r;
      ASSERT_EQ(keys[r], trained ? child : kNoKey) << r;
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
TEST_F(RowPartitionTest, SumsOfManyNodes) {
  constexpr RowIdx kRows = 20000;
  for (int levels : {1, 4, 7, 9, 11}) {
    std::vector<GradientPair> gpair(kRows);
    for (RowIdx r = 0; r < kRows; ++r) {
      gpair[r] = {static_cast<float>(r % 13) - 6.0f, 1.0f};
    }
    auto d_gpair = ToDevice(gpair);
    RowPartition rows{kRows};
    rows.Reset({d_gpair.Data(), nullptr, kRows});
    NodeIdx first{0};
    Bucket n{1};
    for (int level = 0; level < levels; ++level) {  // bit "level" of the row decides
      std::vector<ColumnEntry> column;
      for (RowIdx r = 0; r < kRows; ++r) {
        column.push_back({r, r >> level & 1});
      }
      std::vector<SplitOrder> orders;
      for (Bucket b = 0; b < n; ++b) {
        orders.push_back({0, static_cast<NodeIdx>(first + n + 2 * b), 1, 1.0f, false});
      }
      auto d_column = ToDevice(column);
      auto d_orders = ToDevice(orders);
      rows.SetOrders(d_orders.Data(), n, first);
      rows.Route(d_column.Data(), {{{0, column.size()}, 0}});
      first += static_cast<NodeIdx>(n);
      n *= 2;
      rows.RouteMissing(first, n);
    }
    auto q = Quantiser::Make(6.0f, 1.0f, kRows);
    DeviceBuffer<NodeState> states{"states"};
    ZeroAsync(states.Reserve(n), n);
    rows.SumNodes(d_gpair.Data(), q, first, n, states.Data());
    auto got = ToHost(states.Data(), n);
    auto keys = ToHost(rows.RowKeys(), kRows);
    std::vector<GradientSum> want(n, {0, 0});
    for (RowIdx r = 0; r < kRows; ++r) {
      Bucket bucket{0};
      for (int level = 0; level < levels; ++level) {
        bucket = 2 * bucket + (r >> level & 1);
      }
      want[bucket].grad += gpair[r].grad;
      want[bucket].hess += 1.0;
      ASSERT_EQ(keys[r], n <= kMaxKeyedNodes ? bucket : bucket % 2);
    }
    for (Bucket b = 0; b < n; ++b) {
      ASSERT_EQ(q.Real(got[b].sum).grad, want[b].grad) << n << " nodes, " << b;
      ASSERT_EQ(q.Real(got[b].sum).hess, want[b].hess) << n << " nodes, " << b;
    }
  }
}
}  // namespace
}  // namespace gpu_exact
