/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of interleaved_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/block/block_radix_rank.cuh>
#include <cub/device/device_scan.cuh>

#include "src/device/fixed_sum.cuh"
#include "src/device/sort/interleaved_finder.cuh"
#include "src/device/sort/split_agent.cuh"

namespace gpu_exact {
namespace {
/** @brief An entry of a lane; kNoKey where the lane has none, or its row is in no open node. */
struct LaneEntry {
  ValueId value{0};
  Bucket bucket{kNoKey};
  GradientUnits units{0.0f, 0.0f};
};

/**
 * @brief Loads several runs of up to 32 entries, all at once. All lanes of a warp.
 * @param runs runs(k) -> EntryRange of the k-th one.
 */
template <int kRuns, typename EntryT, typename RunsFn>
__device__ void LoadRuns(InterleavedRef<EntryT> const& in, RunsFn&& runs, LaneEntry (&out)[kRuns]) {
  EntryT entries[kRuns];
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

/** @brief The lanes of a warp whose entries are of one segment: a list, ascending as entries do. */
struct LaneList {
  unsigned lanes;

  /** @brief All lanes of a warp. @param word Alike for entries of one segment. */
  __device__ explicit LaneList(std::uint32_t word) : lanes{__match_any_sync(kAllLanes, word)} {}

  LaneList() = default;
  [[nodiscard]] __device__ bool IsFirst() const { return (lanes & LanesBelow()) == 0; }
  [[nodiscard]] __device__ bool IsLast() const { return lanes >> threadIdx.x % 32 == 1; }
  [[nodiscard]] __device__ int Last() const { return 31 - __clz(static_cast<int>(lanes)); }
  /** @brief The lane before this one; -1: there is none. */
  [[nodiscard]] __device__ int Before() const {
    return 31 - __clz(static_cast<int>(lanes & LanesBelow()));
  }
};

/**
 * @brief Of several runs, the sum of each lane's list up to the lane: halves the way to the first lane
 *        again and again. All lanes of a warp.
 * @param sums Of the lanes alone, then up to them.
 */
template <int kRuns>
__device__ void SumLists(LaneList const (&lists)[kRuns], FixedSum (&sums)[kRuns]) {
  int before[kRuns];
  int any{-1};
#pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    before[k] = lists[k].Before();
    any = max(any, before[k]);
  }
  while (__any_sync(kAllLanes, any >= 0)) {
    any = -1;
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      int const from = max(before[k], 0);
      FixedSum const of_before = Shuffle(sums[k], from);
      int const next = __shfl_sync(kAllLanes, before[k], from);
      if (before[k] >= 0) {
        sums[k] = sums[k] + of_before;
        before[k] = next;
      }
      any = max(any, before[k]);
    }
  }
}

/** @brief The larger one; NaN where either is, as a bound that is none. */
__device__ float LargerOrNaN(float a, float b) { return isnan(a) || a >= b ? a : b; }

/** @brief Bits of a gain, which is not negative, that ascend with it; of NaN the most. */
__device__ unsigned BitsOf(float gain) { return __float_as_uint(gain) & 0x7fffffffu; }

/** @brief What the search asks of a node. */
struct NodeTotal {
  FixedSum sum;
  float bar;
};

/** @brief All threads of a block; then comes a barrier. */
__device__ void LoadNodes(LevelRef const& level, NodeTotal (&out)[kMaxInterleavedNodes]) {
  if (threadIdx.x < level.n_nodes) {
    out[threadIdx.x] = {level.nodes[threadIdx.x].sum, level.Bar(threadIdx.x)};
  }
}

/** @brief A candidate: before an entry, or between present and missing values. */
struct EntrySplit {
  ValueId value;
  Bucket bucket;
  FixedSum before;   // of the segment's entries before the entry
  FixedSum present;  // of all its entries
  bool is_present;   // between present and missing values
};

/** @brief Upper bound of its gain, in units as the bar. */
__device__ float MostGain(LevelRef const& level, NodeTotal const& node, EntrySplit const& split) {
  FixedSum const missing = node.sum - split.present;
  bool const none = missing == FixedSum{0, 0};
  if (split.is_present) {
    return none ? -INFINITY : level.bound.Most(split.present, missing);
  }
  FixedSum const after = split.present - split.before;
  float const forward = level.bound.Most(split.before, after + missing);
  // With nothing missing both scans see the same children.
  return none ? forward : LargerOrNaN(forward, level.bound.Most(split.before + missing, after));
}

/** @brief Offer it by its exact gain, which seldom is asked for. @return Its key. */
__device__ __noinline__ std::uint64_t OfferExact(LevelRef const& level, EntrySplit const& split) {
  NodeState const& node = level.nodes[split.bucket];
  FeatureIdx const f = level.columns.FeatureOf(split.value);
  std::uint64_t const key =
      split.is_present ? level.PresentKey(node, f, split.present)
                       : level.BoundaryKey(node, f, split.value, split.before, split.present);
  level.Offer(split.bucket, key);
  return key;
}

/** @brief Of an earlier part, then a later one. */
struct TileSumOp {
  __device__ TileSum operator()(TileSum const& a, TileSum const& b) const {
    return {a.sum + b.sum, a.occupied | b.occupied, b.occupied != 0 ? b.last_value : a.last_value};
  }
};

/** @brief What a warp has of each node, of a column. */
using WarpSums = TileSum[kMaxInterleavedNodes];

/** @brief All lanes of a warp. */
__device__ void Clear(WarpSums& sums) {
  for (unsigned i = threadIdx.x % 32; i < kMaxInterleavedNodes; i += 32) {
    sums[i] = {{0, 0}, 0, 0};
  }
  __syncwarp();
}

/** @brief Entries of one column, which a warp has in runs of 32, and what comes before each. */
template <int kRuns>
struct ColumnRuns {
  LaneEntry entries[kRuns];
  TileSum before[kRuns];  // of the entry's node, in the runs

