/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "device_status.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

namespace gpu_exact {
namespace {
std::atomic<pid_t> cuda_process{0};  // the process that has used a GPU; 0: none has
}  // namespace

bool ForkedAfterCuda() { return cuda_process != 0 && cuda_process != getpid(); }

DeviceStatus StatusOf(int ordinal) {
  if (ForkedAfterCuda()) {
    return {false, "",
            "This process was forked after CUDA was used, and CUDA does not survive that: fork "
            "before the first tree, or start workers that are not forked (Python: `spawn`; R: a "
            "PSOCK cluster)."};
  }
  static std::mutex mutex;
  static std::map<int, DeviceStatus> known;
  std::lock_guard<std::mutex> guard{mutex};
  auto found = known.find(ordinal);
  if (found != known.end()) {
    return found->second;
  }
  auto status = ProbeDevice(ordinal);
  if (!status.name.empty()) {
    cuda_process = getpid();
  }
  if (status.usable || status.name.empty()) {
    known.emplace(ordinal, status);
  }  // else a GPU that is busy now may be free at the next tree
  return status;
}
}  // namespace gpu_exact
