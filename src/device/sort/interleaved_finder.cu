/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of interleaved_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/block/block_radix_rank.cuh>
#include <cub/device/device_scan.cuh>

#include "src/device/fixed_sum.cuh"
#include "src/device/sort/interleaved_finder.cuh"
#include "src/device/sort/split_agent.cuh"

namespace gpu_exact {
namespace {
constexpr int kItems = kInterleavedItems;
constexpr int kKeyBits = 8;
constexpr int kBuckets = 1 << kKeyBits;
using Tile = TileEntries<kItems>;
static_assert(Tile::kSize == kInterleavedTile);

/** @brief Loads one tile of a feature and sorts it by node, stable. */
template <typename EntryT>
class InterleavedLoader {
  using Rank = cub::BlockRadixRankMatch<kTileThreads, kKeyBits, false>;
  static_assert(kTileThreads == kBuckets, "one thread a bucket");

 public:
  struct TempStorage {
    typename Rank::TempStorage rank;
    int n_open;
  };

  /**
   * @brief The tile of this block. All threads of the block; ends with a barrier.
   * @param out_begin Thread b: where bucket b begins in the tile.
   * @return Entries of open nodes; they come first.
   */
  __device__ static int Load(TempStorage* temp, InterleavedRef<EntryT> const& in, Tile* out_tile,
                             int* out_begin) {
    EntryRange const range = in.OfTile(blockIdx.x);
    EntryIdx const begin = range.begin;
    int const n = static_cast<int>(range.Size());
    // The match-based rank wants keys striped by warp.
    int first =
        static_cast<int>(threadIdx.x / 32) * 32 * kItems + static_cast<int>(threadIdx.x % 32);
    EntryT entries[kItems];
    GradientPair gpair[kItems];
    unsigned keys[kItems];
    int ranks[kItems];
    for (int i = 0; i < kItems; ++i) {
      int item = first + i * 32;
      if (item < n) {
        entries[i] = in.entries[begin + item];
      }
    }
    for (int i = 0; i < kItems; ++i) {
      keys[i] = kNoKey;
      int item = first + i * 32;
      if (item < n) {
        keys[i] = in.row_keys[entries[i].row];
        gpair[i] = in.entries.Gradients(entries[i]);
      }
    }
    int bucket_begin[1];
    Rank{temp->rank}.RankKeys(keys, ranks, cub::BFEDigitExtractor<unsigned>(0, kKeyBits),
                              bucket_begin);
    for (int i = 0; i < kItems; ++i) {
      if (first + i * 32 < n) {
        out_tile->Put(ranks[i], entries[i].value, gpair[i], keys[i]);
      }
    }
    if (threadIdx.x == kNoKey) {
      temp->n_open = bucket_begin[0];
    }
    *out_begin = bucket_begin[0];
    __syncthreads();
    return temp->n_open;
  }
};

/**
 * @brief Multireduce. grid: tiles; block: one tile; result: out_partial[bucket, tile].
 */
template <typename EntryT>
__global__ __launch_bounds__(kTileThreads) void ReduceTilesKernel(LevelRef level,
                                                                  InterleavedRef<EntryT> in,
                                                                  TileSum* out_partial) {
  using Loader = InterleavedLoader<EntryT>;
  __shared__ typename Loader::TempStorage temp;
  __shared__ Tile tile;
  __shared__ FixedSum sums[kBuckets];
  sums[threadIdx.x] = {0, 0};
  int bucket_begin;
  int n = Loader::Load(&temp, in, &tile, &bucket_begin);
  // Neighbours are of one node mostly: a thread adds once a run, a warp of one node once.
  int first = static_cast<int>(threadIdx.x) * kItems;
  int last = min(first + kItems, n);
  Bucket bucket = first < n ? tile.bucket[Tile::At(first)] : kNoBucket;
  FixedSum run{0, 0};
  for (int i = first; i < last; ++i) {
    if (tile.bucket[Tile::At(i)] != bucket) {
      AtomicAdd(&sums[bucket], run);
      bucket = tile.bucket[Tile::At(i)];
      run = {0, 0};
    }
    run = run + level.quantiser.Fixed(tile.gpair[Tile::At(i)]);
  }
  int one_node{0};
  __match_all_sync(kAllLanes, bucket, &one_node);
  if (one_node != 0) {
    run = SumLanes(run);
  }
  if (bucket != kNoBucket && (one_node == 0 || threadIdx.x % 32 == 0)) {
    AtomicAdd(&sums[bucket], run);
  }
  __shared__ int bucket_begins[kBuckets];
  bucket_begins[threadIdx.x] = bucket_begin;
  __syncthreads();
  if (threadIdx.x < level.n_nodes) {
    int bucket_end = min(n, bucket_begins[threadIdx.x + 1]);
    bool any = bucket_end > bucket_begin;
    out_partial[std::uint64_t{threadIdx.x} * in.tiles.n_tiles + blockIdx.x] = {
        sums[threadIdx.x], any, any ? tile.value[Tile::At(bucket_end - 1)] : 0};
  }
}

/** @brief Tiles of one node and feature have one number, other ones follow. */
struct TileGroup {
  FeatureIdx const* feature;
  std::uint32_t n_tiles;
  FeatureIdx n_features;
  __device__ std::uint64_t operator()(std::uint64_t i) const {
    return i / n_tiles * n_features + feature[i % n_tiles];
  }
};

struct TileSumOp {
  __device__ TileSum operator()(TileSum const& a, TileSum const& b) const {
    return {a.sum + b.sum, a.occupied | b.occupied, b.occupied != 0 ? b.last_value : a.last_value};
  }
};

/**
 * @brief Multiscan. grid: tiles; block: one tile; result: candidates offered to their nodes.
 */
template <typename EntryT>
__global__ __launch_bounds__(kTileThreads) void SearchTilesKernel(LevelRef level,
                                                                  InterleavedRef<EntryT> in) {
  using Loader = InterleavedLoader<EntryT>;
  using Agent = SplitAgent<kItems, kMaxKeyedNodes>;
  __shared__ union {
    typename Loader::TempStorage load;
    struct {
      Agent::TempStorage agent;
      SegmentCarry carries[kMaxKeyedNodes];  // by bucket
    } search;
  } temp;
  __shared__ Tile tile;
  FeatureIdx f = in.tiles.feature[blockIdx.x];
  int bucket_begin;
  int n = Loader::Load(&temp.load, in, &tile, &bucket_begin);
  __syncthreads();  // the loader's storage becomes the agent's
  std::uint32_t first_tile = in.tiles.of_feature[f];
  std::uint32_t last_tile = in.tiles.of_feature[f + 1] - 1;
  if (threadIdx.x < level.n_nodes) {
    Bucket bucket = threadIdx.x;
    SegmentCarry c{
        {0, 0}, in.Sum(bucket, last_tile).sum, level.nodes[bucket].sum, level.Bar(bucket), 0, false,
        false};
    if (blockIdx.x != first_tile) {
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
  if (blockIdx.x == last_tile && threadIdx.x < level.n_nodes) {
    Bucket bucket = threadIdx.x;
    TileSum all = in.Sum(bucket, last_tile);
    if (all.occupied != 0 && level.Allowed(bucket, f)) {
      level.Offer(bucket, level.PresentKey(level.nodes[bucket], f, all.sum));
    }
  }
}
}  // namespace

template <typename EntryT>
void InterleavedFinder<EntryT>::Lay(std::vector<EntryIdx> const& entry_offsets) {
  if (ref_.tiles.begins != nullptr) {
    return;
  }
  auto n_features = entry_offsets.size() - 1;
  std::vector<std::uint32_t> first(n_features + 1, 0);
  std::vector<FeatureIdx> feature;
  std::vector<EntryIdx> begins;
  for (std::size_t f = 0; f < n_features; ++f) {
    for (EntryIdx i = entry_offsets[f]; i < entry_offsets[f + 1]; i += Tile::kSize) {
      feature.push_back(static_cast<FeatureIdx>(f));
      begins.push_back(i);
    }
    first[f + 1] = static_cast<std::uint32_t>(feature.size());
  }
  begins.push_back(entry_offsets.back());
  CopyAsync(feature_tile_.Reserve(first.size()), first.data(), first.size());
  CopyAsync(tile_feature_.Reserve(feature.size()), feature.data(), feature.size());
  CopyAsync(tile_begin_.Reserve(begins.size()), begins.data(), begins.size());
  ref_.tiles = {tile_feature_.Data(), feature_tile_.Data(), tile_begin_.Data(),
                static_cast<std::uint32_t>(feature.size())};
}

template <typename EntryT>
void InterleavedFinder<EntryT>::Find(LevelRef const& level, EntriesRef<EntryT> const& entries,
                                     std::uint8_t const* row_keys) {
  auto n_tiles = ref_.tiles.n_tiles;
  auto n_sums = std::uint64_t{level.n_nodes} * n_tiles;
  partial_.Reserve(n_sums);
  ref_.entries = entries;
  ref_.row_keys = row_keys;
  ref_.sums = sums_.Reserve(n_sums);
  if (n_sums == 0) {
    return;
  }
  Launch("ReduceTiles", ReduceTilesKernel<EntryT>, n_tiles, kTileThreads, level, ref_,
         partial_.Data());
  auto groups = thrust::make_transform_iterator(
      thrust::make_counting_iterator(std::uint64_t{0}),
      TileGroup{ref_.tiles.feature, n_tiles, level.columns.n_features});
  scratch_.Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScanByKey(storage, bytes, groups, partial_.Data(),
                                               sums_.Data(), TileSumOp{}, n_sums,
                                               cuda::std::equal_to<>{}, Stream());
  });
  Launch("SearchTiles", SearchTilesKernel<EntryT>, n_tiles, kTileThreads, level, ref_);
}

template <typename EntryT>
std::uint64_t InterleavedFinder<EntryT>::Bytes() const {
  return tile_feature_.Bytes() + feature_tile_.Bytes() + tile_begin_.Bytes() + partial_.Bytes() +
         sums_.Bytes() + scratch_.Bytes();
}

template class InterleavedFinder<CarriedEntry>;
template class InterleavedFinder<ColumnEntry>;
}  // namespace gpu_exact