  /**
   * @brief All lanes of a warp.
   * @param sums Zeros, to which the entries are added.
   */
  template <typename EntryT>
  __device__ ColumnRuns(InterleavedRef<EntryT> const& in, EntryRange const& range, WarpSums& sums) {
    LoadRuns(
        in,
        [&](int k) {
          return EntryRange{range.begin + k * 32, min(range.begin + k * 32 + 32, range.end)};
        },
        entries);
    LaneList lists[kRuns];
    FixedSum up_to[kRuns];
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      lists[k] = LaneList{entries[k].bucket};
      up_to[k] = entries[k].units.Fixed();
    }
    SumLists(lists, up_to);
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      LaneEntry const& e = entries[k];
      bool const is_open = e.bucket != kNoKey;
      TileSum const earlier = is_open ? sums[e.bucket] : TileSum{{0, 0}, 0, 0};
      __syncwarp();
      if (is_open && lists[k].IsLast()) {
        sums[e.bucket] = {earlier.sum + up_to[k], 1, e.value};
      }
      __syncwarp();
      ValueId const last = __shfl_sync(kAllLanes, e.value, lists[k].Before() & 31);
      before[k] = {earlier.sum + up_to[k] - e.units.Fixed(),
                   lists[k].IsFirst() ? earlier.occupied : 1,
                   lists[k].IsFirst() ? earlier.last_value : last};
    }
  }
};

/** @brief A long tile: each warp of a block has runs of it. All threads of the block. */
template <typename EntryT>
__device__ ColumnRuns<LongTile::kRuns> LoadLongTile(InterleavedRef<EntryT> const& in,
                                                    EntryRange const& range,
                                                    WarpSums (&sums)[LongTile::kWarps]) {
  WarpSums& of_warp = sums[threadIdx.x / 32];
  Clear(of_warp);
  EntryIdx const begin = range.begin + threadIdx.x / 32 * (32 * LongTile::kRuns);
  return {in, {begin, range.end}, of_warp};
}

/** @brief Multireduce. grid: long tiles; block: one tile; result: out_partial[bucket, tile]. */
template <typename EntryT>
__global__ __launch_bounds__(LongTile::kThreads,
                             3) void ReduceTilesKernel(LevelRef level, InterleavedRef<EntryT> in,
                                                       TileSum* out_partial) {
  __shared__ WarpSums sums[LongTile::kWarps];
  LoadLongTile(in, in.long_tiles[blockIdx.x].entries, sums);
  __syncthreads();
  if (threadIdx.x < level.n_nodes) {
    TileSum all{{0, 0}, 0, 0};
    for (WarpSums const& of_warp : sums) {
      all = TileSumOp{}(all, of_warp[threadIdx.x]);
    }
    out_partial[std::uint64_t{threadIdx.x} * in.n_long + blockIdx.x] = all;
  }
}

/** @brief Tiles of one node and column have one number, other ones follow. */
struct TileGroup {
  LongTile const* tiles;
  std::uint32_t n_long;
  __device__ std::uint64_t operator()(std::uint64_t i) const {
    return i / n_long * n_long + tiles[i % n_long].first;
  }
};

