/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds an array in device memory, or in page-locked host memory that kernels read and write
 *        in its place where the device has no room for it.
 */
#pragma once

#include "device/runtime/runtime.cuh"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Acts as Buffer, of either memory. */
template <typename T>
class PlacedBuffer {
 public:
  PlacedBuffer(char const* what, Memory at) : at_{at}, device_{what}, host_{what} {}

  /** @brief Make room for n elements. Waits for the device when it grows. */
  T* Reserve(std::size_t n) {
    return at_ == Memory::kDevice ? device_.Reserve(n) : host_.Reserve(n);
  }
  [[nodiscard]] T* Data() const { return at_ == Memory::kDevice ? device_.Data() : host_.Data(); }
  /** @brief Count the bytes of the array, wherever it lies. */
  [[nodiscard]] std::size_t Bytes() const { return device_.Bytes() + host_.Bytes(); }
  /** @brief Count the device memory held. */
  [[nodiscard]] std::size_t DeviceBytes() const { return device_.Bytes(); }

 private:
  Memory at_;
  DeviceBuffer<T> device_;  // this one or the other is empty
  PinnedBuffer<T> host_;
};
}  // namespace gpu_exact
