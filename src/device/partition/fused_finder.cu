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
constexpr int kBlocks = 4;  // on a multiprocessor
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
  std::uint32_t tile;  // of the node
  std::uint32_t column;

  __device__ TileOfBlock(SplitParent const* parents, std::uint32_t const* parent_of,
                         std::uint32_t n_columns) {
    std::uint32_t i = blockIdx.x / n_columns;
    column = blockIdx.x % n_columns;
    parent = parent_of[i];
    tile = i - parents[parent].first_tile;
  }
};

__device__ int WarpCount(RowRange const& range, RowIdx begin) {
  return begin >= range.end ? 0 : static_cast<int>(min(range.end - begin, RowIdx{kWarpEntries}));
}

/**
 * @brief Sums of tiles by child. grid: tiles of long nodes; block: one tile.
 * @tparam kGather At the root, all columns: entries are read from the table and written with their
 *                 gradients. Otherwise sparse columns: of dense ones the children's sums are known.
 */
template <bool kGather>
__global__ __launch_bounds__(kThreads) void SumTilesKernel(__grid_constant__ FusedRef const ref,
                                                           SplitParent const* parents,
                                                           std::uint32_t const* parent_of,
                                                           GradientPair const* gpair,
                                                           SplitPrefix* out) {
  __shared__ SplitPrefix parts[kWarps];
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  TileOfBlock at{parents, parent_of, kGather ? ref.columns.n_columns : ref.columns.n_sparse};
  SplitParent const parent = parents[at.parent];
  Segment const s =
      FindSegment(ref, parent, kGather ? at.column : ref.columns.of_sparse[at.column]);
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
      tile.gpair[j] =
          tile.Has(j) ? gpair[tile.place[j] & ~PlaceWord::kNewValue] : GradientPair{0.0f, 0.0f};
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      if (tile.Has(j)) {
        ref.from.places[first + j * 32 + lane] = tile.place[j];
        ref.from.gpair[first + j * 32 + lane] = {tile.gpair[j]};
      }
    }
  } else {
    tile.Load(ref.from, first);
  }
  if (kGather && ref.sides.words == nullptr) {
    tile.Stay();
  } else {
    tile.Move(FindChildPlaces(ref, parent));
  }
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
  std::uint32_t tile = parents[parent].first_tile;
  std::uint32_t end = parents[parent + 1].first_tile;
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

/** @brief How a tile learns what lies before it in its segment. */
struct TileCarry {
  SplitPrefix const* before;  // nullptr: nothing does, or it is looked for
  SplitPrefix const* total;   // of the segment; nullptr: the tile is all of it, or the column dense
  TileStatus* status;         // look back from it; nullptr: no need to
  std::uint32_t stride;       // between the tiles of a column
  std::uint32_t n_before;     // tiles before it
};

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
 * @tparam kWarpSegments A warp serves the whole segment of a small node. Otherwise a block serves a
 *                       tile.
 * @tparam kMoves        Otherwise all entries stay: the root, where no row is left out.
 */
template <bool kWarpSegments, bool kMoves>
class SplitTileAgent {
  static constexpr int kSegments = kWarpSegments ? kWarps : 1;

 public:
  struct TempStorage {
    WarpEntries entries[kWarps];
    SplitCounts counts[kWarps];  // of the warps
    SplitCounts before;          // of the tile
    SplitPrefix parts[kWarps];   // of the warps; then the sums before them
    ChildSearch children[kSegments][2];
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
   * @param begin The warp's first entry, relative to the column.
   * @param first Whether the tile is the segment's first.
   */
  __device__ void Run(RowIdx begin, TileCarry const& carry, bool first) {
    WarpTile tile;
    tile.n = WarpCount(segment_.range, begin);
    tile.Load(ref_.from, segment_.column_begin + begin);
    if (kMoves) {
      tile.Move(FindChildPlaces(ref_, parent_));
    } else {
      tile.Stay();
    }
    SplitPrefix part = tile.Count();
    std::uint32_t n_left = part.n_left;  // of the segment
    SplitCounts before = this->CountBefore(part, carry, &n_left);
    this->Write(tile, part.n_left, before, segment_.range.begin + n_left);
    __syncwarp();
    FixedSum lane_sum = this->ScanLanes(part.n_left, &part);
    SplitPrefix sums = this->SumBefore(part, carry, first);
    sums.n_left = before.n_left;
    sums.n = before.n;
    this->Search(part.n_left, lane_sum, part.left, sums);
  }