/**
 * @brief Multiscan. grid: long tiles; block: one tile; result: candidates are offered.
 *
 * Of each node that one first which may gain most: few others reach its gain.
 */
template <typename EntryT>
__global__ __launch_bounds__(LongTile::kThreads,
                             2) void SearchTilesKernel(LevelRef const __grid_constant__ level,
                                                       InterleavedRef<EntryT> in) {
  constexpr int kRuns = LongTile::kRuns;
  __shared__ WarpSums sums[LongTile::kWarps];  // then what comes before each warp
  __shared__ NodeTotal nodes[kMaxInterleavedNodes];
  __shared__ FixedSum presents[kMaxInterleavedNodes];  // of the column
  __shared__ unsigned most[kMaxInterleavedNodes];      // bits of the largest bound
  LongTile const of = in.long_tiles[blockIdx.x];
  auto const runs = LoadLongTile(in, of.entries, sums);
  LoadNodes(level, nodes);
  __syncthreads();
  if (threadIdx.x < level.n_nodes) {
    Bucket const bucket = threadIdx.x;
    most[bucket] = 0;
    TileSum const all = in.Sum(bucket, of.last);
    presents[bucket] = all.sum;
    TileSum before{{0, 0}, 0, 0};
    if (blockIdx.x != of.first) {
      before = in.Sum(bucket, blockIdx.x - 1);
    }
    for (WarpSums& of_warp : sums) {
      TileSum const next = TileSumOp{}(before, of_warp[bucket]);
      of_warp[bucket] = before;
      before = next;
    }
    if (blockIdx.x == of.last && all.occupied != 0 && level.Allowed(bucket, of.feature)) {
      level.Offer(bucket, level.PresentKey(level.nodes[bucket], of.feature, all.sum));
    }
  }
  __syncthreads();
  EntrySplit splits[kRuns];
  float gains[kRuns];
  std::uint32_t wanted{0};  // bit k: the candidate before the k-th entry may reach the bar
#pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    LaneEntry const& e = runs.entries[k];
    if (e.bucket == kNoKey) {
      continue;
    }
    TileSum const before = TileSumOp{}(sums[threadIdx.x / 32][e.bucket], runs.before[k]);
    splits[k] = {e.value, e.bucket, before.sum, presents[e.bucket], false};
    if (before.occupied != 0 && before.last_value != e.value &&
        level.MaySplit(e.bucket, e.value, splits[k].present)) {
      gains[k] = MostGain(level, nodes[e.bucket], splits[k]);
      if (GainBound::Reaches(gains[k], nodes[e.bucket].bar)) {
        atomicMax(&most[e.bucket], BitsOf(gains[k]));
        wanted |= 1u << k;
      }
    }
  }
  __syncthreads();
  auto offer = [&](bool first) {
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      Bucket const bucket = runs.entries[k].bucket;
      if ((wanted >> k & 1u) != 0 && (BitsOf(gains[k]) == most[bucket]) == first &&
          GainBound::Reaches(gains[k], nodes[bucket].bar)) {
        std::uint64_t const key = OfferExact(level, splits[k]);
        float const bar = level.bound.Bar(CandidateKey::LossChange(key), level.nodes[bucket].gain);
        if (bar > nodes[bucket].bar) {
          nodes[bucket].bar = bar;  // of several that write, any will do
        }
      }
    }
  };
  offer(true);
  __syncthreads();
  offer(false);
}

constexpr int kFewKeyBits = 4;  // of levels of few nodes
constexpr int kMostKeyBits = 8;

/** @brief Segments where nodes are mixed in columns, by a word for each entry. */
struct MixedSegments {
  static constexpr std::uint32_t kBuckets = 1u << kMostKeyBits;

  __device__ static std::uint32_t Word(std::uint32_t column, Bucket bucket) {
    return column * kBuckets + bucket;
  }
  __device__ static Bucket BucketOf(std::uint32_t word) { return word % kBuckets; }
  __device__ explicit MixedSegments(LevelRef const&) {}
  /** @brief Whether an entry is of another segment than the one before it. */
  __device__ bool Differ(std::uint32_t word_before, ValueId, std::uint32_t word, ValueId) const {
    return word_before != word;
  }
};

