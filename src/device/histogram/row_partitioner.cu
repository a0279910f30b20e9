/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of row_partitioner.cuh.
 */
#include <algorithm>

#include "src/device/fixed_sum.cuh"
#include "src/device/histogram/row_partitioner.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
// Slots of a thread. More of them look up fewer nodes and make fewer additions to sums, but wait
// for each other's loads.
constexpr int kMovedSlots = 8;

// one thread a row, in whole warps and one row more
__global__ void FindTrainedKernel(TrainingRows rows, RankBitsRef trained) {
  auto row = GlobalIdx();
  bool is_trained = row < rows.n_rows && rows.Has(static_cast<RowIdx>(row));
  if (row / 32 <= rows.n_rows / 32) {
    trained.WriteWord(row, is_trained);
  }
}

// one thread a row; trained: nullptr where all are; rows left out are in the root for now
__global__ void CompactKernel(GradientPair const* gpair, RankBitsRef trained, RowIdx n_rows,
                              RowIdx* rows, GradientPair* gpairs, NodeIdx* positions,
                              ShortBucket* node_of) {
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row >= n_rows) {
    return;
  }
  bool const is_trained = trained.words == nullptr || trained.words[row / 32].Has(row);
  node_of[row] = is_trained ? 0 : kNowhere;
  if (trained.words == nullptr) {
    rows[row] = row;
    return;
  }
  if (is_trained) {
    RowIdx const slot = trained.Rank(row);
    rows[slot] = row;
    gpairs[slot] = gpair[row];
  }
  positions[row] = EncodePosition(kRoot, is_trained);
}

// one thread a node
__global__ void CountLeftKernel(RowRange const* nodes, Bucket n_nodes, RankBitsRef goes_left,
                                RowIdx* n_left) {
  auto b = GlobalIdx();
  if (b < n_nodes) {
    n_left[b] = goes_left.Rank(nodes[b].end) - goes_left.Rank(nodes[b].begin);
  }
}

