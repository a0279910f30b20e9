/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Teams of host threads, as a caller of a builder may have.
 */
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "gpu_exact/host_team.h"

namespace gpu_exact {
/** @brief HostTeam::run of threads that come with each call. @tparam kLess So many are missing, but for
 *         the calling one. */
template <int kLess = 0>
void RunOnThreads(void (*fn)(void*), void* data, std::int32_t n_threads) {
  std::vector<std::thread> threads;
  for (std::int32_t i = 1; i < n_threads - kLess; ++i) {
    threads.emplace_back(fn, data);
  }
  fn(data);
  for (auto& thread : threads) {
    thread.join();
  }
}
}  // namespace gpu_exact
