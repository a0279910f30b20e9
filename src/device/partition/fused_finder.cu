/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of fused_finder.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "src/device/partition/fused_finder.cuh"

namespace gpu_exact {
namespace {
constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kBlocks = 3;  // on a multiprocessor
constexpr std::uint32_t kTile = kWarps * kWarpEntries;

/** @brief Entries of one feature and one node: relative to the column, and where the column is. */
struct Segment {
  std::uint32_t column;
  EntryIdx column_begin;
  RowRange range;
};

__device__ Segment FindSegment(FusedRef const& ref, SplitParent const& parent,
                               std::uint32_t column) {
  SortedColumnsRef const& c = ref.columns;
  Segment s{column, c.offsets[column], parent.rows};
  std::uint32_t sparse = c.sparse[column];
  if (sparse != SortedColumnsRef::kDense) {
    s.range = ref.root ? RowRange{0, static_cast<RowIdx>(c.offsets[column + 1] - s.column_begin)}
                       : ref.parent_segments[std::uint64_t{parent.bucket} * c.n_sparse + sparse];
  }
  return s;
}

__device__ ChildPlaces FindChildPlaces(FusedRef const& ref, SplitParent const& parent) {
  return {ref.sides, parent.rows, ref.root ? RowRange{0, 0} : ref.children[2 * parent.index + 1]};
}

/** @brief Tile of a block: nodes side by side, then tiles of a node, then its columns. */
struct TileOfBlock {
  std::uint32_t parent;
  std::uint32_t tile;    // of the node
  std::uint32_t column;

  __device__ TileOfBlock(SplitParent const* parents, std::uint32_t n_parents,
                         std::uint32_t n_columns) {
    std::uint32_t i = blockIdx.x / n_columns;
    column = blockIdx.x % n_columns;
    parent = FirstIndex(std::uint32_t{0}, n_parents,
                        [=](std::uint32_t k) { return parents[k].n_tiles > i; });
    tile = i - (parent == 0 ? 0 : parents[parent - 1].n_tiles);
  }
};

__device__ int WarpCount(RowRange const& range, RowIdx begin) {
  return begin >= range.end ? 0 : static_cast<int>(min(range.end - begin, RowIdx{kWarpEntries}));
}

/**
 * @brief Sums of tiles by child. grid: tiles of the first nodes; block: one tile.
 * @tparam kGather At the root: entries are read from the columns and written with their gradients.
 */
template <bool kGather>
__global__ __launch_bounds__(kThreads) void SumTilesKernel(__grid_constant__ FusedRef const ref, SplitParent const* parents,
                                                           std::uint32_t n_parents,
                                                           GradientPair const* gpair,
                                                           SplitPrefix* out) {
  __shared__ SplitPrefix parts[kWarps];
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  TileOfBlock at{parents, n_parents, ref.columns.n_columns};
  SplitParent const parent = parents[at.parent];
  Segment const s = FindSegment(ref, parent, at.column);
  RowIdx begin = s.range.begin + at.tile * kTile + warp * kWarpEntries;
  WarpTile tile;
  tile.n = WarpCount(s.range, begin);
  EntryIdx first = s.column_begin + begin;
  if (kGather) {
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      tile.place[j] = tile.Has(j) ? ref.columns.rows[first + j * 32 + lane] : 0;
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      tile.gpair[j] = tile.Has(j) ? gpair[tile.place[j] & ~PlaceWord::kNewValue]
                                  : GradientPair{0.0f, 0.0f};
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      if (tile.Has(j)) {
        ref.from.places[first + j * 32 + lane] = tile.place[j];
        ref.from.gpair[first + j * 32 + lane] = tile.gpair[j];
      }
    }
  } else {
    tile.Load(ref.from, first);
  }
  tile.Move(FindChildPlaces(ref, parent));
  SplitPrefix part = tile.Count();
#pragma unroll
  for (int j = 0; j < kSplitItems; ++j) {
    FixedSum g = ref.level.quantiser.Fixed(tile.gpair[j]);
    part.all = part.all + g;
    part.left = (tile.left[j] >> lane & 1u) != 0 ? part.left + g : part.left;
  }
  for (int step = 16; step > 0; step /= 2) {
    part.all = part.all + ShuffleXor(part.all, step);
    part.left = part.left + ShuffleXor(part.left, step);
  }
  if (lane == 0) {
    parts[warp] = part;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; ++w) {
      part = SplitPrefixOp{}(part, parts[w]);
    }
    out[blockIdx.x] = part;
  }
}

