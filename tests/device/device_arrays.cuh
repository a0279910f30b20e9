/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The short way from a host vector to a device array; ToHost() leads back. What arrays take.
 */
#pragma once

#include <vector>

#include "device/runtime/device_context.cuh"

namespace gpu_exact {
template <typename T>
DeviceBuffer<T> ToDevice(std::vector<T> const& from) {
  DeviceBuffer<T> to{"a test's array"};
  CopyAsync(to.Reserve(from.size()), from.data(), from.size());
  Synchronize();
  return to;
}

/** @brief Device memory that is allocated while this lives and still held, but for CUB's storage. */
class HeldBytes {
 public:
  [[nodiscard]] std::size_t Count() const { return Now() - before_; }

 private:
  static std::size_t Now() {
    DeviceContext::Current().ReleaseScratch();
    return DeviceContext::Current().Bytes();
  }
  std::size_t before_{Now()};
};
}  // namespace gpu_exact
