/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements column_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/block/block_radix_rank.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "device/runtime/device_context.cuh"
#include "device/runtime/fixed_sum.cuh"
#include "device/sort/column_finder.cuh"
#include "device/sort/split_agent.cuh"
#include "device/sort/thresholds.cuh"

namespace gpu_exact {
namespace {
/** @brief Holds an entry of a lane; kNoLevelNode where the lane has none, or its row is in no node that is
 *         searched. */
struct LaneEntry {
  ValueId value{0};
  LevelNode level_node{kNoLevelNode};
  GradientUnits units{0.0f, 0.0f};
};

/**
 * @brief Load several runs of up to 32 entries, all at once. All lanes of a warp.
 * @param runs runs(k) -> EntryRange of the k-th one.
 */
template <int kRuns, typename RunsFn>
__device__ void LoadRuns(TilesRef const& in, RowNodesRef const& rows, RunsFn&& runs,
                         LaneEntry (&out)[kRuns]) {
  ColumnEntry entries[kRuns];
  bool has_entry[kRuns];
#pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    EntryRange const run = runs(k);
    EntryIdx const i = run.begin + threadIdx.x % 32;
    has_entry[k] = i < run.end;
    if (has_entry[k]) {
      entries[k] = in.entries[i];
    }
  }
#pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    if (has_entry[k]) {
      out[k].value = entries[k].value;
      out[k].level_node = rows.NodeOf(entries[k].row);
    }
  }
#pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    if (out[k].level_node != kNoLevelNode) {
      out[k].units = rows.units[entries[k].row];
    }
  }
}

/** @brief Links the lanes of a warp whose entries are of one segment, ascending as entries do. */
struct LaneList {
  unsigned lanes;

  /** @brief Link by all lanes of a warp. @param word Alike for entries of one segment. */
  __device__ explicit LaneList(std::uint32_t word) : lanes{__match_any_sync(kAllLanes, word)} {}

  [[nodiscard]] __device__ bool IsFirst() const { return (lanes & LaneMaskLt()) == 0; }
  [[nodiscard]] __device__ bool IsLast() const { return lanes >> threadIdx.x % 32 == 1; }
  [[nodiscard]] __device__ int Last() const { return 31 - __clz(static_cast<int>(lanes)); }
  /** @brief Find the lane before this one; -1: there is none. */
  [[nodiscard]] __device__ int Before() const {
    return 31 - __clz(static_cast<int>(lanes & LaneMaskLt()));
  }
  /** @brief Get the value of the lane before, if there is one. All lanes of a warp. */
  [[nodiscard]] __device__ ValueId ValueBefore(ValueId value) const {
    return __shfl_sync(kAllLanes, value, this->Before() & 31);
  }
  /**
   * @brief Sum the list's lanes up to this one: each adds what the one before it has, then
   *        looks twice as far. All lanes of a warp.
   */
  [[nodiscard]] __device__ FixedSum SumUpTo(FixedSum sum) const {
    int before = this->Before();
    while (__any_sync(kAllLanes, before >= 0)) {
      int const from = max(before, 0);
      FixedSum const of_before = Shuffle(sum, from);
      int const next = __shfl_sync(kAllLanes, before, from);
      if (before >= 0) {
        sum = sum + of_before;
        before = next;
      }
    }
    return sum;
  }
};

/** @brief Keeps totals of nodes in shared memory, as long as these are few. */
struct NodeTotals {
  NodeTotal few[kNodesAPass];  // of up to so many nodes

  /** @brief Load by all threads of a block; then comes a barrier. */
  __device__ void Load(LevelRef const& lv) {
    if (lv.n_nodes <= kNodesAPass && threadIdx.x < lv.n_nodes) {
      few[threadIdx.x] = Of(lv, threadIdx.x);
    }
  }
  [[nodiscard]] __device__ NodeTotal Get(LevelRef const& lv, LevelNode level_node) const {
    return lv.n_nodes <= kNodesAPass ? few[level_node] : Of(lv, level_node);
  }

 private:
  __device__ static NodeTotal Of(LevelRef const& lv, LevelNode level_node) {
    return {lv.nodes[level_node].sum, lv.GainToBeat(level_node)};
  }
};

/**
 * @brief Offer the candidate before an entry, or before the first of its segment the one between
 *        present and missing values, if it may reach the gain to beat.
 * @param before  Sum of the segment's entries before this one.
 * @param present Sum of all its entries.
 */