 private:
  [[nodiscard]] __device__ ChildSearch const& Child(bool left) const {
    return temp_.children[kWarpSegments ? warp_ : 0][left ? 0 : 1];
  }
  [[nodiscard]] __device__ WarpEntries& Entries() const { return temp_.entries[warp_]; }

  /** @brief Counts before the warp's part. @param n_left Of the part; then of the segment. */
  __device__ SplitCounts CountBefore(SplitPrefix const& part, TileCarry const& carry,
                                     std::uint32_t* n_left) {
    SplitCounts before{0, 0, SplitPrefix::Begin().flags};
    if (kWarpSegments) {
      return before;
    }
    if (lane_ == 0) {
      temp_.counts[warp_] = {part.n_left, part.n, part.flags};
    }
    __syncthreads();
    SplitCounts of_tile{0, 0, 0}, of_warps{0, 0, 0};
    for (unsigned w = 0; w < kWarps; ++w) {
      if (w == warp_) {
        of_warps = of_tile;
      }
      of_tile = of_tile.Then(temp_.counts[w]);
    }
    *n_left = of_tile.n_left;
    if (carry.status != nullptr) {
      if (warp_ == 0) {
        LookBack look{carry.status, carry.stride, carry.n_before};
        SplitCounts c = look.Counts<kTile>(of_tile);
        if (lane_ == 0) {
          temp_.before = c;
        }
      }
      __syncthreads();
      before = temp_.before;
      RowRange left = ref_.children[2 * parent_.index];
      *n_left = left.end - left.begin;
    } else if (carry.before != nullptr) {
      before = {carry.before->n_left, carry.before->n, carry.before->flags};
      *n_left = carry.total->n_left;
    }
    return before.Then(of_warps);
  }

  /**
   * @brief Writes entries to the children, and to shared memory their gradients and which of them
   *        are candidates.
   * @param n_left Of the warp's part.
   * @param before Of the segment before it.
   */
  __device__ void Write(WarpTile const& tile, std::uint32_t n_left, SplitCounts const& before,
                        RowIdx right_begin) const {
    std::uint32_t* places = ref_.to.places + segment_.column_begin;
    EntryGradient* gpair = ref_.to.gpair + segment_.column_begin;
    RowIdx const left_begin = segment_.range.begin;
    RowIdx const left_to = left_begin + before.n_left;
    RowIdx const right_to = right_begin + before.n - before.n_left;
    bool const drop_right = ref_.root;
    SideFlags flags = SideFlags::FromBits(before.flags);
    std::uint32_t lefts{0};
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      bool is_left = (tile.left[j] >> lane_ & 1u) != 0;
      std::uint32_t rank = lefts + __popc(tile.left[j] & LanesBelow());
      rank = is_left ? rank : j * 32 + lane_ - rank;
      bool begins = (flags.Pass(tile.left[j], tile.Valid(j), tile.value[j]) >> lane_ & 1u) != 0;
      RowIdx to = rank + (is_left ? left_to : right_to);
      bool first = to == (is_left ? left_begin : right_begin);
      // Past the end the slots are those of right entries that are not there.
      Entries().Put(is_left ? rank : n_left + rank, ref_.level.quantiser.Fixed(tile.gpair[j]),
                    tile.Has(j) && begins && !first);
      if (kMoves && tile.Has(j) && (is_left || !drop_right)) {
        places[to] = (tile.place[j] & ~PlaceWord::kNewValue) | (begins ? PlaceWord::kNewValue : 0);
        if (ref_.write_gpair) {
          gpair[to] = {tile.gpair[j]};
        }
      }
      lefts += __popc(tile.left[j]);
    }
  }

