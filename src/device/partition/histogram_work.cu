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

  /** @brief Work before a segment. */
  [[nodiscard]] __device__ std::uint64_t Before(std::uint32_t group, std::uint32_t node) const {
    std::uint64_t rows = work.nodes[work.n_nodes].before;
    GroupCost cost = work.costs[group];
    std::uint64_t units = rows * cost.row + work.n_nodes * cost.node;
    if (node != 0) {
      GroupCost next = work.costs[group + 1];
      units += work.nodes[node].before * (next.row - cost.row) + node * (next.node - cost.node);
    }
    return units;
  }

  [[nodiscard]] __device__ WorkPoint Locate(std::uint64_t unit) const {
    auto group = FirstIndex(std::uint32_t{0}, work.n_groups,
                            [&](std::uint32_t g) { return Before(g + 1, 0) > unit; });
    if (group == work.n_groups) {
      return {group, 0, 0};
    }
    auto node = FirstIndex(std::uint32_t{0}, work.n_nodes,
                           [&](std::uint32_t i) { return Before(group, i + 1) > unit; });
    std::uint64_t row_cost = work.costs[group + 1].row - work.costs[group].row;
    std::uint64_t row = (unit - Before(group, node)) / row_cost;
    if (row < work.NumRows(node)) {
      return {group, node, static_cast<RowIdx>(row)};
    }
    if (work.NumRows(node) == 0) {
      return {group, node, 0};
    }
    return node + 1 < work.n_nodes ? WorkPoint{group, node + 1, 0} : WorkPoint{group + 1, 0, 0};
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
  std::uint64_t total = locator.Before(work.n_groups, 0);
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
                        before.node + kBinCost * (group.n_bins + 64)});
  }
  CopyAsync(costs_.Reserve(h_costs_.size()), h_costs_.data(), h_costs_.size());
}

WorkRef HistogramWork::Plan(RowRange const* nodes, Bucket n_nodes, BuildMode mode, RowIdx n_rows,
                            std::uint32_t max_slices) {
  auto n_built = mode == BuildMode::kSmaller ? n_nodes / 2 : n_nodes;
  auto const& all = h_costs_.back();
  std::uint64_t units = n_rows * all.row + n_built * all.node;
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
