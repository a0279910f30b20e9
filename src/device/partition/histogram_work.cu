/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_work.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "src/device/partition/histogram_work.cuh"

namespace gpu_exact {
namespace {
constexpr int kPlanThreads = 512;

// Costs count eighths of an element's addition.
constexpr std::uint64_t kElementCost = 8;
constexpr std::uint64_t kRowCost = 8;
constexpr std::uint64_t kBinCost = 4;  // to clear it and to write it
/** @brief A block is started for at least so much. */
constexpr std::uint64_t kMinSlice = 2048 * kElementCost;

/** @brief Where work units are, once the nodes are known. */
struct Locator {
  WorkRef work;

  /** @brief Work before a segment; of a node's groups all may be before it. */
  [[nodiscard]] __device__ std::uint64_t Before(std::uint32_t node, std::uint32_t group) const {
    GroupCost all = work.costs[work.n_groups];
    std::uint64_t units = work.nodes[node].before * all.row + node * all.segment;
    if (group != 0) {
      GroupCost before = work.costs[group];
      units += work.NumRows(node) * before.row + before.segment;
    }
    return units;
  }

  [[nodiscard]] __device__ WorkPoint Locate(std::uint64_t unit) const {
    auto node = FirstIndex(std::uint32_t{0}, work.n_nodes,
                           [&](std::uint32_t i) { return Before(i + 1, 0) > unit; });
    if (node == work.n_nodes) {
      return {node, 0, 0};
    }
    auto group = FirstIndex(std::uint32_t{0}, work.n_groups,
                            [&](std::uint32_t g) { return Before(node, g + 1) > unit; });
    std::uint64_t row_cost = work.costs[group + 1].row - work.costs[group].row;
    std::uint64_t row = (unit - Before(node, group)) / row_cost;
    RowIdx n_rows = work.NumRows(node);
    if (row < n_rows || n_rows == 0) {
      return {node, group, static_cast<RowIdx>(n_rows == 0 ? 0 : row)};
    }
    return work.Next({node, group, 0});
  }
};

/**
 * @brief grid: one block; result: out_nodes and out_slices, which are those of work.
 */
__global__ __launch_bounds__(kPlanThreads) void PlanKernel(RowRange const* nodes, BuildMode mode,
                                                           WorkRef work, BuiltNode* out_nodes,
                                                           WorkPoint* out_slices) {
  using BlockScan = cub::BlockScan<RowIdx, kPlanThreads>;
  __shared__ typename BlockScan::TempStorage temp;
  RowIdx n_before{0};
  for (std::uint32_t first = 0; first < work.n_nodes; first += kPlanThreads) {
    std::uint32_t i = first + threadIdx.x;
    RowRange range{0, 0};
    Bucket bucket{i};
    if (i < work.n_nodes) {
      if (mode == BuildMode::kSmaller) {
        RowRange left = nodes[2 * i];
        RowRange right = nodes[2 * i + 1];
        bucket = 2 * i + (right.end - right.begin <= left.end - left.begin ? 1 : 0);
      }
      range = nodes[bucket];
    }
    RowIdx before, n;
    BlockScan{temp}.ExclusiveSum(range.end - range.begin, before, n);
    __syncthreads();  // temp is used again
    if (i < work.n_nodes) {
      out_nodes[i] = {range.begin, n_before + before, bucket};
    }
    n_before += n;
  }
  if (threadIdx.x == 0) {
    out_nodes[work.n_nodes] = {0, n_before, 0};
  }
  __syncthreads();
  Locator locator{work};
  std::uint64_t total = locator.Before(work.n_nodes, 0);
  for (std::uint32_t s = threadIdx.x; s <= work.n_slices; s += kPlanThreads) {
    // total * s could overflow
    std::uint64_t unit = total / work.n_slices * s + total % work.n_slices * s / work.n_slices;
    out_slices[s] = locator.Locate(unit);
  }
}
}  // namespace

HistogramWork::HistogramWork(BinnedColumns const& columns) {
  std::uint64_t n_rows = std::max<RowIdx>(columns.NumRows(), 1);
  h_costs_.push_back({0, 0});
  for (auto const& group : columns.Groups()) {
    auto const& before = h_costs_.back();
    h_costs_.push_back({before.row + kRowCost + kElementCost * group.n_elements / n_rows,
                        before.segment + kBinCost * (group.n_bins + 64)});
  }
  CopyAsync(costs_.Reserve(h_costs_.size()), h_costs_.data(), h_costs_.size());
}

WorkRef HistogramWork::Plan(RowRange const* nodes, Bucket n_nodes, BuildMode mode, RowIdx n_rows,
                            std::uint32_t max_slices) {
  auto n_built = mode == BuildMode::kSmaller ? n_nodes / 2 : n_nodes;
  auto const& all = h_costs_.back();
  std::uint64_t units = n_rows * all.row + n_built * all.segment;
  auto n_slices =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(units / kMinSlice, 1, max_slices));
  nodes_.Reserve(std::size_t{n_built} + 1);
  slices_.Reserve(std::size_t{n_slices} + 1);
  WorkRef work{nodes_.Data(),
               costs_.Data(),
               slices_.Data(),
               n_built,
               static_cast<std::uint32_t>(h_costs_.size() - 1),
               n_slices};
  Launch("Plan", PlanKernel, 1, kPlanThreads, nodes, mode, work, nodes_.Data(), slices_.Data());
  return work;
}

std::uint64_t HistogramWork::Bytes() const {
  return costs_.Bytes() + nodes_.Bytes() + slices_.Bytes();
}
}  // namespace gpu_exact
