/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The node of every slot, and that each slot is worked on once, whatever the nodes.
 */
#include <vector>

#include "device/level/rows_ref.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
struct Visit {
  std::uint32_t n;  // times
  LevelNode node;
};

// grid: SlotTurns::Grid()
template <int kThreads, int kSlots>
__global__ void VisitKernel(RowsRef rows, LevelNode n_nodes, RowIdx n_slots, Visit* out,
                            std::uint32_t* n_beyond) {
  WaitForPreviousKernel();
  ForEachSlot<kThreads, kSlots>(rows, n_nodes, n_slots,
                                [&](int, std::uint64_t slot, LevelNode node) {
                                  if (slot < n_slots) {
                                    atomicAdd(&out[slot].n, 1u);
                                    out[slot].node = node;
                                  } else if (node != n_nodes) {
                                    atomicAdd(n_beyond, 1u);
                                  }
                                });
}

class RowsRefTest : public DeviceTest {
 protected:
  /** @param lengths Rows of each node. */
  template <int kThreads, int kSlots>
  static void Check(std::vector<RowIdx> const& lengths) {
    std::vector<RowRange> nodes;
    std::vector<LevelNode> want;
    for (LevelNode b = 0; b < lengths.size(); ++b) {
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
           SlotTurns::Grid(n_slots, kThreads * kSlots, n_nodes), kThreads,
           RowsRef{nullptr, nullptr, d_nodes.Data(), nullptr, nullptr, false}, n_nodes, n_slots,
           visits.Data(), n_beyond.Data());
    auto const got = ToHost(visits.Data(), n_slots);
    for (RowIdx slot = 0; slot < n_slots; ++slot) {
      ASSERT_EQ(got[slot].n, 1u) << "slot " << slot << " of " << n_slots;
      ASSERT_EQ(got[slot].node, want[slot]) << "slot " << slot << " of " << n_slots;
    }
    ASSERT_EQ(ToHost(n_beyond.Data(), 1)[0], 0u);
  }
};

TEST_F(RowsRefTest, EverySlotOnceAndItsNode) {
  Check<128, 1>({});
  Check<128, 4>({1});
  Check<128, 4>({511, 1, 0, 0, 512, 513, 0});
  Check<64, 1>(std::vector<RowIdx>(SlotTurns::kMost + 1, 63));
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    std::vector<RowIdx> lengths(random.Int(1, 200));
    for (RowIdx& length : lengths) {
      length = static_cast<RowIdx>(random.Pick({0, 1, random.Int(0, 70), random.Int(0, 2000)}));
    }
    Check<64, 1>(lengths);
    Check<256, 8>(lengths);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}
}  // namespace
}  // namespace gpu_exact
