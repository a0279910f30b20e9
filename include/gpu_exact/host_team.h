/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lends a builder threads that the caller has.
 */
#pragma once

#include <cstdint>

namespace gpu_exact {
/** @brief Lends threads of the host, for copies to and from it. */
struct HostTeam {
  std::int32_t n_threads{0};  // at most, the calling one included; 0: as many as there are cores
  /**
   * @brief Calls fn(data) on n_threads threads that are there already, or on fewer, the calling one
   *        among them, and returns when all calls have. fn does not throw. nullptr: copies start
   *        threads of their own.
   */
  void (*run)(void (*fn)(void* data), void* data, std::int32_t n_threads){nullptr};
};
}  // namespace gpu_exact
