/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Blocks of a cluster read each other's shared memory; without clusters a block is alone.
 */
#include <vector>

#include "device/runtime/block_cluster.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
constexpr unsigned kThreads = 64;

struct Seen {
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t sum;  // of what the threads of this number wrote in all blocks of the cluster
};

// any clusters
__global__ void TellKernel(Seen* out) {
  WaitForPreviousKernel();
  __shared__ std::uint32_t words[kThreads];
  for (int turn = 1; turn <= 2; ++turn) {
    words[threadIdx.x] = turn * (1000 * blockIdx.x + threadIdx.x);
    BlockCluster::Sync();
    std::uint32_t sum{0};
    for (unsigned rank = 0; rank < BlockCluster::Size(); ++rank) {
      sum += *BlockCluster::Of(rank, words + threadIdx.x);
    }
    out[GlobalIdx()] = {BlockCluster::Rank(), BlockCluster::Size(), sum};
    BlockCluster::Sync();  // others have read it
  }
}

class BlockClusterTest : public DeviceTest {
 protected:
  static void Check(std::uint32_t n_clusters, unsigned size) {
    std::uint32_t const n = n_clusters * size * kThreads;
    DeviceBuffer<Seen> seen{"what threads saw"};
    LaunchClusters("Tell", TellKernel, n_clusters, size, kThreads, seen.Reserve(n));
    auto const got = ToHost(seen.Data(), n);
    for (std::uint32_t i = 0; i < n; ++i) {
      std::uint32_t const block = i / kThreads;
      std::uint32_t want{0};
      for (std::uint32_t of = block / size * size; of < block / size * size + size; ++of) {
        want += 2 * (1000 * of + i % kThreads);
      }
      ASSERT_EQ(got[i].rank, block % size) << "block " << block;
      ASSERT_EQ(got[i].size, size) << "block " << block;
      ASSERT_EQ(got[i].sum, want) << "block " << block;
    }
  }
};

TEST_F(BlockClusterTest, ReadEachOther) {
  int n_sizes{0};
  for (unsigned size = 2; size <= BlockCluster::kMost; size *= 2) {
    std::uint64_t const at_once = MaxClusters(TellKernel, size, kThreads);
    for (std::uint32_t n_clusters : {1u, 5u}) {
      if (at_once != 0) {
        Check(n_clusters, size);
        ++n_sizes;
      }
    }
  }
  EXPECT_EQ(n_sizes != 0, DeviceAttribute(cudaDevAttrComputeCapabilityMajor) >= 9);
}

TEST_F(BlockClusterTest, ABlockAlone) { Check(5, 1); }
}  // namespace
}  // namespace gpu_exact
