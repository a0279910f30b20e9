/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements row_partitioner.cuh.
 */
#include <algorithm>

#include "device/histogram/rows/row_partitioner.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
// Slots of a thread, where there are many. More of them look up fewer nodes and make fewer additions
// to sums, but wait for each other's loads.
constexpr int kMovedSlots = 8;
constexpr int kFoundWords = 4;
constexpr int kFollowedRows = 8;

// one thread a row, in whole warps and one row more
__global__ void FindTrainedKernel(TrainingRows rows, RankBitVectorRef trained) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  bool is_trained = row < rows.n_rows && rows.Has(static_cast<RowIdx>(row));
  if (row / 32 <= rows.n_rows / 32) {
    trained.WriteWord(row, is_trained);
  }
}

/** @brief Names the slots of nodes and what lies in them, to be written. */
struct NextRows {
  RowIdx* rows;
  GradientUnits* units;
  RowRange* nodes;
};

// one thread a row; trained: nullptr where all are; rows left out are in the root for now
__global__ void CompactKernel(GradientPair const* gpair, Quantiser quantiser,
                              RankBitVectorRef trained, RowIdx n_rows, RowRange root, NextRows to,
                              GradientUnits* units_of_row, NodeIdx* positions,
                              ShortLevelNode* node_of) {
  WaitForPreviousKernel();
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row == 0) {
    to.nodes[0] = root;
  }
  if (row >= n_rows) {
    return;
  }
  bool const is_trained = trained.words == nullptr || trained.words[row / 32].Has(row);
  GradientUnits const own = is_trained ? quantiser.Units(gpair[row]) : GradientUnits{0.0f, 0.0f};
  units_of_row[row] = own;
  node_of[row] = is_trained ? 0 : kNowhere;
  if (trained.words == nullptr) {
    to.rows[row] = row;
    return;
  }
  if (is_trained) {
    RowIdx const slot = trained.Rank(row);
    to.rows[slot] = row;
    to.units[slot] = own;
  }
  positions[row] = EncodePosition(kRoot, is_trained);
}

// one warp kFoundWords words of slots
__global__ void FindLeftOfSlotsKernel(RowIdx const* rows, std::uint32_t const* left_of_row,
                                      RowIdx n_slots, RankBitVectorRef goes_left) {
  WaitForPreviousKernel();
  std::uint64_t const first = GlobalIdx() / 32 * kFoundWords * 32 + threadIdx.x % 32;
  RowIdx row[kFoundWords];  // all are asked for before the first is used
#pragma unroll
  for (int k = 0; k < kFoundWords; ++k) {
    std::uint64_t const slot = first + 32 * k;
    row[k] = slot < n_slots ? rows[slot] : 0;
  }
#pragma unroll
  for (int k = 0; k < kFoundWords; ++k) {
    std::uint64_t const slot = first + 32 * k;
    if (slot / 32 <= n_slots / 32) {
      bool const left = (left_of_row[row[k] / 32] >> row[k] % 32 & 1u) != 0;
      goes_left.WriteWord(slot, slot < n_slots && left);
    }
  }
}

// one thread kFollowedRows rows; result: the nodes of the next level, and positions of rows that are
// in none
__global__ void FollowKernel(NodeSplit const* node_splits, std::uint32_t const* left_of_row,
                             NodeIdx first_node, NodeIdx first_child, RowIdx n_rows,
                             NodeIdx* positions, ShortLevelNode* node_of) {
  WaitForPreviousKernel();
  std::uint64_t const first = GlobalIdx() * kFollowedRows;
  if (first >= n_rows) {
    return;
  }
  struct alignas(16) Nodes {
    ShortLevelNode of_row[kFollowedRows];
  } nodes;
  bool const is_whole = first + kFollowedRows <= n_rows;
  int const n = is_whole ? kFollowedRows : static_cast<int>(n_rows - first);
  if (is_whole) {
    nodes = *reinterpret_cast<Nodes const*>(node_of + first);
  } else {
    for (int k = 0; k < n; ++k) {
      nodes.of_row[k] = node_of[first + k];
    }
  }
  std::uint32_t const left_bits = left_of_row[first / 32] >> first % 32;
#pragma unroll
  for (int k = 0; k < kFollowedRows; ++k) {
    ShortLevelNode const b = k < n ? nodes.of_row[k] : kNowhere;
    if (b == kNowhere) {
      continue;
    }
    NodeIdx const left = node_splits[b].left;
    if (left == kNoNode) {
      positions[first + k] = first_node + static_cast<NodeIdx>(b);
      nodes.of_row[k] = kNowhere;
    } else {
      std::uint32_t const goes_right = ~left_bits >> k & 1u;
      nodes.of_row[k] = static_cast<ShortLevelNode>(left - first_child + goes_right);
    }
  }
  if (is_whole) {
    *reinterpret_cast<Nodes*>(node_of + first) = nodes;
  } else {
    for (int k = 0; k < n; ++k) {
      node_of[first + k] = nodes.of_row[k];
    }
  }
}

