/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Slices of work as blocks go through them: every row of every segment once, and the segments
 *        that several blocks add to cleared once.
 */
#include <vector>

#include "device/histogram/build/histogram_work.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
struct Segment {
  std::uint32_t n_visits;   // by blocks, or parts of a node
  std::uint32_t n_cleared;  // times
};

// one thread a slice; added, shape: (n_groups, n_slots): times that a row was added
__global__ void GoThroughKernel(WorkRef work, RowIdx n_slots, std::uint32_t* added,
                                Segment* segments) {
  WaitForPreviousKernel();
  auto const slice = static_cast<std::uint32_t>(GlobalIdx());
  if (slice >= work.n_slices) {
    return;
  }
  auto segment_of = [&](WorkOffset const& point) {
    return segments + work.nodes[point.built].node * work.n_groups + point.group;
  };
  if (work.Clears(slice)) {
    atomicAdd(&segment_of(work.slices[slice])->n_cleared, 1u);
  }
  WorkOffset const end = work.slices[slice + 1];
  for (WorkOffset point = work.slices[slice]; point < end; point = work.Next(point)) {
    BuiltNode const node = work.nodes[point.built];
    RowIdx const last = point.SameSegment(end) ? end.row : work.NumRows(point.built);
    atomicAdd(&segment_of(point)->n_visits, 1u);
    for (RowIdx row = point.row; row < last; ++row) {
      atomicAdd(added + std::uint64_t{point.group} * n_slots + node.begin + row, 1u);
    }
  }
}

class HistogramWorkTest : public DeviceTest {
 protected:
  /** @param lengths Rows of each node. @param fn Cuts the work into slices. */
  template <typename FnT>
  void Check(std::vector<RowIdx> const& lengths, LoadBalancer const& slicer, FnT&& fn) {
    PlannedWork planned{};
    RowIdx n_slots{5};  // before the first node
    for (std::uint32_t i = 0; i < lengths.size(); ++i) {
      planned.Add(i, {n_slots, n_slots + lengths[i]});
      n_slots += lengths[i];
    }
    Uploader arena{"work"};
    fn(&planned, &arena);
    arena.Upload();
    WorkRef const work = planned.Ref(slicer, arena);
    std::size_t const n_added = std::size_t{slicer.NumGroups()} * n_slots;
    std::size_t const n_segments = slicer.NumGroups() * lengths.size();
    DeviceBuffer<std::uint32_t> added{"rows that were added"};
    DeviceBuffer<Segment> segments{"segments"};
    ZeroAsync(added.Reserve(n_added), n_added);
    ZeroAsync(segments.Reserve(n_segments), n_segments);
    LaunchN("GoThrough", GoThroughKernel, work.n_slices, work, n_slots, added.Data(),
            segments.Data());
    auto const of_slots = ToHost(added.Data(), n_added);
    for (std::size_t i = 0; i < n_added; ++i) {
      ASSERT_EQ(of_slots[i], i % n_slots < 5 ? 0u : 1u) << "slot " << i % n_slots;
    }
    auto const of_segments = ToHost(segments.Data(), n_segments);
    for (std::size_t i = 0; i < n_segments; ++i) {
      ASSERT_EQ(of_segments[i].n_cleared, of_segments[i].n_visits > 1 ? 1u : 0u)
          << "segment " << i << ", visited " << of_segments[i].n_visits << " times";
      n_shared_ += of_segments[i].n_cleared;
    }
  }

  std::uint64_t n_shared_{0};  // segments that several blocks added to
};

TEST_F(HistogramWorkTest, EveryRowOnceAndEverySharedSegmentClearedOnce) {
  for (int seed = 0; seed < NumSeeds(60); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    LoadBalancer slicer;
    for (int g = random.Int(1, 5); g > 0; --g) {
      slicer.AddGroup(static_cast<std::uint64_t>(random.Int(1, 5000)), 1000,
                      static_cast<std::uint32_t>(random.Int(1, 2000)));
    }
    std::vector<RowIdx> lengths(random.Int(1, 6));
    for (RowIdx& length : lengths) {
      length = static_cast<RowIdx>(random.Pick({1, 2, random.Int(1, 100), random.Int(1, 3000)}));
    }
    auto const n_slices = static_cast<std::uint32_t>(random.Pick({1, 2, 7, 100, 3000}));
    this->Check(lengths, slicer, [&](PlannedWork* planned, Uploader* arena) {
      planned->Slice(slicer, n_slices, 1, arena);
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << n_slices << " slices";
    this->Check(lengths, slicer, [&](PlannedWork* planned, Uploader* arena) {
      planned->Slice(slicer, BuildLimits{8, 50}, arena);  // nodes are cut into parts
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", in parts";
  }
  EXPECT_GT(n_shared_, 0u);
}
}  // namespace
}  // namespace gpu_exact
