/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements interleaved_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/block/block_radix_rank.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "device/runtime/device_context.cuh"
#include "device/runtime/fixed_sum.cuh"
#include "device/sort/interleaved_finder.cuh"
#include "device/sort/split_agent.cuh"

namespace gpu_exact {
namespace {
/** @brief Holds an entry of a lane; kNoKey where the lane has none, or its row is in no open
 *         node. */
struct LaneEntry {
  ValueId value{0};
  LevelNode level_node{kNoKey};
  GradientUnits units{0.0f, 0.0f};
};

/**
 * @brief Loads several runs of up to 32 entries, all at once. All lanes of a warp.
 * @param runs runs(k) -> EntryRange of the k-th one.
 */
template <int kRuns, typename RunsFn>
__device__ void LoadRuns(InterleavedRef const& in, RunsFn&& runs, LaneEntry (&out)[kRuns]) {
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
      out[k] = {entries[k].value, in.row_keys[entries[k].row], in.entries.Units(entries[k])};
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

/** @brief Holds what the search asks of a node. */
struct NodeTotal {
  FixedSum sum;
  float to_beat;
};

/** @brief Load by all threads of a block; then comes a barrier. */
__device__ void LoadNodes(LevelRef const& level, NodeTotal (&out)[kMaxInterleavedNodes]) {
  if (threadIdx.x < level.n_nodes) {
    out[threadIdx.x] = {level.nodes[threadIdx.x].sum, level.GainToBeat(threadIdx.x)};
  }
}

/**
 * @brief Offer the candidate before an entry, or before the first of its segment the one between
 *        present and missing values, if it may reach the gain to beat.
 * @param before  Sum of the segment's entries before this one.
 * @param present Of all its entries.
 */
__device__ void OfferAt(LevelRef const& level, NodeTotal const& node, LaneEntry const& entry,
                        FixedSum const& before, FixedSum const& present, bool is_first) {
  bool const missing = !(present == node.sum);
  bool const may_reach =
      is_first ? missing && level.bound.MayReach(node.to_beat, present, node.sum - present)
               : level.MayReach(node.to_beat, node.sum, before, present, missing);
  if (may_reach) {
    NodeState const& state = level.nodes[entry.level_node];
    FeatureIdx const f = level.columns.FeatureOf(entry.value);
    level.Offer(entry.level_node, is_first
                                      ? level.PresentKey(state, f, present)
                                      : level.BoundaryKey(state, f, entry.value, before, present));
  }
}

/** @brief Holds what a warp has of each node, of a column. */
using WarpSums = TileSum[kMaxInterleavedNodes];

/** @brief Clear them by all lanes of a warp. */
__device__ void Clear(WarpSums& sums) {
  for (unsigned i = threadIdx.x % 32; i < kMaxInterleavedNodes; i += 32) {
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

  /** @brief Load by all threads of the block; ends with a barrier. @param sums Of each warp. */
  __device__ LoadedTile(InterleavedRef const& in, EntryRange const& range,
                        WarpSums (&sums)[LongTile::kWarps]) {
    WarpSums& of_warp = sums[threadIdx.x / 32];
    Clear(of_warp);
    EntryIdx const first = range.begin + threadIdx.x / 32 * (32 * kRuns);
    LoadRuns(
        in,
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
      bool const is_open = e.level_node != kNoKey;
      TileSum const earlier = is_open ? of_warp[e.level_node] : TileSum{{0, 0}, 0, 0};
      __syncwarp();
      if (is_open && list.IsLast()) {
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
__global__ __launch_bounds__(LongTile::kThreads) void ReduceLongTilesKernel(LevelRef level,
                                                                            InterleavedRef in,
                                                                            TileSum* out_partial) {
  WaitForPreviousKernel();
  __shared__ WarpSums sums[LongTile::kWarps];
  LoadedTile const tile{in, in.long_tiles[blockIdx.x].entries, sums};
  if (threadIdx.x < level.n_nodes) {
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
__global__ __launch_bounds__(LongTile::kThreads, 2) void SearchLongTilesKernel(LevelRef level,
                                                                               InterleavedRef in) {
  WaitForPreviousKernel();
  __shared__ WarpSums sums[LongTile::kWarps];  // then what comes before each warp
  __shared__ NodeTotal nodes[kMaxInterleavedNodes];
  __shared__ FixedSum presents[kMaxInterleavedNodes];  // of the column
  LongTile const of = in.long_tiles[blockIdx.x];
  LoadNodes(level, nodes);
  LoadedTile const tile{in, of.entries, sums};
  if (threadIdx.x < level.n_nodes) {
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
    if (blockIdx.x == of.last && all.occupied != 0 && level.Allowed(level_node, of.feature)) {
      level.Offer(level_node, level.PresentKey(level.nodes[level_node], of.feature, all.sum));
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < LongTile::kRuns; ++k) {
    LaneEntry const& e = tile.entries[k];
    if (e.level_node == kNoKey) {
      continue;
    }
    TileSum const before = sums[threadIdx.x / 32][e.level_node] + tile.before[k];
    FixedSum const& present = presents[e.level_node];
    if (before.occupied != 0 && before.last_value != e.value &&
        level.MaySplit(e.level_node, e.value, present)) {
      OfferAt(level, nodes[e.level_node], e, before.sum, present, false);
    }
  }
}

constexpr int kFewKeyBits = 4;  // of levels of few nodes
constexpr int kMostKeyBits = 8;

/** @brief Tells segments apart where nodes are mixed in columns, by a word for each entry. */
struct MixedSegments {
  static constexpr std::uint32_t kLevelNodes = 1u << kMostKeyBits;

  __device__ static std::uint32_t Word(std::uint32_t column, LevelNode level_node) {
    return column * kLevelNodes + level_node;
  }
  __device__ static LevelNode LevelNodeOf(std::uint32_t word) { return word % kLevelNodes; }
  __device__ explicit MixedSegments(LevelRef const&) {}
  /** @brief Tell whether an entry is of another segment than the one before it. */
  __device__ bool Differ(std::uint32_t word_before, ValueId, std::uint32_t word, ValueId) const {
    return word_before != word;
  }
};

/** @brief Numbers the columns of a shared tile as their entries lie. */
class SharedColumns {
 public:
  /** @brief Count the columns by all lanes of a warp. */
  __device__ explicit SharedColumns(SharedTile const& tile) : heads_{tile.heads[threadIdx.x % 32]} {
    static_assert(SharedTile::kSize / 32 == 32, "one lane a word");
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
 * @brief Run the multiscan of whole columns, sorted by node. grid: shared tiles; block: one tile;
 *        result: candidates are offered.
 * @tparam kKeyBits Of a LevelNode, and of kNoKey, whose last bits are all ones.
 */
template <int kKeyBits>
__global__ __launch_bounds__(kTileThreads, 4) void SearchSharedTilesKernel(LevelRef level,
                                                                           InterleavedRef in) {
  WaitForPreviousKernel();
  constexpr int kItems = SharedTile::kItems;
  using Rank = cub::BlockRadixRankMatch<kTileThreads, kKeyBits, false>;
  using Agent = SplitAgent<kItems, MixedSegments>;
  __shared__ union {
    typename Rank::TempStorage rank;
    typename Agent::TempStorage agent;
  } temp;
  __shared__ TileEntries<kItems> tile;
  __shared__ NodeTotal nodes[kMaxInterleavedNodes];
  __shared__ int n_open;
  LoadNodes(level, nodes);
  SharedTile const& of = in.shared_tiles[blockIdx.x];
  // The match-based rank wants keys striped by warp.
  int const first_run = static_cast<int>(threadIdx.x / 32) * kItems;
  LaneEntry entries[kItems];
  LoadRuns(
      in,
      [&](int k) {
        EntryIdx const begin = of.entries.begin + (first_run + k) * 32;
        return EntryRange{begin, min(begin + 32, of.entries.end)};
      },
      entries);
  unsigned keys[kItems];
  int ranks[kItems];
  int level_node_begin[1];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    keys[k] = entries[k].level_node;
  }
  Rank{temp.rank}.RankKeys(keys, ranks, cub::BFEDigitExtractor<unsigned>(0, kKeyBits),
                           level_node_begin);
  SharedColumns const columns{of};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    std::uint32_t const word =
        MixedSegments::Word(columns.Of(first_run + k), entries[k].level_node);
    tile.Store(ranks[k], entries[k].value, entries[k].units, word);
  }
  if (threadIdx.x == kNoKey % (1u << kKeyBits)) {
    n_open = level_node_begin[0];
  }
  __syncthreads();  // the storage becomes the agent's
  auto carry = [&](std::uint32_t, LevelNode level_node, FixedSum const& sum) {
    return SegmentCarry{{0, 0}, sum, nodes[level_node].sum, nodes[level_node].to_beat, 0,
                        false,  true};
  };
  Agent{&temp.agent, level, tile, n_open}.Search(carry);
}

constexpr unsigned kShortThreads = 256;
constexpr int kShortTiles = 4;  // per warp

/** @brief Run the multiscan of whole columns. grid: tiles, kShortTiles a warp; result: candidates
 *         offered. */
__global__ __launch_bounds__(kShortThreads) void SearchShortTilesKernel(LevelRef level,
                                                                        InterleavedRef in) {
  WaitForPreviousKernel();
  __shared__ NodeTotal nodes[kMaxInterleavedNodes];
  LoadNodes(level, nodes);
  auto const first = static_cast<std::uint32_t>(GlobalIdx() / 32 * kShortTiles);
  ShortTile tiles[kShortTiles];
#pragma unroll
  for (int k = 0; k < kShortTiles; ++k) {
    tiles[k] = first + k < in.n_short ? in.short_tiles[first + k] : ShortTile{0, 0, 0};
  }
  LaneEntry entries[kShortTiles];
  LoadRuns(
      in,
      [&](int k) {
        return EntryRange{tiles[k].begin, tiles[k].begin + tiles[k].n};
      },
      entries);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kShortTiles; ++k) {
    LaneEntry const& e = entries[k];
    std::uint32_t const column = __popc(tiles[k].heads & (LaneMaskLt() << 1 | 1));
    LaneList const list{MixedSegments::Word(column, e.level_node)};
    FixedSum const own = e.units.Fixed();
    FixedSum const up_to = list.SumUpTo(own);
    FixedSum const present = Shuffle(up_to, list.Last());
    ValueId const last = list.ValueBefore(e.value);
    if (e.level_node != kNoKey && (list.IsFirst() || last != e.value) &&
        level.MaySplit(e.level_node, e.value, present)) {
      OfferAt(level, nodes[e.level_node], e, up_to - own, present, list.IsFirst());
    }
    __syncwarp();
  }
}
}  // namespace

void InterleavedFinder::BuildTiles(std::vector<EntryIdx> const& entry_offsets) {
  if (has_tiles_) {
    return;
  }
  std::vector<LongTile> long_tiles;
  std::vector<SharedTile> shared_tiles;
  std::vector<ShortTile> short_tiles;
  EntryRange shared{0, 0};  // the last one's entries
  EntryRange of_warp{0, 0};
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
    if (column.Size() > SharedTile::kSize) {
      auto const first = static_cast<std::uint32_t>(long_tiles.size());
      auto const last = first + static_cast<std::uint32_t>((column.Size() - 1) / LongTile::kSize);
      for (EntryIdx i = column.begin; i < column.end; i += LongTile::kSize) {
        EntryRange const part{i, std::min(i + LongTile::kSize, column.end)};
        long_tiles.push_back({part, static_cast<FeatureIdx>(f), first, last});
      }
    } else if (bool const joins_shared = joins(column, shared, SharedTile::kSize);
               column.Size() > ShortTile::kSize || joins_shared) {
      // Short columns fill up a tile that is there.
      if (!joins_shared) {
        shared.begin = column.begin;
        shared_tiles.push_back({});
      }
      EntryIdx const head = column.begin - shared.begin;
      shared_tiles.back().heads[head / 32] |= 1u << head % 32;
      shared.end = column.end;
      shared_tiles.back().entries = shared;
    } else {
      if (!joins(column, of_warp, ShortTile::kSize)) {
        of_warp.begin = column.begin;
        short_tiles.push_back({column.begin, 0, 0});
      }
      short_tiles.back().heads |= 1u << short_tiles.back().n;
      short_tiles.back().n += static_cast<std::uint32_t>(column.Size());
      of_warp.end = column.end;
    }
  }
  CopyFromHost(long_tiles_.Reserve(long_tiles.size()), long_tiles.data(), long_tiles.size());
  CopyFromHost(shared_tiles_.Reserve(shared_tiles.size()), shared_tiles.data(),
               shared_tiles.size());
  CopyFromHost(short_tiles_.Reserve(short_tiles.size()), short_tiles.data(), short_tiles.size());
  ref_.n_entries = entry_offsets.back();
  ref_.long_tiles = long_tiles_.Data();
  ref_.shared_tiles = shared_tiles_.Data();
  ref_.short_tiles = short_tiles_.Data();
  ref_.n_long = static_cast<std::uint32_t>(long_tiles.size());
  ref_.n_shared = static_cast<std::uint32_t>(shared_tiles.size());
  ref_.n_short = static_cast<std::uint32_t>(short_tiles.size());
  has_tiles_ = true;  // not where there was no room
}

void InterleavedFinder::Find(LevelRef const& level, EntriesRef const& entries,
                             std::uint8_t const* row_keys) {
  ref_.entries = entries;
  ref_.row_keys = row_keys;
  if (level.n_nodes == 0) {
    return;
  }
  // Long columns first: the others are held against the best of them.
  if (ref_.n_long != 0) {
    auto const n_sums = std::uint64_t{level.n_nodes} * ref_.n_long;
    partial_.Reserve(n_sums);
    ref_.sums = sums_.Reserve(n_sums);
    Launch("ReduceLongTiles", ReduceLongTilesKernel, ref_.n_long, LongTile::kThreads, level, ref_,
           partial_.Data());
    auto groups = thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}),
                                                  TileGroup{ref_.long_tiles, ref_.n_long});
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveScanByKey(storage, bytes, groups, partial_.Data(),
                                                 sums_.Data(), cuda::std::plus<>{}, n_sums,
                                                 cuda::std::equal_to<>{}, Stream());
    });
    Launch("SearchLongTiles", SearchLongTilesKernel, ref_.n_long, LongTile::kThreads, level, ref_);
  }
  if (ref_.n_shared != 0) {
    bool const few = level.n_nodes < 1u << kFewKeyBits;
    Launch("SearchSharedTiles",
           few ? SearchSharedTilesKernel<kFewKeyBits> : SearchSharedTilesKernel<kMostKeyBits>,
           ref_.n_shared, kTileThreads, level, ref_);
  }
  if (ref_.n_short != 0) {
    Launch("SearchShortTiles", SearchShortTilesKernel,
           CeilDiv(ref_.n_short, kShortThreads / 32 * kShortTiles), kShortThreads, level, ref_);
  }
}
}  // namespace gpu_exact