/**
 * @brief What lies before each tile of a segment. grid: (node, column); block: one segment.
 * result: prefixes, exclusive, in place; totals of segments.
 */
template <int kScanThreads>
__global__ __launch_bounds__(kScanThreads) void ScanTilesKernel(SplitParent const* parents,
                                                                std::uint32_t n_columns,
                                                                SplitPrefix* prefixes,
                                                                SplitPrefix* totals) {
  using BlockScan = cub::BlockScan<SplitPrefix, kScanThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename BlockScan::TempStorage temp;
  std::uint32_t parent = blockIdx.x / n_columns;
  std::uint32_t column = blockIdx.x % n_columns;
  std::uint32_t tile = parent == 0 ? 0 : parents[parent - 1].n_tiles;
  std::uint32_t end = parents[parent].n_tiles;
  SplitPrefix running = SplitPrefix::Begin();
  for (; tile < end; tile += kScanThreads) {
    std::uint32_t t = tile + threadIdx.x;
    SplitPrefix* p = prefixes + std::uint64_t{t} * n_columns + column;
    SplitPrefix own = t < end ? *p : SplitPrefix::None();
    SplitPrefix before, aggregate;
    BlockScan{temp}.ExclusiveScan(own, before, SplitPrefix::None(), SplitPrefixOp{}, aggregate);
    if (t < end) {
      *p = SplitPrefixOp{}(running, before);
    }
    running = SplitPrefixOp{}(running, aggregate);
    __syncthreads();  // temp is used again
  }
  if (threadIdx.x == 0) {
    totals[blockIdx.x] = running;
  }
}

/** @brief What the search of one child of a segment needs. */
struct ChildSearch {
  FixedSum total;    // of the node
  FixedSum present;  // of its entries of the feature
  float bar;
  std::uint32_t allowed;
  std::uint32_t missing;
  RowIdx begin;  // of the child's segment

  __device__ static ChildSearch Make(FusedRef const& ref, Bucket bucket, FeatureIdx f,
                                     FixedSum const& present, RowIdx begin) {
    LevelRef const& level = ref.level;
    if (bucket >= level.n_nodes) {  // dropped
      return {{0, 0}, {0, 0}, 0.0f, 0, 0, begin};
    }
    FixedSum total = level.nodes[bucket].sum;
    return {total, present, level.Bar(bucket), level.Allowed(bucket, f), !(present == total),
            begin};
  }
};

/**
 * @brief Move and search. result: entries of the children, candidates offered to them.
 *
 * @tparam kWarpSegments A warp serves a whole segment of a small node; grid: nodes x columns, in
 *                       warps. Otherwise a block serves a tile; grid: tiles.
 */
template <bool kWarpSegments>
class SplitTileAgent {
 public:
  struct TempStorage {
    WarpGradients gradients[kWarps];
    SplitPrefix parts[kWarps];
    ChildSearch children[kWarpSegments ? kWarps : 1][2];
  };

  __device__ SplitTileAgent(TempStorage* temp, FusedRef const& ref, SplitParent const& parent,
                          Segment const& segment)
      : temp_{*temp},
        ref_{ref},
        parent_{parent},
        segment_{segment},
        warp_{threadIdx.x / 32},
        lane_{threadIdx.x % 32} {}

