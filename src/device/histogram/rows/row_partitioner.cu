/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements row_partitioner.cuh.
 */
#include <algorithm>

#include "device/histogram/rows/row_partitioner.cuh"
#include "device/histogram/rows/threshold_finder.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
// Rows of a thread, where there are many. More of them make fewer additions to what a node has, but wait
// for each other's loads.
constexpr int kMovedSlots = 8;

/** @brief Names the slots of nodes and what lies in them, to be written. */
struct NextRows {
  RowIdx* rows;  // nullptr: neither is to be written
  GradientUnits* units;
};

/** @brief Ranks the marked rows of a block, and has room for them. */
struct BlockRanks {
  RowIdx of_warp[kThreads / 32];

  /** @brief Count what is marked. @param marked A bit for each of a thread's rows. */
  template <int kSlots>
  __device__ void Count(std::uint32_t marked) {
    RowIdx n{0};
#pragma unroll
    for (int j = 0; j < kSlots; ++j) {
      n += __popc(__ballot_sync(kAllLanes, (marked >> j & 1u) != 0));
    }
    if (threadIdx.x % 32 == 0) {
      of_warp[threadIdx.x / 32] = n;
    }
  }
  /** @brief Count what the first warps have, after a barrier. */
  [[nodiscard]] __device__ RowIdx Before(unsigned warp) const {
    RowIdx n{0};
#pragma unroll
    for (unsigned w = 0; w < kThreads / 32; ++w) {
      n += w < warp ? of_warp[w] : 0;
    }
    return n;
  }
  [[nodiscard]] __device__ RowIdx Total() const { return this->Before(kThreads / 32); }
};

// grid: tiles of rows; n_placed: 0, nullptr where all rows are trained; rows left out are in the root for
// now
__global__ __launch_bounds__(kThreads) void CompactKernel(
    TrainingRows from, Quantiser quantiser, RowRange root, NextRows to, RowIdx* n_placed,
    GradientUnits* units_of_row, NodeIdx* positions, ShortLevelNode* node_of, RowRange* slots,
    LevelNode* numbers) {
  WaitForPreviousKernel();
  __shared__ BlockRanks ranks;
  __shared__ RowIdx first_slot;
  if (GlobalIdx() == 0) {
    slots[0] = root;
    numbers[0] = 0;
  }
  auto const row_of = [](int j) {
    return (GlobalIdx() / 32 * kMovedSlots + j) * 32 + threadIdx.x % 32;
  };
  GradientPair given[kMovedSlots];  // all are asked for before the first is used
#pragma unroll
  for (int j = 0; j < kMovedSlots; ++j) {
    given[j] = row_of(j) < from.n_rows ? from.gpair[row_of(j)] : GradientPair{0.0f, 0.0f};
  }
  std::uint32_t trained{0};
#pragma unroll
  for (int j = 0; j < kMovedSlots; ++j) {
    std::uint64_t const row = row_of(j);
    if (row < from.n_rows) {
      bool const is_trained = n_placed == nullptr || from.Has(static_cast<RowIdx>(row));
      units_of_row[row] = is_trained ? quantiser.Units(given[j]) : GradientUnits{0.0f, 0.0f};
      node_of[row] = is_trained ? 0 : kNowhere;
      trained |= (is_trained ? 1u : 0u) << j;
      if (n_placed == nullptr) {
        to.rows[row] = static_cast<RowIdx>(row);
      }
    }
  }
  if (n_placed == nullptr) {
    return;
  }
  ranks.Count<kMovedSlots>(trained);
  __syncthreads();
  if (threadIdx.x == 0) {
    first_slot = atomicAdd(n_placed, ranks.Total());
  }
  __syncthreads();
  RowIdx slot = first_slot + ranks.Before(threadIdx.x / 32);
#pragma unroll
  for (int j = 0; j < kMovedSlots; ++j) {
    std::uint64_t const row = row_of(j);
    bool const is_trained = (trained >> j & 1u) != 0;
    std::uint32_t const lanes = __ballot_sync(kAllLanes, is_trained);
    if (is_trained) {
      RowIdx const own = slot + __popc(lanes & LaneMaskLt());
      to.rows[own] = static_cast<RowIdx>(row);
      to.units[own] = units_of_row[row];
    }
    if (row < from.n_rows) {
      positions[row] = EncodePosition(kRoot, is_trained);
    }
    slot += __popc(lanes);
  }
}

