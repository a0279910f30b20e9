/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of rank_bits.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

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
}  // namespace

void RankBits::Count(std::uint64_t n, CubScratch* scratch) {
  auto const indices = thrust::make_counting_iterator(std::uint64_t{0});
  auto counts = thrust::make_transform_iterator(indices, CountBits{words_.Data()});
  auto n_before =
      thrust::make_permutation_iterator(reinterpret_cast<std::uint32_t*>(words_.Data()),
                                        thrust::make_transform_iterator(indices, OddWord{}));
  scratch->Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, counts, n_before, n / 32 + 1, Stream());
  });
}
}  // namespace gpu_exact
