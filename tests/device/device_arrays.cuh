/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The short way from a host vector to a device array; ToHost() leads back.
 */
#pragma once

#include <vector>

#include "device/runtime/runtime.cuh"

namespace gpu_exact {
template <typename T>
DeviceBuffer<T> ToDevice(std::vector<T> const& from) {
  DeviceBuffer<T> to{"a test's array"};
  CopyAsync(to.Reserve(from.size()), from.data(), from.size());
  Synchronize();
  return to;
}
}  // namespace gpu_exact
