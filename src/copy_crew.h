/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Host threads that copy an array chunk by chunk, beside a thread that does something with
 *        each chunk before or after.
 */
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gpu_exact {
/**
 * @brief Copies chunks in ascending order, as far as they are allowed to be copied.
 *
 * One thread, the one that makes a crew, steers it. Threads live as long as the crew, so that a
 * process may fork at any time but while it copies.
 */
class CopyCrew {
 public:
  /**
   * @param n_threads To start; as many as can be had. Where there are none, Await() copies.
   * @param n_chunks  Numbered from 0.
   * @param copy      Called once a chunk, from several threads at a time; may not throw.
   */
  CopyCrew(std::size_t n_threads, std::size_t n_chunks, std::function<void(std::size_t)> copy);
  /** @brief Waits for copies that were begun; leaves out those that were not. */
  ~CopyCrew();
  CopyCrew(CopyCrew const&) = delete;
  CopyCrew& operator=(CopyCrew const&) = delete;

  /** @brief Chunks before `end` may be copied. Takes nothing back. */
  void Allow(std::size_t end);
  /** @brief Waits until all chunks before `end` are copied; they must be allowed. */
  void Await(std::size_t end);

 private:
  void Work();
  void CopyNext(std::unique_lock<std::mutex>* lock);

  std::size_t const n_chunks_;
  std::function<void(std::size_t)> const copy_;
  std::mutex mutex_;                      // of all that follows
  std::condition_variable more_allowed_;  // or stopped
  std::condition_variable more_copied_;
  std::size_t n_allowed_{0};
  std::size_t n_begun_{0};
  std::size_t n_copied_{0};      // chunks before it are
  std::vector<bool> is_copied_;  // shape: (n_chunks)
  bool stopped_{false};
  std::vector<std::thread> threads_;  // the steering thread's
};
}  // namespace gpu_exact