/** @brief Sums the two children of one node. */
struct ChildSums {
  LevelNode left{0};
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
  /** @brief Sum all lanes, which have the same node. */
  [[nodiscard]] __device__ ChildSums OfWarp() const {
    return {left, {WarpSum(sums[0]), WarpSum(sums[1])}, any};
  }
};

/** @brief Remembers what a thread knows of its slot's node; Enter() looks it up only where that
 *         changes. */
struct NodeOfSlot {
  LevelNode node{~LevelNode{0}};  // none yet
  bool is_split{false};
  LevelNode left{0};  // its left child, among the children
  RowRange slots{};
  RowIdx to{0};  // where its rows begin on the next level
  RowIdx n_left{0};
  RowIdx left_before{0};  // left rows of the level before the node's

  __device__ void Enter(LevelNode b, RowsRef const& rows, LevelNode n_nodes,
                        NodeSplit const* node_splits, RowIdx const* begins, NodeIdx first_child,
                        RankBitVectorRef const& goes_left) {
    if (b == node) {
      return;
    }
    node = b;
    NodeIdx const left_id = b < n_nodes ? node_splits[b].left : kNoNode;
    is_split = left_id != kNoNode;
    if (is_split) {
      left = static_cast<LevelNode>(left_id - first_child);
      slots = rows.nodes[b];
      to = begins != nullptr ? begins[b] : slots.begin;
      left_before = goes_left.Rank(slots.begin);
      n_left = goes_left.Rank(slots.end) - left_before;
    }
  }
  /** @brief Tell where the row in a slot goes. @param word The slot's. */
  [[nodiscard]] __device__ RowIdx SlotInChild(RowIdx slot, RankWord const& word) const {
    RowIdx const rank = word.Rank(slot) - left_before;
    return to + (word.Has(slot) ? rank : n_left + (slot - slots.begin - rank));
  }
};