__device__ void OfferAt(LevelRef const& lv, NodeTotal const& node, LaneEntry const& entry,
                        FixedSum const& before, FixedSum const& present, bool is_first) {
  bool const missing = !(present == node.sum);
  bool const may_reach =
      is_first ? missing && lv.bound.MayReach(node.to_beat, present, node.sum - present)
               : lv.MayReach(node.to_beat, node.sum, before, present, missing);
  if (may_reach) {
    NodeState const& state = lv.nodes[entry.level_node];
    FeatureIdx const f = lv.columns.FeatureOf(entry.value);
    lv.Offer(entry.level_node, is_first ? lv.PresentKey(state, f, present)
                                        : lv.BoundaryKey(state, f, entry.value, before, present));
  }
}

/** @brief Holds what a warp has of each node, of a column. */
using WarpSums = TileSum[kNodesAPass];

/** @brief Clear them by all lanes of a warp. */
__device__ void Clear(WarpSums& sums) {
  for (unsigned i = threadIdx.x % 32; i < kNodesAPass; i += 32) {
    sums[i] = {{0, 0}, 0, 0};
  }
  __syncwarp();
}

/** @brief Loads a long tile: each warp of a block has runs of 32 entries, and what comes before
 *         each. */
struct LoadedTile {
  static constexpr int kRuns = LongTile::kRuns;

  LaneEntry entries[kRuns];
  TileSum before[kRuns];  // of the entry's node, in the warp's runs

  /** @brief Load by all threads of the block; ends with a barrier. @param sums What each warp has. */
  __device__ LoadedTile(TilesRef const& in, RowNodesRef const& rows, EntryRange const& range,
                        WarpSums (&sums)[LongTile::kWarps]) {
    WarpSums& of_warp = sums[threadIdx.x / 32];
    Clear(of_warp);
    EntryIdx const first = range.begin + threadIdx.x / 32 * (32 * kRuns);
    LoadRuns(
        in, rows,
        [&](int k) {
          return EntryRange{first + k * 32, min(first + k * 32 + 32, range.end)};
        },
        entries);
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      LaneEntry const& e = entries[k];
      LaneList const list{e.level_node};
      FixedSum const own = e.units.Fixed();
      FixedSum const up_to = list.SumUpTo(own);
      ValueId const last = list.ValueBefore(e.value);
      bool const is_searched = e.level_node != kNoLevelNode;
      TileSum const earlier = is_searched ? of_warp[e.level_node] : TileSum{{0, 0}, 0, 0};
      __syncwarp();
      if (is_searched && list.IsLast()) {
        of_warp[e.level_node] = {earlier.sum + up_to, 1, e.value};
      }
      __syncwarp();
      before[k] = {earlier.sum + up_to - own, list.IsFirst() ? earlier.occupied : 1,
                   list.IsFirst() ? earlier.last_value : last};
    }
    __syncthreads();
  }
};

/** @brief Run the multireduce. grid: long tiles; block: one tile; result: out_partial[node,
 *         tile]. */
__global__ __launch_bounds__(LongTile::kThreads) void ReduceLongTilesKernel(LevelRef lv,
                                                                            TilesRef in,
                                                                            RowNodesRef rows,
                                                                            TileSum* out_partial) {
  WaitForPreviousKernel();
  __shared__ WarpSums sums[LongTile::kWarps];
  LoadedTile const tile{in, rows, in.long_tiles[blockIdx.x].entries, sums};
  if (threadIdx.x < lv.n_nodes) {
    TileSum all{{0, 0}, 0, 0};
    for (WarpSums const& of_warp : sums) {
      all = all + of_warp[threadIdx.x];
    }
    out_partial[std::uint64_t{threadIdx.x} * in.n_long + blockIdx.x] = all;
  }
}

/** @brief Numbers tiles: those of one node and column have one number, other ones follow. */
struct TileGroup {
  LongTile const* tiles;
  std::uint32_t n_long;
  __device__ std::uint64_t operator()(std::uint64_t i) const {
    return i / n_long * n_long + tiles[i % n_long].first;
  }
};