  /** @brief Sums of the part. @return The sum before the lane's slots. */
  __device__ FixedSum ScanLanes(std::uint32_t n_left, SplitPrefix* part) const {
    FixedSum sum{0, 0};
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      sum = sum + Entries().Get(k);
    }
    FixedSum to = sum;
    for (int step = 1; step < 32; step *= 2) {
      FixedSum s = ShuffleUp(to, step);
      if (static_cast<int>(lane_) >= step) {
        to = to + s;
      }
    }
    FixedSum before = to - sum;
    part->all = Shuffle(to, 31);
    FixedSum left = before;  // of the lane whose slots pass from left to right
    std::uint32_t first = lane_ * kSplitItems;
    if (first < n_left && n_left < first + kSplitItems) {
      for (std::uint32_t k = 0; first + k < n_left; ++k) {
        left = left + Entries().Get(k);
      }
    }
    part->left = n_left == kWarpEntries ? part->all : Shuffle(left, n_left / kSplitItems);
    return before;
  }

  /** @brief Makes the children ready. @return Sums before the warp's part. */
  __device__ SplitPrefix SumBefore(SplitPrefix const& part, TileCarry const& carry, bool first) {
    if (kWarpSegments) {
      this->PrepareChildren(part, first);
      __syncwarp();
      return SplitPrefix::None();
    }
    if (lane_ == 0) {
      temp_.parts[warp_] = part;
    }
    __syncthreads();
    if (warp_ == 0) {
      this->SumTile(carry, first);
    }
    __syncthreads();
    return temp_.parts[warp_];
  }

  /** @brief From sums of the warps to sums before them. All lanes of the first warp. */
  __device__ void SumTile(TileCarry const& carry, bool first) {
    SplitPrefix own = SplitPrefix::None();
    if (lane_ < kWarps) {
      own = temp_.parts[lane_];
    }
    SplitPrefix to = own;
    for (int step = 1; step < kWarps; step *= 2) {
      FixedSum left = ShuffleUp(to.left, step);
      FixedSum all = ShuffleUp(to.all, step);
      if (static_cast<int>(lane_) >= step) {
        to.left = to.left + left;
        to.all = to.all + all;
      }
      to.n_left += __shfl_xor_sync(kAllLanes, to.n_left, step);
      to.n += __shfl_xor_sync(kAllLanes, to.n, step);
    }
    SplitPrefix tile = to;
    tile.left = Shuffle(to.left, kWarps - 1);
    tile.all = Shuffle(to.all, kWarps - 1);
    SplitPrefix before = SplitPrefix::None();
    if (carry.status != nullptr) {
      before = LookBack{carry.status, carry.stride, carry.n_before}.Sums(tile);
      this->PrepareChildren(this->DenseTotal(), first);
    } else if (carry.before != nullptr) {
      before = *carry.before;
      this->PrepareChildren(*carry.total, first);
    } else {
      this->PrepareChildren(tile, first);
    }
    if (lane_ < kWarps) {
      temp_.parts[lane_] = {
          before.left + to.left - own.left, before.all + to.all - own.all, 0, 0, 0, 0};
    }
  }

  /** @brief Of a column without missing values: that of the rows. */
  [[nodiscard]] __device__ SplitPrefix DenseTotal() const {
    RowRange left = ref_.children[2 * parent_.index];
    FixedSum left_sum = ref_.level.nodes[2 * parent_.index].sum;
    return {left_sum,
            left_sum + ref_.level.nodes[2 * parent_.index + 1].sum,
            left.end - left.begin,
            parent_.rows.end - parent_.rows.begin,
            0,
            0};
  }

  /** @brief Two lanes of a warp make the children ready, and offer their present keys. */
  __device__ void PrepareChildren(SplitPrefix const& all, bool first) {
    if (lane_ >= 2) {
      return;
    }
    LevelRef const& level = ref_.level;
    FeatureIdx f = ref_.columns.features[segment_.column];
    bool left = lane_ == 0;
    Bucket bucket = 2 * parent_.index + lane_;
    FixedSum present = left ? all.left : all.all - all.left;
    RowIdx n = left ? all.n_left : all.n - all.n_left;
    RowIdx begin = segment_.range.begin + (left ? 0 : all.n_left);
    ChildSearch child = ChildSearch::Make(ref_, bucket, f, present, begin);
    temp_.children[kWarpSegments ? warp_ : 0][lane_] = child;
    if (!first || bucket >= level.n_nodes) {
      return;
    }
    if (n != 0 && child.allowed && child.missing &&
        level.bound.MayReach(child.bar, present, child.total - present)) {
      level.Offer(bucket, level.PresentKey(level.nodes[bucket], f, present));
    }
    std::uint32_t sparse = ref_.columns.sparse[segment_.column];
    if (sparse != SortedColumnsRef::kDense) {
      ref_.child_segments[std::uint64_t{bucket} * ref_.columns.n_sparse + sparse] = {begin,
                                                                                     begin + n};
    }
  }

  /** @brief A lane on its way along its slots: from left entries to right ones. */
  struct Walk {
    FixedSum sum;  // of the child's entries before the slot
    bool left;
    ChildSearch const* child;
  };

  /**
   * @param lane_sum Sum of the warp's slots before the lane's.
   * @param left_sum Sum of the warp's left ones.
   */
  [[nodiscard]] __device__ Walk Begin(std::uint32_t n_left, FixedSum const& lane_sum,
                                      FixedSum const& left_sum, SplitPrefix const& before) const {
    bool left = lane_ * kSplitItems < n_left;
    FixedSum sum = left ? before.left + lane_sum : before.all - before.left + lane_sum - left_sum;
    return {sum, left, &this->Child(left)};
  }
  __device__ void Enter(std::uint32_t slot, std::uint32_t n_left, SplitPrefix const& before,
                        Walk* walk) const {
    if (walk->left && slot == n_left) {
      *walk = {before.all - before.left, false, &this->Child(false)};
    }
  }

  __device__ void Search(std::uint32_t n_left, FixedSum const& lane_sum, FixedSum const& left_sum,
                         SplitPrefix const& before) const {
    std::uint32_t const first = lane_ * kSplitItems;
    std::uint64_t const candidates = Entries().Candidates();
    std::uint32_t wanted{0};
    Walk walk = this->Begin(n_left, lane_sum, left_sum, before);
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      this->Enter(first + k, n_left, before, &walk);
      if ((candidates >> 8 * k & 1u) != 0) {
        ChildSearch const& child = *walk.child;
        if (child.allowed &&
            ref_.level.MayReach(child.bar, child.total, walk.sum, child.present, child.missing)) {
          wanted |= 1u << k;
        }
      }
      walk.sum = walk.sum + Entries().Get(k);
    }
    if (__any_sync(kAllLanes, wanted != 0)) {
      this->OfferExact(n_left, this->Begin(n_left, lane_sum, left_sum, before), before, wanted);
    }
  }

  /** @brief A lane goes ahead to its next candidate, so that lanes divide together. */
  __device__ void OfferExact(std::uint32_t n_left, Walk walk, SplitPrefix const& before,
                             std::uint32_t wanted) const {
    FeatureIdx f = ref_.columns.features[segment_.column];
    auto first_value = ref_.level.columns.Values(f).first;
    std::uint32_t slot = lane_ * kSplitItems;
    int k{0};
    while (true) {
      while (wanted != 0 && (wanted >> k & 1u) == 0) {
        this->Enter(slot + k, n_left, before, &walk);
        walk.sum = walk.sum + Entries().Get(k++);
      }
      if (!__any_sync(kAllLanes, wanted != 0)) {
        return;
      }
      if (wanted != 0) {
        this->Enter(slot + k, n_left, before, &walk);
        Bucket bucket = 2 * parent_.index + (walk.left ? 0 : 1);
        std::uint32_t rank =
            walk.left ? before.n_left + slot + k : before.n - before.n_left + slot + k - n_left;
        auto value = static_cast<ValueId>(first_value + walk.child->begin + rank);
        ref_.level.Offer(bucket, ref_.level.BoundaryKey(ref_.level.nodes[bucket], f, value,
                                                        walk.sum, walk.child->present));
        wanted &= ~(1u << k);
        walk.sum = walk.sum + Entries().Get(k++);
      }
    }
  }

  TempStorage& temp_;
  FusedRef const& ref_;
  SplitParent const& parent_;
  Segment const& segment_;
  unsigned warp_;
  unsigned lane_;
};