// grid: RowTile's; result: rows and gradients in their new slots, numbers of their nodes, positions of rows
// of leaves, the left children's sums, and what is next to candidates
// splits: nullptr in the first pass: rows of every node with a candidate move. Else it is the second: those of
// leaves with a candidate get their position, those of nodes whose threshold reroutes move again, unless
// workers have told who goes left; others are done.
template <int kSlots, SideBy kBy>
__global__ __launch_bounds__(kThreads) void RouteSlotsKernel(LevelRowsRef level,
                                                             SplitSidesRef sides,
                                                             NodeSplit const* splits, NextRows to,
                                                             NodeIdx* positions,
                                                             ShortLevelNode* node_of) {
  WaitForPreviousKernel();
  __shared__ BlockRanks ranks;
  __shared__ FixedSum left_sums[kThreads / 32];
  __shared__ unsigned long long n_moved;
  RowTile<kThreads, kSlots> const tile{level.rows, level.n_nodes};
  LevelNode const b = tile.node;
  bool const has_split = sides.HasSplit(b);
  bool const is_leaf = !has_split || (splits != nullptr && splits[b].left == kNoNode);
  if (tile.IsEmpty() ||
      (splits != nullptr &&
       (!has_split || (!is_leaf && (kBy == SideBy::kBits || !sides.points[b].reroutes))))) {
    return;
  }
  RowIdx row[kSlots];  // all are asked for before the first is used
  GradientUnits units[kSlots];
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    row[j] = tile.Has(j) ? level.rows.rows[tile.Slot(j)] : 0;
  }
  if (is_leaf) {
#pragma unroll
    for (int j = 0; j < kSlots; ++j) {
      if (tile.Has(j)) {
        positions[row[j]] = level.first_node + static_cast<NodeIdx>(b);
        node_of[row[j]] = kNowhere;
      }
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    units[j] = tile.Has(j) ? level.rows.units[tile.Slot(j)] : GradientUnits{0.0f, 0.0f};
  }
  RowSides const found = sides.Find<kBy>(tile, row);
  ranks.Count<kSlots>(found.left);
  FixedSum sum{0, 0};
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    sum = sum + ((found.left >> j & 1u) != 0 ? units[j].Fixed() : FixedSum{0, 0});
  }
  sum = WarpSum(sum);
  unsigned const warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) {
    left_sums[warp] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long const n_left = ranks.Total();
    n_moved = atomicAdd(&sides.points[b].n_moved, n_left | (tile.Size() - n_left) << 32);
  } else if (threadIdx.x == 32) {
    FixedSum all{0, 0};
    for (FixedSum const& of_warp : left_sums) {
      all = all + of_warp;
    }
    AtomicAdd(&sides.points[b].left_sum, all);
  }
  if (kBy != SideBy::kBits && splits == nullptr) {
    found.OfWarp().OfferTo(sides.points + b);
  }
  __syncthreads();
  RowIdx const begin = level.Begin(b);
  auto const to_left = begin + static_cast<RowIdx>(n_moved);
  auto const to_right = begin + tile.slots.Size() - 1 - static_cast<RowIdx>(n_moved >> 32);
  RowIdx rank = ranks.Before(warp);
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    bool const goes_left = (found.left >> j & 1u) != 0;
    std::uint32_t const lanes = __ballot_sync(kAllLanes, goes_left);
    if (tile.Has(j)) {
      RowIdx const before = rank + __popc(lanes & LaneMaskLt());
      if (to.rows != nullptr) {
        RowIdx const slot = goes_left ? to_left + before : to_right - (tile.InTile(j) - before);
        EXACT_DEVICE_CHECK(slot - begin < tile.slots.Size());
        to.rows[slot] = row[j];
        to.units[slot] = units[j];
      }
      node_of[row[j]] = static_cast<ShortLevelNode>(2 * b + (goes_left ? 0 : 1));
    }
    rank += __popc(lanes);
  }
}

/** @brief Names what is known of the children of a level, to be written. */
struct ChildrenRef {
  NodeIdx first;
  RowRange* slots;     // by child
  LevelNode* numbers;  // by child
  NodeState* states;   // by child: their sums
  NodeIdx* ids;        // by number
};