// grid: slots and one more; result: the bits of nodes whose split is own
__global__ __launch_bounds__(kThreads) void KeepOwnKernel(RowsRef rows, Bucket n_nodes,
                                                          RowIdx n_slots,
                                                          std::uint8_t const* is_own,
                                                          RankBitsRef goes_left,
                                                          std::uint32_t* words) {
  ForEachSlot<kThreads, kMovedSlots>(
      rows, n_nodes, n_slots, [&](int, std::uint64_t slot, Bucket b) {
        if (slot / 32 > n_slots / 32) {
          return;
        }
        bool const left =
            b < n_nodes && is_own[b] != 0 && goes_left.words[slot / 32].Has(slot % 32);
        std::uint32_t const bits = __ballot_sync(kAllLanes, left);
        if (threadIdx.x % 32 == 0) {
          words[slot / 32] = bits;
        }
      });
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

/** @brief Where the rows of one split node go. */
struct ChildSlots {
  RankBitsRef goes_left;
  RowRange parent;
  RowIdx n_left;
  RowIdx left_before;  // left rows of the level before the node's

  [[nodiscard]] __device__ RowIdx Of(RowIdx slot, bool* out_left) const {
    RankWord const word = goes_left.words[slot / 32];
    RowIdx const rank = word.Rank(slot) - left_before;
    *out_left = word.Has(slot);
    return parent.begin + (*out_left ? rank : n_left + (slot - parent.begin - rank));
  }
};

// grid: tiles of slots; result: rows and gradients in their new slots, sums of the children, and
// positions of rows whose node is not split
__global__ __launch_bounds__(kThreads) void MoveKernel(
    RowsRef rows, SplitOrder const* orders, NodeIdx first_node, NodeIdx first_child, Bucket n_nodes,
    RowIdx n_slots, RankBitsRef goes_left, Quantiser quantiser, RowIdx* to_rows,
    GradientPair* to_gpair, NodeIdx* positions, ShortBucket* node_of, NodeState* states) {
  __shared__ ChildSums of_warps[kThreads / 32];
  unsigned const lane = threadIdx.x % 32;
  RowIdx row[kMovedSlots];  // all are asked for before the first is used
  GradientPair gpair[kMovedSlots];
#pragma unroll
  for (int j = 0; j < kMovedSlots; ++j) {
    std::uint64_t const slot = SlotOf<kThreads, kMovedSlots>(n_nodes, j);
    row[j] = slot < n_slots ? rows.rows[slot] : 0;
    gpair[j] = slot < n_slots ? rows.gpair[slot] : GradientPair{0.0f, 0.0f};
  }
  ChildSums sums;  // of the lane; all lanes are at the same node
  ForEachSlot<kThreads, kMovedSlots>(
      rows, n_nodes, n_slots, [&](int j, std::uint64_t slot, Bucket b) {
        NodeIdx left_id = b < n_nodes ? orders[b].left : kNoNode;
        bool moves = left_id != kNoNode;
        Bucket left = moves ? static_cast<Bucket>(left_id - first_child) : 0;
        ChildSums own;
        if (moves) {
          RowRange const node = rows.nodes[b];
          RowIdx const left_before = goes_left.Rank(node.begin);
          RowIdx const n_left = goes_left.Rank(node.end) - left_before;
          bool goes{false};
          RowIdx to =
              ChildSlots{goes_left, node, n_left, left_before}.Of(static_cast<RowIdx>(slot), &goes);
          to_rows[to] = row[j];
          to_gpair[to] = gpair[j];
          node_of[row[j]] = static_cast<ShortBucket>(left + (goes ? 0 : 1));
          FixedSum g = quantiser.Fixed(gpair[j]);
          FixedSum none{0, 0};
          own = {left, {goes ? g : none, goes ? none : g}, true};
        } else if (b < n_nodes) {
          positions[row[j]] = first_node + static_cast<NodeIdx>(b);
          node_of[row[j]] = kNowhere;
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

// one thread a row; result: positions of rows in open nodes
__global__ void WriteOpenPositionsKernel(ShortBucket const* node_of, NodeIdx first_node,
                                         RowIdx n_rows, NodeIdx* positions) {
  auto row = GlobalIdx();
  if (row < n_rows && node_of[row] != kNowhere) {
    positions[row] = first_node + static_cast<NodeIdx>(node_of[row]);
  }
}

// grid: slots; the same of any number of nodes
__global__ __launch_bounds__(kThreads) void WritePositionsOfSlotsKernel(
    RowsRef rows, Bucket n_nodes, NodeIdx first_node, RowIdx n_slots, NodeIdx* positions) {
  ForEachSlot<kThreads, kMovedSlots>(
      rows, n_nodes, n_slots, [&](int, std::uint64_t slot, Bucket b) {
        if (b < n_nodes) {
          positions[rows.rows[slot]] = first_node + static_cast<NodeIdx>(b);
        }
      });
}

// one thread a row
__global__ void WalkLeftOutKernel(BinnedTableRef table, SplitOrder const* tree, RowIdx n_rows,
                                  NodeIdx* positions) {
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < n_rows && positions[row] < 0) {
    NodeIdx nidx = kRoot;
    while (tree[nidx].left != kNoNode) {
      SplitOrder const s = tree[nidx];
      nidx = s.left + (table.GoesLeft(row, s.feature, s.threshold, s.default_left) ? 0 : 1);
    }
    positions[row] = EncodePosition(nidx, false);
  }
}

// one thread a row, in whole warps and one row more; result: rows left out that an own column sends
// left
__global__ void FindLeftOutKernel(BinnedTableRef table, SplitOrder const* tree, RowIdx n_rows,
                                  NodeIdx const* positions, std::uint32_t* words) {
  auto row = GlobalIdx();
  if (row / 32 > n_rows / 32) {
    return;
  }
  bool left{false};
  if (row < n_rows && positions[row] < 0) {
    SplitOrder const s = tree[DecodePosition(positions[row])];
    left = s.left != kNoNode && s.feature != TableShare::kNotOwn &&
           table.GoesLeft(static_cast<RowIdx>(row), s.feature, s.threshold, s.default_left);
  }
  std::uint32_t const bits = __ballot_sync(kAllLanes, left);
  if (threadIdx.x % 32 == 0) {
    words[row / 32] = bits;
  }
}

// one thread a row
__global__ void StepLeftOutKernel(SplitOrder const* tree, RankBitsRef goes_left, RowIdx n_rows,
                                  NodeIdx* positions) {
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < n_rows && positions[row] < 0) {
    NodeIdx const left = tree[DecodePosition(positions[row])].left;
    if (left != kNoNode) {
      positions[row] = EncodePosition(left + (goes_left.words[row / 32].Has(row) ? 0 : 1), false);
    }
  }
}

/** @brief Levels of splits. */
int DepthOf(std::vector<SplitOrder> const& tree) {
  std::vector<int> depths(tree.size(), 0);
  int deepest{0};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree[i].left != kNoNode) {
      depths[tree[i].left] = depths[tree[i].left + 1] = depths[i] + 1;
      deepest = std::max(deepest, depths[i] + 1);
    }
  }
  return deepest;
}
}  // namespace

RowPartitioner::RowPartitioner(RowIdx n_rows) : n_rows_{n_rows}, positions_{n_rows} {
  node_of_.Reserve(n_rows);
  for (int i = 0; i < 2; ++i) {
    rows_[i].Reserve(n_rows);
    gpairs_[i].Reserve(n_rows);
    ZeroAsync(rows_[i].Data(), n_rows);  // MoveKernel asks for slots of closed nodes too
    ZeroAsync(gpairs_[i].Data(), n_rows);
  }
  goes_left_.Reserve(n_rows);
}

