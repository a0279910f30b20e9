/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The gradients of each leaf, however light its rows are beside others; the leaf of each row
 *        after pruning.
 */
#include <cmath>
#include <vector>

#include "device/level/leaf_sums.cuh"
#include "device/level/row_positions.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
class LeafSumsTest : public DeviceTest {
 protected:
  static void Check(RowIdx n_rows, std::size_t n_nodes, Random* random) {
    std::vector<GradientPair> gpair(n_rows);
    std::vector<std::uint8_t> included(n_rows);
    std::vector<NodeIdx> positions(n_rows);
    std::vector<GradientSum> want(n_nodes, {0.0, 0.0});
    for (RowIdx r = 0; r < n_rows; ++r) {
      NodeIdx const leaf = random->Int(0, static_cast<int>(n_nodes) - 1);
      float const unit = std::ldexp(1.0f, -10 * (leaf % 12));  // one fixed point cannot hold all
      gpair[r] = {static_cast<float>(random->Int(-64, 64)) * unit,
                  random->Chance(0.1) ? -1.0f : static_cast<float>(random->Int(0, 64)) * unit};
      included[r] = random->Chance(0.8);
      bool const is_trained = included[r] != 0 && gpair[r].hess >= 0.0f;
      positions[r] = EncodePosition(leaf, is_trained);
      if (is_trained) {
        want[leaf].grad += gpair[r].grad;
        want[leaf].hess += gpair[r].hess;
      }
    }
    auto const d_gpair = ToDevice(gpair);
    auto const d_included = ToDevice(included);
    auto const d_positions = ToDevice(positions);
    auto const got =
        SumLeaves({d_gpair.Data(), d_included.Data(), n_rows}, d_positions.Data(), n_nodes);
    ASSERT_EQ(got.size(), n_nodes);
    for (std::size_t i = 0; i < n_nodes; ++i) {
      ASSERT_EQ(got[i].grad, want[i].grad) << "leaf " << i << " of " << n_nodes;
      ASSERT_EQ(got[i].hess, want[i].hess) << "leaf " << i << " of " << n_nodes;
    }
  }
};

/** @brief As many leaves as a block keeps by itself, and more. */
TEST_F(LeafSumsTest, EachInAUnitOfItsOwn) {
  Random random{1};
  for (std::size_t n_nodes : {1, 7, 1024, 1025, 3000}) {
    for (RowIdx n_rows : {0u, 1u, 257u, Scaled(300000u, 3000u)}) {
      Check(n_rows, n_nodes, &random);
      ASSERT_FALSE(HasFailure()) << n_rows << " rows";
    }
  }
}

/** @brief Some of the rows, to the host and the device, as they are and by other numbers. */
TEST_F(LeafSumsTest, PositionsAfterPruning) {
  constexpr RowIdx kRows = 1000;
  constexpr RowIdx kFirst = 17;
  constexpr RowIdx kSome = 900;
  Random random{2};
  std::vector<NodeIdx> positions(kRows), remap(50);
  for (NodeIdx& position : positions) {
    position = EncodePosition(random.Int(0, 49), random.Chance(0.5));
  }
  for (NodeIdx& node : remap) {
    node = random.Int(0, 20);
  }
  RowPositions rows{kRows};
  CopyFromHost(rows.Data(), positions.data(), kRows);
  HostCopier copier;
  for (bool is_pruned : {false, true}) {
    std::vector<NodeIdx> want;
    for (RowIdx r = kFirst; r < kFirst + kSome; ++r) {
      bool const is_trained = positions[r] == EncodePosition(DecodePosition(positions[r]), true);
      NodeIdx const node = DecodePosition(positions[r]);
      want.push_back(EncodePosition(is_pruned ? remap[node] : node, is_trained));
    }
    std::vector<NodeIdx> got(kSome);
    rows.Write(kFirst, kSome, is_pruned ? remap : std::vector<NodeIdx>{}, Memory::kHost, got.data(),
               &copier);
    EXPECT_EQ(got, want);
    DeviceBuffer<NodeIdx> d_got{"positions"};
    rows.Write(kFirst, kSome, is_pruned ? remap : std::vector<NodeIdx>{}, Memory::kDevice,
               d_got.Reserve(kSome), &copier);
    EXPECT_EQ(ToHost(d_got.Data(), kSome), want);
    EXPECT_EQ(ToHost(rows.Data(), kRows), positions) << "they were written over";
  }
}
}  // namespace
}  // namespace gpu_exact