/** @brief Numbers the columns of a shared tile as their entries lie. */
class SharedColumns {
 public:
  /** @brief All lanes of a warp. */
  __device__ explicit SharedColumns(SharedTile const& tile) : heads_{tile.heads[threadIdx.x % 32]} {
    static_assert(SharedTile::kSize / 32 == 32, "one lane a word");
    auto const n = static_cast<std::uint32_t>(__popc(heads_));
    before_ = n;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      std::uint32_t const below = __shfl_up_sync(kAllLanes, before_, step);
      before_ += threadIdx.x % 32 >= step ? below : 0;
    }
    before_ -= n;
  }
  /** @brief Of the lane's entry in a run of 32. All lanes of a warp. */
  [[nodiscard]] __device__ std::uint32_t Of(int run) const {
    std::uint32_t const heads = __shfl_sync(kAllLanes, heads_, run);
    return __shfl_sync(kAllLanes, before_, run) + __popc(heads & (LanesBelow() << 1 | 1));
  }

 private:
  std::uint32_t heads_;   // of the lane's run
  std::uint32_t before_;  // columns that begin before the run
};

/**
 * @brief Multiscan of whole columns, sorted by node. grid: shared tiles; block: one tile; result:
 *        candidates are offered.
 * @tparam kKeyBits Of a bucket, and of kNoKey, whose last bits are all ones.
 */
template <typename EntryT, int kKeyBits>
__global__ __launch_bounds__(kTileThreads,
                             5) void SearchSharedTilesKernel(LevelRef level,
                                                             InterleavedRef<EntryT> in) {
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
  int bucket_begin[1];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    keys[k] = entries[k].bucket;
  }
  Rank{temp.rank}.RankKeys(keys, ranks, cub::BFEDigitExtractor<unsigned>(0, kKeyBits),
                           bucket_begin);
  SharedColumns const columns{of};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    std::uint32_t const word = MixedSegments::Word(columns.Of(first_run + k), entries[k].bucket);
    tile.Put(ranks[k], entries[k].value, entries[k].units, word);
  }
  if (threadIdx.x == kNoKey % (1u << kKeyBits)) {
    n_open = bucket_begin[0];
  }
  __syncthreads();  // the storage becomes the agent's
  auto carry = [&](std::uint32_t, Bucket bucket, FixedSum const& sum) {
    return SegmentCarry{{0, 0}, sum, nodes[bucket].sum, nodes[bucket].bar, 0, false, true};
  };
  Agent{&temp.agent, level, tile, n_open}.Search(carry);
}

constexpr unsigned kShortThreads = 256;
constexpr int kShortTiles = 4;  // of a warp

/** @brief Multiscan of whole columns. grid: tiles, kShortTiles a warp; result: candidates offered. */
template <typename EntryT>
__global__ __launch_bounds__(kShortThreads,
                             5) void SearchShortTilesKernel(LevelRef const __grid_constant__ level,
                                                            InterleavedRef<EntryT> in) {
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
  LaneList lists[kShortTiles];
  FixedSum up_to[kShortTiles];
#pragma unroll
  for (int k = 0; k < kShortTiles; ++k) {
    std::uint32_t const column = __popc(tiles[k].heads & (LanesBelow() << 1 | 1));
    lists[k] = LaneList{MixedSegments::Word(column, entries[k].bucket)};
    up_to[k] = entries[k].units.Fixed();
  }
  SumLists(lists, up_to);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kShortTiles; ++k) {
    LaneEntry const& e = entries[k];
    FixedSum const present = Shuffle(up_to[k], lists[k].Last());
    ValueId const last = __shfl_sync(kAllLanes, e.value, lists[k].Before() & 31);
    bool const is_first = lists[k].IsFirst();
    if (e.bucket != kNoKey && (is_first || last != e.value) &&
        level.MaySplit(e.bucket, e.value, present)) {
      EntrySplit const split{e.value, e.bucket, up_to[k] - e.units.Fixed(), present, is_first};
      if (GainBound::Reaches(MostGain(level, nodes[e.bucket], split), nodes[e.bucket].bar)) {
        OfferExact(level, split);
      }
    }
    __syncwarp();
  }
}
}  // namespace

