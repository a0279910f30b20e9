/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Short ways between host vectors and device arrays.
 */
#pragma once

#include <vector>

#include "src/device/runtime.cuh"

namespace gpu_exact {
template <typename T>
DeviceBuffer<T> ToDevice(std::vector<T> const& from) {
  DeviceBuffer<T> to{"a test's array"};
  CopyAsync(to.Reserve(from.size()), from.data(), from.size());
  Synchronize();
  return to;
}

template <typename T>
std::vector<T> FromDevice(T const* from, std::size_t n) {
  std::vector<T> to(n);
  CopyAsync(to.data(), from, n);
  Synchronize();
  return to;
}
}  // namespace gpu_exact
