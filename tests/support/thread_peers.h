/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Workers that are threads of one process.
 */
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu_exact/peers.h"

namespace gpu_exact::reference {
/** @brief Where the threads of a group meet, and leave what they tell each other. */
class ThreadGroup {
 public:
  explicit ThreadGroup(std::int32_t size) : parts_(size) {}

  [[nodiscard]] std::int32_t Size() const { return static_cast<std::int32_t>(parts_.size()); }

  /** @brief Wait for all. Throws PeerError once a worker is gone. */
  void Meet() {
    std::unique_lock<std::mutex> lock{mutex_};
    auto const round = round_;
    if (++n_waiting_ == parts_.size()) {
      n_waiting_ = 0;
      ++round_;
      met_.notify_all();
    }
    met_.wait(lock, [&] { return round_ != round || broken_; });
    if (round_ == round) {
      throw PeerError{"A worker is gone."};
    }
  }

  /** @brief A worker is gone. */
  void Break() {
    std::lock_guard<std::mutex> guard{mutex_};
    broken_ = true;
    met_.notify_all();
  }

  /** @brief Each worker's memory, between two meetings. */
  [[nodiscard]] std::vector<void*>& Parts() { return parts_; }

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  std::size_t n_waiting_{0};
  std::uint64_t round_{0};
  bool broken_{false};
  std::vector<void*> parts_;
};

/** @brief One thread of a group. */
class ThreadPeers final : public Peers {
 public:
  ThreadPeers(ThreadGroup* group, std::int32_t rank) : group_{group}, rank_{rank} {}

  [[nodiscard]] std::int32_t Rank() const override { return rank_; }
  [[nodiscard]] std::int32_t Size() const override { return group_->Size(); }

  void AllGather(void* inout, std::size_t bytes) override {
    this->Exchange(inout, [&](std::size_t rank, void const* theirs) {
      auto const begin = rank * bytes;
      std::memcpy(static_cast<char*>(inout) + begin, static_cast<char const*>(theirs) + begin,
                  bytes);
    });
  }

  void AllReduce(std::uint64_t* inout, std::size_t n) override {
    std::vector<std::uint64_t> own(inout, inout + n);  // the others read it while inout is written
    this->Exchange(own.data(), [&](std::size_t, void const* theirs) {
      std::transform(inout, inout + n, static_cast<std::uint64_t const*>(theirs), inout,
                     [](auto lhs, auto rhs) { return lhs + rhs; });
    });
  }

 private:
  /** @brief Show the others what is here, and read what they show: fn(rank, their memory). */
  template <typename Fn>
  void Exchange(void* shown, Fn&& fn) {
    group_->Parts()[rank_] = shown;
    group_->Meet();
    for (std::int32_t rank = 0; rank < this->Size(); ++rank) {
      if (rank != rank_) {
        fn(static_cast<std::size_t>(rank), group_->Parts()[rank]);
      }
    }
    group_->Meet();
  }

  ThreadGroup* group_;
  std::int32_t rank_;
};

/**
 * @brief Run fn(Peers*) as each worker of a group. One that throws is gone for the others.
 * @return shape: (size), what each worker threw.
 */
template <typename Fn>
std::vector<std::exception_ptr> RunWorkers(std::int32_t size, Fn const& fn) {
  ThreadGroup group{size};
  std::vector<std::exception_ptr> errors(size);
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadPeers peers{&group, rank};
        fn(&peers);
      } catch (...) {
        errors[rank] = std::current_exception();
        group.Break();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return errors;
}
}  // namespace gpu_exact::reference
