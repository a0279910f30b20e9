/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Host threads that copy an array chunk by chunk, beside a thread that does something with
 *        each chunk before or after.
 */
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace gpu_exact {
/**
 * @brief Copies chunks in ascending order, as far as they are allowed to be copied.
 *
 * One thread, the one that makes a crew, steers it, and copies where it would wait. It never waits for
 * a helper that has not begun: cores may be busy for milliseconds, as threads of OpenMP keep them
 * after each loop. A helper that begins once the crew is gone touches nothing but a record of its own, so
 * a process may fork at any time but while it copies.
 */
class CopyCrew {
 public:
  /**
   * @param n_helpers To start beside the steering thread; as many as can be had.
   * @param n_chunks  Numbered from 0.
   * @param copy      Called once a chunk, from several threads at a time; may not throw. Not called
   *                  any more once the crew is gone.
   */
  CopyCrew(std::size_t n_helpers, std::size_t n_chunks, std::function<void(std::size_t)> copy);
  /** @brief Waits for copies that were begun; leaves out those that were not. */
  ~CopyCrew();
  CopyCrew(CopyCrew const&) = delete;
  CopyCrew& operator=(CopyCrew const&) = delete;

  /** @brief Chunks before `end` may be copied. Takes nothing back. */
  void Allow(std::size_t end);
  /** @brief Copies until all chunks before `end` are copied; they must be allowed. */
  void Await(std::size_t end);

 private:
  struct Work;
  std::shared_ptr<Work> work_;  // helpers have it too
};
}  // namespace gpu_exact
