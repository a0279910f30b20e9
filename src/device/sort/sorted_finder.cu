/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of sorted_finder.cuh.
 */
#include <thrust/iterator/reverse_iterator.h>

#include <cub/block/block_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "src/device/sort/sorted_finder.cuh"
#include "src/device/sort/split_agent.cuh"

namespace gpu_exact {
namespace {
constexpr int kItems = 4;
using Tile = TileEntries<kItems>;

/** @brief The open entries of one tile, and what their outer neighbours are. */
template <typename EntryT>
struct SortedTile {
  NodeRangesRef ranges;
  EntriesRef<EntryT> entries;
  EntryIdx begin;  // counting open entries
  int n;           // 0: the grid was made for more open entries than there are

  __device__ SortedTile(EntriesRef<EntryT> const& e, NodeRangesRef const& r)
      : ranges{r}, entries{e}, begin{EntryIdx{blockIdx.x} * Tile::kSize} {
    EntryIdx const n_open = ranges.NumOpen();
    n = begin < n_open ? static_cast<int>(min(n_open - begin, EntryIdx{Tile::kSize})) : 0;
  }

  /** @brief All threads of the block; ends with a barrier. */
  __device__ void Load(Tile* out) const {
    // All of a thread's entries are on their way before the first of their gradients is asked for.
    EntryT items[kItems];
    Bucket buckets[kItems];
    Bucket bucket{kNoBucket};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      int const i = static_cast<int>(threadIdx.x) + k * kTileThreads;
      if (i < n) {
        if (bucket == kNoBucket || begin + i >= ranges.open_ends[bucket]) {
          bucket = ranges.NodeOf(begin + i);
        }
        items[k] = entries[ranges.Position(bucket, begin + i)];
        buckets[k] = bucket;
      }
    }
    GradientPair gpair[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (static_cast<int>(threadIdx.x) + k * kTileThreads < n) {
        gpair[k] = entries.Gradients(items[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      int const i = static_cast<int>(threadIdx.x) + k * kTileThreads;
      if (i < n) {
        out->Put(i, items[k].value, gpair[k], buckets[k]);
      }
    }
    __syncthreads();
  }

  /** @brief Value of the entry before the tile; whether it is of the tile's first node. */
  __device__ bool ValueBefore(Bucket bucket, ValueId* out_value) const {
    EntryIdx const at = ranges.Position(bucket, begin);
    if (at == ranges.ranges[bucket].begin) {
      return false;
    }
    *out_value = entries[at - 1].value;
    return true;
  }
};

/** @brief Outer sums of two neighbouring runs of entries. Associative, not commutative. */
struct OuterSumsOp {
  __device__ OuterSums operator()(OuterSums const& a, OuterSums const& b) const {
    return {a.has_head != 0 ? a.left : a.left + b.left,
            b.has_head != 0 ? b.right : a.right + b.right, a.has_head | b.has_head, a.continues};
  }
};
/** @brief The same from right to left. */
struct ReverseOuterSumsOp {
  __device__ OuterSums operator()(OuterSums const& b, OuterSums const& a) const {
    return OuterSumsOp{}(a, b);
  }
};

/**
 * @brief grid: tiles; block: one tile; result: out_outer[tile].
 */
template <typename EntryT>
__global__ __launch_bounds__(kTileThreads) void ReduceTilesKernel(LevelRef level,
                                                                  EntriesRef<EntryT> entries,
                                                                  NodeRangesRef ranges,
                                                                  OuterSums* out_outer) {
  using BlockReduce =
      cub::BlockReduce<OuterSums, kTileThreads, cub::BLOCK_REDUCE_RAKING>;  // not commutative
  __shared__ typename BlockReduce::TempStorage temp;
  __shared__ Tile tile;
  SortedTile<EntryT> in{entries, ranges};
  in.Load(&tile);
  int first = static_cast<int>(threadIdx.x) * kItems;
  OuterSums sums{{0, 0}, {0, 0}, 0, 0};
  std::uint32_t continues{0};  // of the first thread
  FeatureCursor cursor{level.columns};
  for (int i = first; i < min(first + kItems, in.n); ++i) {
    ValueId value = tile.value[Tile::At(i)];
    Bucket bucket = tile.bucket[Tile::At(i)];
    cursor.MoveTo(value);
    ValueId before{0};
    bool same;
    if (i == 0) {
      same = in.ValueBefore(bucket, &before) && before >= cursor.First();
      continues = same;
    } else {
      same =
          tile.bucket[Tile::At(i - 1)] == bucket && tile.value[Tile::At(i - 1)] >= cursor.First();
    }
    FixedSum g = level.quantiser.Fixed(tile.gpair[Tile::At(i)]);
    OuterSums item = same ? OuterSums{g, g, 0, 0} : OuterSums{{0, 0}, g, 1, 0};
    sums = OuterSumsOp{}(sums, item);
  }
  OuterSums total = BlockReduce{temp}.Reduce(sums, OuterSumsOp{});
  if (threadIdx.x == 0) {
    total.continues = continues;
    out_outer[blockIdx.x] = total;
  }
}

/** @brief What a tile's first segment has in earlier tiles, and its last one in later tiles. */
struct TileOutside {
  FixedSum before;
  FixedSum after;
  ValueId last_value;
  std::uint32_t continues;
  std::uint32_t goes_on;
};

/**
 * @brief grid: tiles; block: one tile; result: candidates offered to their nodes.
 * @param outer  Of each tile.
 * @param before Sums of the tiles before each; .right is what its first segment has there.
 * @param after  Sums of the tiles after each; .left is what its last segment has there.
 */
template <typename EntryT>
__global__ __launch_bounds__(kTileThreads) void SearchTilesKernel(
    LevelRef level, EntriesRef<EntryT> entries, NodeRangesRef ranges, OuterSums const* outer,
    OuterSums const* before, OuterSums const* after) {
  using Agent = SplitAgent<kItems>;
  __shared__ Agent::TempStorage temp;
  __shared__ Tile tile;
  __shared__ TileOutside outside;
  SortedTile<EntryT> in{entries, ranges};
  if (in.n == 0) {
    return;
  }
  in.Load(&tile);
  if (threadIdx.x == 0) {
    outside.continues = outer[blockIdx.x].continues;
    outside.before = {0, 0};
    outside.last_value = 0;
    if (outside.continues != 0) {
      outside.before = before[blockIdx.x].right;
      in.ValueBefore(tile.bucket[Tile::At(0)], &outside.last_value);
    }
  } else if (threadIdx.x == 32) {
    // A tile without entries follows no segment.
    outside.goes_on = blockIdx.x + 1 < gridDim.x ? outer[blockIdx.x + 1].continues : 0;
    outside.after = {0, 0};
    if (outside.goes_on != 0) {
      outside.after = after[blockIdx.x].left;
    }
  }
  __syncthreads();
  Agent agent{&temp, level, tile, in.n};
  // Of the node that was asked for last: most of a thread's segments are of one node.
  Bucket node{kNoBucket};
  FixedSum total{0, 0};
  float bar{0};
  auto carry = [&](std::uint32_t segment, Bucket bucket, FixedSum const& in_tile) {
    if (bucket != node) {
      node = bucket;
      total = level.nodes[bucket].sum;
      bar = level.Bar(bucket);
    }
    bool first = segment == 0;
    bool last = segment + 1 == agent.NumSegments();
    FixedSum const none{0, 0};
    SegmentCarry c;
    c.before = first ? outside.before : none;
    c.present = c.before + in_tile + (last ? outside.after : none);
    c.total = total;
    c.bar = bar;
    c.last_value = outside.last_value;
    c.continues = first && outside.continues != 0;
    c.ends = !(last && outside.goes_on != 0);
    return c;
  };
  agent.Search(carry);
}
}  // namespace

template <typename EntryT>
void SortedFinder::Find(LevelRef const& level, EntriesRef<EntryT> const& entries,
                        NodeRangesRef const& ranges) {
  auto n_tiles = CeilDiv(ranges.max_open, Tile::kSize);
  if (n_tiles == 0) {
    return;
  }
  outer_.Reserve(n_tiles);
  before_.Reserve(n_tiles);
  after_.Reserve(n_tiles);
  Launch("ReduceTiles", ReduceTilesKernel<EntryT>, n_tiles, kTileThreads, level, entries, ranges,
         outer_.Data());
  OuterSums const none{{0, 0}, {0, 0}, 0, 0};
  scratch_.Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(storage, bytes, outer_.Data(), before_.Data(),
                                          OuterSumsOp{}, none, n_tiles, Stream());
  });
  auto from_right = thrust::make_reverse_iterator(outer_.Data() + n_tiles);
  auto to_left = thrust::make_reverse_iterator(after_.Data() + n_tiles);
  scratch_.Call([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(storage, bytes, from_right, to_left, ReverseOuterSumsOp{},
                                          none, n_tiles, Stream());
  });
  Launch("SearchTiles", SearchTilesKernel<EntryT>, n_tiles, kTileThreads, level, entries, ranges,
         outer_.Data(), before_.Data(), after_.Data());
}
template void SortedFinder::Find(LevelRef const&, EntriesRef<CarriedEntry> const&,
                                 NodeRangesRef const&);
template void SortedFinder::Find(LevelRef const&, EntriesRef<ColumnEntry> const&,
                                 NodeRangesRef const&);

std::uint64_t SortedFinder::Bytes() const {
  return outer_.Bytes() + before_.Bytes() + after_.Bytes() + scratch_.Bytes();
}
}  // namespace gpu_exact