  /**
   * @param begin  The warp's first entry, relative to the column.
   * @param before What lies before the tile in its segment.
   * @param total  Of the segment, or nullptr where the tile is all of it.
   * @param first  Whether the tile is the segment's first.
   */
  __device__ void Run(RowIdx begin, SplitPrefix before, SplitPrefix const* total, bool first) {
    tile_.n = WarpCount(segment_.range, begin);
    tile_.Load(ref_.from, segment_.column_begin + begin);
    tile_.Move(FindChildPlaces(ref_, parent_));
    WarpGradients& gradients = temp_.gradients[warp_];
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      gradients.Put(j * 32 + lane_, tile_.gpair[j]);
    }
    __syncwarp();
    SplitPrefix part = tile_.Count();
    FixedSum lane_left, lane_all;  // before the lane's items
    this->ScanLanes(&part, &lane_left, &lane_all);
    SplitPrefix all = before;
    if (kWarpSegments) {
      all = SplitPrefixOp{}(before, part);
    } else {
      if (lane_ == 0) {
        temp_.parts[warp_] = part;
      }
      __syncthreads();
#pragma unroll 1
      for (unsigned w = 0; w < kWarps; ++w) {
        if (w == warp_) {
          before = all;
        }
        all = SplitPrefixOp{}(all, temp_.parts[w]);
      }
    }
    if (total != nullptr) {
      all = *total;
    }
    this->PrepareChildren(all, first);
    std::uint32_t boundaries = this->Write(before, segment_.range.begin + all.n_left);
    this->Search(before, before.left + lane_left, before.all + lane_all, boundaries);
  }

 private:
  [[nodiscard]] __device__ ChildSearch const& Child(bool left) const {
    return temp_.children[kWarpSegments ? warp_ : 0][left ? 0 : 1];
  }

  __device__ void ScanLanes(SplitPrefix* part, FixedSum* out_left, FixedSum* out_all) const {
    std::uint32_t side = LaneBits(tile_.left);
    FixedSum left{0, 0}, all{0, 0};
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      FixedSum g = this->Gradient(k);
      all = all + g;
      left = (side >> k & 1u) != 0 ? left + g : left;
    }
    FixedSum left_to = left, all_to = all;
    for (int step = 1; step < 32; step *= 2) {
      FixedSum l = ShuffleUp(left_to, step);
      FixedSum a = ShuffleUp(all_to, step);
      if (static_cast<int>(lane_) >= step) {
        left_to = left_to + l;
        all_to = all_to + a;
      }
    }
    part->left = {__shfl_sync(kAllLanes, left_to.grad, 31),
                  __shfl_sync(kAllLanes, left_to.hess, 31)};
    part->all = {__shfl_sync(kAllLanes, all_to.grad, 31), __shfl_sync(kAllLanes, all_to.hess, 31)};
    *out_left = left_to - left;
    *out_all = all_to - all;
  }

  /** @brief Gradients of the lane's k-th neighbouring item; zero past the end. */
  [[nodiscard]] __device__ FixedSum Gradient(int k) const {
    return ref_.level.quantiser.Fixed(
        temp_.gradients[warp_].Get(static_cast<int>(lane_) * kSplitItems + k));
  }

  /** @brief Two lanes make ready what the search of the children needs, and do their present keys. */
  __device__ void PrepareChildren(SplitPrefix const& all, bool first) {
    unsigned const thread = kWarpSegments ? lane_ : threadIdx.x;
    FeatureIdx f = ref_.columns.features[segment_.column];
    if (thread < 2) {
      bool left = thread == 0;
      Bucket bucket = 2 * parent_.index + thread;
      FixedSum present = left ? all.left : all.all - all.left;
      RowIdx n = left ? all.n_left : all.n - all.n_left;
      RowIdx begin = segment_.range.begin + (left ? 0 : all.n_left);
      ChildSearch child = ChildSearch::Make(ref_, bucket, f, present, begin);
      temp_.children[kWarpSegments ? warp_ : 0][thread] = child;
      LevelRef const& level = ref_.level;
      if (first && n != 0 && child.allowed && child.missing &&
          level.bound.MayReach(child.bar, present, child.total - present)) {
        level.Offer(bucket, level.PresentKey(level.nodes[bucket], f, present));
      }
      std::uint32_t sparse = ref_.columns.sparse[segment_.column];
      if (first && sparse != SortedColumnsRef::kDense && bucket < level.n_nodes) {
        ref_.child_segments[std::uint64_t{bucket} * ref_.columns.n_sparse + sparse] = {begin,
                                                                                      begin + n};
      }
    }
    if (kWarpSegments) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  /** @brief Writes entries to the children. @return For each of the lane's items: a candidate? */
  __device__ std::uint32_t Write(SplitPrefix const& before, RowIdx right_begin) {
    EntryIdx const left_to = segment_.column_begin + segment_.range.begin;
    EntryIdx const right_to = segment_.column_begin + right_begin;
    std::uint32_t n_left = before.n_left;
    bool new_left = (before.flags & SplitPrefix::kNewLeft) != 0;
    bool new_right = (before.flags & SplitPrefix::kNewRight) != 0;
    std::uint32_t candidates[kSplitItems];
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::uint32_t left = tile_.left[j];
      std::uint32_t right = tile_.Valid(j) & ~left;
      bool is_left = (left >> lane_ & 1u) != 0;
      std::uint32_t rank = n_left + __popc(left & LanesBelow());
      rank = is_left ? rank : before.n + j * 32 + lane_ - rank;
      bool begins = WarpTile::UpToLane(is_left ? left : right, tile_.value[j],
                                       is_left ? new_left : new_right);
      candidates[j] = __ballot_sync(kAllLanes, tile_.Has(j) && begins && rank != 0);
      if (tile_.Has(j) && ref_.to.places != nullptr && (is_left || !ref_.root)) {
        EntryIdx to = rank + (is_left ? left_to : right_to);
        ref_.to.places[to] =
            (tile_.place[j] & ~PlaceWord::kNewValue) | (begins ? PlaceWord::kNewValue : 0);
        if (ref_.write_gpair) {
          ref_.to.gpair[to] = tile_.gpair[j];
        }
      }
      n_left += __popc(left);
      new_left = WarpTile::After(left, tile_.value[j], new_left);
      new_right = WarpTile::After(right, tile_.value[j], new_right);
    }
    return LaneBits(candidates);
  }

  __device__ void Search(SplitPrefix const& before, FixedSum left, FixedSum all,
                         std::uint32_t candidates) const {
    std::uint32_t side = LaneBits(tile_.left);
    std::uint32_t wanted{0};
    FixedSum run_left = left, run_all = all;
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      bool is_left = (side >> k & 1u) != 0;
      if ((candidates >> k & 1u) != 0) {
        ChildSearch const& child = this->Child(is_left);
        FixedSum sum = is_left ? run_left : run_all - run_left;
        if (child.allowed && ref_.level.MayReach(child.bar, child.total, sum, child.present,
                                                 child.missing)) {
          wanted |= 1u << k;
        }
      }
      FixedSum g = this->Gradient(k);
      run_all = run_all + g;
      run_left = is_left ? run_left + g : run_left;
    }
    if (__any_sync(kAllLanes, wanted != 0)) {
      this->OfferExact(before, left, all, side, wanted);
    }
  }

  /** @brief A lane goes ahead to its next candidate, so that lanes divide together. */
  __device__ void OfferExact(SplitPrefix const& before, FixedSum left, FixedSum all,
                             std::uint32_t side, std::uint32_t wanted) const {
    FeatureIdx f = ref_.columns.features[segment_.column];
    auto first_value = ref_.level.columns.Values(f).first;
    std::uint32_t n_left = before.n_left + this->LeftBeforeLane();
    int k{0};
    auto step = [&] {
      FixedSum g = this->Gradient(k);
      bool is_left = (side >> k & 1u) != 0;
      all = all + g;
      left = is_left ? left + g : left;
      n_left += is_left;
      ++k;
    };
    while (true) {
      while (wanted != 0 && (wanted >> k & 1u) == 0) {
        step();
      }
      if (!__any_sync(kAllLanes, wanted != 0)) {
        return;
      }
      if (wanted != 0) {
        bool is_left = (side >> k & 1u) != 0;
        ChildSearch const& child = this->Child(is_left);
        Bucket bucket = 2 * parent_.index + (is_left ? 0 : 1);
        std::uint32_t index = before.n + lane_ * kSplitItems + k;
        auto value = static_cast<ValueId>(first_value + child.begin +
                                          (is_left ? n_left : index - n_left));
        ref_.level.Offer(bucket, ref_.level.BoundaryKey(ref_.level.nodes[bucket], f, value,
                                                        is_left ? left : all - left,
                                                        child.present));
        wanted &= ~(1u << k);
        step();
      }
    }
  }

  /** @brief Left ones among the warp's entries before the lane's. */
  [[nodiscard]] __device__ std::uint32_t LeftBeforeLane() const {
    std::uint32_t n{0};
#pragma unroll
    for (unsigned j = 0; j < kSplitItems; ++j) {
      std::uint32_t mask = j < lane_ / 4    ? kAllLanes
                           : j == lane_ / 4 ? (1u << lane_ % 4 * 8) - 1
                                            : 0;
      n += __popc(tile_.left[j] & mask);
    }
    return n;
  }

  TempStorage& temp_;
  FusedRef const& ref_;
  SplitParent const& parent_;
  Segment const& segment_;
  unsigned warp_;
  unsigned lane_;
  WarpTile tile_;
};