// one thread a node; result: thresholds and the children; what is to be found once more begins anew
__global__ void FinishRoutingKernel(LevelRowsRef level, SplitSidesRef sides,
                                    NodeSplit const* splits, NodeState const* states,
                                    ChildrenRef children, RoutedNode* out) {
  WaitForPreviousKernel();
  auto const b = static_cast<LevelNode>(GlobalIdx());
  if (b >= level.n_nodes) {
    return;
  }
  RowRange const slots = level.rows.nodes[b];
  NodeThreshold* const point = sides.points + b;
  RoutedNode routed{static_cast<RowIdx>(point->n_moved), point->threshold, false, false};
  if (splits[b].left == kNoNode) {
    routed.stays = sides.HasSplit(b) && slots.Size() != 0;
    out[b] = routed;
    return;
  }
  if (!sides.AreTold() && point->HasThreshold() && !point->reroutes) {
    point->FindThreshold();
    routed.threshold = point->threshold;
    routed.moves_again = point->reroutes;
  }
  out[b] = routed;
  RowIdx const begin = level.Begin(b);
  RowIdx const middle = begin + routed.n_left;
  auto const left = static_cast<LevelNode>(splits[b].left - children.first);
  children.slots[left] = {begin, middle};
  children.slots[left + 1] = {middle, begin + slots.Size()};
  children.states[left].sum = point->left_sum;
  children.states[left + 1].sum = states[b].sum - point->left_sum;
  for (LevelNode side = 0; side < 2; ++side) {
    children.numbers[left + side] = 2 * b + side;
    children.ids[2 * b + side] = splits[b].left + static_cast<NodeIdx>(side);
  }
  if (routed.moves_again) {
    point->n_moved = 0;
    point->left_sum = {0, 0};
  }
}

// one thread a row; result: positions of rows in live nodes; ids: by number
__global__ void WritePositionsByNumberKernel(ShortLevelNode const* node_of, NodeIdx const* ids,
                                             RowIdx n_rows, NodeIdx* positions) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row < n_rows && node_of[row] != kNowhere) {
    positions[row] = ids[node_of[row]];
  }
}

// grid: RowTile's; the same of any number of nodes
__global__ __launch_bounds__(kThreads) void WritePositionsOfSlotsKernel(RowsRef rows,
                                                                        LevelNode n_nodes,
                                                                        NodeIdx first_node,
                                                                        NodeIdx* positions) {
  WaitForPreviousKernel();
  RowTile<kThreads, kMovedSlots> const tile{rows, n_nodes};
  for (int j = 0; j < kMovedSlots; ++j) {
    if (tile.Has(j)) {
      positions[rows.rows[tile.Slot(j)]] = first_node + static_cast<NodeIdx>(tile.node);
    }
  }
}

/** @brief Tell whether a row goes to the left child of a node, whose column is here. */
__device__ bool GoesLeft(BinnedTableRef const& table, std::uint32_t const* sets, RowIdx row,
                         OwnSplit const& s) {
  FeatureIdx const f = InOwnTable(s.column);
  return s.split.by_categories
             ? table.GoesLeft(row, f, sets + s.split.first_set_word, s.split.default_left)
             : table.GoesLeft(row, f, s.split.threshold, s.split.default_left);
}

// one thread a row
__global__ void WalkLeftOutKernel(BinnedTableRef table, OwnSplit const* tree,
                                  std::uint32_t const* sets, RowIdx n_rows, NodeIdx* positions) {
  WaitForPreviousKernel();
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < n_rows && positions[row] < 0) {
    NodeIdx nidx = kRoot;
    while (tree[nidx].split.left != kNoNode) {
      OwnSplit const s = tree[nidx];
      nidx = s.split.left + (GoesLeft(table, sets, row, s) ? 0 : 1);
    }
    positions[row] = EncodePosition(nidx, false);
  }
}

// one thread a row, in whole warps and one row more; result: rows left out that an own column sends
// left
__global__ void FindLeftOutKernel(BinnedTableRef table, OwnSplit const* tree,
                                  std::uint32_t const* sets, RowIdx n_rows,
                                  NodeIdx const* positions, std::uint32_t* words) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row / 32 > n_rows / 32) {
    return;
  }
  bool left{false};
  if (row < n_rows && positions[row] < 0) {
    OwnSplit const s = tree[DecodePosition(positions[row])];
    left = s.column != kRemoteColumn && GoesLeft(table, sets, static_cast<RowIdx>(row), s);
  }
  std::uint32_t const bits = __ballot_sync(kAllLanes, left);
  if (threadIdx.x % 32 == 0) {
    words[row / 32] = bits;
  }
}

