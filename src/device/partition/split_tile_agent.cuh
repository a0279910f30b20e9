/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief One block moves one tile of entries to the children of their node, and searches it for
 *        splits of the children; or each of its warps the whole segment of a small node.
 *
 * First the entries are counted, then written; their sums by child follow, and the gains last.
 */
#pragma once

#include "src/device/partition/fused_finder.cuh"
#include "src/device/partition/look_back.cuh"

namespace gpu_exact {
inline constexpr int kTileWarps = 8;
inline constexpr std::uint32_t kTileEntries = kTileWarps * kWarpEntries;

/** @brief Entries of one feature and one node: relative to the column, and where the column is. */
struct Segment {
  std::uint32_t column;
  EntryIdx column_begin;
  RowRange range;
};

__device__ inline Segment FindSegment(FusedRef const& ref, SplitParent const& parent,
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

__device__ inline ChildPlaces FindChildPlaces(FusedRef const& ref, SplitParent const& parent) {
  return {ref.sides, parent.rows, ref.root ? RowRange{0, 0} : ref.children[2 * parent.index + 1]};
}

__device__ inline int WarpCount(RowRange const& range, RowIdx begin) {
  return begin >= range.end ? 0 : static_cast<int>(min(range.end - begin, RowIdx{kWarpEntries}));
}

/** @brief Not inlined: it is rarely called, and takes many registers. */
__device__ __noinline__ inline void OfferBoundary(LevelRef const& level, Bucket bucket,
                                                  FeatureIdx f, ValueId value,
                                                  FixedSum const& before, FixedSum const& present) {
  level.Offer(bucket, level.BoundaryKey(level.nodes[bucket], f, value, before, present));
}
__device__ __noinline__ inline void OfferPresent(LevelRef const& level, Bucket bucket, FeatureIdx f,
                                                 FixedSum const& present) {
  level.Offer(bucket, level.PresentKey(level.nodes[bucket], f, present));
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
  static constexpr int kSegments = kWarpSegments ? kTileWarps : 1;

 public:
  struct TempStorage {
    WarpEntries entries[kTileWarps];
    SplitCounts counts[kTileWarps];  // of the warps
    SplitCounts before;              // of the tile
    SplitPrefix parts[kTileWarps];   // of the warps; then the sums before them
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
    for (unsigned w = 0; w < kTileWarps; ++w) {
      if (w == warp_) {
        of_warps = of_tile;
      }
      of_tile = of_tile.Then(temp_.counts[w]);
    }
    *n_left = of_tile.n_left;
    if (carry.status != nullptr) {
      if (warp_ == 0) {
        LookBack look{carry.status, carry.stride, carry.n_before};
        SplitCounts c = look.Counts<kTileEntries>(of_tile);
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
    if (lane_ < kTileWarps) {
      own = temp_.parts[lane_];
    }
    SplitPrefix to = own;
    for (int step = 1; step < kTileWarps; step *= 2) {
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
    tile.left = Shuffle(to.left, kTileWarps - 1);
    tile.all = Shuffle(to.all, kTileWarps - 1);
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
    if (lane_ < kTileWarps) {
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
      OfferPresent(level, bucket, f, present);
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
        OfferBoundary(ref_.level, bucket, f, value, walk.sum, walk.child->present);
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
}  // namespace gpu_exact
