/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "device_status.h"

#include <map>
#include <mutex>

namespace gpu_exact {
DeviceStatus StatusOf(int ordinal) {
  static std::mutex mutex;
  static std::map<int, DeviceStatus> known;
  std::lock_guard<std::mutex> guard{mutex};
  auto found = known.find(ordinal);
  if (found != known.end()) {
    return found->second;
  }
  auto status = ProbeDevice(ordinal);
  if (status.usable || status.name.empty()) {
    known.emplace(ordinal, status);
  }  // else a GPU that is busy now may be free at the next tree
  return status;
}
}  // namespace gpu_exact
