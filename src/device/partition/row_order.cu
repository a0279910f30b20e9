/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of row_order.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>

#include "src/device/partition/row_order.cuh"
#include "src/device/partition/split_tile.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr int kRowsPerThread = 8;

/** @brief Writes a warp's bits as a word. All threads up to a multiple of 32 past n take part. */
__device__ void WriteSide(SideWord* words, std::uint64_t place, bool left) {
  std::uint32_t bits = __ballot_sync(kAllLanes, left);
  if (threadIdx.x % 32 == 0) {
    words[place / 32] = {bits, 0};
  }
}

// one thread a row, in whole warps and one row more
__global__ void TrainedSidesKernel(TrainingRows rows, SideWord* words) {
  auto row = GlobalIdx();
  bool trained = row < rows.n_rows && rows.Has(static_cast<RowIdx>(row));
  if (row / 32 <= rows.n_rows / 32) {
    WriteSide(words, row, trained);
  }
}

// one thread a row; rows left out are in the root for now
__global__ void CompactKernel(GradientPair const* gpair, SidesRef sides, RowIdx n_rows,
                              RowIdx* rows, GradientPair* gpairs, NodeIdx* positions) {
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row >= n_rows) {
    return;
  }
  if (sides.words == nullptr) {
    rows[row] = row;
    return;
  }
  RowIdx place = sides.LeftBefore(row);
  bool trained = (sides.words[row / 32].left >> row % 32 & 1u) != 0;
  if (trained) {
    rows[place] = row;
    gpairs[place] = gpair[row];
  }
  positions[row] = EncodePosition(kRoot, trained);
}

struct CountLeft {
  SideWord const* words;
  __device__ std::uint32_t operator()(std::uint64_t i) const { return __popc(words[i].left); }
};
struct OddWord {
  __host__ __device__ std::uint64_t operator()(std::uint64_t i) const { return 2 * i + 1; }
};

// one thread a place, in whole warps and one place more
__global__ void RouteKernel(FeatureTableRef table, RowsRef rows, SplitOrder const* orders,
                            NodeIdx first_node, Bucket n_nodes, RowIdx n_places, SideWord* words,
                            NodeIdx* positions) {
  auto place = GlobalIdx();
  bool left{false};
  Bucket b = place < n_places ? rows.NodeOf(static_cast<RowIdx>(place), n_nodes) : n_nodes;
  if (b < n_nodes) {
    RowIdx row = rows.rows[place];
    SplitOrder order = orders[b];
    if (order.left != kNoNode) {
      left = table.GoesLeft(row, order);
    } else {
      positions[row] = first_node + static_cast<NodeIdx>(b);
    }
  }
  if (place / 32 <= n_places / 32) {
    WriteSide(words, place, left);
  }
}

// one thread a node
__global__ void ChildrenKernel(RowRange const* nodes, Bucket n_nodes, SplitOrder const* orders,
                               NodeIdx first_child, SidesRef sides, RowRange* children) {
  auto b = GlobalIdx();
  if (b < n_nodes && orders[b].left != kNoNode) {
    RowRange node = nodes[b];
    RowIdx mid = node.begin + sides.LeftBefore(node.end) - sides.LeftBefore(node.begin);
    RowRange* left = children + (orders[b].left - first_child);
    left[0] = {node.begin, mid};
    left[1] = {mid, node.end};
  }
}

/** @brief Sums of the two children of one node that the lanes of a warp share. */
struct WarpSums {
  Bucket left{0};
  FixedSum sums[2]{};
  bool any{false};

  __device__ void Flush(NodeState* children) {
    if (any) {
      for (int c = 0; c < 2; ++c) {
        for (int step = 16; step > 0; step /= 2) {
          sums[c] = sums[c] + ShuffleXor(sums[c], step);
        }
        if (threadIdx.x % 32 == 0) {
          AtomicAdd(&children[left + c].sum, sums[c]);
        }
        sums[c] = {0, 0};
      }
      any = false;
    }
  }
};

// grid: tiles of places; result: rows and gradients at their new places, sums of the children
__global__ __launch_bounds__(kThreads) void MoveKernel(RowsRef rows, SplitOrder const* orders,
                                                       NodeIdx first_child, Bucket n_nodes,
                                                       RowIdx n_places, SidesRef sides,
                                                       RowRange const* children,
                                                       Quantiser quantiser, RowIdx* to_rows,
                                                       GradientPair* to_gpair, NodeState* states) {
  std::uint64_t first = std::uint64_t{blockIdx.x} * kThreads * kRowsPerThread +
                        threadIdx.x / 32 * 32 * kRowsPerThread + threadIdx.x % 32;
  WarpSums sums;
  for (int j = 0; j < kRowsPerThread; ++j) {
    std::uint64_t place = first + j * 32;
    Bucket b = place < n_places ? rows.NodeOf(static_cast<RowIdx>(place), n_nodes) : n_nodes;
    NodeIdx left_id = b < n_nodes ? orders[b].left : kNoNode;
    bool moves = left_id != kNoNode;
    Bucket left = moves ? static_cast<Bucket>(left_id - first_child) : 0;
    FixedSum g{0, 0};
    bool goes_left{false};
    if (moves) {
      ChildPlaces at{sides, rows.nodes[b], children[left + 1]};
      auto old = static_cast<RowIdx>(place);
      RowIdx to = at.Of(at.Word(old), old, &goes_left);
      GradientPair pair = rows.gpair[place];
      to_rows[to] = rows.rows[place];
      to_gpair[to] = pair;
      g = quantiser.Fixed(pair);
    }
    int uniform{0};
    __match_all_sync(kAllLanes, moves ? left : ~Bucket{0}, &uniform);
    if (uniform == 0) {
      if (moves) {
        AtomicAdd(&states[left + (goes_left ? 0 : 1)].sum, g);
      }
    } else if (moves) {
      if (sums.any && sums.left != left) {
        sums.Flush(states);
      }
      sums.left = left;
      sums.any = true;
      sums.sums[0] = goes_left ? sums.sums[0] + g : sums.sums[0];
      sums.sums[1] = goes_left ? sums.sums[1] : sums.sums[1] + g;
    }
  }
  sums.Flush(states);
}

