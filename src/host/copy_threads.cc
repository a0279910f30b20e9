/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "host/copy_threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace gpu_exact {
struct CopyThreads::Work {
  Work(std::size_t n, std::function<void(std::size_t)> fn)
      : n_chunks{n}, copy{std::move(fn)}, is_copied(n + 1, false) {}

  /** @brief Copies the next chunk, if another one may be. */
  bool CopyNext(std::unique_lock<std::mutex>* lock) {
    if (n_begun == n_allowed) {
      return false;
    }
    std::size_t const chunk = n_begun++;
    lock->unlock();
    copy(chunk);
    lock->lock();
    is_copied[chunk] = true;
    while (is_copied[n_copied]) {
      ++n_copied;
    }
    ++n_ended;
    more_copied.notify_one();
    return true;
  }
  void Help() {
    std::unique_lock<std::mutex> lock{mutex};
    while (!stopped) {
      if (!this->CopyNext(&lock)) {
        more_allowed.wait(lock, [&] { return stopped || n_begun < n_allowed; });
      }
    }
  }

  std::size_t const n_chunks;
  std::function<void(std::size_t)> const copy;
  std::mutex mutex;                      // guards all that follows
  std::condition_variable more_allowed;  // or stopped
  std::condition_variable more_copied;
  std::size_t n_allowed{0};
  std::size_t n_begun{0};
  std::size_t n_ended{0};
  std::size_t n_copied{0};      // chunks before it are
  std::vector<bool> is_copied;  // shape: (n_chunks + 1), the last one never
  bool stopped{false};
};

/** @brief Holds what the threads of a team share. */
struct CopyThreads::TeamRun {
  CopyThreads* crew;
  Steer const& steer;
  std::thread::id steering;
  std::size_t n_places;                 // for helpers
  std::atomic<std::size_t> n_asked{0};  // threads that have asked for one
  std::exception_ptr error{};

  void Take() {
    if (std::this_thread::get_id() != steering) {
      if (n_asked++ < n_places) {
        crew->work_->Help();
      }
      return;
    }
    try {
      steer(crew);
    } catch (...) {
      error = std::current_exception();
    }
    crew->Stop();
  }
};

CopyThreads::CopyThreads(std::size_t n_chunks, Copy copy)
    : work_{std::make_shared<Work>(n_chunks, std::move(copy))} {}

CopyThreads::~CopyThreads() {
  this->Stop();
  std::unique_lock<std::mutex> lock{work_->mutex};
  work_->more_copied.wait(lock, [this] { return work_->n_ended == work_->n_begun; });
}

void CopyThreads::Run(HostTeam const& team, std::size_t n_helpers, std::size_t n_chunks, Copy copy,
                      Steer const& steer) {
  CopyThreads crew{n_chunks, std::move(copy)};
  if (team.run == nullptr || n_helpers == 0) {
    crew.StartThreads(n_helpers);
    steer(&crew);
    return;
  }
  TeamRun run{&crew, steer, std::this_thread::get_id(), n_helpers};
  team.run([](void* data) noexcept { static_cast<TeamRun*>(data)->Take(); }, &run, team.n_threads);
  if (run.error != nullptr) {
    std::rethrow_exception(run.error);
  }
}

void CopyThreads::StartThreads(std::size_t n) {
  try {
    for (n = std::min(n, work_->n_chunks); n != 0; --n) {
      std::thread{[work = work_] { work->Help(); }}.detach();
    }
  } catch (std::system_error const&) {  // the process has no more threads
  } catch (std::bad_alloc const&) {     // nor memory for one
  }
}

void CopyThreads::Stop() {
  std::lock_guard<std::mutex> guard{work_->mutex};
  work_->stopped = true;
  work_->more_allowed.notify_all();
}

void CopyThreads::Allow(std::size_t end) {
  std::lock_guard<std::mutex> guard{work_->mutex};
  end = std::min(end, work_->n_chunks);
  if (end > work_->n_allowed) {
    bool const one = end == work_->n_allowed + 1;
    work_->n_allowed = end;
    one ? work_->more_allowed.notify_one() : work_->more_allowed.notify_all();
  }
}

void CopyThreads::Await(std::size_t end) {
  std::unique_lock<std::mutex> lock{work_->mutex};
  while (work_->n_copied < end) {
    if (!work_->CopyNext(&lock)) {  // others copy what is missing
      work_->more_copied.wait(lock, [&] { return work_->n_copied >= end; });
    }
  }
}
}  // namespace gpu_exact
