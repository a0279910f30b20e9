/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lets threads of one process be workers.
 */
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu_exact/communicator.h"

namespace gpu_exact {
/** @brief Lets the threads of a group meet, and show each other their memory. */
class ThreadGroup {
 public:
  explicit ThreadGroup(std::int32_t size) : shown_(size) {}

  [[nodiscard]] std::int32_t Size() const { return static_cast<std::int32_t>(shown_.size()); }
  /** @brief Waits for all. Throws WorkerError where a worker has left. */
  void Wait();
  /** @brief Tell the others that a worker will not come again. */
  void Leave(std::int32_t rank);
  /** @brief Make it as new; no thread may be in the group. */
  void Reset();
  /** @brief Give the memory of each worker, to be read between two meetings. */
  [[nodiscard]] std::vector<void const*>& Shown() { return shown_; }

 private:
  std::vector<void const*> shown_;
  std::atomic<std::int32_t> n_waiting_{0};
  std::atomic<std::uint64_t> n_meetings_{0};
  std::atomic<std::int32_t> who_left_{-1};
  std::mutex mutex_;  // for those who sleep
  std::condition_variable wake_;
};

/** @brief Speaks for one thread of a group. */
class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadGroup* group, std::int32_t rank) : group_{group}, rank_{rank} {}

  [[nodiscard]] std::int32_t Rank() const override { return rank_; }
  [[nodiscard]] std::int32_t Size() const override { return group_->Size(); }
  void AllGather(void* inout, std::size_t bytes) override;
  void AllReduce(std::uint64_t* inout, std::size_t n) override;

 private:
  /** @brief Calls fn(rank, shown) for what every other worker shows. */
  template <typename FnT>
  void Exchange(void const* shown, FnT&& fn);

  ThreadGroup* group_;
  std::int32_t rank_;
};

/** @brief Owns threads that wait to work together. Rank 0 is the caller's own. */
class ThreadWorkers {
 public:
  /** @brief Throw std::runtime_error where that many threads cannot be had. */
  explicit ThreadWorkers(std::int32_t size);
  ~ThreadWorkers();
  ThreadWorkers(ThreadWorkers const&) = delete;
  ThreadWorkers& operator=(ThreadWorkers const&) = delete;

  [[nodiscard]] std::int32_t Size() const { return group_.Size(); }
  /** @brief Give the worker of a rank; of use inside of Run() alone. */
  [[nodiscard]] Communicator* Worker(std::int32_t rank) { return &comm_[rank]; }

  /**
   * @brief Runs fn(rank) on every thread; returns when all are done.
   *
   * Where one throws, the others' next call of their Communicator throws WorkerError. What the
   * first one threw, by rank, that is not a WorkerError, is thrown here; the workers can run again.
   */
  void Run(std::function<void(std::int32_t)> const& fn);

 private:
  void Work(std::int32_t rank);
  void RunOne(std::function<void(std::int32_t)> const& fn, std::int32_t rank);
  /** @brief Ends the threads. */
  void Stop();

  ThreadGroup group_;
  std::vector<ThreadCommunicator> comm_;
  std::mutex mutex_;  // guards all that follows; who is awake reads the atomic ones without
  std::condition_variable more_;
  std::condition_variable done_;
  std::function<void(std::int32_t)> const* job_{nullptr};
  std::atomic<std::uint64_t> n_jobs_{0};
  std::atomic<std::int32_t> n_busy_{0};
  std::atomic<bool> stopped_{false};
  std::vector<std::exception_ptr> errors_;  // by rank, of the job in progress
  std::vector<std::thread> threads_;
};
}  // namespace gpu_exact