/** @brief grid: tiles; block: one tile. */
template <bool kMoves>
__global__ __launch_bounds__(kThreads,
                             kBlocks) void SplitTilesKernel(__grid_constant__ FusedRef const ref,
                                                            SplitParent const* parents,
                                                            std::uint32_t const* parent_of) {
  using Agent = SplitTileAgent<false, kMoves>;
  __shared__ typename Agent::TempStorage temp;
  SortedColumnsRef const& columns = ref.columns;
  TileOfBlock at{parents, parent_of, columns.n_columns};
  SplitParent const parent = parents[at.parent];
  Segment const s = FindSegment(ref, parent, at.column);
  RowIdx begin = s.range.begin + at.tile * kTile;
  if (at.tile != 0 && begin >= s.range.end) {
    return;
  }
  std::uint64_t const tile = parent.first_tile + at.tile;
  TileCarry carry{nullptr, nullptr, nullptr, columns.n_columns, at.tile};
  std::uint32_t const sparse = columns.sparse[at.column];
  if (ref.root || (tile < ref.n_long_tiles && sparse != SortedColumnsRef::kDense)) {
    std::uint64_t n_summed = ref.root ? columns.n_columns : columns.n_sparse;
    std::uint32_t summed = ref.root ? at.column : sparse;
    carry.before = ref.prefixes + (tile * n_summed + summed);
    carry.total = ref.totals + (at.parent * n_summed + summed);
  } else if (tile < ref.n_long_tiles) {
    carry.status = ref.statuses + (tile * columns.n_columns + at.column);
  }
  Agent{&temp, ref, parent, s}.Run(begin + threadIdx.x / 32 * kWarpEntries, carry, at.tile == 0);
}