// one thread a row
__global__ void StepLeftOutKernel(OwnSplit const* tree, std::uint32_t const* goes_left,
                                  RowIdx n_rows, NodeIdx* positions) {
  WaitForPreviousKernel();
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < n_rows && positions[row] < 0) {
    NodeIdx const left = tree[DecodePosition(positions[row])].split.left;
    if (left != kNoNode) {
      bool const goes = (goes_left[row / 32] >> row % 32 & 1u) != 0;
      positions[row] = EncodePosition(left + (goes ? 0 : 1), false);
    }
  }
}

/** @brief Tell whether two bytes number the children of so many nodes. */
bool ChildrenHaveNumbers(LevelNode n_nodes) { return 2 * std::uint64_t{n_nodes} <= kNowhere; }

/** @brief Count the levels of splits. */
int DepthOf(std::vector<NodeSplit> const& tree) {
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
    units_[i].Reserve(n_rows);
  }
  units_of_row_.Reserve(n_rows);
  n_placed_.Reserve(1);
}

void RowPartitioner::Reset(TrainingRows const& rows, RowIdx n_left_out, Quantiser const& quantiser,
                           Level* root) {
  current_ = 0;
  has_slots_ = has_numbers_ = true;
  n_trained_ = n_rows_ - n_left_out;
  root->row_ranges = {{0, n_trained_}};
  current_units_ = n_left_out == 0 ? units_of_row_.Data() : units_[0].Data();
  if (n_left_out != 0) {
    ZeroAsync(n_placed_.Data(), 1);
  }
  // Where there is no row, the root has none.
  Launch("Compact", CompactKernel, CeilDiv(std::max(n_rows_, RowIdx{1}), kThreads * kMovedSlots),
         kThreads, rows, quantiser, root->row_ranges.front(),
         NextRows{rows_[0].Data(), units_[0].Data()}, n_left_out == 0 ? nullptr : n_placed_.Data(),
         units_of_row_.Data(), positions_.Data(), node_of_.Data(),
         root->device_row_ranges.Reserve(1), numbers_[0].Reserve(1));
}

void RowPartitioner::Route(Level const& level, SplitSidesRef const& sides) {
  LevelNode const n_nodes = level.nodes.n;
  RowIdx n_rows{0};
  for (RowRange const& slots : level.row_ranges) {
    n_rows += slots.Size();
  }
  // Leaves leave gaps, which are closed up once they are half of the slots.
  bool const stay = n_rows >= level.NumSlots() / 2;
  begins_.clear();
  n_rows = 0;
  for (RowRange const& slots : level.row_ranges) {
    begins_.push_back(stay ? slots.begin : n_rows);
    n_rows += slots.Size();
  }
  device_begins_ = stay ? nullptr : begins_uploader_.Upload(begins_);
  moves_ = !level.is_last ||
           !ChildrenHaveNumbers(n_nodes);  // else all that is asked for is the node of a row
  this->LaunchRoute(level, sides, nullptr);
  if (!sides.AreTold() && sides.table.values_of_host) {
    FindValuesBeyond(sides, this->Rows(level), n_nodes, level.NumSlots());
  }
}

void RowPartitioner::LaunchRoute(Level const& level, SplitSidesRef const& sides,
                                 NodeSplit const* splits) {
  int const next = 1 - current_;
  NextRows const to{moves_ ? rows_[next].Data() : nullptr, units_[next].Data()};
  bool const by_bins = splits == nullptr && sides.table.values_of_host;
  WithSlots<kMovedSlots>(level.NumSlots(), [&](auto slots) {
    constexpr int kSlots = decltype(slots)::value;
    auto const kernel = sides.AreTold() ? RouteSlotsKernel<kSlots, SideBy::kBits>
                        : by_bins       ? RouteSlotsKernel<kSlots, SideBy::kBin>
                                        : RouteSlotsKernel<kSlots, SideBy::kValue>;
    Launch("RouteSlots", kernel, RowTile<kThreads, kSlots>::Grid(level.NumSlots(), level.nodes.n),
           kThreads, this->Ref(level), sides, splits, to, positions_.Data(), node_of_.Data());
  });
}

