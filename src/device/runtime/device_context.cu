/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements device_context.cuh.
 */
#include "device/runtime/device_context.cuh"

namespace gpu_exact {
namespace {
thread_local DeviceContext* current{nullptr};
}  // namespace

DeviceContext& DeviceContext::Current() {
  if (current == nullptr) {
    thread_local DeviceContext of_thread{-1};
    return of_thread;
  }
  return *current;
}

DeviceContext::Scope::Scope(DeviceContext& context) : previous_{current} {
  int const device = std::max(context.ordinal_, 0);
  EXACT_CUDA(cudaGetDevice(&previous_device_));
  if (device != previous_device_) {
    EXACT_CUDA(cudaSetDevice(device));
    moved_ = true;
  }
  current = &context;
}

DeviceContext::Scope::~Scope() {
  current = previous_;
  if (moved_) {
    Succeeds(cudaSetDevice(previous_device_));
  }
}
}  // namespace gpu_exact
