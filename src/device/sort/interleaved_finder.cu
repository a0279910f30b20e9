/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of interleaved_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/block/block_radix_rank.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "src/device/fixed_sum.cuh"
#include "src/device/sort/interleaved_finder.cuh"
#include "src/device/sort/split_agent.cuh"

namespace gpu_exact {
namespace {
constexpr int kFewKeyBits = 4;  // of levels of few nodes
constexpr int kMostKeyBits = 8;

/** @brief Segments of a tile whose nodes are mixed in columns, by a word for each entry. */
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

/**
 * @brief Loads one tile and sorts it by node, stable.
 * @tparam kKeyBits Of a bucket, and of kNoKey, whose last bits are all ones.
 */
template <typename EntryT, int kItems, int kKeyBits>
class InterleavedLoader {
  using Rank = cub::BlockRadixRankMatch<kTileThreads, kKeyBits, false>;

 public:
  static constexpr unsigned kBuckets = 1u << kKeyBits;
  static_assert(kBuckets <= kTileThreads, "one thread a bucket");

  struct TempStorage {
    typename Rank::TempStorage rank;
    int n_open;
  };

  /**
   * @brief All threads of the block; ends with a barrier.
   * @param columns   columns(i) -> number of the column within the tile; called by all lanes of a
   *                  warp, whose entries are the i-th 32 of theirs.
   * @param out_begin Thread b, of a bucket: where it begins in the tile.
   * @return Entries of open nodes; they come first.
   */
  template <typename ColumnsFn>
  __device__ static int Load(TempStorage* temp, InterleavedRef<EntryT> const& in,
                             EntryRange const& range, ColumnsFn&& columns,
                             TileEntries<kItems>* out_tile, int* out_begin) {
    int const n = static_cast<int>(range.Size());
    // The match-based rank wants keys striped by warp.
    int const first =
        static_cast<int>(threadIdx.x / 32) * 32 * kItems + static_cast<int>(threadIdx.x % 32);
    EntryT entries[kItems];
    GradientUnits units[kItems];
    unsigned keys[kItems];
    int ranks[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (first + i * 32 < n) {
        entries[i] = in.entries[range.begin + first + i * 32];
      }
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      keys[i] = kNoKey;
      if (first + i * 32 < n) {
        keys[i] = in.row_keys[entries[i].row];
        units[i] = in.entries.Units(entries[i]);
      }
    }
    int bucket_begin[1];
    Rank{temp->rank}.RankKeys(keys, ranks, cub::BFEDigitExtractor<unsigned>(0, kKeyBits),
                              bucket_begin);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      std::uint32_t const word = MixedSegments::Word(columns(i), keys[i]);
      if (first + i * 32 < n) {
        out_tile->Put(ranks[i], entries[i].value, units[i], word);
      }
    }
    if (threadIdx.x == kNoKey % kBuckets) {
      temp->n_open = bucket_begin[0];
    }
    *out_begin = bucket_begin[0];
    __syncthreads();
    return temp->n_open;
  }
};

/** @brief Of a long tile, which has one column. */
struct OneColumn {
  __device__ std::uint32_t operator()(int) const { return 0; }
};

/** @brief Of a shared tile: numbers columns as their entries lie. */
class ColumnsOfHeads {
 public:
  /** @brief All lanes of a warp. */
  __device__ explicit ColumnsOfHeads(std::uint32_t const (&heads)[SharedTile::kSize / 32])
      : heads_{heads[threadIdx.x % 32]} {
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
  __device__ std::uint32_t operator()(int i) const {
    int const word = static_cast<int>(threadIdx.x / 32) * SharedTile::kItems + i;
    std::uint32_t const heads = __shfl_sync(kAllLanes, heads_, word);
    return __shfl_sync(kAllLanes, before_, word) + __popc(heads & (LanesBelow() << 1 | 1));
  }

 private:
  std::uint32_t heads_;   // of the lane's word
  std::uint32_t before_;  // columns that begin before the word
};

/**
 * @brief Multireduce. grid: long tiles; block: one tile; result: out_partial[bucket, tile].
 *
 * The tile is sorted by node, so that a node's sum is the difference of two sums of all entries
 * before: at its end and at its begin.
 */
template <typename EntryT, int kKeyBits>
__global__ __launch_bounds__(kTileThreads, 4) void ReduceTilesKernel(LevelRef level,
                                                                     InterleavedRef<EntryT> in,
                                                                     TileSum* out_partial) {
  constexpr int kItems = LongTile::kItems;
  using Loader = InterleavedLoader<EntryT, kItems, kKeyBits>;
  using Tile = TileEntries<kItems>;
  using BlockScan = cub::BlockScan<FixedSum, kTileThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ union {
    typename Loader::TempStorage load;
    typename BlockScan::TempStorage scan;
  } temp;
  __shared__ Tile tile;
  __shared__ FixedSum at_begin[kMaxKeyedNodes];
  __shared__ FixedSum at_end[kMaxKeyedNodes];
  __shared__ int begins[Loader::kBuckets];
  int begin;
  EntryRange const range = in.long_tiles[blockIdx.x].entries;
  int const n = Loader::Load(&temp.load, in, range, OneColumn{}, &tile, &begin);
  if (threadIdx.x < Loader::kBuckets) {
    begins[threadIdx.x] = begin;
  }
  __syncthreads();  // the loader's storage becomes the scan's
  int const first = static_cast<int>(threadIdx.x) * kItems;
  int const last = min(first + kItems, n);
  FixedSum own{0, 0};
  for (int i = first; i < last; ++i) {
    own = own + tile.units[Tile::At(i)].Fixed();
  }
  FixedSum before;
  BlockScan{temp.scan}.ExclusiveScan(own, before, FixedSum{0, 0}, cuda::std::plus<>{});
  for (int i = first; i < last; ++i) {
    Bucket const bucket = tile.segment[Tile::At(i)];
    if (i == begins[bucket]) {
      at_begin[bucket] = before;
    }
    before = before + tile.units[Tile::At(i)].Fixed();
    if (i + 1 == begins[bucket + 1]) {
      at_end[bucket] = before;
    }
  }
  __syncthreads();
  if (threadIdx.x < level.n_nodes) {
    int const end = begins[threadIdx.x + 1];
    TileSum sum{{0, 0}, 0, 0};
    if (end > begin) {
      sum = {at_end[threadIdx.x] - at_begin[threadIdx.x], 1, tile.value[Tile::At(end - 1)]};
    }
    out_partial[std::uint64_t{threadIdx.x} * in.n_long + blockIdx.x] = sum;
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

struct TileSumOp {
  __device__ TileSum operator()(TileSum const& a, TileSum const& b) const {
    return {a.sum + b.sum, a.occupied | b.occupied, b.occupied != 0 ? b.last_value : a.last_value};
  }
};

/**
 * @brief Multiscan. grid: long tiles; block: one tile; result: candidates offered to their nodes.
 */
template <typename EntryT, int kKeyBits>
__global__ __launch_bounds__(kTileThreads, 4) void SearchTilesKernel(LevelRef level,
                                                                     InterleavedRef<EntryT> in) {
  constexpr int kItems = LongTile::kItems;
  using Loader = InterleavedLoader<EntryT, kItems, kKeyBits>;
  using Agent = SplitAgent<kItems, MixedSegments, kMaxKeyedNodes>;
  __shared__ union {
    typename Loader::TempStorage load;
    struct {
      typename Agent::TempStorage agent;
      SegmentCarry carries[kMaxKeyedNodes];  // by bucket
    } search;
  } temp;
  __shared__ TileEntries<kItems> tile;
  LongTile const of = in.long_tiles[blockIdx.x];
  int bucket_begin;
  int n = Loader::Load(&temp.load, in, of.entries, OneColumn{}, &tile, &bucket_begin);
  __syncthreads();  // the loader's storage becomes the agent's
  if (threadIdx.x < level.n_nodes) {
    Bucket bucket = threadIdx.x;
    SegmentCarry c{
        {0, 0}, in.Sum(bucket, of.last).sum, level.nodes[bucket].sum, level.Bar(bucket), 0, false,
        false};
    if (blockIdx.x != of.first) {
      TileSum before = in.Sum(bucket, blockIdx.x - 1);
      c.before = before.sum;
      c.last_value = before.last_value;
      c.continues = before.occupied != 0;
    }
    temp.search.carries[bucket] = c;
  }  // the agent syncs before it asks
  auto carry = [&](std::uint32_t, Bucket bucket, FixedSum const&) -> SegmentCarry const& {
    return temp.search.carries[bucket];
  };
  Agent{&temp.search.agent, level, tile, n}.Search(carry);
  if (blockIdx.x == of.last && threadIdx.x < level.n_nodes) {
    Bucket bucket = threadIdx.x;
    TileSum all = in.Sum(bucket, of.last);
    if (all.occupied != 0 && level.Allowed(bucket, of.feature)) {
      level.Offer(bucket, level.PresentKey(level.nodes[bucket], of.feature, all.sum));
    }
  }
}

/** @brief What the search asks of a node. */
struct NodeTotal {
  FixedSum sum;
  float bar;
};

/**
 * @brief Multiscan of whole columns. grid: shared tiles; block: one tile; result: candidates
 *        offered to their nodes.
 */
template <typename EntryT, int kKeyBits>
__global__ __launch_bounds__(kTileThreads,
                             5) void SearchSharedTilesKernel(LevelRef level,
                                                             InterleavedRef<EntryT> in) {
  constexpr int kItems = SharedTile::kItems;
  using Loader = InterleavedLoader<EntryT, kItems, kKeyBits>;
  using Agent = SplitAgent<kItems, MixedSegments>;
  __shared__ union {
    typename Loader::TempStorage load;
    typename Agent::TempStorage agent;
  } temp;
  __shared__ TileEntries<kItems> tile;
  __shared__ NodeTotal nodes[kMaxKeyedNodes];
  if (threadIdx.x < level.n_nodes) {
    nodes[threadIdx.x] = {level.nodes[threadIdx.x].sum, level.Bar(threadIdx.x)};
  }
  SharedTile const& of = in.shared_tiles[blockIdx.x];
  int bucket_begin;
  int n = Loader::Load(&temp.load, in, of.entries, ColumnsOfHeads{of.heads}, &tile, &bucket_begin);
  __syncthreads();  // the loader's storage becomes the agent's
  auto carry = [&](std::uint32_t, Bucket bucket, FixedSum const& sum) {
    return SegmentCarry{{0, 0}, sum, nodes[bucket].sum, nodes[bucket].bar, 0, false, true};
  };
  Agent{&temp.agent, level, tile, n}.Search(carry);
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
  for (std::size_t f = 0; f + 1 < entry_offsets.size(); ++f) {
    EntryRange const column{entry_offsets[f], entry_offsets[f + 1]};
    if (column.Size() > SharedTile::kSize) {
      auto const first = static_cast<std::uint32_t>(long_tiles.size());
      auto const last = first + static_cast<std::uint32_t>((column.Size() - 1) / LongTile::kSize);
      for (EntryIdx i = column.begin; i < column.end; i += LongTile::kSize) {
        EntryRange const part{i, std::min(i + LongTile::kSize, column.end)};
        long_tiles.push_back({part, static_cast<FeatureIdx>(f), first, last});
      }
    } else if (column.Size() != 0) {
      bool const fits = !shared_tiles.empty() && shared_tiles.back().entries.end == column.begin &&
                        column.end - shared_tiles.back().entries.begin <= SharedTile::kSize;
      if (!fits) {
        shared_tiles.push_back({column, {}});
      }
      SharedTile& tile = shared_tiles.back();
      EntryIdx const head = column.begin - tile.entries.begin;
      tile.heads[head / 32] |= 1u << head % 32;
      tile.entries.end = column.end;
    }
  }
  CopyAsync(long_tiles_.Reserve(long_tiles.size()), long_tiles.data(), long_tiles.size());
  CopyAsync(shared_tiles_.Reserve(shared_tiles.size()), shared_tiles.data(), shared_tiles.size());
  ref_.n_entries = entry_offsets.back();
  ref_.long_tiles = long_tiles_.Data();
  ref_.shared_tiles = shared_tiles_.Data();
  ref_.n_long = static_cast<std::uint32_t>(long_tiles.size());
  ref_.n_shared = static_cast<std::uint32_t>(shared_tiles.size());
}

template <typename EntryT>
void InterleavedFinder<EntryT>::Find(LevelRef const& level, EntriesRef<EntryT> const& entries,
                                     std::uint8_t const* row_keys) {
  ref_.entries = entries;
  ref_.row_keys = row_keys;
  if (level.n_nodes < 1u << kFewKeyBits) {
    this->FindByKeys<kFewKeyBits>(level);
  } else {
    this->FindByKeys<kMostKeyBits>(level);
  }
}

template <typename EntryT>
template <int kKeyBits>
void InterleavedFinder<EntryT>::FindByKeys(LevelRef const& level) {
  if (level.n_nodes == 0) {
    return;
  }
  // Long columns first: the others are held against the best of them.
  if (ref_.n_long != 0) {
    auto const n_sums = std::uint64_t{level.n_nodes} * ref_.n_long;
    partial_.Reserve(n_sums);
    ref_.sums = sums_.Reserve(n_sums);
    Launch("ReduceTiles", ReduceTilesKernel<EntryT, kKeyBits>, ref_.n_long, kTileThreads, level,
           ref_, partial_.Data());
    auto groups = thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint64_t{0}),
                                                  TileGroup{ref_.long_tiles, ref_.n_long});
    scratch_.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveScanByKey(storage, bytes, groups, partial_.Data(),
                                                 sums_.Data(), TileSumOp{}, n_sums,
                                                 cuda::std::equal_to<>{}, Stream());
    });
    Launch("SearchTiles", SearchTilesKernel<EntryT, kKeyBits>, ref_.n_long, kTileThreads, level,
           ref_);
  }
  if (ref_.n_shared != 0) {
    Launch("SearchSharedTiles", SearchSharedTilesKernel<EntryT, kKeyBits>, ref_.n_shared,
           kTileThreads, level, ref_);
  }
}

template <typename EntryT>
std::uint64_t InterleavedFinder<EntryT>::Bytes() const {
  return long_tiles_.Bytes() + shared_tiles_.Bytes() + partial_.Bytes() + sums_.Bytes() +
         scratch_.Bytes();
}

template class InterleavedFinder<CarriedEntry>;
template class InterleavedFinder<ColumnEntry>;
}  // namespace gpu_exact
