/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements rank_bit_vector.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "device/histogram/ranges/rank_bit_vector.cuh"
#include "device/runtime/block_cluster.cuh"
#include "device/runtime/device_context.cuh"

namespace gpu_exact {
namespace {
struct CountBits {
  RankWord const* words;
  __device__ std::uint32_t operator()(std::uint64_t i) const { return __popc(words[i].bits); }
};
struct OddWord {
  __host__ __device__ std::uint64_t operator()(std::uint64_t i) const { return 2 * i + 1; }
};

constexpr int kThreads = 1024;
constexpr int kWords = 4;  // per thread
// That one cluster counts: one kernel, not three.
constexpr std::uint64_t kFewWords = 2 * kWords * kThreads;  // per block

// grid: one cluster
__global__ __launch_bounds__(kThreads) void CountFewKernel(RankWord* words, std::uint32_t n) {
  WaitForPreviousKernel();
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage temp;
  __shared__ std::uint32_t n_set;  // of the block's words
  std::uint32_t const rank = BlockCluster::Rank() * kThreads + threadIdx.x;
  std::uint32_t const n_threads = BlockCluster::Size() * kThreads;
  std::uint32_t n_before{0};
  for (std::uint32_t first = rank * kWords; first < n + rank * kWords;
       first += n_threads * kWords) {
    std::uint32_t bits[kWords];
    std::uint32_t own{0};
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      bits[k] = first + k < n ? words[first + k].bits : 0;
      own += __popc(bits[k]);
    }
    std::uint32_t before, of_block;
    Scan{temp}.ExclusiveSum(own, before, of_block);
    if (threadIdx.x == 0) {
      n_set = of_block;
    }
    BlockCluster::Sync();
    before += n_before;
    for (unsigned block = 0; block < BlockCluster::Size(); ++block) {
      std::uint32_t const of_other = *BlockCluster::Of(block, &n_set);
      before += block < BlockCluster::Rank() ? of_other : 0;
      n_before += of_other;
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (first + k < n) {
        words[first + k].n_before = before;
      }
      before += __popc(bits[k]);
    }
    BlockCluster::Sync();  // n_set is used again
  }
}
}  // namespace

void RankBitVector::Count(std::uint64_t n) {
  if (max_blocks_ == 0) {
    constexpr unsigned kMost = BlockCluster::kMost;
    max_blocks_ = MaxClusters(CountFewKernel, kMost, kThreads) != 0 ? kMost : 1;
  }
  std::uint64_t const n_words = n / 32 + 1;
  if (n_words <= max_blocks_ * kFewWords) {
    unsigned n_blocks{1};
    while (n_blocks < max_blocks_ && n_blocks * kWords * kThreads < n_words) {
      n_blocks *= 2;
    }
    LaunchClusters("CountFew", CountFewKernel, 1, n_blocks, kThreads, words_.Data(),
                   static_cast<std::uint32_t>(n_words));
    return;
  }
  auto const indices = thrust::make_counting_iterator(std::uint64_t{0});
  auto counts = thrust::make_transform_iterator(indices, CountBits{words_.Data()});
  auto n_before =
      thrust::make_permutation_iterator(reinterpret_cast<std::uint32_t*>(words_.Data()),
                                        thrust::make_transform_iterator(indices, OddWord{}));
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, counts, n_before, n_words, Stream());
  });
}
}  // namespace gpu_exact