/** @brief Run the multiscan. grid: long tiles; block: one tile; result: candidates are offered. */
__global__ __launch_bounds__(LongTile::kThreads, 2) void SearchLongTilesKernel(LevelRef lv,
                                                                               TilesRef in,
                                                                               RowNodesRef rows) {
  WaitForPreviousKernel();
  __shared__ WarpSums sums[LongTile::kWarps];  // then what comes before each warp
  __shared__ NodeTotals totals;
  __shared__ FixedSum presents[kNodesAPass];  // of the column
  LongTile const of = in.long_tiles[blockIdx.x];
  totals.Load(lv);
  LoadedTile const tile{in, rows, of.entries, sums};
  if (threadIdx.x < lv.n_nodes) {
    LevelNode const level_node = threadIdx.x;
    TileSum const all = in.Sum(level_node, of.last);
    presents[level_node] = all.sum;
    TileSum before{{0, 0}, 0, 0};
    if (blockIdx.x != of.first) {
      before = in.Sum(level_node, blockIdx.x - 1);
    }
    for (WarpSums& of_warp : sums) {
      TileSum const next = before + of_warp[level_node];
      of_warp[level_node] = before;
      before = next;
    }
    if (blockIdx.x == of.last && all.occupied != 0 && lv.Allowed(level_node, of.feature)) {
      lv.Offer(level_node, lv.PresentKey(lv.nodes[level_node], of.feature, all.sum));
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < LongTile::kRuns; ++k) {
    LaneEntry const& e = tile.entries[k];
    if (e.level_node == kNoLevelNode) {
      continue;
    }
    TileSum const before = sums[threadIdx.x / 32][e.level_node] + tile.before[k];
    FixedSum const& present = presents[e.level_node];
    if (before.occupied != 0 && before.last_value != e.value &&
        lv.MaySplit(e.level_node, e.value, present)) {
      OfferAt(lv, totals.few[e.level_node], e, before.sum, present, false);
    }
  }
}

constexpr int kFewKeyBits = 4;   // of levels of few nodes
constexpr int kMostKeyBits = 8;  // at a time

/** @brief Numbers the columns of a block's tile as their entries lie. */
class TileColumns {
 public:
  /** @brief Count the columns by all lanes of a warp. */
  __device__ explicit TileColumns(BlockTile const& tile) : heads_{tile.heads[threadIdx.x % 32]} {
    static_assert(BlockTile::kSize / 32 == 32, "one lane a word");
    auto const n = static_cast<std::uint32_t>(__popc(heads_));
    before_ = WarpInclusiveSum(n) - n;
  }
  /** @brief Number the column of the lane's entry in a run of 32. All lanes of a warp. */
  [[nodiscard]] __device__ std::uint32_t Of(int run) const {
    std::uint32_t const heads = __shfl_sync(kAllLanes, heads_, run);
    return __shfl_sync(kAllLanes, before_, run) + __popc(heads & (LaneMaskLt() << 1 | 1));
  }

 private:
  std::uint32_t heads_;   // of the lane's run
  std::uint32_t before_;  // columns that begin before the run
};

/**
 * @brief Run the multiscan of whole columns, sorted by node. grid: tiles of blocks; block: one tile;
 *        result: candidates are offered.
 * @tparam kKeyBits Bits of a LevelNode by which entries are sorted at a time.
 * @param  n_bits   How many bits tell nodes and kNoLevelNode apart.
 */
template <int kKeyBits>
__global__ __launch_bounds__(kTileThreads, 4) void SearchBlockTilesKernel(LevelRef lv, TilesRef in,
                                                                          RowNodesRef rows,
                                                                          int n_bits) {
  WaitForPreviousKernel();
  static_assert(BlockTile::kSize == TileEntries::kSize);
  using Rank = cub::BlockRadixRankMatch<kTileThreads, kKeyBits, false>;
  __shared__ union {
    typename Rank::TempStorage rank;
    SplitAgent::TempStorage agent;
  } temp;
  __shared__ TileEntries tile;
  __shared__ NodeTotals totals;
  __shared__ int n_searched;
  totals.Load(lv);
  if (threadIdx.x == 0) {
    n_searched = 0;
  }
  BlockTile const& of = in.block_tiles[blockIdx.x];
  // The match-based rank wants keys striped by warp.
  int const first_run = static_cast<int>(threadIdx.x / 32) * kTileItems;
  LaneEntry entries[kTileItems];
  LoadRuns(
      in, rows,
      [&](int k) {
        EntryIdx const begin = of.entries.begin + (first_run + k) * 32;
        return EntryRange{begin, min(begin + 32, of.entries.end)};
      },
      entries);
  TileColumns const columns{of};
  unsigned segments[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    segments[k] = SegmentOf(columns.Of(first_run + k), entries[k].level_node);
  }
  for (int bit = 0; bit < n_bits; bit += kKeyBits) {
    if (bit != 0) {  // entries are sorted by the bits before
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kTileItems; ++k) {
        int const at = TileEntries::At((first_run + k) * 32 + static_cast<int>(threadIdx.x % 32));
        entries[k].value = tile.value[at];
        entries[k].units = tile.units[at];
        segments[k] = tile.segment[at];
      }
    }
    int ranks[kTileItems];
    Rank{temp.rank}.RankKeys(segments, ranks,
                             cub::BFEDigitExtractor<unsigned>(bit, min(kKeyBits, n_bits - bit)));
#pragma unroll
    for (int k = 0; k < kTileItems; ++k) {
      tile.Store(ranks[k], entries[k].value, entries[k].units, segments[k]);
    }
  }
  int n_of_warp{0};
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    n_of_warp += __popc(__ballot_sync(kAllLanes, NodeOfSegment(segments[k]) != kNoLevelNode));
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&n_searched, n_of_warp);
  }
  __syncthreads();  // the storage becomes the agent's
  SplitAgent{&temp.agent, lv, tile, n_searched}.Search(
      [&](LevelNode level_node) { return totals.Get(lv, level_node); });
}

