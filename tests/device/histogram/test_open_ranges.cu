/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A list that any lanes of any warps append to: all is kept as far as there is room, and
 *        counted beyond.
 */
#include <algorithm>
#include <vector>

#include "device/histogram/build/open_ranges.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
// one thread a range
__global__ void AppendKernel(std::uint8_t const* wanted, std::uint32_t n, OpenRangesRef open) {
  WaitForPreviousKernel();
  if (auto const i = static_cast<std::uint32_t>(GlobalIdx()); i < n && wanted[i] != 0) {
    OpenRange range{};
    range.node = i;
    range.bin = 3 * i;
    if (i % 3 == 0) {  // lanes part
      range.column = 7;
      open.Append(range);
    } else {
      range.column = 8;
      open.Append(range);
    }
  }
}

__global__ void SizeKernel(OpenRangesRef open, std::uint32_t* out) {
  WaitForPreviousKernel();
  *out = open.Size();
}

using OpenRangesTest = DeviceTest;

TEST_F(OpenRangesTest, KeepsAsManyAsFitAndCountsAll) {
  Random random{1};
  constexpr std::uint32_t kRanges = 5000;
  for (double share : {0.0, 0.01, 0.5, 1.0}) {
    std::vector<std::uint8_t> wanted(kRanges);
    std::vector<std::uint32_t> want;
    for (std::uint32_t i = 0; i < kRanges; ++i) {
      wanted[i] = random.Chance(share) ? 1 : 0;
      if (wanted[i] != 0) {
        want.push_back(i);
      }
    }
    for (std::uint32_t capacity : {kRanges, 1000u, 1u}) {
      DeviceBuffer<OpenRange> list{"open ranges"};
      DeviceBuffer<OpenCounts> counts{"their number"};
      DeviceBuffer<std::uint32_t> size{"their number"};
      ZeroAsync(list.Reserve(kRanges), kRanges);
      ZeroAsync(counts.Reserve(1), 1);
      auto const d_wanted = ToDevice(wanted);
      OpenRangesRef const open{list.Data(), counts.Data(), capacity};
      LaunchN("Append", AppendKernel, kRanges, d_wanted.Data(), kRanges, open);
      Launch("Size", SizeKernel, 1, 1, open, size.Reserve(1));
      auto const n_kept = std::min<std::size_t>(want.size(), capacity);
      EXPECT_EQ(ToHost(counts.Data(), 1)[0].n_listed, want.size());
      EXPECT_EQ(ToHost(size.Data(), 1)[0], n_kept);
      std::vector<std::uint32_t> got;
      auto const listed = ToHost(list.Data(), kRanges);
      for (std::uint32_t k = 0; k < kRanges; ++k) {
        OpenRange const& range = listed[k];
        bool const is_kept = range.column != 0;
        ASSERT_EQ(is_kept, k < n_kept) << "place " << k << " of " << capacity;
        if (is_kept) {
          ASSERT_EQ(range.bin, 3 * range.node);
          ASSERT_EQ(range.column, range.node % 3 == 0 ? 7u : 8u);
          got.push_back(range.node);
        }
      }
      std::sort(got.begin(), got.end());
      EXPECT_EQ(std::unique(got.begin(), got.end()), got.end());
      EXPECT_TRUE(std::includes(want.cbegin(), want.cend(), got.cbegin(), got.cend()));
    }
  }
}
}  // namespace
}  // namespace gpu_exact
