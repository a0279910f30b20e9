/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Copies an array chunk by chunk by several host threads, while one thread does something
 *        with each chunk before or after.
 */
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "gpu_exact/host_team.h"

namespace gpu_exact {
/**
 * @brief Copies chunks in ascending order, as far as they are allowed to be copied.
 *
* The thread that calls Run() steers the others, and copies where it would wait. Helpers are threads
* of a team,
 * all of which it waits for in the end, as each loop of theirs does; or else threads that are started.
 * It never waits for one of these that has not begun: cores may be busy for milliseconds, as threads of
 * OpenMP keep them after each loop. A started thread that begins once the crew is gone touches nothing but
 * a record of its own, so a process may fork at any time but while it copies.
 */
class CopyThreads {
 public:
  /** @brief Called once a chunk, from several threads at a time; may not throw. */
  using Copy = std::function<void(std::size_t chunk)>;
  /** @brief Runs on the calling thread: allows chunks, and awaits them. What it throws is passed
   *         on. */
  using Steer = std::function<void(CopyThreads* crew)>;

  /**
   * @brief Run the threads. Copies that were begun have ended when it returns; no other one is
   *        made.
   * @param n_helpers Beside the steering thread, at most.
   * @param n_chunks  Numbered from 0.
   */
  static void Run(HostTeam const& team, std::size_t n_helpers, std::size_t n_chunks, Copy copy,
                  Steer const& steer);

  /** @brief Allow to copy the chunks before `end`. Takes nothing back. */
  void Allow(std::size_t end);
  /** @brief Copy until all chunks before `end` are copied; they must be allowed. */
  void Await(std::size_t end);

  CopyThreads(CopyThreads const&) = delete;
  CopyThreads& operator=(CopyThreads const&) = delete;

 private:
  struct Work;
  struct TeamRun;

  CopyThreads(std::size_t n_chunks, Copy copy);
  ~CopyThreads();
  /** @brief Start threads, as many as can be had. */
  void StartThreads(std::size_t n);
  /** @brief Let helpers leave, now or when they have ended their copy; no other copy is begun. */
  void Stop();

  std::shared_ptr<Work> work_;  // started threads have it too
};
}  // namespace gpu_exact
