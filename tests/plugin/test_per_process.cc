/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A forked process has a state of its own, whatever is locked in its parent's.
 */
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "train/per_process.h"

namespace gpu_exact {
namespace {
struct State {
  std::mutex mutex;
  int n{0};
};

TEST(PerProcess, IsOneForAllThreads) {
  static PerProcess<State> states;
  std::vector<State*> seen(8);
  std::vector<std::thread> threads;
  for (auto& state : seen) {
    threads.emplace_back([&] { state = &states.Get(); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(std::set<State*>(seen.cbegin(), seen.cend()), std::set<State*>{&states.Get()});
}

TEST(PerProcess, BeginsAnewInAForkedProcess) {
  static PerProcess<State> states;
  states.Get().n = 1;
  std::lock_guard<std::mutex> guard{states.Get().mutex};
  pid_t const child = fork();
  if (child == 0) {
    auto& state = states.Get();
    bool const anew = state.mutex.try_lock() && state.n == 0 && &state == &states.Get();
    _exit(anew ? 0 : 1);
  }
  int status{-1};
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(states.Get().n, 1);
}
}  // namespace
}  // namespace gpu_exact
