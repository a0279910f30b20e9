/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements thread_communicator.h.
 */
#include "host/thread_communicator.h"

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

namespace gpu_exact {
namespace {
/**
 * @brief Looks for a while whether something is so. Threads meet several times a level and are seldom
 *        apart for long, nor is one tree from the next: to sleep would cost more.
 */
template <typename FnT>
bool SpinUntil(FnT&& is_so) {
  constexpr std::chrono::microseconds kAwake{1000};
  auto const begin = std::chrono::steady_clock::now();
  while (!is_so()) {
    if (std::chrono::steady_clock::now() - begin > kAwake) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}
}  // namespace

void ThreadGroup::Wait() {
  auto const refuse = [&] {
    throw WorkerError{"Rank " + std::to_string(who_left_) + " of " + std::to_string(this->Size()) +
                      " has failed; its own error says why."};
  };
  if (who_left_ >= 0) {  // nor is anybody counted twice
    refuse();
  }
  auto const meeting = n_meetings_.load();
  if (n_waiting_.fetch_add(1) + 1 == this->Size()) {
    n_waiting_ = 0;
    {
      std::lock_guard<std::mutex> guard{mutex_};
      n_meetings_ = meeting + 1;
    }
    wake_.notify_all();
    return;
  }
  auto const is_over = [&] { return n_meetings_ != meeting || who_left_ >= 0; };
  if (!SpinUntil(is_over)) {
    std::unique_lock<std::mutex> lock{mutex_};
    wake_.wait(lock, is_over);
  }
  if (n_meetings_ == meeting) {
    refuse();
  }
}

void ThreadGroup::Leave(std::int32_t rank) {
  {
    std::lock_guard<std::mutex> guard{mutex_};
    if (who_left_ < 0) {  // who leaves next does so because of the first
      who_left_ = rank;
    }
  }
  wake_.notify_all();
}

void ThreadGroup::Reset() {
  n_waiting_ = 0;
  who_left_ = -1;
}

template <typename FnT>
void ThreadCommunicator::Exchange(void const* shown, FnT&& fn) {
  group_->Shown()[rank_] = shown;
  group_->Wait();
  for (std::int32_t rank = 0; rank < this->Size(); ++rank) {
    if (rank != rank_) {
      fn(static_cast<std::size_t>(rank), group_->Shown()[rank]);
    }
  }
  group_->Wait();  // all have read
}

void ThreadCommunicator::AllGather(void* inout, std::size_t bytes) {
  if (bytes == 0) {
    group_->Wait();
    return;
  }
  this->Exchange(inout, [&](std::size_t rank, void const* theirs) {
    std::memcpy(static_cast<char*>(inout) + rank * bytes,
                static_cast<char const*>(theirs) + rank * bytes, bytes);
  });
}

void ThreadCommunicator::AllReduce(std::uint64_t* inout, std::size_t n) {
  std::vector<std::uint64_t> const own(inout, inout + n);  // read while inout is written
  this->Exchange(own.data(), [&](std::size_t, void const* theirs) {
    for (std::size_t i = 0; i < n; ++i) {
      inout[i] += static_cast<std::uint64_t const*>(theirs)[i];
    }
  });
}

ThreadWorkers::ThreadWorkers(std::int32_t size) : group_{size}, errors_(size) {
  for (std::int32_t rank = 0; rank < size; ++rank) {
    comm_.emplace_back(&group_, rank);
  }
  threads_.reserve(size);
  try {
    for (std::int32_t rank = 1; rank < size; ++rank) {
      threads_.emplace_back([this, rank] { this->Work(rank); });
    }
  } catch (std::system_error const& e) {
    this->Stop();
    throw std::runtime_error{"A thread for each of " + std::to_string(size) +
                             " GPUs cannot be had (" + e.what() +
                             "): allow this process more threads, or name fewer GPUs in"
                             " gpu_exact_devices."};
  } catch (...) {
    this->Stop();
    throw;
  }
}

ThreadWorkers::~ThreadWorkers() { this->Stop(); }

void ThreadWorkers::Stop() {
  {
    std::lock_guard<std::mutex> guard{mutex_};
    stopped_ = true;
  }
  more_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void ThreadWorkers::RunOne(std::function<void(std::int32_t)> const& fn, std::int32_t rank) {
  try {
    fn(rank);
  } catch (...) {
    errors_[rank] = std::current_exception();
    group_.Leave(rank);
  }
}

void ThreadWorkers::Work(std::int32_t rank) {
  std::uint64_t n_done{0};
  auto const is_called = [&] { return stopped_ || n_jobs_ != n_done; };
  while (true) {
    static_cast<void>(SpinUntil(is_called));
    std::unique_lock<std::mutex> lock{mutex_};
    more_.wait(lock, is_called);
    if (stopped_) {
      return;
    }
    n_done = n_jobs_;
    auto const* job = job_;
    lock.unlock();
    this->RunOne(*job, rank);
    lock.lock();
    if (--n_busy_ == 0) {
      done_.notify_all();
    }
  }
}

void ThreadWorkers::Run(std::function<void(std::int32_t)> const& fn) {
  {
    std::lock_guard<std::mutex> guard{mutex_};
    job_ = &fn;
    ++n_jobs_;
    n_busy_ = this->Size() - 1;
    errors_.assign(errors_.size(), nullptr);
  }
  more_.notify_all();
  this->RunOne(fn, 0);
  {
    auto const are_done = [&] { return n_busy_ == 0; };
    static_cast<void>(SpinUntil(are_done));
    std::unique_lock<std::mutex> lock{mutex_};
    done_.wait(lock, are_done);
  }
  std::exception_ptr told;
  for (auto const& error : errors_) {
    try {
      if (error) {
        std::rethrow_exception(error);
      }
    } catch (WorkerError const&) {
      told = told ? told : error;
    } catch (...) {
      group_.Reset();
      throw;
    }
  }
  if (told) {
    group_.Reset();
    std::rethrow_exception(told);
  }
}
}  // namespace gpu_exact
