/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements pool_release_threshold.cuh.
 */
#include <algorithm>
#include <limits>
#include <mutex>

#include "device/runtime/pool_release_threshold.cuh"

namespace gpu_exact {
namespace {
std::mutex thresholds;  // are read and written by one thread at a time

/** @brief Get the bytes that a pool holds before it gives back what nobody uses. */
bool GetThreshold(cudaMemPool_t pool, std::uint64_t* out) {
  return Succeeds(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, out));
}
bool SetThreshold(cudaMemPool_t pool, std::uint64_t bytes) {
  return Succeeds(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
}

/** @brief Find the pool that a device takes memory from; nullptr: there is none. */
cudaMemPool_t PoolOf(int device) {
  int has{0};
  cudaMemPool_t pool{nullptr};
  return Succeeds(cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device)) &&
                 has != 0 && Succeeds(cudaDeviceGetMemPool(&pool, device))
             ? pool
             : nullptr;
}
}  // namespace

PoolReleaseThreshold::PoolReleaseThreshold(std::uint64_t bytes) {
  if (bytes == 0 || !Succeeds(cudaGetDevice(&device_)) || (pool_ = PoolOf(device_)) == nullptr) {
    return;
  }
  std::lock_guard<std::mutex> const lock{thresholds};
  std::uint64_t before{0};
  bool const is_known = GetThreshold(pool_, &before);
  bytes_ = std::min(bytes, std::numeric_limits<std::uint64_t>::max() - before);  // it may keep all
  if (!is_known || !SetThreshold(pool_, before + bytes_)) {
    pool_ = nullptr;
  }
}

PoolReleaseThreshold::~PoolReleaseThreshold() {
  CaptureGuard const guard;
  std::lock_guard<std::mutex> const lock{thresholds};
  std::uint64_t before{0};
  // The process may have given the device another pool, and destroyed this one.
  if (pool_ != nullptr && PoolOf(device_) == pool_ && GetThreshold(pool_, &before) &&
      before >= bytes_) {
    SetThreshold(pool_, before - bytes_);
    Succeeds(cudaMemPoolTrimTo(pool_, before - bytes_));
  }
}

void ReachPool(int other) {
  int device{0};
  if (cudaMemPool_t const pool = PoolOf(other);
      pool != nullptr && Succeeds(cudaGetDevice(&device)) && device != other) {
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, device};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    Succeeds(cudaMemPoolSetAccess(pool, &access, 1));
  }
}
}  // namespace gpu_exact
