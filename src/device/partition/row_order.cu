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
// Places of a thread. More of them look up fewer nodes and make fewer additions to sums, but wait
// for each other's loads.
constexpr int kRoutedPlaces = 4;
constexpr int kMovedPlaces = 8;

/** @brief Writes a warp's bits as a word. All lanes of a warp. */
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

/** @brief The j-th place of a thread: those of a warp are neighbours. */
template <int kPlaces>
__device__ std::uint64_t PlaceOf(int j) {
  std::uint64_t const warp = std::uint64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  return (warp * kPlaces + j) * 32 + threadIdx.x % 32;
}

/** @brief Calls fn(j, place, node) for each place of the thread, all lanes of a warp together;
 *         where no open node has the place, the node is n_nodes. */
template <int kPlaces, typename FnT>
__device__ void ForEachPlace(RowsRef const& rows, Bucket n_nodes, RowIdx n_places, FnT&& fn) {
  Bucket node{0};
#pragma unroll
  for (int j = 0; j < kPlaces; ++j) {
    std::uint64_t const place = PlaceOf<kPlaces>(j);
    bool is_open{false};
    if (place < n_places) {
      node = rows.FirstNode(static_cast<RowIdx>(place), n_nodes, node);
      is_open = rows.Has(node, static_cast<RowIdx>(place), n_nodes);
    }
    fn(j, place, is_open ? node : n_nodes);
  }
}

// grid: places and one more, as sides are asked for at the end of a node; result: sides, for a
// sorted winner those of missing values
__global__ __launch_bounds__(kThreads) void RouteKernel(FeatureTableRef table, RowsRef rows,
                                                        SplitOrder const* orders,
                                                        NodeIdx first_node, Bucket n_nodes,
                                                        RowIdx n_places, SideWord* words,
                                                        NodeIdx* positions) {
  ForEachPlace<kRoutedPlaces>(rows, n_nodes, n_places, [&](int, std::uint64_t place, Bucket b) {
    bool left{false};
    if (b < n_nodes) {
      SplitOrder order = orders[b];
      if (order.left == kNoNode) {
        positions[rows.rows[place]] = first_node + static_cast<NodeIdx>(b);
      } else if (table.sorted_of[order.feature] != FeatureTableRef::kNotSorted) {
        left = order.default_left;
      } else {
        left = table.GoesLeft(rows.rows[place], order);
      }
    }
    if (place / 32 <= n_places / 32) {
      WriteSide(words, place, left);
    }
  });
}

