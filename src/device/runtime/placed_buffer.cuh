/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief An array of the device, or of page-locked host memory that kernels read and write in its
 *        place where the device has no room for it.
 */
#pragma once

#include "device/runtime/runtime.cuh"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief As Buffer, of either memory. */
template <typename T>
class PlacedBuffer {
 public:
  PlacedBuffer(char const* what, Memory at) : at_{at}, device_{what}, host_{what} {}

  /** @brief Room for n elements. Waits for the device when it grows. */
  T* Reserve(std::size_t n) {
    return at_ == Memory::kDevice ? device_.Reserve(n) : host_.Reserve(n);
  }
  [[nodiscard]] T* Data() const { return at_ == Memory::kDevice ? device_.Data() : host_.Data(); }
  /** @brief Of the array, wherever it lies. */
  [[nodiscard]] std::size_t Bytes() const { return device_.Bytes() + host_.Bytes(); }
  /** @brief Device memory held. */
  [[nodiscard]] std::size_t DeviceBytes() const { return device_.Bytes(); }

 private:
  Memory at_;
  DeviceBuffer<T> device_;  // this one or the other is empty
  PinnedBuffer<T> host_;
};
}  // namespace gpu_exact
