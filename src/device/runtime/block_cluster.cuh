/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lets blocks run at a time and read each other's shared memory. Such clusters GPUs have
 *        from compute capability 9.0 on. On others every cluster is one block, and the same code
 *        serves.
 */
#pragma once

#include <cooperative_groups.h>

#include "device/runtime/runtime.cuh"
#include "host/build_advice.h"

namespace gpu_exact {
/** @brief Names the cluster of the calling block; see LaunchClusters(). */
struct BlockCluster {
  /** @brief Sets the most blocks of a cluster that every GPU with clusters takes. */
  static constexpr unsigned kMost = 8;

#if __CUDA_ARCH__ >= 900
  [[nodiscard]] __device__ static unsigned Rank() {
    return cooperative_groups::this_cluster().block_rank();
  }
  [[nodiscard]] __device__ static unsigned Size() {
    return cooperative_groups::this_cluster().num_blocks();
  }
  /** @brief Wait for all threads of all its blocks: what was written before is seen afterwards. */
  __device__ static void Sync() { cooperative_groups::this_cluster().sync(); }
  /** @brief Map an address of the own shared memory to the same place in another block's. */
  template <typename T>
  [[nodiscard]] __device__ static T* Of(unsigned rank, T* own) {
    EXACT_DEVICE_CHECK(rank < Size());
    return cooperative_groups::this_cluster().map_shared_rank(own, rank);
  }
#else
  [[nodiscard]] __device__ static unsigned Rank() { return 0; }
  [[nodiscard]] __device__ static unsigned Size() { return 1; }
  __device__ static void Sync() { __syncthreads(); }
  template <typename T>
  [[nodiscard]] __device__ static T* Of(unsigned, T* own) {
    return own;
  }
#endif
};

/** @brief Count the clusters of `size` blocks, two or more, of a kernel that run at a time; 0 where
 *         the GPU has none, or the kernel was not compiled for it, or what the process has of the
 *         GPU is too small. */
template <typename... ParamsT>
[[nodiscard]] std::uint64_t MaxClusters(void (*kernel)(ParamsT...), unsigned size,
                                        BlockSize block) {
  cudaFuncAttributes attributes{};
  EXACT_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  if (DeviceAttribute(cudaDevAttrClusterLaunch) == 0 || attributes.ptxVersion < kHopper) {
    return 0;
  }
  int n_clusters{0};
  block.cluster = size;
  LaunchConfig launch{size, block};
  launch.config.numAttrs = 1;  // the clusters' alone
  EXACT_CUDA(cudaOccupancyMaxActiveClusters(&n_clusters, kernel, &launch.config));
  return static_cast<std::uint64_t>(n_clusters);
}

/** @brief Launch clusters of `size` blocks each; 1: blocks. */
template <typename... ParamsT, typename... ArgsT>
void LaunchClusters(char const* name, void (*kernel)(ParamsT...), std::uint64_t n_clusters,
                    unsigned size, BlockSize block, ArgsT&&... args) {
  block.cluster = size;
  Launch(name, kernel, n_clusters * size, block, std::forward<ArgsT>(args)...);
}
}  // namespace gpu_exact
