/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows, node sums and positions against loops on the host.
 */
#include <cstring>

#include "src/device/row_partition.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using RowPartitionTest = DeviceTest;

TEST_F(RowPartitionTest, ResetSummarisesTheRows) {
  std::vector<GradientPair> gpair(5000, {0.5f, 0.25f});
  gpair[17] = {-8.0f, 0.1f};
  gpair[18] = {99.0f, -1.0f};  // deleted: counts for nothing
  gpair[4999] = {0.0f, 3.0f};
  gpair[7] = {std::nanf(""), 1.0f};
  gpair[8] = {1.0f, std::numeric_limits<float>::infinity()};
  std::vector<std::uint8_t> included(5000, 1);
  included[20] = 0;
  auto d_gpair = ToDevice(gpair);
  RowPartition rows{5000};
  RowSummary s = rows.Reset(d_gpair.Data(), included.data());
  float grad = 8.0f, hess = 3.0f;
  EXPECT_EQ(std::memcmp(&s.max_grad_bits, &grad, 4), 0);
  EXPECT_EQ(std::memcmp(&s.max_hess_bits, &hess, 4), 0);
  EXPECT_EQ(s.n_not_finite, 2u);
  EXPECT_EQ(s.n_left_out, 2u);
  std::vector<NodeIdx> positions(5000);
  rows.WritePositions({}, Memory::kHost, positions.data());
  for (int r = 0; r < 5000; ++r) {
    ASSERT_EQ(positions[r], r == 18 || r == 20 ? ~0 : 0) << r;
  }
}

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
    static_cast<void>(rows.Reset(d_gpair.Data(), nullptr));
    rows.SetOrders({{0, 1, 40, default_left != 0}}, kRoot);
    rows.Route(d_column.Data(), {{{0, column.size()}, 0}});
    rows.RouteMissing(1, 2);
    auto q = Quantiser::Make(7.0f, 1.0f, kRows);
    DeviceBuffer<NodeState> states{"states"};
    rows.SumNodes(d_gpair.Data(), q, 1, 2, states.Reserve(2));
    auto got = ToHost(states.Data(), 2);
    auto keys = ToHost(rows.RowKeys(), kRows);
    std::vector<NodeIdx> positions(kRows);
    rows.WritePositions({}, Memory::kHost, positions.data());
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

TEST_F(RowPartitionTest, SumsMagnitudesOfTrainedRows) {
  std::vector<GradientPair> gpair;
  for (int r = 0; r < 4000; ++r) {
    gpair.push_back({r % 2 == 0 ? 0.5f : -0.25f, r % 4 == 3 ? -1.0f : 2.0f});
  }
  auto d_gpair = ToDevice(gpair);
  RowPartition rows{4000};
  static_cast<void>(rows.Reset(d_gpair.Data(), nullptr));
  auto q = Quantiser::Make(0.5f, 2.0f, 4000);
  auto sum = q.Real(rows.SumMagnitudes(d_gpair.Data(), q));
  EXPECT_EQ(sum.grad, 2000 * 0.5 + 1000 * 0.25);
  EXPECT_EQ(sum.hess, 3000 * 2.0);
}

TEST_F(RowPartitionTest, SumsDoNotDependOnTheGrid) {
  constexpr RowIdx kRows = 50000;
  Random random{12};
  std::vector<GradientPair> gpair(kRows);
  for (auto& g : gpair) {
    g = {random.Normal(), static_cast<float>(random.Real())};  // as floats, order would matter
  }
  auto d_gpair = ToDevice(gpair);
  auto q = Quantiser::Make(8.0f, 1.0f, kRows);
  std::vector<FixedSum> sums;
  for (std::uint64_t max_blocks : {1, 3, 7, 1000}) {
    RowPartition rows{kRows, max_blocks};
    static_cast<void>(rows.Reset(d_gpair.Data(), nullptr));
    DeviceBuffer<NodeState> root{"root"};
    rows.SumNodes(d_gpair.Data(), q, kRoot, 1, root.Reserve(1));
    sums.push_back(ToHost(root.Data(), 1)[0].sum);
  }
  for (FixedSum const& sum : sums) {
    EXPECT_EQ(sum, sums.front());
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
    static_cast<void>(rows.Reset(d_gpair.Data(), nullptr));
    NodeIdx first{0};
    Bucket n{1};
    for (int level = 0; level < levels; ++level) {  // bit "level" of the row decides
      std::vector<ColumnEntry> column;
      for (RowIdx r = 0; r < kRows; ++r) {
        column.push_back({r, r >> level & 1});
      }
      std::vector<SplitOrder> orders;
      for (Bucket b = 0; b < n; ++b) {
        orders.push_back({0, static_cast<NodeIdx>(first + n + 2 * b), 1, false});
      }
      auto d_column = ToDevice(column);
      rows.SetOrders(orders, first);
      rows.Route(d_column.Data(), {{{0, column.size()}, 0}});
      first += static_cast<NodeIdx>(n);
      n *= 2;
      rows.RouteMissing(first, n);
    }
    auto q = Quantiser::Make(6.0f, 1.0f, kRows);
    DeviceBuffer<NodeState> states{"states"};
    rows.SumNodes(d_gpair.Data(), q, first, n, states.Reserve(n));
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