constexpr unsigned kWarpTileThreads = 256;
constexpr int kWarpTiles = 4;  // per warp

/** @brief Run the multiscan of whole columns. grid: tiles, kWarpTiles a warp; result: candidates
 *         offered. */
__global__ __launch_bounds__(kWarpTileThreads) void SearchWarpTilesKernel(LevelRef lv, TilesRef in,
                                                                          RowNodesRef rows) {
  WaitForPreviousKernel();
  __shared__ NodeTotals totals;
  totals.Load(lv);
  auto const first = static_cast<std::uint32_t>(GlobalIdx() / 32 * kWarpTiles);
  WarpTile tiles[kWarpTiles];
#pragma unroll
  for (int k = 0; k < kWarpTiles; ++k) {
    tiles[k] = first + k < in.n_warp ? in.warp_tiles[first + k] : WarpTile{0, 0, 0};
  }
  LaneEntry entries[kWarpTiles];
  LoadRuns(
      in, rows,
      [&](int k) {
        return EntryRange{tiles[k].begin, tiles[k].begin + tiles[k].n};
      },
      entries);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kWarpTiles; ++k) {
    LaneEntry const& e = entries[k];
    std::uint32_t const column = __popc(tiles[k].heads & (LaneMaskLt() << 1 | 1));
    LaneList const list{SegmentOf(column, e.level_node)};
    FixedSum const own = e.units.Fixed();
    FixedSum const up_to = list.SumUpTo(own);
    FixedSum const present = Shuffle(up_to, list.Last());
    ValueId const last = list.ValueBefore(e.value);
    if (e.level_node != kNoLevelNode && (list.IsFirst() || last != e.value) &&
        lv.MaySplit(e.level_node, e.value, present)) {
      OfferAt(lv, totals.Get(lv, e.level_node), e, up_to - own, present, list.IsFirst());
    }
    __syncwarp();
  }
}
}  // namespace

