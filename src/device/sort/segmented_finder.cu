/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements segmented_finder.cuh.
 */
#include <thrust/iterator/reverse_iterator.h>

#include <cub/block/block_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "device/runtime/device_context.cuh"
#include "device/sort/segmented_finder.cuh"
#include "device/sort/split_agent.cuh"

namespace gpu_exact {
namespace {
constexpr int kItems = 4;
using Tile = TileEntries<kItems>;

/** @brief Remembers the value ids of an id's feature, while ids of one thread go up. */
class FeatureCursor {
 public:
  __device__ explicit FeatureCursor(ColumnsRef const& columns) : columns_{columns} {}

  __device__ void MoveTo(ValueId value) {
    if (value < first_ || value > last_) {
      ValueRange range = columns_.Values(columns_.FeatureOf(value));
      first_ = static_cast<ValueId>(range.begin);
      last_ = static_cast<ValueId>(range.end - 1);
    }
  }
  /** @brief Give the feature's first value id. */
  [[nodiscard]] __device__ ValueId First() const { return first_; }
  /** @brief Give its last one. */
  [[nodiscard]] __device__ ValueId Last() const { return last_; }

 private:
  ColumnsRef const& columns_;
  ValueId first_{1};  // of an empty range
  ValueId last_{0};   // inclusive
};

/** @brief Tells segments apart in a tile sorted by node: the word of an entry is its LevelNode. */
class SortedSegments {
 public:
  __device__ explicit SortedSegments(LevelRef const& level) : cursor_{level.columns} {}
  __device__ static LevelNode LevelNodeOf(std::uint32_t word) { return word; }
  /** @brief Tell whether an entry is of another node or feature than the one before it. */
  __device__ bool Differ(std::uint32_t word_before, ValueId before, std::uint32_t word,
                         ValueId value) {
    cursor_.MoveTo(value);
    return word_before != word || before < cursor_.First();
  }

 private:
  FeatureCursor cursor_;
};

/** @brief Holds the open entries of one tile, and what their outer neighbours are. */
struct SortedTile {
  NodeRangesRef ranges;
  EntriesRef entries;
  EntryIdx begin;  // counting open entries
  int n;           // 0: the grid was made for more open entries than there are

  __device__ SortedTile(EntriesRef const& e, NodeRangesRef const& r)
      : ranges{r}, entries{e}, begin{EntryIdx{blockIdx.x} * Tile::kSize} {
    EntryIdx const n_open = ranges.NumOpen();
    n = begin < n_open ? static_cast<int>(min(n_open - begin, EntryIdx{Tile::kSize})) : 0;
  }

  /** @brief Load the thread's entries, every kTileThreads-th; the LevelNode is kNoLevelNode past
   *         the last. */
  __device__ void Fetch(ColumnEntry (&out_items)[kItems],
                        LevelNode (&out_level_nodes)[kItems]) const {
    LevelNode level_node{kNoLevelNode};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      int const i = static_cast<int>(threadIdx.x) + k * kTileThreads;
      out_level_nodes[k] = kNoLevelNode;
      if (i < n) {
        if (level_node == kNoLevelNode || begin + i >= ranges.open_ends[level_node]) {
          level_node = ranges.NodeOf(begin + i);
        }
        out_items[k] = entries[ranges.Position(level_node, begin + i)];
        out_level_nodes[k] = level_node;
      }
    }
  }

