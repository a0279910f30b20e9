/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps memory in CUDA's pool of a device, from which XGBoost may take the positions of
 *        rows.
 *
 * cudaMalloc() and cudaFree() of them take 0.12 ms a tree, and 0.35 where four GPUs reach each other's
 * memory, as each must map it. A pool takes 0.003, and 32 MiB at least. It keeps positions while the next
 * tree grows, at whose end all that the tree needed is held beside its positions anyway.
 */
#pragma once

#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Sets how many bytes a pool takes of the device at a time. */
inline constexpr std::uint64_t kPoolStep = std::uint64_t{32} << 20;

/** @brief Raises the release threshold of a device's pool by some bytes, while this lives. */
class PoolReleaseThreshold {
 public:
  /** @brief Raise it for the current device. @param bytes 0: nothing is kept. */
  explicit PoolReleaseThreshold(std::uint64_t bytes);
  ~PoolReleaseThreshold();
  PoolReleaseThreshold(PoolReleaseThreshold const&) = delete;
  PoolReleaseThreshold& operator=(PoolReleaseThreshold const&) = delete;

  /** @brief Tell whether it does: there are devices without a pool. */
  [[nodiscard]] bool Keeps() const { return pool_ != nullptr; }

 private:
  int device_{0};
  cudaMemPool_t pool_{nullptr};  // nullptr: nothing is kept
  std::uint64_t bytes_{0};       // beyond what it would keep
};

/** @brief Lets the current device's copies reach what another's pool gives, if that can be; for good. */
void ReachPool(int other);
}  // namespace gpu_exact
