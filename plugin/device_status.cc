/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "device_status.h"

#include <map>
#include <mutex>

namespace gpu_exact {
DeviceStatus const& StatusOf(int ordinal) {
  static std::mutex mutex;
  static std::map<int, DeviceStatus> known;
  std::lock_guard<std::mutex> guard{mutex};
  auto found = known.find(ordinal);
  if (found == known.end()) {
    found = known.emplace(ordinal, ProbeDevice(ordinal)).first;
  }
  return found->second;
}
}  // namespace gpu_exact