template <typename EntryT>
void InterleavedFinder<EntryT>::Lay(std::vector<EntryIdx> const& entry_offsets) {
  if (is_laid_) {
    return;
  }
  is_laid_ = true;
  std::vector<LongTile> long_tiles;
  std::vector<SharedTile> shared_tiles;
  std::vector<ShortTile> short_tiles;
  EntryRange shared{0, 0};  // the last one's entries
  EntryRange of_warp{0, 0};
  // Whether a column goes on where a tile ends, and fits it.
  auto const fits = [](EntryRange const& tile, EntryRange const& column, int size) {
    return tile.end == column.begin && column.end - tile.begin <= static_cast<EntryIdx>(size);
  };
  for (std::size_t f = 0; f + 1 < entry_offsets.size(); ++f) {
    EntryRange const column{entry_offsets[f], entry_offsets[f + 1]};
    if (column.Size() > SharedTile::kSize) {
      auto const first = static_cast<std::uint32_t>(long_tiles.size());
      auto const last = first + static_cast<std::uint32_t>((column.Size() - 1) / LongTile::kSize);
      for (EntryIdx i = column.begin; i < column.end; i += LongTile::kSize) {
        EntryRange const part{i, std::min(i + LongTile::kSize, column.end)};
        long_tiles.push_back({part, static_cast<FeatureIdx>(f), first, last});
      }
    } else if (column.Size() > ShortTile::kSize ||
               (shared.Size() != 0 && fits(shared, column, SharedTile::kSize))) {
      // Short columns fill up a tile that is there.
      if (shared.Size() == 0 || !fits(shared, column, SharedTile::kSize)) {
        shared.begin = column.begin;
        shared_tiles.push_back({});
      }
      EntryIdx const head = column.begin - shared.begin;
      shared_tiles.back().heads[head / 32] |= 1u << head % 32;
      shared.end = column.end;
      shared_tiles.back().entries = shared;
    } else if (column.Size() != 0) {
      if (of_warp.Size() == 0 || !fits(of_warp, column, ShortTile::kSize)) {
        of_warp.begin = column.begin;
        short_tiles.push_back({column.begin, 0, 0});
      }
      short_tiles.back().heads |= 1u << short_tiles.back().n;
      short_tiles.back().n += static_cast<std::uint32_t>(column.Size());
      of_warp.end = column.end;
    }
  }
  CopyAsync(long_tiles_.Reserve(long_tiles.size()), long_tiles.data(), long_tiles.size());
  CopyAsync(shared_tiles_.Reserve(shared_tiles.size()), shared_tiles.data(), shared_tiles.size());
  CopyAsync(short_tiles_.Reserve(short_tiles.size()), short_tiles.data(), short_tiles.size());
  ref_.n_entries = entry_offsets.back();
  ref_.long_tiles = long_tiles_.Data();
  ref_.shared_tiles = shared_tiles_.Data();
  ref_.short_tiles = short_tiles_.Data();
  ref_.n_long = static_cast<std::uint32_t>(long_tiles.size());
  ref_.n_shared = static_cast<std::uint32_t>(shared_tiles.size());
  ref_.n_short = static_cast<std::uint32_t>(short_tiles.size());
}

template <typename EntryT>
void InterleavedFinder<EntryT>::Find(LevelRef const& level, EntriesRef<EntryT> const& entries,
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
    Launch("ReduceTiles", ReduceTilesKernel<EntryT>, ref_.n_long, LongTile::kThreads, level, ref_,
           partial_.Data());
    auto groups = thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}),
                                                  TileGroup{ref_.long_tiles, ref_.n_long});
    scratch_.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveScanByKey(storage, bytes, groups, partial_.Data(),
                                                 sums_.Data(), TileSumOp{}, n_sums,
                                                 cuda::std::equal_to<>{}, Stream());
    });
    Launch("SearchTiles", SearchTilesKernel<EntryT>, ref_.n_long, LongTile::kThreads, level, ref_);
  }
  if (ref_.n_shared != 0) {
    bool const few = level.n_nodes < 1u << kFewKeyBits;
    Launch("SearchSharedTiles",
           few ? SearchSharedTilesKernel<EntryT, kFewKeyBits>
               : SearchSharedTilesKernel<EntryT, kMostKeyBits>,
           ref_.n_shared, kTileThreads, level, ref_);
  }
  if (ref_.n_short != 0) {
    Launch("SearchShortTiles", SearchShortTilesKernel<EntryT>,
           CeilDiv(ref_.n_short, kShortThreads / 32 * kShortTiles), kShortThreads, level, ref_);
  }
}

template <typename EntryT>
std::uint64_t InterleavedFinder<EntryT>::Bytes() const {
  return long_tiles_.Bytes() + shared_tiles_.Bytes() + short_tiles_.Bytes() + partial_.Bytes() +
         sums_.Bytes() + scratch_.Bytes();
}

template class InterleavedFinder<CarriedEntry>;
template class InterleavedFinder<ColumnEntry>;
}  // namespace gpu_exact
