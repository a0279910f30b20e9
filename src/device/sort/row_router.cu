/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements row_router.cuh.
 */
#include <algorithm>

#include "device/runtime/fixed_sum.cuh"
#include "device/sort/row_router.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr int kRowsPerThread = 8;
constexpr LevelNode kSharedSums = 512;  // 8 KiB of shared memory

__device__ bool IsTrained(NodeIdx position) { return position >= 0; }

// one thread a row
__global__ void ResetKernel(TrainingRows rows, Quantiser quantiser, NodeIdx* positions,
                            GradientUnits* units) {
  WaitForPreviousKernel();
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < rows.n_rows) {
    positions[row] = EncodePosition(kRoot, rows.Has(row));
    units[row] = quantiser.Units(rows.gpair[row]);
  }
}

// one thread an entry of the ranges
__global__ void RouteKernel(ColumnEntry const* entries, RouteRange const* ranges,
                            EntryIdx const* ends, std::uint32_t n_ranges, EntryIdx n_entries,
                            NodeSplit const* node_splits, std::uint64_t const* first_right,
                            NodeIdx first_node, LevelNode n_node_splits, NodeIdx* positions) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= n_entries) {
    return;
  }
  auto r = PartitionPoint(std::uint32_t{0}, n_ranges, [=](std::uint32_t k) { return ends[k] > i; });
  ColumnEntry e = entries[ranges[r].entries.end - (ends[r] - i)];
  NodeIdx position = positions[e.row];
  auto level_node = static_cast<LevelNode>(DecodePosition(position) - first_node);
  if (level_node >= n_node_splits) {
    return;
  }
  NodeSplit split = node_splits[level_node];
  if (split.left != kNoNode && split.feature == ranges[r].feature) {
    NodeIdx child = split.left + (e.value < first_right[level_node] ? 0 : 1);
    positions[e.row] = EncodePosition(child, IsTrained(position));
  }
}

// one thread a row, in whole warps and one row more; result: rows that own columns send left
__global__ void FindLeftOfRowsKernel(NodeSplit const* node_splits, std::uint32_t const* winners,
                                     std::uint32_t rank, NodeIdx first_node,
                                     LevelNode n_node_splits, NodeIdx first_child,
                                     LevelNode n_children, RowIdx n_rows, NodeIdx const* positions,
                                     std::uint32_t* words) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row / 32 > n_rows / 32) {
    return;
  }
  bool left{false};
  if (row < n_rows) {
    NodeIdx const nidx = DecodePosition(positions[row]);
    auto const level_node = static_cast<LevelNode>(nidx - first_node);
    auto const child = static_cast<LevelNode>(nidx - first_child);  // a left one is even
    left = level_node < n_node_splits
               ? winners[level_node] == rank && node_splits[level_node].default_left
               : child < n_children && child % 2 == 0;
  }
  std::uint32_t const bits = __ballot_sync(kAllLanes, left);
  if (threadIdx.x % 32 == 0) {
    words[row / 32] = bits;
  }
}

// one thread a row; goes_left: of all workers, one bit a row; nullptr where there is one
__global__ void RouteMissingKernel(NodeSplit const* node_splits, std::uint32_t const* goes_left,
                                   NodeIdx first_node, LevelNode n_node_splits, RowIdx n_rows,
                                   NodeIdx* positions) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row >= n_rows) {
    return;
  }
  NodeIdx position = positions[row];
  auto level_node = static_cast<LevelNode>(DecodePosition(position) - first_node);
  if (level_node < n_node_splits && node_splits[level_node].left != kNoNode) {
    bool const left = goes_left == nullptr ? node_splits[level_node].default_left
                                           : (goes_left[row / 32] >> row % 32 & 1u) != 0;
    NodeIdx child = node_splits[level_node].left + (left ? 0 : 1);
    positions[row] = EncodePosition(child, IsTrained(position));
  }
}