void RowPartitioner::Partition(Level const& level, SplitSidesRef const& sides,
                               LevelSplits const& splits, Level* children) {
  int const next = 1 - current_;
  LevelNode const n_nodes = level.nodes.n;
  ChildrenRef const ref{children->nodes.first,
                        children->device_row_ranges.Reserve(2 * std::size_t{n_nodes}),
                        numbers_[next].Reserve(2 * std::size_t{n_nodes}), children->states.Data(),
                        ids_.Reserve(2 * std::size_t{n_nodes})};
  RoutedNode* const routed = routed_.Reserve(n_nodes);
  auto const any = [&](bool RoutedNode::*what) {
    return std::any_of(routed, routed + n_nodes, [=](RoutedNode const& r) { return r.*what; });
  };
  auto const finish = [&] {
    LaunchN("FinishRouting", FinishRoutingKernel, n_nodes, this->Ref(level), sides,
            splits.device_node_splits, level.states.Data(), ref, routed);
    is_routed_.Record();
    is_routed_.Await();
  };
  finish();
  bool const moves_again = any(&RoutedNode::moves_again);
  if (moves_again || any(&RoutedNode::stays)) {
    this->LaunchRoute(level, sides, splits.device_node_splits);
  }
  if (moves_again) {
    finish();
  }
  children->row_ranges.clear();
  for (LevelNode const b : children->parents) {
    RowIdx const middle = begins_[b] + routed[b].n_left;
    RowIdx const end = begins_[b] + level.row_ranges[b].Size();
    children->row_ranges.insert(children->row_ranges.end(), {{begins_[b], middle}, {middle, end}});
    if (!sides.AreTold()) {
      (*splits.node_splits)[b].threshold = routed[b].threshold;
    }
  }
  has_numbers_ = ChildrenHaveNumbers(n_nodes);
  has_slots_ = moves_;
  current_ = next;
  current_units_ = units_[next].Data();
}

LevelRowsRef RowPartitioner::Ref(Level const& level) const {
  return {this->Rows(level), level.nodes.n, level.nodes.first, device_begins_};
}

void RowPartitioner::Finish(Level const& level, BinnedTableRef const& table,
                            std::vector<NodeSplit> const& tree, std::uint32_t const* sets,
                            SplitExchange* exchange) {
  LevelNodes const& nodes = level.nodes;
  if (has_slots_) {
    Launch("WritePositionsOfSlots", WritePositionsOfSlotsKernel,
           RowTile<kThreads, kMovedSlots>::Grid(level.NumSlots(), nodes.n), kThreads,
           this->Rows(level), nodes.n, nodes.first, positions_.Data());
  } else {
    LaunchN("WritePositionsByNumber", WritePositionsByNumberKernel, n_rows_, node_of_.Data(),
            ids_.Data(), n_rows_, positions_.Data());
  }
  if (n_trained_ == n_rows_) {
    return;
  }
  std::vector<OwnSplit> own_tree;
  for (NodeSplit const& split : tree) {
    own_tree.push_back({split, ColumnOf(split, exchange)});
  }
  CopyFromHost(tree_.Reserve(tree.size()), own_tree.data(), own_tree.size());
  if (exchange != nullptr) {
    this->RouteLeftOut(table, tree, sets, exchange);
  } else {
    LaunchN("WalkLeftOut", WalkLeftOutKernel, n_rows_, table, tree_.Data(), sets, n_rows_,
            positions_.Data());
  }
}

void RowPartitioner::RouteLeftOut(BinnedTableRef const& table, std::vector<NodeSplit> const& tree,
                                  std::uint32_t const* sets, SplitExchange* exchange) {
  std::uint64_t const n_words = n_rows_ / 32 + 1;
  std::uint32_t* const goes_left = left_out_.Reserve(n_words);
  for (int depth = DepthOf(tree); depth > 0; --depth) {
    LaunchN("FindLeftOut", FindLeftOutKernel, std::uint64_t{n_rows_} + 32, table, tree_.Data(),
            sets, n_rows_, positions_.Data(), exchange->OwnWords(n_words));
    exchange->JoinWords(n_words, goes_left);
    LaunchN("StepLeftOut", StepLeftOutKernel, n_rows_, tree_.Data(), goes_left, n_rows_,
            positions_.Data());
  }
}
}  // namespace gpu_exact
