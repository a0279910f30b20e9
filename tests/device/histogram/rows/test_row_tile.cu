/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The node of every slot, and that each slot is worked on once, whatever the nodes.
 */
#include <vector>

#include "device/histogram/rows/row_tile.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
constexpr LevelNode kNobody = 0xffffffffu;  // has the slot

struct Visit {
  std::uint32_t n;  // times
  LevelNode node;
  RowIdx in_node;  // the slot's number in the node, as rows ascend
};

// grid: RowTile's
template <int kThreads, int kSlots>
__global__ void VisitKernel(RowsRef rows, LevelNode n_nodes, RowIdx n_slots, Visit* out,
                            std::uint32_t* n_beyond) {
  WaitForPreviousKernel();
  RowTile<kThreads, kSlots> const tile{rows, n_nodes};
  for (int j = 0; j < kSlots; ++j) {
    if (tile.Has(j) && tile.Slot(j) < n_slots) {
      Visit* const visit = out + tile.Slot(j);
      atomicAdd(&visit->n, 1u);
      visit->node = tile.node;
      visit->in_node = tile.first + tile.InTile(j);
      EXACT_DEVICE_CHECK(!tile.IsEmpty() && tile.InTile(j) < tile.Size());
    } else if (tile.Has(j)) {
      atomicAdd(n_beyond, 1u);
    }
  }
}

class RowTileTest : public DeviceTest {
 protected:
  /** @param lengths Rows of each node. @param gap Slots before each. */
  template <int kThreads, int kSlots>
  static void Check(std::vector<RowIdx> const& lengths, RowIdx gap = 0) {
    std::vector<RowRange> nodes;
    std::vector<LevelNode> want;  // kNobody in gaps
    for (LevelNode b = 0; b < lengths.size(); ++b) {
      want.resize(want.size() + gap, kNobody);
      auto const begin = static_cast<RowIdx>(want.size());
      nodes.push_back({begin, begin + lengths[b]});
      want.resize(want.size() + lengths[b], b);
    }
    auto const n_slots = static_cast<RowIdx>(want.size());
    auto const n_nodes = static_cast<LevelNode>(nodes.size());
    auto const d_nodes = ToDevice(nodes);
    DeviceBuffer<Visit> visits{"visits"};
    DeviceBuffer<std::uint32_t> n_beyond{"slots beyond the last one"};
    ZeroAsync(visits.Reserve(n_slots), n_slots);
    ZeroAsync(n_beyond.Reserve(1), 1);
    Launch("Visit", VisitKernel<kThreads, kSlots>,
           RowTile<kThreads, kSlots>::Grid(n_slots, n_nodes), kThreads,
           RowsRef{nullptr, nullptr, d_nodes.Data(), nullptr, nullptr, nullptr, false}, n_nodes,
           n_slots, visits.Data(), n_beyond.Data());
    auto const got = ToHost(visits.Data(), n_slots);
    for (RowIdx slot = 0; slot < n_slots; ++slot) {
      ASSERT_EQ(got[slot].n, want[slot] == kNobody ? 0u : 1u)
          << "slot " << slot << " of " << n_slots;
      if (want[slot] == kNobody) {
        continue;
      }
      ASSERT_EQ(got[slot].node, want[slot]) << "slot " << slot << " of " << n_slots;
      RowRange const node = nodes[want[slot]];
      ASSERT_EQ(got[slot].in_node, want[slot] % 2 == 0 ? slot - node.begin : node.end - 1 - slot);
    }
    ASSERT_EQ(ToHost(n_beyond.Data(), 1)[0], 0u);
  }
};

TEST_F(RowTileTest, EverySlotOnceAndItsNode) {
  Check<128, 1>({0});
  Check<128, 4>({1});
  Check<128, 4>({511, 1, 0, 0, 512, 513, 0});
  Check<64, 1>(std::vector<RowIdx>(65, 63));
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    std::vector<RowIdx> lengths(random.Int(1, 200));
    for (RowIdx& length : lengths) {
      length = static_cast<RowIdx>(random.Pick({0, 1, random.Int(0, 70), random.Int(0, 2000)}));
    }
    Check<64, 1>(lengths);
    Check<256, 8>(lengths);
    Check<256, 8>(lengths, static_cast<RowIdx>(random.Int(1, 3000)));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}
}  // namespace
}  // namespace gpu_exact
