/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Each chunk is copied once, and none before it may be.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "host/copy_threads.h"
#include "tests/support/thread_team.h"

namespace gpu_exact {
namespace {
/** @brief None, one that is as large as asked for, and one that is not. */
std::vector<HostTeam> Teams() {
  return {{0, nullptr}, {4, RunOnThreads<>}, {1, RunOnThreads<>}, {4, RunOnThreads<2>}};
}

/** @brief Through a ring of slots, as a device reads it: one is filled anew after it was read. */
std::vector<int> CopyByRing(HostTeam const& team, std::vector<int> const& from, std::size_t n_slots,
                            std::size_t n_threads) {
  std::vector<int> ring(n_slots);
  std::vector<int> to;
  auto const copy = [&](std::size_t i) { ring[i % n_slots] = from[i]; };
  CopyThreads::Run(team, n_threads, from.size(), copy, [&](CopyThreads* crew) {
    crew->Allow(n_slots);
    for (std::size_t i = 0; i < from.size(); ++i) {
      crew->Await(i + 1);
      to.push_back(ring[i % n_slots]);
      crew->Allow(i + 1 + n_slots);
    }
  });
  return to;
}

TEST(CopyThreads, CopiesThroughARing) {
  for (HostTeam const& team : Teams()) {
    for (std::size_t n_threads : {0, 1, 2, 3, 8}) {
      for (std::size_t n_slots : {1, 2, 5, 16}) {
        for (std::size_t n_chunks : {0, 1, 2, 15, 16, 17, 500}) {
          std::vector<int> from(n_chunks);
          std::iota(from.begin(), from.end(), 7);
          EXPECT_EQ(CopyByRing(team, from, n_slots, n_threads), from)
              << team.n_threads << " of a team, " << n_threads << " threads, " << n_slots
              << " slots, " << n_chunks << " chunks";
        }
      }
    }
  }
}

TEST(CopyThreads, CopiesWhatIsAllowed) {
  for (HostTeam const& team : Teams()) {
    for (std::size_t n_threads : {0, 1, 4}) {
      std::vector<std::atomic<int>> n_copies(10);
      std::atomic<std::size_t> n_allowed{0};
      auto const copy = [&](std::size_t i) {
        EXPECT_LT(i, n_allowed);
        ++n_copies[i];
      };
      CopyThreads::Run(team, n_threads, n_copies.size(), copy, [&](CopyThreads* crew) {
        crew->Await(0);
        n_allowed = 3;
        crew->Allow(3);
        crew->Await(2);
        crew->Allow(2);  // takes nothing back
        crew->Await(3);
        n_allowed = 5;
        crew->Allow(5);
        crew->Await(5);
      });
      for (std::size_t i = 0; i < n_copies.size(); ++i) {
        EXPECT_EQ(n_copies[i], i < 5 ? 1 : 0) << "chunk " << i << ", " << n_threads << " threads";
      }
    }
  }
}

/** @brief Each helper stays with its first chunk until the steering thread has copied one. */
TEST(CopyThreads, TheSteeringThreadCopiesToo) {
  constexpr std::size_t kHelpers = 2;
  auto const steering = std::this_thread::get_id();
  for (HostTeam const& team : Teams()) {
    for (int run = 0; run < 20; ++run) {
      std::atomic<bool> has_steered{false};
      auto const copy = [&](std::size_t) {
        if (std::this_thread::get_id() == steering) {
          has_steered = true;
        }
        while (!has_steered) {
          std::this_thread::yield();
        }
      };
      CopyThreads::Run(team, kHelpers, kHelpers + 1, copy, [&](CopyThreads* crew) {
        crew->Allow(kHelpers + 1);
        crew->Await(kHelpers + 1);
      });
      EXPECT_TRUE(has_steered);
    }
  }
}

/** @brief Of a team of four, two help: each stays with its first chunk until both have one. */
TEST(CopyThreads, ATeamHelps) {
  constexpr int kHelpers = 2;
  auto const steering = std::this_thread::get_id();
  std::atomic<int> n_helping{0};
  std::mutex mutex;
  std::set<std::thread::id> helpers;
  auto const copy = [&](std::size_t) {
    if (std::this_thread::get_id() == steering) {
      return;
    }
    {
      std::lock_guard<std::mutex> guard{mutex};
      n_helping += helpers.insert(std::this_thread::get_id()).second ? 1 : 0;
    }
    while (n_helping != kHelpers) {
      std::this_thread::yield();
    }
  };
  CopyThreads::Run({4, RunOnThreads<>}, kHelpers, 100, copy, [&](CopyThreads* crew) {
    crew->Allow(50);  // the helpers have them
    while (n_helping != kHelpers) {
      std::this_thread::yield();
    }
    crew->Allow(100);
    crew->Await(100);
  });
  EXPECT_EQ(helpers.size(), kHelpers);
}

/** @brief What was begun is finished, and nothing hangs; an exception comes through. */
TEST(CopyThreads, EndsBeforeAllIsCopied) {
  for (HostTeam const& team : Teams()) {
    for (int run = 0; run < 50; ++run) {
      std::atomic<int> n_begun{0};
      std::atomic<int> n_copied{0};
      auto const copy = [&](std::size_t) {
        ++n_begun;
        std::this_thread::yield();
        ++n_copied;
      };
      bool const throws = run % 3 == 0;
      auto const steer = [&](CopyThreads* crew) {
        crew->Allow(run % 2 == 0 ? 100 : 6);
        crew->Await(static_cast<std::size_t>(run % 5));
        if (throws) {
          throw std::runtime_error{"a test's"};
        }
      };
      if (throws) {
        EXPECT_THROW(CopyThreads::Run(team, 4, 100, copy, steer), std::runtime_error);
      } else {
        CopyThreads::Run(team, 4, 100, copy, steer);
      }
      EXPECT_EQ(n_begun, n_copied);
      EXPECT_GE(n_copied, run % 5);
    }
  }
}
}  // namespace
}  // namespace gpu_exact