/** @brief grid: tiles; block: one tile. The first n_summed tiles have their prefixes. */
__global__ __launch_bounds__(kThreads, kBlocks) void SplitTilesKernel(
    __grid_constant__ FusedRef const ref, SplitParent const* parents, std::uint32_t n_parents, SplitPrefix const* prefixes,
    std::uint32_t n_summed, SplitPrefix const* totals) {
  using Agent = SplitTileAgent<false>;
  __shared__ typename Agent::TempStorage temp;
  TileOfBlock at{parents, n_parents, ref.columns.n_columns};
  SplitParent const parent = parents[at.parent];
  Segment const s = FindSegment(ref, parent, at.column);
  RowIdx begin = s.range.begin + at.tile * kTile;
  if (at.tile != 0 && begin >= s.range.end) {
    return;
  }
  bool summed = blockIdx.x < n_summed;
  SplitPrefix before = summed ? prefixes[blockIdx.x] : SplitPrefix::Begin();
  SplitPrefix const* total =
      summed ? totals + (std::uint64_t{at.parent} * ref.columns.n_columns + at.column) : nullptr;
  Agent{&temp, ref, parent, s}.Run(begin + threadIdx.x / 32 * kWarpEntries, before, total,
                                   at.tile == 0);
}

/** @brief grid: small nodes x columns, a warp each. */
__global__ __launch_bounds__(kThreads, kBlocks) void SplitSmallKernel(__grid_constant__ FusedRef const ref,
                                                             SplitParent const* parents,
                                                             std::uint32_t n_parents) {
  using Agent = SplitTileAgent<true>;
  __shared__ typename Agent::TempStorage temp;
  std::uint64_t i = std::uint64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  auto k = static_cast<std::uint32_t>(i / ref.columns.n_columns);
  if (k >= n_parents) {
    return;
  }
  SplitParent const parent = parents[k];
  Segment const s =
      FindSegment(ref, parent, static_cast<std::uint32_t>(i % ref.columns.n_columns));
  Agent{&temp, ref, parent, s}.Run(s.range.begin, SplitPrefix::Begin(), nullptr, true);
}
}  // namespace

