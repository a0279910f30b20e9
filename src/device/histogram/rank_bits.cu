/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of rank_bits.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "src/device/histogram/rank_bits.cuh"

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
// That one block counts: one kernel, not three.
constexpr std::uint64_t kFewWords = 8 * kThreads;
constexpr Bucket kFewRanges = 4 * kThreads;

/** @brief How many bits of ranges are set: of each stride-th one. */
__device__ void CountRanges(RankBitsRef const& bits, BitRanges const& ranges, std::uint64_t first,
                            std::uint64_t stride) {
  for (std::uint64_t i = first; i < ranges.n; i += stride) {
    ranges.n_set[i] = bits.Rank(ranges.ranges[i].end) - bits.Rank(ranges.ranges[i].begin);
  }
}

// one thread a range
__global__ void CountRangesKernel(RankBitsRef bits, BitRanges ranges) {
  CountRanges(bits, ranges, GlobalIdx(), std::uint64_t{gridDim.x} * blockDim.x);
}

// grid: one block
__global__ __launch_bounds__(kThreads) void CountFewKernel(RankWord* words, std::uint32_t n,
                                                           BitRanges ranges) {
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage temp;
  std::uint32_t n_before{0};
  for (std::uint32_t first = 0; first < n; first += kThreads) {
    std::uint32_t const i = first + threadIdx.x;
    std::uint32_t before, all;
    Scan{temp}.ExclusiveSum(i < n ? __popc(words[i].bits) : 0u, before, all);
    if (i < n) {
      words[i].n_before = n_before + before;
    }
    n_before += all;
    __syncthreads();  // temp is used again
  }
  CountRanges({words}, ranges, threadIdx.x, kThreads);
}
}  // namespace

void RankBits::Count(std::uint64_t n, CubScratch* scratch, BitRanges const& ranges) {
  if (n / 32 + 1 <= kFewWords && ranges.n <= kFewRanges) {
    Launch("CountFew", CountFewKernel, 1, kThreads, words_.Data(),
           static_cast<std::uint32_t>(n / 32 + 1), ranges);
    return;
  }
  auto const indices = thrust::make_counting_iterator(std::uint64_t{0});
  auto counts = thrust::make_transform_iterator(indices, CountBits{words_.Data()});
  auto n_before =
      thrust::make_permutation_iterator(reinterpret_cast<std::uint32_t*>(words_.Data()),
                                        thrust::make_transform_iterator(indices, OddWord{}));
  scratch->Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, counts, n_before, n / 32 + 1, Stream());
  });
  LaunchN("CountRanges", CountRangesKernel, ranges.n, this->Ref(), ranges);
}
}  // namespace gpu_exact
