/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Which of a warp's candidates are tried first, and which afterwards.
 */
#include <algorithm>
#include <limits>
#include <vector>

#include "device/level/best_bound_first.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
constexpr int kItems = 4;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// one warp; bounds, shape: (32, kItems)
__global__ void ChooseKernel(float const* bounds, float to_beat, float to_beat_then,
                             std::uint32_t* first, std::uint32_t* others) {
  WaitForPreviousKernel();
  BestBoundFirst<kItems> candidates;
  for (int k = 0; k < kItems; ++k) {
    if (bounds[kItems * threadIdx.x + k] != kNone) {
      candidates.Set(k, bounds[kItems * threadIdx.x + k]);
    }
  }
  first[threadIdx.x] = candidates.First(to_beat);
  others[threadIdx.x] = candidates.Others(to_beat_then, first[threadIdx.x]);
}

class BestBoundFirstTest : public DeviceTest {
 protected:
  static void Check(std::vector<float> const& bounds, float to_beat, float to_beat_then) {
    auto const d_bounds = ToDevice(bounds);
    DeviceBuffer<std::uint32_t> d_first{"first"}, d_others{"others"};
    Launch("Choose", ChooseKernel, 1, 32, d_bounds.Data(), to_beat, to_beat_then,
           d_first.Reserve(32), d_others.Reserve(32));
    auto const first = ToHost(d_first.Data(), 32);
    auto const others = ToHost(d_others.Data(), 32);
    float const greatest = *std::max_element(bounds.cbegin(), bounds.cend());
    std::size_t n_first{0};
    for (int lane = 0; lane < 32; ++lane) {
      for (int k = 0; k < kItems; ++k) {
        float const bound = bounds[kItems * lane + k];
        bool const is_first = (first[lane] >> k & 1u) != 0;
        n_first += is_first ? 1 : 0;
        ASSERT_TRUE(!is_first || (bound == greatest && bound >= to_beat)) << bound;
        ASSERT_EQ((others[lane] >> k & 1u) != 0,
                  !is_first && bound != kNone && bound >= to_beat_then)
            << bound << ", item " << k << " of lane " << lane;
      }
    }
    ASSERT_EQ(n_first != 0, greatest != kNone && greatest >= to_beat);
  }
};

TEST_F(BestBoundFirstTest, TheGreatestThenThoseThatReach) {
  Random random{1};
  for (int seed = 0; seed < NumSeeds(50); ++seed) {
    std::vector<float> bounds(32 * kItems);
    for (float& bound : bounds) {
      bound = random.Chance(0.4) ? kNone : static_cast<float>(random.Int(0, 40));
    }
    auto const to_beat = static_cast<float>(random.Int(0, 45));
    Check(bounds, to_beat, to_beat + static_cast<float>(random.Int(0, 10)));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

/** @brief Where no lane has a candidate nothing is tried, whatever there is to beat. */
TEST_F(BestBoundFirstTest, NoCandidates) {
  Check(std::vector<float>(32 * kItems, kNone), 0.0f, 0.0f);
}
}  // namespace
}  // namespace gpu_exact
