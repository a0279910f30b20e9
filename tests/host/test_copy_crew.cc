/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Each chunk is copied once, and none before it may be.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "src/copy_crew.h"

namespace gpu_exact {
namespace {
/** @brief Through a ring of slots, as a device reads it: one is filled anew after it was read. */
std::vector<int> CopyByRing(std::vector<int> const& from, std::size_t n_slots,
                            std::size_t n_threads) {
  std::vector<int> ring(n_slots);
  std::vector<int> to;
  CopyCrew crew{n_threads, from.size(), [&](std::size_t i) { ring[i % n_slots] = from[i]; }};
  crew.Allow(n_slots);
  for (std::size_t i = 0; i < from.size(); ++i) {
    crew.Await(i + 1);
    to.push_back(ring[i % n_slots]);
    crew.Allow(i + 1 + n_slots);
  }
  return to;
}

TEST(CopyCrew, CopiesThroughARing) {
  for (std::size_t n_threads : {0, 1, 2, 3, 8}) {
    for (std::size_t n_slots : {1, 2, 5, 16}) {
      for (std::size_t n_chunks : {0, 1, 2, 15, 16, 17, 500}) {
        std::vector<int> from(n_chunks);
        std::iota(from.begin(), from.end(), 7);
        EXPECT_EQ(CopyByRing(from, n_slots, n_threads), from)
            << n_threads << " threads, " << n_slots << " slots, " << n_chunks << " chunks";
      }
    }
  }
}

TEST(CopyCrew, CopiesWhatIsAllowed) {
  for (std::size_t n_threads : {0, 1, 4}) {
    std::vector<std::atomic<int>> n_copies(10);
    {
      CopyCrew crew{n_threads, n_copies.size(), [&](std::size_t i) { ++n_copies[i]; }};
      crew.Await(0);
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      EXPECT_EQ(n_copies[0], 0);
      crew.Allow(3);
      crew.Await(2);
      crew.Allow(2);  // takes nothing back
      crew.Await(3);
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      EXPECT_EQ(n_copies[3], 0);
      crew.Allow(5);
      crew.Await(5);
    }
    for (std::size_t i = 0; i < n_copies.size(); ++i) {
      EXPECT_EQ(n_copies[i], i < 5 ? 1 : 0) << "chunk " << i << ", " << n_threads << " threads";
    }
  }
}

/** @brief Each helper stays with its first chunk until the steering thread has copied one. */
TEST(CopyCrew, TheSteeringThreadCopiesToo) {
  constexpr std::size_t kHelpers = 2;
  auto const steering = std::this_thread::get_id();
  for (int run = 0; run < 20; ++run) {
    std::atomic<bool> has_steered{false};
    CopyCrew crew{kHelpers, kHelpers + 1, [&](std::size_t) {
                    if (std::this_thread::get_id() == steering) {
                      has_steered = true;
                    }
                    while (!has_steered) {
                      std::this_thread::yield();
                    }
                  }};
    crew.Allow(kHelpers + 1);
    crew.Await(kHelpers + 1);
    EXPECT_TRUE(has_steered);
  }
}

/** @brief As where an exception unwinds: what was begun is finished, and nothing hangs. */
TEST(CopyCrew, EndsBeforeAllIsCopied) {
  for (int run = 0; run < 50; ++run) {
    std::atomic<int> n_begun{0};
    std::atomic<int> n_copied{0};
    {
      CopyCrew crew{4, 100, [&](std::size_t) {
                      ++n_begun;
                      std::this_thread::yield();
                      ++n_copied;
                    }};
      crew.Allow(run % 2 == 0 ? 100 : 6);
      crew.Await(static_cast<std::size_t>(run % 5));
    }
    EXPECT_EQ(n_begun, n_copied);
    EXPECT_GE(n_copied, run % 5);
  }
}
}  // namespace
}  // namespace gpu_exact
