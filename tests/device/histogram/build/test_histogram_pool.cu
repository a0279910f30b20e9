/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Places of histograms of several sizes never overlap, and there is always room for one that
 *        passes.
 */
#include <map>

#include "device/histogram/build/histogram_pool.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using HistogramPoolTest = DeviceTest;
constexpr std::uint32_t kNone = SearchedNode::kNoHistogram;

/** @brief Of so many bins, which stay as many. */
HistogramPool MakePool(std::uint64_t n_bins, std::uint64_t largest) {
  return {n_bins * HistogramPool::kBinBytes, n_bins * HistogramPool::kBinBytes, largest};
}

TEST_F(HistogramPoolTest, HasAsMuchRoomAsAskedFor) {
  HeldBytes const held;
  HistogramPool const large = MakePool(1000, 10);
  EXPECT_EQ(large.NumBins(), 1000u);
  EXPECT_EQ(held.Count(), 1000 * HistogramPool::kBinBytes);
  EXPECT_EQ(MakePool(0, 77).NumBins(), 77u) << "one fits always";
  HistogramPool pool = MakePool(0, 0);  // of a table without columns
  std::uint64_t from{0};
  EXPECT_EQ(pool.Allocate(0, 1, &from), 0u);
  pool.Release(0);
}

TEST_F(HistogramPoolTest, KeepsThreeQuarters) {
  HistogramPool pool = MakePool(100, 10);
  std::uint64_t from{0};
  for (std::uint32_t i = 0; i < 7; ++i) {
    EXPECT_EQ(pool.Allocate(10, 1, &from), 10 * i);
  }
  EXPECT_EQ(pool.Allocate(10, 1, &from), kNone);
  EXPECT_EQ(pool.KeptEnd(), 70u);
  EXPECT_EQ(pool.Allocate(5, 1, &from), 70u) << "a smaller one fits";
  EXPECT_EQ(pool.RoomToPass(10, 1), 2u);
  EXPECT_EQ(pool.RoomToPass(7, 1), 3u);
  pool.Release(kNone);
  pool.Release(20);
  pool.Release(30);
  from = 0;
  EXPECT_EQ(pool.Allocate(15, 1, &from), 20u);
  EXPECT_EQ(pool.Allocate(5, 1, &from), 35u);
  EXPECT_EQ(pool.Allocate(5, 1, &from), kNone);
  pool.Reset();
  from = 0;
  EXPECT_EQ(pool.Allocate(5, 1, &from), 0u) << "nothing is kept";
}

/** @brief Two that lie side by side are released one by one. */
TEST_F(HistogramPoolTest, KeepsTwoOrNone) {
  HistogramPool pool = MakePool(40, 10);
  std::uint64_t from{0};
  EXPECT_EQ(pool.Allocate(10, 1, &from), 0u);
  EXPECT_EQ(pool.Allocate(10, 2, &from), 10u);
  EXPECT_EQ(pool.Allocate(10, 2, &from), kNone);
  pool.Release(10);
  from = 0;
  EXPECT_EQ(pool.Allocate(10, 2, &from), kNone) << "one fits";
  from = 0;
  EXPECT_EQ(pool.Allocate(10, 1, &from), 10u);
  EXPECT_EQ(pool.KeptEnd(), 30u);
}

/** @brief Of two histograms one is kept at most, of one none. */
TEST_F(HistogramPoolTest, LargeHistograms) {
  std::uint64_t from{0};
  EXPECT_EQ(MakePool(19, 10).Allocate(10, 1, &from), kNone);
  EXPECT_EQ(MakePool(20, 10).Allocate(10, 1, &from), 0u);
}

/** @brief With the next tree, where the last one was short of room, up to the most. */
TEST_F(HistogramPoolTest, Grows) {
  constexpr std::uint64_t kBytes = HistogramPool::kBinBytes;
  HeldBytes const held;
  HistogramPool pool{100 * kBytes, 300 * kBytes, 10};
  EXPECT_EQ(pool.RoomToPass(10, 10), 10u);
  pool.Reset();
  EXPECT_EQ(pool.NumBins(), 100u) << "there was room for all";
  EXPECT_EQ(pool.RoomToPass(10, 11), 10u);
  EXPECT_EQ(pool.NumBins(), 100u);
  pool.Reset();
  EXPECT_EQ(pool.NumBins(), 200u);
  pool.Reset();
  EXPECT_EQ(pool.NumBins(), 200u);
  std::uint64_t from{0};
  EXPECT_EQ(pool.Allocate(151, 1, &from), kNone);
  pool.Reset();
  EXPECT_EQ(pool.NumBins(), 300u);
  EXPECT_EQ(held.Count(), 300 * kBytes);
  from = 0;
  EXPECT_EQ(pool.Allocate(226, 1, &from), kNone);
  pool.Reset();
  EXPECT_EQ(pool.NumBins(), 300u);
}

TEST_F(HistogramPoolTest, RandomTurns) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random{seed};
    constexpr std::uint64_t kSizes[] = {100, 70, 11, 1};
    HistogramPool pool = MakePool(static_cast<std::uint64_t>(random.Int(0, 3000)), kSizes[0]);
    std::uint64_t const most =
        pool.NumBins() - std::max<std::uint64_t>(kSizes[0], pool.NumBins() / 4);
    std::map<std::uint32_t, std::uint64_t> taken;  // first bin and size
    auto is_free = [&](std::uint64_t first, std::uint64_t n) {
      return first + n <= most && std::none_of(taken.cbegin(), taken.cend(), [&](auto const& t) {
               return t.first < first + n && first < t.first + t.second;
             });
    };
    for (int turn = 0; turn < 40; ++turn) {
      for (auto t = taken.begin(); t != taken.end();) {
        if (random.Chance(0.5)) {
          pool.Release(t->first);
          t = taken.erase(t);
        } else {
          ++t;
        }
      }
      std::uint64_t const n = random.Pick({kSizes[0], kSizes[1], kSizes[2], kSizes[3]});
      std::uint64_t from{0};
      for (int i = random.Int(0, 20); i > 0; --i) {
        auto const n_taken = static_cast<std::uint32_t>(random.Int(1, 2));
        std::uint64_t const n_all = n_taken * n;
        std::uint64_t want = from;
        while (want + n_all <= most && !is_free(want, n_all)) {
          ++want;
        }
        std::uint32_t const got = pool.Allocate(n, n_taken, &from);
        ASSERT_EQ(got, want + n_all <= most ? want : kNone) << "seed " << seed << ", turn " << turn;
        for (std::uint64_t k = 0; got != kNone && k < n_taken; ++k) {
          taken[static_cast<std::uint32_t>(got + k * n)] = n;
        }
      }
      std::uint64_t const end = taken.empty() ? 0 : taken.rbegin()->first + taken.rbegin()->second;
      ASSERT_EQ(pool.KeptEnd(), end);
      ASSERT_GE(pool.NumBins() - pool.KeptEnd(), kSizes[0]);
    }
  }
}
}  // namespace
}  // namespace gpu_exact
