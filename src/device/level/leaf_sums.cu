/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements leaf_sums.cuh.
 */
#include <algorithm>

#include "device/level/leaf_sums.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
constexpr unsigned kThreads = 256;
constexpr std::uint64_t kMaxBlocks = 1024;
/** @brief Sets for how many nodes a block keeps results by itself: rows of a small tree would all
 *         meet. */
constexpr std::size_t kBlockNodes = 1024;

/** @brief Measures the rows of a leaf, before they are summed. */
struct LeafRows {
  std::uint32_t max_grad_bits;  // largest absolute gradient, as the bits of a float
  std::uint32_t max_hess_bits;
  std::uint32_t n_rows;

  [[nodiscard]] Quantiser Units() const {
    float max_grad, max_hess;
    std::memcpy(&max_grad, &max_grad_bits, sizeof(max_grad));
    std::memcpy(&max_hess, &max_hess_bits, sizeof(max_hess));
    return Quantiser::Make(max_grad, max_hess, n_rows);
  }
};

__device__ void Join(LeafRows* leaf, LeafRows const& other) {
  atomicMax(&leaf->max_grad_bits, other.max_grad_bits);
  atomicMax(&leaf->max_hess_bits, other.max_hess_bits);
  atomicAdd(&leaf->n_rows, other.n_rows);
}
__device__ void Join(FixedSum* leaf, FixedSum const& other) { AtomicAdd(leaf, other); }

/** @brief Joins of(row, leaf) of the trained rows to out[leaf]; all threads of a grid strided over rows. */
template <typename ResultT, typename FnT>
__device__ void JoinByLeaf(TrainingRows const& rows, NodeIdx const* positions, std::size_t n_nodes,
                           ResultT* out, FnT&& of) {
  __shared__ ResultT of_block[kBlockNodes];
  bool const by_block = n_nodes <= kBlockNodes;
  for (auto i = threadIdx.x; by_block && i < n_nodes; i += kThreads) {
    of_block[i] = {};
  }
  __syncthreads();
  auto const stride = static_cast<std::uint64_t>(gridDim.x) * kThreads;
  for (auto row = GlobalIdx(); row < rows.n_rows; row += stride) {
    if (rows.Has(static_cast<RowIdx>(row))) {
      auto const leaf = DecodePosition(positions[row]);
      Join((by_block ? of_block : out) + leaf, of(rows.gpair[row], leaf));
    }
  }
  __syncthreads();
  for (auto i = threadIdx.x; by_block && i < n_nodes; i += kThreads) {
    Join(out + i, of_block[i]);
  }
}

// grid: strided over rows; result: by leaf, zero before
__global__ __launch_bounds__(kThreads) void MeasureLeavesKernel(TrainingRows rows,
                                                                NodeIdx const* positions,
                                                                std::size_t n_nodes,
                                                                LeafRows* out) {
  WaitForPreviousKernel();
  JoinByLeaf(rows, positions, n_nodes, out, [](GradientPair const& g, NodeIdx) {
    return LeafRows{__float_as_uint(fabsf(g.grad)), __float_as_uint(fabsf(g.hess)), 1};
  });
}

// grid: strided over rows; units: by leaf; result: by leaf, zero before
__global__ __launch_bounds__(kThreads) void SumLeavesKernel(TrainingRows rows,
                                                            NodeIdx const* positions,
                                                            std::size_t n_nodes,
                                                            Quantiser const* units, FixedSum* out) {
  WaitForPreviousKernel();
  JoinByLeaf(rows, positions, n_nodes, out,
             [units](GradientPair const& g, NodeIdx leaf) { return units[leaf].Fixed(g); });
}
}  // namespace

std::vector<GradientSum> SumLeaves(TrainingRows const& rows, NodeIdx const* positions,
                                   std::size_t n_nodes) {
  auto const grid = std::min(CeilDiv(rows.n_rows, kThreads), kMaxBlocks);
  DeviceBuffer<LeafRows> of_leaves{"rows of leaves"};
  DeviceBuffer<Quantiser> units{"units of leaves"};
  DeviceBuffer<FixedSum> sums{"sums of leaves"};
  ZeroAsync(of_leaves.Reserve(n_nodes), n_nodes);
  Launch("MeasureLeaves", MeasureLeavesKernel, grid, kThreads, rows, positions, n_nodes,
         of_leaves.Data());
  std::vector<Quantiser> quantisers;
  for (LeafRows const& leaf : ToHost(of_leaves.Data(), n_nodes)) {
    quantisers.push_back(leaf.Units());
  }
  CopyFromHost(units.Reserve(n_nodes), quantisers.data(), n_nodes);
  ZeroAsync(sums.Reserve(n_nodes), n_nodes);
  Launch("SumLeaves", SumLeavesKernel, grid, kThreads, rows, positions, n_nodes, units.Data(),
         sums.Data());
  std::vector<GradientSum> of_nodes;
  for (FixedSum const& sum : ToHost(sums.Data(), n_nodes)) {
    of_nodes.push_back(quantisers[of_nodes.size()].Real(sum));
  }
  return of_nodes;
}
}  // namespace gpu_exact
