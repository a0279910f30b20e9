/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "device_status.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

#include "per_process.h"
#include "warn_once.h"

namespace gpu_exact {
namespace {
std::atomic<pid_t> cuda_process{0};  // the process that has used a GPU; 0: none has

/** @brief What ProbeDevice() has told and will tell again. */
struct Known {
  std::mutex mutex;
  std::map<int, DeviceStatus> by_ordinal;
};

PerProcess<Known> the_known;

DeviceStatus AskOnce(int ordinal) {
  auto& known = the_known.Get();
  std::lock_guard<std::mutex> guard{known.mutex};
  auto found = known.by_ordinal.find(ordinal);
  if (found != known.by_ordinal.end()) {
    return found->second;
  }
  auto const before = cuda_process.exchange(getpid());  // another thread may fork meanwhile
  auto status = ProbeDevice(ordinal);
  if (status.name.empty()) {  // no GPU; a child forked meanwhile takes the fork for the reason
    cuda_process = before;
  }
  if (status.usable || status.name.empty()) {
    known.by_ordinal.emplace(ordinal, status);
  }  // else a GPU that is busy now may be free at the next tree
  return status;
}
}  // namespace

bool ForkedAfterCuda() { return cuda_process != 0 && cuda_process != getpid(); }

DeviceStatus StatusOf(int ordinal) {
  if (ForkedAfterCuda()) {
    return {false, "",
            "This process was forked after CUDA was used, and CUDA does not survive that: fork "
            "before the first tree, or start workers that are not forked (Python: `spawn`; R: a "
            "PSOCK cluster)."};
  }
  auto status = AskOnce(ordinal);
  if (!status.advice.empty()) {
    WarnOnce(status.advice, status.advice);
  }
  return status;
}
}  // namespace gpu_exact