// grid: tiles of slots; begins: by node, where its rows begin on the next level, nullptr: where they do
// now; result: sums and slots of the children; rows and gradients in their new slots,
// unless to.rows is nullptr; and positions and nodes of rows, unless node_of is nullptr
template <int kSlots>
__global__ __launch_bounds__(kThreads) void MoveKernel(RowsRef rows, NodeSplit const* node_splits,
                                                       RowIdx const* begins, NodeIdx first_node,
                                                       NodeIdx first_child, LevelNode n_nodes,
                                                       RowIdx n_slots, RankBitVectorRef goes_left,
                                                       NextRows to, NodeIdx* positions,
                                                       ShortLevelNode* node_of, NodeState* states) {
  WaitForPreviousKernel();
  __shared__ ChildSums of_warps[kThreads / 32];
  unsigned const lane = threadIdx.x % 32;
  RowIdx row[kSlots];  // all are asked for before the first is used
  GradientUnits units[kSlots];
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    std::uint64_t const slot = SlotOf<kThreads, kSlots>(n_nodes, j);
    row[j] = to.rows != nullptr && slot < n_slots ? rows.rows[slot] : 0;
    units[j] = slot < n_slots ? rows.units[slot] : GradientUnits{0.0f, 0.0f};
  }
  NodeOfSlot at;
  for (auto b = GlobalIdx(); b < n_nodes; b += std::uint64_t{gridDim.x} * kThreads) {
    at.Enter(static_cast<LevelNode>(b), rows, n_nodes, node_splits, begins, first_child, goes_left);
    if (at.is_split) {
      RowIdx const middle = at.to + at.n_left;
      to.nodes[at.left] = {at.to, middle};
      to.nodes[at.left + 1] = {middle, at.to + at.slots.Size()};
    }
  }
  ChildSums sums;  // of the lane; all lanes are at the same node
  ForEachSlot<kThreads, kSlots>(
      rows, n_nodes, n_slots, [&](int j, std::uint64_t slot, LevelNode b) {
        at.Enter(b, rows, n_nodes, node_splits, begins, first_child, goes_left);
        ChildSums own;
        if (at.is_split) {
          RankWord const word = goes_left.words[slot / 32];
          bool const goes = word.Has(static_cast<RowIdx>(slot));
          if (to.rows != nullptr) {
            RowIdx const in_child = at.SlotInChild(static_cast<RowIdx>(slot), word);
            EXACT_DEVICE_CHECK(in_child - at.to < at.slots.end - at.slots.begin);
            to.rows[in_child] = row[j];
            to.units[in_child] = units[j];
          }
          if (node_of != nullptr) {
            node_of[row[j]] = static_cast<ShortLevelNode>(at.left + (goes ? 0 : 1));
          }
          FixedSum const g = units[j].Fixed();
          FixedSum none{0, 0};
          own = {at.left, {goes ? g : none, goes ? none : g}, true};
        } else if (b < n_nodes && node_of != nullptr) {
          positions[row[j]] = first_node + static_cast<NodeIdx>(b);
          node_of[row[j]] = kNowhere;
        }
        int uniform{0};
        __match_all_sync(kAllLanes, at.is_split ? at.left : ~LevelNode{0}, &uniform);
        if (uniform == 0) {
          own.AddTo(states);
        } else if (at.is_split) {
          if (sums.any && sums.left != at.left) {
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
__global__ void WriteOpenPositionsKernel(ShortLevelNode const* node_of, NodeIdx first_node,
                                         RowIdx n_rows, NodeIdx* positions) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row < n_rows && node_of[row] != kNowhere) {
    positions[row] = first_node + static_cast<NodeIdx>(node_of[row]);
  }
}

// grid: slots; the same of any number of nodes
__global__ __launch_bounds__(kThreads) void WritePositionsOfSlotsKernel(
    RowsRef rows, LevelNode n_nodes, NodeIdx first_node, RowIdx n_slots, NodeIdx* positions) {
  WaitForPreviousKernel();
  ForEachSlot<kThreads, kMovedSlots>(
      rows, n_nodes, n_slots, [&](int, std::uint64_t slot, LevelNode b) {
        if (b < n_nodes) {
          positions[rows.rows[slot]] = first_node + static_cast<NodeIdx>(b);
        }
      });
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
__global__ void StepLeftOutKernel(OwnSplit const* tree, RankBitVectorRef goes_left, RowIdx n_rows,
                                  NodeIdx* positions) {
  WaitForPreviousKernel();
  auto row = static_cast<RowIdx>(GlobalIdx());
  if (row < n_rows && positions[row] < 0) {
    NodeIdx const left = tree[DecodePosition(positions[row])].split.left;
    if (left != kNoNode) {
      positions[row] = EncodePosition(left + (goes_left.words[row / 32].Has(row) ? 0 : 1), false);
    }
  }
}

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

RowPartitioner::RowPartitioner(RowIdx n_rows, RowIdx min_by_row)
    : n_rows_{n_rows}, min_by_row_{min_by_row}, positions_{n_rows} {
  node_of_.Reserve(n_rows);
  for (int i = 0; i < 2; ++i) {
    rows_[i].Reserve(n_rows);
    units_[i].Reserve(n_rows);
  }
  units_of_row_.Reserve(n_rows);
  goes_left_.Reserve(n_rows);
}

void RowPartitioner::Reset(TrainingRows const& rows, RowIdx n_left_out, Quantiser const& quantiser,
                           bool by_row, Level* root) {
  current_ = 0;
  n_trained_ = n_rows_ - n_left_out;
  by_row_ = by_row && n_rows_ >= min_by_row_;
  if (by_row_) {
    left_of_row_.Reserve(n_rows_ / 32 + std::size_t{1});
  }
  root->row_ranges = {{0, n_trained_}};
  current_units_ = units_of_row_.Data();
  RankBitVectorRef trained{nullptr};
  if (n_left_out != 0) {
    trained = goes_left_.Ref();
    LaunchN("FindTrained", FindTrainedKernel, std::uint64_t{n_rows_} + 32, rows, trained);
    goes_left_.Count(n_rows_);
    current_units_ = units_[0].Data();
  }
  // Where there is no row, the root has none.
  LaunchN("Compact", CompactKernel, std::max(n_rows_, RowIdx{1}), rows.gpair, quantiser, trained,
          n_rows_, root->row_ranges.front(),
          NextRows{rows_[0].Data(), units_[0].Data(), root->device_row_ranges.Reserve(1)},
          units_of_row_.Data(), positions_.Data(), node_of_.Data());
}

bool RowPartitioner::GoesByRow(Level const& level) const {
  return by_row_ && level.nodes.n <= kMostByRow && level.NumSlots() >= n_rows_ / 2;
}

void RowPartitioner::FindLeft(Level const& level) {
  std::uint64_t const n_words = level.NumSlots() / 32 + std::uint64_t{1};
  LaunchN("FindLeftOfSlots", FindLeftOfSlotsKernel, CeilDiv(n_words, kFoundWords) * 32,
          rows_[current_].Data(), left_of_row_.Data(), level.NumSlots(), goes_left_.Ref());
}

void RowPartitioner::CountLeft(Level const& level) {
  goes_left_.Count(level.NumSlots(),
                   {level.device_row_ranges.Data(), level.nodes.n, n_left_.Reserve(level.nodes.n)});
  counted_.Record();
}

void RowPartitioner::Move(Level const& level, LevelSplits const& splits, Level* children) {
  int const next = 1 - current_;
  LevelNode const n_nodes = level.nodes.n;
  RowIdx const n_slots = level.NumSlots();
  bool const by_row = this->GoesByRow(level);
  std::vector<RowIdx> begins;  // where a node's rows begin on the next level
  RowIdx n_open{0};
  for (LevelNode b = 0; b < n_nodes; ++b) {
    begins.push_back(n_open);
    n_open += splits.node_splits[b].left != kNoNode ? level.row_ranges[b].Size() : 0;
  }
  NextRows const to{by_row && !children->is_searched ? nullptr : rows_[next].Data(),
                    units_[next].Data(),
                    children->device_row_ranges.Reserve(2 * std::size_t{n_nodes})};
  RowIdx const* const d_begins = n_open == n_slots ? nullptr : begins_.Upload(begins);
  WithSlots<kMovedSlots>(n_slots, [&](auto slots) {
    constexpr int kSlots = decltype(slots)::value;
    // Nodes without rows are split, too.
    Launch("Move", MoveKernel<kSlots>,
           SlotTurns::Grid(std::max(n_slots, RowIdx{1}), kThreads * kSlots, n_nodes), kThreads,
           this->Rows(level), splits.device_node_splits, d_begins, level.nodes.first,
           children->nodes.first, n_nodes, n_slots, goes_left_.Ref(), to, positions_.Data(),
           by_row ? nullptr : node_of_.Data(), children->states.Data());
  });
  if (by_row) {
    LaunchN("Follow", FollowKernel, CeilDiv(n_rows_, kFollowedRows), splits.device_node_splits,
            left_of_row_.Data(), level.nodes.first, children->nodes.first, n_rows_,
            positions_.Data(), node_of_.Data());
  }
  counted_.Await();
  children->row_ranges.clear();
  for (LevelNode const b : children->parents) {
    RowIdx const middle = begins[b] + n_left_.Data()[b];
    RowIdx const end = begins[b] + level.row_ranges[b].Size();
    children->row_ranges.insert(children->row_ranges.end(), {{begins[b], middle}, {middle, end}});
  }
  current_ = next;
  current_units_ = units_[next].Data();
}

void RowPartitioner::Finish(Level const& level, BinnedTableRef const& table,
                            std::vector<NodeSplit> const& tree, std::uint32_t const* sets,
                            SplitExchange* exchange) {
  LevelNodes const& nodes = level.nodes;
  if (nodes.n <= kMostFollowed) {
    LaunchN("WriteOpenPositions", WriteOpenPositionsKernel, n_rows_, node_of_.Data(), nodes.first,
            n_rows_, positions_.Data());
  } else {
    Launch("WritePositionsOfSlots", WritePositionsOfSlotsKernel,
           SlotTurns::Grid(level.NumSlots(), kThreads * kMovedSlots, nodes.n), kThreads,
           this->Rows(level), nodes.n, nodes.first, level.NumSlots(), positions_.Data());
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
  for (int depth = DepthOf(tree); depth > 0; --depth) {
    LaunchN("FindLeftOut", FindLeftOutKernel, std::uint64_t{n_rows_} + 32, table, tree_.Data(),
            sets, n_rows_, positions_.Data(), exchange->OwnWords(n_words));
    exchange->JoinWords(n_words, goes_left_.Ref());
    LaunchN("StepLeftOut", StepLeftOutKernel, n_rows_, tree_.Data(), goes_left_.Ref(), n_rows_,
            positions_.Data());
  }
}
}  // namespace gpu_exact
