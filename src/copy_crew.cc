/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "copy_crew.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace gpu_exact {
CopyCrew::CopyCrew(std::size_t n_threads, std::size_t n_chunks,
                   std::function<void(std::size_t)> copy)
    : n_chunks_{n_chunks}, copy_{std::move(copy)}, is_copied_(n_chunks, false) {
  n_threads = std::min(n_threads, n_chunks);
  threads_.reserve(n_threads);
  try {
    while (threads_.size() < n_threads) {
      threads_.emplace_back([this] { this->Work(); });
    }
  } catch (std::system_error const&) {  // the process has no more threads
  } catch (std::bad_alloc const&) {     // nor memory for one
  }
}

CopyCrew::~CopyCrew() {
  {
    std::lock_guard<std::mutex> guard{mutex_};
    stopped_ = true;
  }
  more_allowed_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void CopyCrew::Allow(std::size_t end) {
  std::size_t n_more{0};
  {
    std::lock_guard<std::mutex> guard{mutex_};
    end = std::min(end, n_chunks_);
    if (end > n_allowed_) {
      n_more = end - n_allowed_;
      n_allowed_ = end;
    }
  }
  if (n_more == 1) {
    more_allowed_.notify_one();
  } else if (n_more > 1) {
    more_allowed_.notify_all();
  }
}

void CopyCrew::Await(std::size_t end) {
  std::unique_lock<std::mutex> lock{mutex_};
  if (threads_.empty()) {
    while (n_copied_ < end) {
      this->CopyNext(&lock);
    }
  }
  more_copied_.wait(lock, [&] { return n_copied_ >= end; });
}

void CopyCrew::Work() {
  std::unique_lock<std::mutex> lock{mutex_};
  for (;;) {
    more_allowed_.wait(lock, [&] { return stopped_ || n_begun_ < n_allowed_; });
    if (stopped_) {
      return;
    }
    this->CopyNext(&lock);
  }
}

void CopyCrew::CopyNext(std::unique_lock<std::mutex>* lock) {
  std::size_t const chunk = n_begun_++;
  lock->unlock();
  copy_(chunk);
  lock->lock();
  is_copied_[chunk] = true;
  if (chunk != n_copied_) {
    return;  // one before it is not copied yet
  }
  while (n_copied_ < n_chunks_ && is_copied_[n_copied_]) {
    ++n_copied_;
  }
  more_copied_.notify_one();
}
}  // namespace gpu_exact
