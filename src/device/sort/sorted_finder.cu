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
struct SortedTile {
  NodeRangesRef ranges;
  Entry const* entries;
  EntryIdx begin;  // counting open entries
  int n;

  __device__ SortedTile(Entry const* e, NodeRangesRef const& r)
      : ranges{r}, entries{e}, begin{EntryIdx{blockIdx.x} * Tile::kSize} {
    n = static_cast<int>(min(ranges.n_open - begin, EntryIdx{Tile::kSize}));
  }

  /** @brief All threads of the block; ends with a barrier. */
  __device__ void Load(Tile* out) const {
    Bucket bucket{0};
    bool found{false};
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kTileThreads) {
      if (!found || begin + i >= ranges.open_ends[bucket]) {
        bucket = ranges.NodeOf(begin + i);
        found = true;
      }
      out->Put(i, entries[ranges.Position(bucket, begin + i)], bucket);
    }
    __syncthreads();
  }

  /** @brief Value of the open entry before the tile; whether it is of the same segment. */
  __device__ bool ValueBefore(ColumnsRef const& c, Bucket bucket, ValueId first,
                              ValueId* out_value) const {
    if (begin == 0 || ranges.NodeOf(begin - 1) != bucket) {
      return false;
    }
    *out_value = entries[ranges.Position(bucket, begin - 1)].value;
    return c.FeatureOf(*out_value) == c.FeatureOf(first);
  }
  /** @brief Whether the segment of the tile's last entry goes on in the next tile. */
  __device__ bool GoesOn(ColumnsRef const& c, Bucket bucket, ValueId last) const {
    EntryIdx next = begin + n;
    if (next == ranges.n_open || ranges.NodeOf(next) != bucket) {
      return false;
    }
    return c.FeatureOf(entries[ranges.Position(bucket, next)].value) == c.FeatureOf(last);
  }
};

/** @brief Outer sums of two neighbouring runs of entries. Associative, not commutative. */
struct OuterSumsOp {
  __device__ OuterSums operator()(OuterSums const& a, OuterSums const& b) const {
    return {a.has_head != 0 ? a.left : a.left + b.left,
            b.has_head != 0 ? b.right : a.right + b.right, a.has_head | b.has_head};
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
__global__ __launch_bounds__(kTileThreads) void ReduceTilesKernel(LevelRef level,
                                                                  Entry const* entries,
                                                                  NodeRangesRef ranges,
                                                                  OuterSums* out_outer) {
  using BlockReduce =
      cub::BlockReduce<OuterSums, kTileThreads, cub::BLOCK_REDUCE_RAKING>;  // not commutative
  __shared__ typename BlockReduce::TempStorage temp;
  __shared__ Tile tile;
  SortedTile in{entries, ranges};
  in.Load(&tile);
  int first = static_cast<int>(threadIdx.x) * kItems;
  OuterSums sums{{0, 0}, {0, 0}, 0};
  FeatureCursor cursor{level.columns};
  for (int i = first; i < min(first + kItems, in.n); ++i) {
    ValueId value = tile.value[Tile::At(i)];
    Bucket bucket = tile.bucket[Tile::At(i)];
    cursor.MoveTo(value);
    ValueId before{0};
    bool same = i != 0 ? tile.bucket[Tile::At(i - 1)] == bucket &&
                             tile.value[Tile::At(i - 1)] >= cursor.First()
                       : in.ValueBefore(level.columns, bucket, value, &before);
    FixedSum g = level.quantiser.Fixed(tile.gpair[Tile::At(i)]);
    OuterSums item = same ? OuterSums{g, g, 0} : OuterSums{{0, 0}, g, 1};
    sums = OuterSumsOp{}(sums, item);
  }
  OuterSums total = BlockReduce{temp}.Reduce(sums, OuterSumsOp{});
  if (threadIdx.x == 0) {
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
 * @param before Sums of the tiles before each; .right is what its first segment has there.
 * @param after  Sums of the tiles after each; .left is what its last segment has there.
 */
__global__ __launch_bounds__(kTileThreads) void SearchTilesKernel(LevelRef level,
                                                                  Entry const* entries,
                                                                  NodeRangesRef ranges,
                                                                  OuterSums const* before,
                                                                  OuterSums const* after) {
  using Agent = SplitAgent<kItems>;
  __shared__ Agent::TempStorage temp;
  __shared__ Tile tile;
  __shared__ TileOutside outside;
  SortedTile in{entries, ranges};
  in.Load(&tile);
  if (threadIdx.x == 0) {
    ValueId value{0};
    bool continues =
        in.ValueBefore(level.columns, tile.bucket[Tile::At(0)], tile.value[Tile::At(0)], &value);
    outside.before = continues ? before[blockIdx.x].right : FixedSum{0, 0};
    outside.last_value = value;
    outside.continues = continues;
  } else if (threadIdx.x == 32) {
    int i = Tile::At(in.n - 1);
    bool goes_on = in.GoesOn(level.columns, tile.bucket[i], tile.value[i]);
    outside.after = goes_on ? after[blockIdx.x].left : FixedSum{0, 0};
    outside.goes_on = goes_on;
  }
  __syncthreads();
  Agent agent{&temp, level, tile, in.n};
  auto carry = [&](std::uint32_t segment, Bucket bucket, FixedSum const& in_tile) {
    bool first = segment == 0;
    bool last = segment + 1 == agent.NumSegments();
    FixedSum const none{0, 0};
    SegmentCarry c;
    c.before = first ? outside.before : none;
    c.present = c.before + in_tile + (last ? outside.after : none);
    c.total = level.nodes[bucket].sum;
    c.bar = level.Bar(bucket);
    c.last_value = outside.last_value;
    c.continues = first && outside.continues != 0;
    c.ends = !(last && outside.goes_on != 0);
    return c;
  };
  agent.Search(carry);
}
}  // namespace

void SortedFinder::Find(LevelRef const& level, Entry const* entries, NodeRangesRef const& ranges) {
  auto n_tiles = CeilDiv(ranges.n_open, Tile::kSize);
  if (n_tiles == 0) {
    return;
  }
  outer_.Reserve(n_tiles);
  before_.Reserve(n_tiles);
  after_.Reserve(n_tiles);
  Launch("ReduceTiles", ReduceTilesKernel, n_tiles, kTileThreads, level, entries, ranges,
         outer_.Data());
  OuterSums const none{{0, 0}, {0, 0}, 0};
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
  Launch("SearchTiles", SearchTilesKernel, n_tiles, kTileThreads, level, entries, ranges,
         before_.Data(), after_.Data());
}

std::uint64_t SortedFinder::Bytes() const {
  return outer_.Bytes() + before_.Bytes() + after_.Bytes() + scratch_.Bytes();
}
}  // namespace gpu_exact