/** @brief grid: small nodes x columns, a warp each. */
__global__ __launch_bounds__(kThreads,
                             kBlocks) void SplitSmallKernel(__grid_constant__ FusedRef const ref,
                                                            SplitParent const* parents,
                                                            std::uint32_t n_parents) {
  using Agent = SplitTileAgent<true, true>;
  __shared__ typename Agent::TempStorage temp;
  std::uint64_t i = std::uint64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  auto k = static_cast<std::uint32_t>(i / ref.columns.n_columns);
  if (k >= n_parents) {
    return;
  }
  SplitParent const parent = parents[k];
  Segment const s = FindSegment(ref, parent, static_cast<std::uint32_t>(i % ref.columns.n_columns));
  Agent{&temp, ref, parent, s}.Run(s.range.begin, {}, true);
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
  FusedRef ref{};
  ref.level = level;
  ref.columns = columns;
  ref.sides = sides;
  ref.children = children;
  ref.parent_segments = segments_[current_].Data();
  ref.child_segments = next;
  ref.from = halves_[current_].Ref();
  ref.to = halves_[1 - current_].Ref();
  ref.write_gpair = !last_level;
  return ref;
}

void FusedFinder::SumTiles(FusedRef const& ref, std::uint32_t n_parents,
                           GradientPair const* gpair) {
  std::uint32_t const n_columns = ref.root ? ref.columns.n_columns : ref.columns.n_sparse;
  std::uint64_t const n_segments = std::uint64_t{n_parents} * n_columns;
  Launch("SumTiles", ref.root ? SumTilesKernel<true> : SumTilesKernel<false>,
         std::uint64_t{ref.n_long_tiles} * n_columns, kThreads, ref, parents_.Data(),
         parent_of_.Data(), gpair, ref.prefixes);
  bool const many_tiles = ref.n_long_tiles > 64 * n_parents;
  Launch("ScanTiles", many_tiles ? ScanTilesKernel<kThreads> : ScanTilesKernel<32>, n_segments,
         many_tiles ? kThreads : 32, parents_.Data(), n_columns, ref.prefixes, ref.totals);
}