// grid: places; the k-th one of a node takes the k-th entry of its winner, which are as many as its
// rows at most; result: sides of entries that do not go as missing values do
__global__ __launch_bounds__(kThreads) void RoutePresentKernel(SortedWinnersRef winners,
                                                               RowsRef rows,
                                                               SplitOrder const* orders,
                                                               Bucket n_nodes, RowIdx n_places,
                                                               SideWord* words) {
  ForEachPlace<kRoutedPlaces>(rows, n_nodes, n_places, [&](int, std::uint64_t at, Bucket b) {
    if (b == n_nodes || orders[b].left == kNoNode) {
      return;
    }
    WinnerSegment winner = winners.segments[b];
    EntryIdx i = winner.begin + (at - rows.nodes[b].begin);
    if (i < winner.end && (i < winner.first_right) != orders[b].default_left) {
      RowIdx place = PlaceWord::Place(winners.places[i]);
      atomicXor(&words[place / 32].left, 1u << place % 32);
    }
  });
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

/** @brief Sums of the two children of one node. */
struct ChildSums {
  Bucket left{0};
  FixedSum sums[2]{};
  bool any{false};

  /** @brief Adds sums of the same node. */
  __device__ void Join(ChildSums const& that) {
    *this = {that.left, {sums[0] + that.sums[0], sums[1] + that.sums[1]}, true};
  }
  __device__ void AddTo(NodeState* children) const {
    if (any) {
      AtomicAdd(&children[left].sum, sums[0]);
      AtomicAdd(&children[left + 1].sum, sums[1]);
    }
  }
  /** @brief Of all lanes, which have the same node. */
  [[nodiscard]] __device__ ChildSums OfWarp() const {
    return {left, {SumLanes(sums[0]), SumLanes(sums[1])}, any};
  }
};

// grid: tiles of places; result: rows and gradients at their new places, sums of the children
__global__ __launch_bounds__(kThreads) void MoveKernel(RowsRef rows, SplitOrder const* orders,
                                                       NodeIdx first_child, Bucket n_nodes,
                                                       RowIdx n_places, SidesRef sides,
                                                       RowRange const* children,
                                                       Quantiser quantiser, RowIdx* to_rows,
                                                       GradientPair* to_gpair, NodeState* states) {
  __shared__ ChildSums of_warps[kThreads / 32];
  unsigned const lane = threadIdx.x % 32;
  RowIdx row[kMovedPlaces];  // all are asked for before the first is used
  GradientPair gpair[kMovedPlaces];
#pragma unroll
  for (int j = 0; j < kMovedPlaces; ++j) {
    std::uint64_t const place = PlaceOf<kMovedPlaces>(j);
    row[j] = place < n_places ? rows.rows[place] : 0;
    gpair[j] = place < n_places ? rows.gpair[place] : GradientPair{0.0f, 0.0f};
  }
  ChildSums sums;  // of the lane; all lanes are at the same node
  ForEachPlace<kMovedPlaces>(rows, n_nodes, n_places, [&](int j, std::uint64_t place, Bucket b) {
    NodeIdx left_id = b < n_nodes ? orders[b].left : kNoNode;
    bool moves = left_id != kNoNode;
    Bucket left = moves ? static_cast<Bucket>(left_id - first_child) : 0;
    ChildSums own;
    if (moves) {
      ChildPlaces at{sides, rows.nodes[b], children[left + 1]};
      bool goes_left{false};
      auto old = static_cast<RowIdx>(place);
      RowIdx to = at.Of(at.Word(old), old, &goes_left);
      to_rows[to] = row[j];
      to_gpair[to] = gpair[j];
      FixedSum g = quantiser.Fixed(gpair[j]);
      FixedSum none{0, 0};
      own = {left, {goes_left ? g : none, goes_left ? none : g}, true};
    }
    int uniform{0};
    __match_all_sync(kAllLanes, moves ? left : ~Bucket{0}, &uniform);
    if (uniform == 0) {
      own.AddTo(states);
    } else if (moves) {
      if (sums.any && sums.left != left) {
        sums = sums.OfWarp();
        if (lane == 0) {
          sums.AddTo(states);
        }
        sums = {};
      }
      sums.Join(own);
    }
  });
  // The warps of a block join first: all blocks of a large node add to the same two sums.
  sums = sums.OfWarp();
  if (lane == 0) {
    of_warps[threadIdx.x / 32] = sums;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ChildSums all;
    for (ChildSums const& s : of_warps) {
      if (all.any && s.any && all.left != s.left) {
        all.AddTo(states);
        all = {};
      }
      if (s.any) {
        all.Join(s);
      }
    }
    all.AddTo(states);
  }
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
  ZeroAsync(gpairs_[0].Data(), n_rows);  // MoveKernel asks for gradients of closed nodes too
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

void RowOrder::Split(FeatureTableRef const& table, SortedWinnersRef const& winners,
                     Quantiser const& quantiser, LevelSplits const& splits,
                     NodeState* out_children) {
  RowsRef rows = this->Rows();
  int const next = 1 - current_;
  RowRange* children = nodes_[next].Reserve(splits.n_children);
  SplitOrder const* orders = splits.device_orders;
  std::uint64_t const n_blocks =
      CeilDiv(std::uint64_t{n_trained_} + 1, std::uint64_t{kThreads} * kRoutedPlaces);
  Launch("Route", RouteKernel, n_blocks, kThreads, table, rows, orders, first_node_, n_nodes_,
         n_trained_, words_.Data(), positions_.Data());
  if (winners.places != nullptr) {
    Launch("RoutePresent", RoutePresentKernel, n_blocks, kThreads, winners, rows, orders, n_nodes_,
           n_trained_, words_.Data());
  }
  this->CountSides(n_trained_);
  LaunchN("Children", ChildrenKernel, n_nodes_, rows.nodes, n_nodes_, orders, splits.first_child,
          sides_, children);
  ZeroAsync(out_children, splits.n_children);
  Launch("Move", MoveKernel, CeilDiv(n_trained_, std::uint64_t{kThreads} * kMovedPlaces), kThreads,
         rows, orders, splits.first_child, n_nodes_, n_trained_, sides_, children, quantiser,
         rows_[next].Data(), gpairs_[next].Data(), out_children);
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
