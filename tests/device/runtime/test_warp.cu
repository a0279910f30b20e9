/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What the lanes of a warp combine, against the same lane by lane.
 */
#include <algorithm>
#include <numeric>
#include <vector>

#include "device/runtime/fixed_sum.cuh"
#include "device/runtime/warp.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
struct Combined {
  std::uint32_t sum, max, min, any, before, up_to;
  std::int64_t long_sum;
  float float_max;
  std::uint32_t padding;  // written, as all that is copied to the host
  FixedSum fixed_sum, fixed_up_to, fixed_of, fixed_most;
};

// one warp
__global__ void CombineKernel(std::uint32_t const* words, FixedSum const* sums, Combined* out) {
  WaitForPreviousKernel();
  std::uint32_t const x = words[threadIdx.x];
  FixedSum const s = sums[threadIdx.x];
  Combined c{};
  c.sum = WarpSum(x);
  c.max = WarpMax(x);
  c.min = WarpMin(x);
  c.any = WarpOr(x);
  c.before = LaneMaskLt();
  c.up_to = WarpInclusiveSum(x);
  c.long_sum = WarpSum(s.grad);
  c.float_max = WarpMax(static_cast<float>(s.grad));
  c.fixed_sum = WarpSum(s);
  c.fixed_up_to = WarpInclusiveSum(s);
  c.fixed_of = Shuffle(s, 7);
  c.fixed_most =
      WarpReduce(s, [](FixedSum const& a, FixedSum const& b) { return a.grad > b.grad ? a : b; });
  out[threadIdx.x] = c;
}

class WarpTest : public DeviceTest {};

TEST_F(WarpTest, CombinesAllLanes) {
  Random random{1};
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    std::vector<std::uint32_t> words(32);
    std::vector<FixedSum> sums(32);
    for (int lane = 0; lane < 32; ++lane) {
      words[lane] = seed == 0 ? 0u : static_cast<std::uint32_t>(random.Int(0, 0x7fffffff)) << 1;
      sums[lane] = {std::int64_t{random.Int(-1000000, 1000000)} << 40, random.Int(0, 1000000)};
    }
    auto const d_words = ToDevice(words);
    auto const d_sums = ToDevice(sums);
    DeviceBuffer<Combined> out{"combined"};
    Launch("Combine", CombineKernel, 1, 32, d_words.Data(), d_sums.Data(), out.Reserve(32));
    auto const got = ToHost(out.Data(), 32);
    std::uint32_t any{0}, up_to{0};
    for (std::uint32_t word : words) {
      any |= word;
    }
    FixedSum const all = std::accumulate(sums.cbegin(), sums.cend(), FixedSum{0, 0});
    auto const less = [](FixedSum const& a, FixedSum const& b) { return a.grad < b.grad; };
    FixedSum const most = *std::max_element(sums.cbegin(), sums.cend(), less);
    FixedSum fixed_up_to{0, 0};
    for (int lane = 0; lane < 32; ++lane) {
      up_to += words[lane];
      fixed_up_to = fixed_up_to + sums[lane];
      Combined const& c = got[lane];
      ASSERT_EQ(c.sum, std::accumulate(words.cbegin(), words.cend(), 0u)) << lane;
      ASSERT_EQ(c.max, *std::max_element(words.cbegin(), words.cend())) << lane;
      ASSERT_EQ(c.min, *std::min_element(words.cbegin(), words.cend())) << lane;
      ASSERT_EQ(c.any, any) << lane;
      ASSERT_EQ(c.before, (std::uint64_t{1} << lane) - 1) << lane;
      ASSERT_EQ(c.up_to, up_to) << lane;
      ASSERT_EQ(c.long_sum, all.grad) << lane;
      ASSERT_EQ(c.float_max, static_cast<float>(most.grad)) << lane;
      ASSERT_TRUE(c.fixed_sum == all) << lane;
      ASSERT_TRUE(c.fixed_up_to == fixed_up_to) << lane;
      ASSERT_TRUE(c.fixed_of == sums[7]) << lane;
      ASSERT_TRUE(c.fixed_most == most) << lane;
    }
  }
}

// one warp
__global__ void FindKernel(std::uint32_t begin, std::uint32_t end, std::uint32_t first,
                           std::uint32_t* out) {
  WaitForPreviousKernel();
  std::uint32_t n_beyond{0};  // places outside of the range that were asked for
  out[threadIdx.x] = WarpPartitionPoint(begin, end, [&](std::uint32_t place) {
    n_beyond += place < begin || place >= end ? 1 : 0;
    return place >= first;
  });
  out[32 + threadIdx.x] = n_beyond;
}

/** @brief The first place of every range, its end and all between, of lengths at which steps change. */
TEST_F(WarpTest, FindsThePartitionPoint) {
  DeviceBuffer<std::uint32_t> out{"places"};
  for (std::uint32_t n : {0u, 1u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 40000u}) {
    for (std::uint32_t begin : {0u, 7u}) {
      std::uint32_t const step = std::max(1u, n / Scaled(40u, 5u));
      for (std::uint32_t k = 0; k <= n + step; k += step) {
        std::uint32_t const first = begin + std::min(k, n);
        Launch("Find", FindKernel, 1, 32, begin, begin + n, first, out.Reserve(64));
        std::vector<std::uint32_t> want(64, first);
        std::fill(want.begin() + 32, want.end(), 0);
        ASSERT_EQ(ToHost(out.Data(), 64), want) << first << " in [" << begin << ", " << begin + n;
      }
    }
  }
}

// any grid
__global__ void AddKernel(FixedSum const* values, std::uint32_t n, FixedSum* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    AtomicAdd(out + i % 3, values[i]);
  }
}

TEST_F(WarpTest, SumsOfManyThreads) {
  Random random{3};
  std::vector<FixedSum> values(10000), want(3, {0, 0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = {random.Chance(0.2) ? 0 : std::int64_t{random.Int(-1000000, 1000000)} << 30,
                 random.Chance(0.2) ? 0 : random.Int(0, 1000000)};
    want[i % 3] = want[i % 3] + values[i];
  }
  auto const d_values = ToDevice(values);
  auto const sums = ToDevice(std::vector<FixedSum>(3, {0, 0}));
  LaunchN("Add", AddKernel, values.size(), d_values.Data(),
          static_cast<std::uint32_t>(values.size()), sums.Data());
  EXPECT_TRUE(ToHost(sums.Data(), 3) == want);
}
}  // namespace
}  // namespace gpu_exact