FusedFinder::Tiles FusedFinder::MakeTiles(std::vector<SplitParent> parents) {
  // Nodes of several tiles, then of one, then of a warp.
  auto size_class = [](SplitParent const& p) {
    RowIdx n = p.rows.end - p.rows.begin;
    return n > kTile ? 0 : n > kWarpEntries ? 1 : 2;
  };
  std::stable_sort(parents.begin(), parents.end(),
                   [&](auto const& a, auto const& b) { return size_class(a) < size_class(b); });
  Tiles tiles{};
  std::vector<std::uint32_t> parent_of;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    SplitParent& p = parents[i];
    p.first_tile = static_cast<std::uint32_t>(parent_of.size());
    int k = size_class(p);
    if (k == 2) {
      ++tiles.n_small;
      continue;
    }
    parent_of.insert(parent_of.end(), CeilDiv(p.rows.end - p.rows.begin, kTile),
                     static_cast<std::uint32_t>(i));
    ++tiles.n_large;
    if (k == 0) {
      ++tiles.n_long;
      tiles.n_long_tiles = static_cast<std::uint32_t>(parent_of.size());
    }
  }
  tiles.n_tiles = static_cast<std::uint32_t>(parent_of.size());
  parents.push_back({{0, 0}, 0, 0, tiles.n_tiles});
  CopyAsync(parents_.Reserve(parents.size()), parents.data(), parents.size());
  CopyAsync(parent_of_.Reserve(parent_of.size()), parent_of.data(), parent_of.size());
  return tiles;
}

void FusedFinder::FindRoot(LevelRef const& level, GradientPair const* gpair, SidesRef const& sides,
                           RowRange const* root, RowIdx n_rows, bool last_level) {
  current_ = 0;
  FusedRef ref = this->MakeRef(level, sides, root, last_level);
  ref.root = true;
  bool in_place = sides.words == nullptr;
  auto n_tiles = static_cast<std::uint32_t>(CeilDiv(n_rows, kTile));
  std::vector<SplitParent> parents{{{0, n_rows}, 0, 0, 0}, {{0, 0}, 0, 0, n_tiles}};
  std::vector<std::uint32_t> parent_of(n_tiles, 0);
  CopyAsync(parents_.Reserve(parents.size()), parents.data(), parents.size());
  CopyAsync(parent_of_.Reserve(parent_of.size()), parent_of.data(), parent_of.size());
  std::uint64_t n_blocks = std::uint64_t{n_tiles} * ref.columns.n_columns;
  ref.n_long_tiles = n_tiles;
  ref.prefixes = prefixes_.Reserve(n_blocks);
  ref.totals = totals_.Reserve(ref.columns.n_columns);
  this->SumTiles(ref, 1, gpair);
  Launch("SplitTiles", in_place ? SplitTilesKernel<false> : SplitTilesKernel<true>, n_blocks,
         kThreads, ref, parents_.Data(), parent_of_.Data());
  if (in_place) {
    std::swap(segments_[0], segments_[1]);
  } else {
    current_ = 1;
  }
}

void FusedFinder::Find(LevelRef const& level, std::vector<SplitParent> const& parents,
                       SidesRef const& sides, RowRange const* children, bool last_level) {
  FusedRef ref = this->MakeRef(level, sides, children, last_level);
  std::uint64_t const n_columns = ref.columns.n_columns;
  Tiles tiles = this->MakeTiles(parents);
  ref.n_long_tiles = tiles.n_long_tiles;
  ref.prefixes = prefixes_.Reserve(std::size_t{tiles.n_long_tiles} * ref.columns.n_sparse);
  ref.totals = totals_.Reserve(std::size_t{tiles.n_long} * ref.columns.n_sparse);
  ref.statuses = statuses_.Reserve(tiles.n_long_tiles * n_columns);
  ZeroAsync(ref.statuses, tiles.n_long_tiles * n_columns);
  this->SumTiles(ref, tiles.n_long, nullptr);
  Launch("SplitTiles", SplitTilesKernel<true>, tiles.n_tiles * n_columns, kThreads, ref,
         parents_.Data(), parent_of_.Data());
  Launch("SplitSmall", SplitSmallKernel, CeilDiv(tiles.n_small * n_columns, kWarps), kThreads, ref,
         parents_.Data() + tiles.n_large, tiles.n_small);
  current_ = 1 - current_;
}

std::uint64_t FusedFinder::Bytes() const {
  std::uint64_t bytes = parents_.Bytes() + prefixes_.Bytes() + totals_.Bytes() +
                        parent_of_.Bytes() + statuses_.Bytes();
  for (int i = 0; i < 2; ++i) {
    bytes += halves_[i].places.Bytes() + halves_[i].gpair.Bytes() + segments_[i].Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