FusedFinder::FusedFinder(SortedColumns const& columns) : columns_{columns} {
  for (Half& half : halves_) {
    half.places.Reserve(columns.NumEntries());
    half.gpair.Reserve(columns.NumEntries());
  }
}

FusedRef FusedFinder::MakeRef(LevelRef const& level, SidesRef const& sides,
                              RowRange const* children, bool last_level) {
  SortedColumnsRef columns = columns_.Ref();
  RowRange* next = segments_[1 - current_].Reserve(std::size_t{level.n_nodes} * columns.n_sparse);
  return {level,
          columns,
          sides,
          children,
          segments_[current_].Data(),
          next,
          halves_[current_].Ref(),
          halves_[1 - current_].Ref(),
          false,
          !last_level};
}

void FusedFinder::Sum(FusedRef const& ref, std::uint32_t n_parents, std::uint32_t n_tiles) {
  std::uint64_t const n_columns = ref.columns.n_columns;
  constexpr std::uint32_t kManyTiles = 64;
  auto scan = n_tiles > kManyTiles * n_parents ? ScanTilesKernel<kThreads> : ScanTilesKernel<32>;
  unsigned threads = n_tiles > kManyTiles * n_parents ? kThreads : 32;
  Launch("ScanTiles", scan, n_parents * n_columns, threads, parents_.Data(),
         ref.columns.n_columns, prefixes_.Data(), totals_.Reserve(n_parents * n_columns));
}