// grid: strided over rows; sums in shared memory first where the nodes fit, in as many copies as
// there is room for, so that lanes of few nodes do not wait for one another
__global__ __launch_bounds__(kThreads) void SumNodesKernel(RowNodesRef rows, RowIdx n_rows,
                                                           NodeState* out_states) {
  WaitForPreviousKernel();
  __shared__ FixedSum sums[kSharedSums];
  LevelNode const n_nodes = rows.n;
  bool const in_shared = n_nodes <= kSharedSums;
  auto const n_copies = in_shared ? min(32u, kSharedSums / n_nodes) : 1;
  auto const copy = threadIdx.x % n_copies;
  if (in_shared) {
    for (auto i = threadIdx.x; i < n_nodes * n_copies; i += kThreads) {
      sums[i] = {0, 0};
    }
    __syncthreads();
  }
  auto stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (auto row = GlobalIdx(); row < n_rows; row += stride) {
    auto level_node = static_cast<LevelNode>(rows.positions[row] - rows.first);
    if (level_node < n_nodes) {
      AtomicAdd(in_shared ? &sums[level_node * n_copies + copy] : &out_states[level_node].sum,
                rows.units[row].Fixed());
    }
  }
  if (in_shared) {
    __syncthreads();
    for (LevelNode b = threadIdx.x; b < n_nodes; b += kThreads) {
      FixedSum total{0, 0};
      for (unsigned c = 0; c < n_copies; ++c) {
        total = total + sums[b * n_copies + c];
      }
      AtomicAdd(&out_states[b].sum, total);
    }
  }
}
}  // namespace

RowRouter::RowRouter(RowIdx n_rows, std::uint64_t max_blocks)
    : n_rows_{n_rows}, max_blocks_{max_blocks}, positions_{n_rows} {
  units_.Reserve(n_rows);
}

std::uint64_t RowRouter::StridedGrid() const {
  return std::min(CeilDiv(n_rows_, kThreads * kRowsPerThread), max_blocks_);
}

void RowRouter::Reset(TrainingRows const& rows, Quantiser const& quantiser) {
  LaunchN("Reset", ResetKernel, n_rows_, rows, quantiser, positions_.Data(), units_.Data());
}

RowNodesRef RowRouter::Ref(LevelNodes const& nodes) const {
  return {positions_.Data(), units_.Data(), nodes.first, nodes.n};
}

void RowRouter::Route(ColumnEntry const* entries, std::vector<RouteRange> const& ranges,
                      LevelNodes const& nodes, NodeSplit const* node_splits,
                      std::uint64_t const* first_right) {
  std::vector<EntryIdx> ends;
  EntryIdx n{0};
  for (auto const& r : ranges) {
    n += r.entries.Size();
    ends.push_back(n);
  }
  std::size_t const d_ranges = uploader_.Add(ranges);
  std::size_t const d_ends = uploader_.Add(ends);
  uploader_.Upload();
  LaunchN("Route", RouteKernel, n, entries, uploader_.Data<RouteRange>(d_ranges),
          uploader_.Data<EntryIdx>(d_ends), static_cast<std::uint32_t>(ranges.size()), n,
          node_splits, first_right, nodes.first, nodes.n, positions_.Data());
}

void RowRouter::RouteMissing(LevelNodes const& nodes, NodeSplit const* node_splits,
                             LevelNodes const& children, SplitExchange* exchange) {
  std::uint32_t* goes_left{nullptr};
  if (exchange != nullptr) {
    std::uint64_t const n_words = n_rows_ / 32 + 1;
    goes_left = goes_left_.Reserve(n_words);
    LaunchN("FindLeftOfRows", FindLeftOfRowsKernel, std::uint64_t{n_rows_} + 32, node_splits,
            exchange->Winners(), static_cast<std::uint32_t>(exchange->Columns().Workers()->Rank()),
            nodes.first, nodes.n, children.first, children.n, n_rows_, positions_.Data(),
            exchange->OwnWords(n_words));
    exchange->JoinWords(n_words, goes_left);
  }
  LaunchN("RouteMissing", RouteMissingKernel, n_rows_, node_splits, goes_left, nodes.first, nodes.n,
          n_rows_, positions_.Data());
}

void RowRouter::SumNodes(LevelNodes const& nodes, NodeState* out_states) {
  Launch("SumNodes", SumNodesKernel, this->StridedGrid(), kThreads, this->Ref(nodes), n_rows_,
         out_states);
}
}  // namespace gpu_exact