// one thread a place
__global__ void SettleKernel(RowsRef rows, Bucket n_nodes, NodeIdx first_node, RowIdx n_places,
                             NodeIdx* positions) {
  auto place = static_cast<RowIdx>(GlobalIdx());
  if (place < n_places) {
    Bucket b = rows.NodeOf(place, n_nodes);
    if (b < n_nodes) {
      positions[rows.rows[place]] = first_node + static_cast<NodeIdx>(b);
    }
  }
}

// one thread a row
__global__ void WalkLeftOutKernel(FeatureTableRef table, SplitOrder const* tree, RowIdx n_rows,
                                  NodeIdx* positions) {
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < n_rows && positions[row] < 0) {
    NodeIdx nidx = kRoot;
    while (tree[nidx].left != kNoNode) {
      nidx = tree[nidx].left + (table.GoesLeft(row, tree[nidx]) ? 0 : 1);
    }
    positions[row] = EncodePosition(nidx, false);
  }
}
}  // namespace

RowOrder::RowOrder(RowIdx n_rows) : n_rows_{n_rows}, positions_{n_rows} {
  for (int i = 0; i < 2; ++i) {
    rows_[i].Reserve(n_rows);
    gpairs_[i].Reserve(n_rows);
  }
  words_.Reserve(n_rows / 32 + 1);
}

void RowOrder::Reset(TrainingRows const& rows, RowIdx n_left_out) {
  current_ = 0;
  n_trained_ = n_rows_ - n_left_out;
  sides_ = {nullptr};
  gpair_ = rows.gpair;
  if (n_left_out != 0) {
    LaunchN("TrainedSides", TrainedSidesKernel, std::uint64_t{n_rows_} + 32, rows, words_.Data());
    this->CountSides(n_rows_);
    gpair_ = gpairs_[0].Data();
  }
  LaunchN("Compact", CompactKernel, n_rows_, rows.gpair, sides_, n_rows_, rows_[0].Data(),
          gpairs_[0].Data(), positions_.Data());
  RowRange root{0, n_trained_};
  CopyAsync(nodes_[0].Reserve(1), &root, 1);
  first_node_ = kRoot;
  n_nodes_ = 1;
}

void RowOrder::CountSides(RowIdx n_places) {
  auto counts = thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}),
                                                CountLeft{words_.Data()});
  auto n_before = thrust::make_permutation_iterator(
      reinterpret_cast<std::uint32_t*>(words_.Data()),
      thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}), OddWord{}));
  scratch_.Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, counts, n_before, n_places / 32 + 1,
                                         Stream());
  });
  sides_ = {words_.Data()};
}

void RowOrder::Split(FeatureTableRef const& table, Quantiser const& quantiser,
                     LevelSplits const& splits, NodeState* out_children) {
  RowsRef rows = this->Rows();
  int const next = 1 - current_;
  RowRange* children = nodes_[next].Reserve(splits.n_children);
  SplitOrder const* orders = splits.device_orders;
  LaunchN("Route", RouteKernel, std::uint64_t{n_trained_} + 32, table, rows, orders, first_node_,
          n_nodes_, n_trained_, words_.Data(), positions_.Data());
  this->CountSides(n_trained_);
  LaunchN("Children", ChildrenKernel, n_nodes_, rows.nodes, n_nodes_, orders, splits.first_child,
          sides_, children);
  ZeroAsync(out_children, splits.n_children);
  Launch("Move", MoveKernel, CeilDiv(n_trained_, kThreads * kRowsPerThread), kThreads, rows, orders,
         splits.first_child, n_nodes_, n_trained_, sides_, children, quantiser, rows_[next].Data(),
         gpairs_[next].Data(), out_children);
  current_ = next;
  gpair_ = gpairs_[next].Data();
  first_node_ = splits.first_child;
  n_nodes_ = splits.n_children;
}

void RowOrder::Finish(FeatureTableRef const& table, std::vector<SplitOrder> const& tree) {
  LaunchN("Settle", SettleKernel, n_trained_, this->Rows(), n_nodes_, first_node_, n_trained_,
          positions_.Data());
  if (n_trained_ != n_rows_) {
    CopyAsync(tree_.Reserve(tree.size()), tree.data(), tree.size());
    LaunchN("WalkLeftOut", WalkLeftOutKernel, n_rows_, table, tree_.Data(), n_rows_,
            positions_.Data());
  }
}

std::uint64_t RowOrder::Bytes() const {
  std::uint64_t bytes = positions_.Bytes() + words_.Bytes() + tree_.Bytes() + scratch_.Bytes();
  for (int i = 0; i < 2; ++i) {
    bytes += rows_[i].Bytes() + gpairs_[i].Bytes() + nodes_[i].Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