void RowPartitioner::Reset(TrainingRows const& rows, RowIdx n_left_out) {
  current_ = 0;
  n_trained_ = n_rows_ - n_left_out;
  gpair_ = rows.gpair;
  gpair_of_row_ = rows.gpair;
  RankBitsRef trained{nullptr};
  if (n_left_out != 0) {
    trained = goes_left_.Ref();
    LaunchN("FindTrained", FindTrainedKernel, std::uint64_t{n_rows_} + 32, rows, trained);
    goes_left_.Count(n_rows_, &scratch_);
    gpair_ = gpairs_[0].Data();
  }
  LaunchN("Compact", CompactKernel, n_rows_, rows.gpair, trained, n_rows_, rows_[0].Data(),
          gpairs_[0].Data(), positions_.Data(), node_of_.Data());
  h_nodes_ = {{0, n_trained_}};
  nodes_.Upload(h_nodes_);
  first_node_ = kRoot;
}

void RowPartitioner::ShareLeft(SplitExchange* exchange) {
  auto const n_nodes = static_cast<Bucket>(h_nodes_.size());
  std::uint64_t const n_words = n_trained_ / 32 + 1;
  Launch("KeepOwn", KeepOwnKernel,
         SlotTurns::Grid(std::uint64_t{n_trained_} + 1, kThreads * kMovedSlots, n_nodes), kThreads,
         this->Rows(), n_nodes, n_trained_, exchange->IsOwn(), goes_left_.Ref(),
         exchange->OwnWords(n_words));
  exchange->JoinWords(n_words, goes_left_.Ref());
}

void RowPartitioner::CountLeft() {
  auto const n_nodes = static_cast<Bucket>(h_nodes_.size());
  goes_left_.Count(n_trained_, &scratch_);
  LaunchN("CountLeft", CountLeftKernel, n_nodes, nodes_.Data(), n_nodes, goes_left_.Ref(),
          n_left_.Reserve(n_nodes));
}

void RowPartitioner::Move(Quantiser const& quantiser, LevelSplits const& splits,
                          NodeState* out_children) {
  int const next = 1 - current_;
  ZeroAsync(out_children, splits.n_children);
  auto const n_nodes = static_cast<Bucket>(h_nodes_.size());
  Launch("Move", MoveKernel, SlotTurns::Grid(n_trained_, kThreads * kMovedSlots, n_nodes), kThreads,
         this->Rows(), splits.device_orders, first_node_, splits.first_child, n_nodes, n_trained_,
         goes_left_.Ref(), quantiser, rows_[next].Data(), gpairs_[next].Data(), positions_.Data(),
         node_of_.Data(), out_children);
  std::vector<RowRange> children;
  for (std::size_t b = 0; b < splits.orders.size(); ++b) {
    if (splits.orders[b].left != kNoNode) {
      RowIdx const middle = h_nodes_[b].begin + n_left_.Data()[b];
      children.insert(children.end(), {{h_nodes_[b].begin, middle}, {middle, h_nodes_[b].end}});
    }
  }
  h_nodes_ = std::move(children);
  nodes_.Upload(h_nodes_);
  current_ = next;
  gpair_ = gpairs_[next].Data();
  first_node_ = splits.first_child;
}

void RowPartitioner::Finish(BinnedTableRef const& table, std::vector<SplitOrder> const& tree,
                            SplitExchange* exchange) {
  auto const n_nodes = static_cast<Bucket>(h_nodes_.size());
  if (n_nodes <= kMostFollowed) {
    LaunchN("WriteOpenPositions", WriteOpenPositionsKernel, n_rows_, node_of_.Data(), first_node_,
            n_rows_, positions_.Data());
  } else {
    Launch("WritePositionsOfSlots", WritePositionsOfSlotsKernel,
           SlotTurns::Grid(n_trained_, kThreads * kMovedSlots, n_nodes), kThreads, this->Rows(),
           n_nodes, first_node_, n_trained_, positions_.Data());
  }
  if (n_trained_ == n_rows_) {
    return;
  }
  CopyAsync(tree_.Reserve(tree.size()), tree.data(), tree.size());
  if (exchange != nullptr) {
    this->RouteLeftOut(table, tree, exchange);
  } else {
    LaunchN("WalkLeftOut", WalkLeftOutKernel, n_rows_, table, tree_.Data(), n_rows_,
            positions_.Data());
  }
}

void RowPartitioner::RouteLeftOut(BinnedTableRef const& table, std::vector<SplitOrder> const& tree,
                                  SplitExchange* exchange) {
  std::uint64_t const n_words = n_rows_ / 32 + 1;
  for (int depth = DepthOf(tree); depth > 0; --depth) {
    LaunchN("FindLeftOut", FindLeftOutKernel, std::uint64_t{n_rows_} + 32, table, tree_.Data(),
            n_rows_, positions_.Data(), exchange->OwnWords(n_words));
    exchange->JoinWords(n_words, goes_left_.Ref());
    LaunchN("StepLeftOut", StepLeftOutKernel, n_rows_, tree_.Data(), goes_left_.Ref(), n_rows_,
            positions_.Data());
  }
}

std::uint64_t RowPartitioner::Bytes() const {
  std::uint64_t bytes = positions_.Bytes() + node_of_.Bytes() + goes_left_.Bytes() +
                        nodes_.Bytes() + tree_.Bytes() + scratch_.Bytes();
  for (int i = 0; i < 2; ++i) {
    bytes += rows_[i].Bytes() + gpairs_[i].Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