ColumnFinder::ColumnFinder(ColumnEntry const* entries, std::vector<EntryIdx> const& entry_offsets) {
  std::vector<LongTile> long_tiles;
  std::vector<BlockTile> block_tiles;
  std::vector<WarpTile> warp_tiles;
  EntryRange of_block{0, 0};  // entries of the last tile of a block
  EntryRange of_warp{0, 0};   // the same of a warp
  // Whether there is a tile, and a column goes on where it ends and fits it.
  auto const joins = [](EntryRange const& column, EntryRange const& tile, int size) {
    return tile.Size() != 0 && tile.end == column.begin &&
           column.end - tile.begin <= static_cast<EntryIdx>(size);
  };
  for (std::size_t f = 0; f + 1 < entry_offsets.size(); ++f) {
    EntryRange const column{entry_offsets[f], entry_offsets[f + 1]};
    if (column.Size() == 0) {
      continue;
    }
    if (column.Size() > BlockTile::kSize) {
      auto const first = static_cast<std::uint32_t>(long_tiles.size());
      auto const last = first + static_cast<std::uint32_t>((column.Size() - 1) / LongTile::kSize);
      for (EntryIdx i = column.begin; i < column.end; i += LongTile::kSize) {
        EntryRange const part{i, std::min(i + LongTile::kSize, column.end)};
        long_tiles.push_back({part, static_cast<FeatureIdx>(f), first, last});
      }
    } else if (bool const joins_block = joins(column, of_block, BlockTile::kSize);
               column.Size() > WarpTile::kSize || joins_block) {
      // Short columns fill up a tile that is there.
      if (!joins_block) {
        of_block.begin = column.begin;
        block_tiles.push_back({});
      }
      EntryIdx const head = column.begin - of_block.begin;
      block_tiles.back().heads[head / 32] |= 1u << head % 32;
      of_block.end = column.end;
      block_tiles.back().entries = of_block;
    } else {
      if (!joins(column, of_warp, WarpTile::kSize)) {
        of_warp.begin = column.begin;
        warp_tiles.push_back({column.begin, 0, 0});
      }
      warp_tiles.back().heads |= 1u << warp_tiles.back().n;
      warp_tiles.back().n += static_cast<std::uint32_t>(column.Size());
      of_warp.end = column.end;
    }
  }
  CopyFromHost(long_tiles_.Reserve(long_tiles.size()), long_tiles.data(), long_tiles.size());
  CopyFromHost(block_tiles_.Reserve(block_tiles.size()), block_tiles.data(), block_tiles.size());
  CopyFromHost(warp_tiles_.Reserve(warp_tiles.size()), warp_tiles.data(), warp_tiles.size());
  tiles_ = {entries,
            entry_offsets.back(),
            long_tiles_.Data(),
            block_tiles_.Data(),
            warp_tiles_.Data(),
            static_cast<std::uint32_t>(long_tiles.size()),
            static_cast<std::uint32_t>(block_tiles.size()),
            static_cast<std::uint32_t>(warp_tiles.size()),
            nullptr};
}

void ColumnFinder::Find(LevelRef const& lv, RowNodesRef const& rows, LevelResult* out) {
  constexpr LevelNode kMost = kNoLevelNode / kNodesAPass * kNodesAPass;
  first_right_.Reserve(lv.n_nodes);
  LevelNode const step = tiles_.n_long != 0 ? kNodesAPass : kMost;
  for (LevelNode first = 0; first < lv.n_nodes; first += step) {
    LevelRef const some = lv.Part(first, step);
    RowNodesRef const rows_of_some = rows.Part(first, some.n_nodes);
    // Long columns first: the others are held against the best of them.
    this->SearchLong(some, rows_of_some);
    if (first % kMost == 0) {
      LevelRef const most = lv.Part(first, kMost);
      this->SearchWhole(most, rows.Part(first, most.n_nodes));
    }
    // Before the next nodes' sums take the place of these.
    FindThresholds(some, tiles_, rows_of_some, out + first, first_right_.Data() + first);
  }
}

void ColumnFinder::SearchLong(LevelRef const& lv, RowNodesRef const& rows) {
  if (tiles_.n_long == 0) {
    return;
  }
  auto const n_sums = std::uint64_t{lv.n_nodes} * tiles_.n_long;
  partial_.Reserve(n_sums);
  tiles_.sums = sums_.Reserve(n_sums);
  Launch("ReduceLongTiles", ReduceLongTilesKernel, tiles_.n_long, LongTile::kThreads, lv, tiles_,
         rows, partial_.Data());
  auto groups = thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}),
                                                TileGroup{tiles_.long_tiles, tiles_.n_long});
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScanByKey(storage, bytes, groups, partial_.Data(),
                                               sums_.Data(), cuda::std::plus<>{}, n_sums,
                                               cuda::std::equal_to<>{}, Stream());
  });
  Launch("SearchLongTiles", SearchLongTilesKernel, tiles_.n_long, LongTile::kThreads, lv, tiles_,
         rows);
}

void ColumnFinder::SearchWhole(LevelRef const& lv, RowNodesRef const& rows) {
  if (tiles_.n_block != 0) {
    int const n_bits = BitsBelow(std::uint64_t{lv.n_nodes} + 1);
    Launch("SearchBlockTiles",
           n_bits <= kFewKeyBits ? SearchBlockTilesKernel<kFewKeyBits>
                                 : SearchBlockTilesKernel<kMostKeyBits>,
           tiles_.n_block, kTileThreads, lv, tiles_, rows, n_bits);
  }
  if (tiles_.n_warp != 0) {
    Launch("SearchWarpTiles", SearchWarpTilesKernel,
           CeilDiv(tiles_.n_warp, kWarpTileThreads / 32 * kWarpTiles), kWarpTileThreads, lv, tiles_,
           rows);
  }
}
}  // namespace gpu_exact