void FusedFinder::FindRoot(LevelRef const& level, GradientPair const* gpair, SidesRef const& sides,
                           RowRange const* root, RowIdx n_rows, bool last_level) {
  current_ = 0;
  FusedRef ref = this->MakeRef(level, sides, root, last_level);
  ref.root = true;
  bool in_place = sides.words == nullptr;
  if (in_place) {  // every entry stays where it is
    ref.to = {nullptr, nullptr};
    ref.write_gpair = false;
  }
  auto n_tiles = static_cast<std::uint32_t>(CeilDiv(n_rows, kTile));
  SplitParent parent{{0, n_rows}, 0, 0, n_tiles};
  CopyAsync(parents_.Reserve(1), &parent, 1);
  std::uint64_t n_blocks = std::uint64_t{n_tiles} * ref.columns.n_columns;
  prefixes_.Reserve(n_blocks);
  Launch("GatherTiles", SumTilesKernel<true>, n_blocks, kThreads, ref, parents_.Data(), 1u, gpair,
         prefixes_.Data());
  this->Sum(ref, 1, n_tiles);
  Launch("SplitTiles", SplitTilesKernel, n_blocks, kThreads, ref, parents_.Data(), 1u,
         prefixes_.Data(), static_cast<std::uint32_t>(n_blocks), totals_.Data());
  if (in_place) {
    std::swap(segments_[0], segments_[1]);
  } else {
    current_ = 1;
  }
}

void FusedFinder::Find(LevelRef const& level, std::vector<SplitParent> parents,
                       SidesRef const& sides, RowRange const* children, bool last_level) {
  FusedRef ref = this->MakeRef(level, sides, children, last_level);
  std::uint64_t const n_columns = ref.columns.n_columns;
  // Nodes of several tiles, then of one, then of a warp.
  auto size_class = [](SplitParent const& p) {
    RowIdx n = p.rows.end - p.rows.begin;
    return n > kTile ? 0 : n > kWarpEntries ? 1 : 2;
  };
  std::stable_sort(parents.begin(), parents.end(), [&](auto const& a, auto const& b) {
    return size_class(a) < size_class(b);
  });
  std::uint32_t n_of_class[3] = {0, 0, 0};
  std::uint32_t n_tiles{0}, n_summed{0};
  for (SplitParent& p : parents) {
    int k = size_class(p);
    ++n_of_class[k];
    if (k < 2) {
      n_tiles += static_cast<std::uint32_t>(CeilDiv(p.rows.end - p.rows.begin, kTile));
      n_summed = k == 0 ? n_tiles : n_summed;
    }
    p.n_tiles = n_tiles;
  }
  CopyAsync(parents_.Reserve(parents.size()), parents.data(), parents.size());
  std::uint32_t n_large = n_of_class[0] + n_of_class[1];
  if (n_summed != 0) {
    Launch("SumTiles", SumTilesKernel<false>, n_summed * n_columns, kThreads, ref, parents_.Data(),
           n_of_class[0], nullptr, prefixes_.Reserve(n_summed * n_columns));
    this->Sum(ref, n_of_class[0], n_summed);
  }
  Launch("SplitTiles", SplitTilesKernel, n_tiles * n_columns, kThreads, ref, parents_.Data(),
         n_large, prefixes_.Data(), static_cast<std::uint32_t>(n_summed * n_columns),
         totals_.Data());
  Launch("SplitSmall", SplitSmallKernel, CeilDiv(n_of_class[2] * n_columns, kWarps), kThreads, ref,
         parents_.Data() + n_large, n_of_class[2]);
  current_ = 1 - current_;
}

std::uint64_t FusedFinder::Bytes() const {
  std::uint64_t bytes = parents_.Bytes() + prefixes_.Bytes() + totals_.Bytes();
  for (int i = 0; i < 2; ++i) {
    bytes += halves_[i].places.Bytes() + halves_[i].gpair.Bytes() + segments_[i].Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
