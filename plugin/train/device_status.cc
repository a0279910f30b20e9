/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/device_status.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "train/per_process.h"

namespace gpu_exact {
namespace {
std::atomic<pid_t> cuda_process{0};  // the process that has used a GPU; 0: none has

using Clock = std::chrono::steady_clock;

/** @brief Remembers what ProbeDevice() has told. */
struct Known {
  struct Answer {
    DeviceStatus status;
    Clock::time_point until;  // then it is asked again
  };
  std::mutex mutex;
  std::map<int, Answer> by_ordinal;
};

/** @brief Limits the share of the time that a question takes, however often it is asked in vain. */
constexpr int kShare = 20;

PerProcess<Known> the_known;

/**
 * @brief End a forked process before CUDA's exit handlers, which crash in it.
 *
 * What was to be run after it was set up in the parent, before it used CUDA, and belongs to that.
 */
void EndForked(int status, void*) {
  if (ForkedAfterCuda()) {
    std::fflush(nullptr);
    _exit(status);
  }
}

DeviceStatus AskOnce(int ordinal) {
  auto& known = the_known.Get();
  std::lock_guard<std::mutex> guard{known.mutex};
  auto const begin = Clock::now();
  auto found = known.by_ordinal.find(ordinal);
  if (found != known.by_ordinal.end() && begin < found->second.until) {
    return found->second.status;
  }
  auto const before = cuda_process.exchange(getpid());  // another thread may fork meanwhile
  auto status = ProbeDevice(ordinal);
  if (status.name.empty()) {  // no GPU; a child forked meanwhile takes the fork for the reason
    cuda_process = before;
  } else {  // CUDA has its handlers, and the last one comes first
    static std::once_flag once;
    std::call_once(once, [] { on_exit(EndForked, nullptr); });
  }
  auto const end = Clock::now();
  bool const lasts = status.usable || status.lasts;
  known.by_ordinal[ordinal] = {status,
                               lasts ? Clock::time_point::max() : end + kShare * (end - begin)};
  return status;
}
}  // namespace

bool ForkedAfterCuda() { return cuda_process != 0 && cuda_process != getpid(); }

DeviceStatus StatusOf(int ordinal) {
  if (ForkedAfterCuda()) {
    return {false, "", kForkedAfterCuda};
  }
  return AskOnce(ordinal);
}
}  // namespace gpu_exact