  /** @brief Load by all threads of the block; ends with a barrier. */
  __device__ void Load(Tile* out) const {
    ColumnEntry items[kItems];
    LevelNode level_nodes[kItems];
    this->Fetch(items, level_nodes);
    // All gradients are on their way before the first one is waited for.
    GradientUnits units[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (level_nodes[k] != kNoLevelNode) {
        units[k] = entries.Units(items[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (level_nodes[k] != kNoLevelNode) {
        int const i = static_cast<int>(threadIdx.x) + k * kTileThreads;
        out->Store(i, items[k].value, units[k], level_nodes[k]);
      }
    }
    __syncthreads();
  }

  /** @brief Get the value of the entry before the tile, and whether it is of the tile's first
   *         node. */
  __device__ bool ValueBefore(LevelNode level_node, ValueId* out_value) const {
    EntryIdx const at = ranges.Position(level_node, begin);
    if (at == ranges.ranges[level_node].begin) {
      return false;
    }
    *out_value = entries[at - 1].value;
    return true;
  }
};

/** @brief Adds outer sums from right to left. */
struct AddFromRight {
  __device__ OuterSums operator()(OuterSums const& b, OuterSums const& a) const { return a + b; }
};

/** @brief Names the first and the last segment of a tile: their nodes and where their features
 *         end. */
struct OuterSegments {
  LevelNode first_node;
  LevelNode last_node;
  ValueId first_end;   // last value id of the first segment's feature
  ValueId last_begin;  // first value id of the last segment's feature
  bool continues;      // the first one has entries before the tile

  __device__ bool InFirst(LevelNode level_node, ValueId value) const {
    return level_node == first_node && value <= first_end;
  }
  __device__ bool InLast(LevelNode level_node, ValueId value) const {
    return level_node == last_node && value >= last_begin;
  }
};

/** @brief Sums what a tile holds of its first and of its last segment. */
struct EndSums {
  FixedSum first;
  FixedSum last;

  __device__ friend EndSums operator+(EndSums const& a, EndSums const& b) {
    return {a.first + b.first, a.last + b.last};
  }
};

/**
 * @brief Sum the outer segments. grid: tiles; block: one tile; result: out_outer[tile].
 *
 * Nodes lie one after another and values of a node ascend, so that an entry is of one of the outer
 * segments by its node and value alone: only two features are looked up in a tile.
 */
__global__ __launch_bounds__(kTileThreads) void ReduceSegmentedTilesKernel(LevelRef level,
                                                                           EntriesRef entries,
                                                                           NodeRangesRef ranges,
                                                                           OuterSums* out_outer) {
  WaitForPreviousKernel();
  using BlockReduce = cub::BlockReduce<EndSums, kTileThreads>;
  __shared__ typename BlockReduce::TempStorage temp;
  __shared__ OuterSegments outer;
  SortedTile in{entries, ranges};
  if (in.n == 0) {
    if (threadIdx.x == 0) {
      out_outer[blockIdx.x] = {{0, 0}, {0, 0}, 0, 0};
    }
    return;
  }
  ColumnEntry items[kItems];
  LevelNode level_nodes[kItems];
  in.Fetch(items, level_nodes);
  if (threadIdx.x == 0) {
    FeatureCursor cursor{level.columns};
    cursor.MoveTo(items[0].value);
    ValueId before;
    outer.first_node = level_nodes[0];
    outer.first_end = cursor.Last();
    outer.continues = in.ValueBefore(level_nodes[0], &before) && before >= cursor.First();
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (static_cast<int>(threadIdx.x) + k * kTileThreads == in.n - 1) {
      FeatureCursor cursor{level.columns};
      cursor.MoveTo(items[k].value);
      outer.last_node = level_nodes[k];
      outer.last_begin = cursor.First();
    }
  }
  __syncthreads();
  EndSums sums{{0, 0}, {0, 0}};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (level_nodes[k] == kNoLevelNode) {
      continue;
    }
    bool const is_first = outer.InFirst(level_nodes[k], items[k].value);
    bool const is_last = outer.InLast(level_nodes[k], items[k].value);
    if (is_first || is_last) {
      FixedSum g = entries.Units(items[k]).Fixed();
      FixedSum const none{0, 0};
      sums = sums + EndSums{is_first ? g : none, is_last ? g : none};
    }
  }
  sums = BlockReduce{temp}.Reduce(sums, cuda::std::plus<>{});
  if (threadIdx.x == 0) {
    bool const one_segment = outer.InFirst(outer.last_node, outer.last_begin);
    FixedSum const none{0, 0};
    out_outer[blockIdx.x] = {outer.continues ? sums.first : none, sums.last,
                             !(outer.continues && one_segment), outer.continues};
  }
}

/** @brief Holds what a tile's first segment has in earlier tiles, and its last one in later
 *         tiles. */
struct TileOutside {
  FixedSum before;
  FixedSum after;
  ValueId last_value;
  std::uint32_t continues;
  std::uint32_t goes_on;
};

/**
 * @brief Search. grid: tiles; block: one tile; result: candidates offered to their nodes.
 * @param outer  Of each tile.
 * @param before Sums of the tiles before each; .right is what its first segment has there.
 * @param after  Sums of the tiles after each; .left is what its last segment has there.
 */
__global__ __launch_bounds__(kTileThreads) void SearchSegmentedTilesKernel(
    LevelRef level, EntriesRef entries, NodeRangesRef ranges, OuterSums const* outer,
    OuterSums const* before, OuterSums const* after) {
  WaitForPreviousKernel();
  using Agent = SplitAgent<kItems, SortedSegments>;
  __shared__ Agent::TempStorage temp;
  __shared__ Tile tile;
  __shared__ TileOutside outside;
  SortedTile in{entries, ranges};
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
      in.ValueBefore(tile.segment[Tile::At(0)], &outside.last_value);
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
  LevelNode node{kNoLevelNode};
  FixedSum total{0, 0};
  float to_beat{0};
  auto carry = [&](std::uint32_t segment, LevelNode level_node, FixedSum const& in_tile) {
    if (level_node != node) {
      node = level_node;
      total = level.nodes[level_node].sum;
      to_beat = level.GainToBeat(level_node);
    }
    bool first = segment == 0;
    bool last = segment + 1 == agent.NumSegments();
    FixedSum const none{0, 0};
    SegmentCarry c;
    c.before = first ? outside.before : none;
    c.present = c.before + in_tile + (last ? outside.after : none);
    c.total = total;
    c.to_beat = to_beat;
    c.last_value = outside.last_value;
    c.continues = first && outside.continues != 0;
    c.ends = !(last && outside.goes_on != 0);
    return c;
  };
  agent.Search(carry);
}
}  // namespace

void SegmentedFinder::Find(LevelRef const& level, EntriesRef const& entries,
                           NodeRangesRef const& ranges) {
  auto n_tiles = CeilDiv(ranges.max_open, Tile::kSize);
  if (n_tiles == 0) {
    return;
  }
  outer_.Reserve(n_tiles);
  before_.Reserve(n_tiles);
  after_.Reserve(n_tiles);
  Launch("ReduceSegmentedTiles", ReduceSegmentedTilesKernel, n_tiles, kTileThreads, level, entries,
         ranges, outer_.Data());
  OuterSums const none{{0, 0}, {0, 0}, 0, 0};
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(storage, bytes, outer_.Data(), before_.Data(),
                                          cuda::std::plus<>{}, none, n_tiles, Stream());
  });
  auto from_right = thrust::make_reverse_iterator(outer_.Data() + n_tiles);
  auto to_left = thrust::make_reverse_iterator(after_.Data() + n_tiles);
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(storage, bytes, from_right, to_left, AddFromRight{}, none,
                                          n_tiles, Stream());
  });
  Launch("SearchSegmentedTiles", SearchSegmentedTilesKernel, n_tiles, kTileThreads, level, entries,
         ranges, outer_.Data(), before_.Data(), after_.Data());
}

}  // namespace gpu_exact
