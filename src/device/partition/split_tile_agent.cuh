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

/** @brief A child of the node, as it is known before its entries are. */
struct ChildNode {
  FixedSum total;
  float bar;  // NaN: it may not be split on the feature, or there is no such child

  __device__ static ChildNode Load(LevelRef const& level, Bucket bucket, FeatureIdx f) {
    if (bucket >= level.n_nodes) {
      return {{0, 0}, NAN};
    }
    return {level.nodes[bucket].sum, level.Allowed(bucket, f) ? level.Bar(bucket) : NAN};
  }
};

/** @brief What the search of one child of a segment needs. */
struct ChildSearch {
  NodeBound bound;
  FixedSum present;  // of its entries of the feature
  RowIdx begin;      // of the child's segment
};

/** @brief Counts of the parts of a tile, one a lane. All lanes of a warp. */
class PartCounts {
 public:
  /** @brief Left entries and flags of a part as one word. */
  __device__ static std::uint32_t Pack(SplitPrefix const& part) {
    return part.n_left << 2 | part.flags;
  }

  /** @param word Of the lane's part; 0 past the last one. */
  __device__ PartCounts(std::uint32_t word, int n_parts)
      : n_left_{word >> 2},
        members_{__ballot_sync(kAllLanes, n_left_ != 0),
                 __ballot_sync(kAllLanes, Lane() < n_parts && n_left_ != kWarpEntries)},
        news_{__ballot_sync(kAllLanes, (word & SplitPrefix::kNewLeft) != 0),
              __ballot_sync(kAllLanes, (word & SplitPrefix::kNewRight) != 0)} {}

  /** @brief Of the first n parts, all of them full. @param flags Before them. */
  [[nodiscard]] __device__ SplitCounts First(unsigned n, std::uint32_t flags) const {
    std::uint32_t mask = (1u << n) - 1;
    bool left = Pending(members_[0] & mask, news_[0] & mask, (flags & SplitPrefix::kNewLeft) != 0);
    bool right =
        Pending(members_[1] & mask, news_[1] & mask, (flags & SplitPrefix::kNewRight) != 0);
    return {SumLanes(Lane() < static_cast<int>(n) ? n_left_ : 0), n * kWarpEntries,
            (left ? SplitPrefix::kNewLeft : 0) | (right ? SplitPrefix::kNewRight : 0)};
  }

 private:
  __device__ static int Lane() { return static_cast<int>(threadIdx.x % 32); }
  /** @brief Whether a value begins after the last entry of a child: the part that has it knows of
   *         itself, and those after it add theirs. */
  __device__ static bool Pending(std::uint32_t members, std::uint32_t news, bool before) {
    return members == 0 ? before || news != 0 : news >> (31 - __clz(members)) != 0;
  }

  std::uint32_t n_left_;
  std::uint32_t members_[2];  // parts that have left entries, or right ones
  std::uint32_t news_[2];     // parts with the flag
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
  static_assert(kSplitItems <= GainBound::kMaxWalk);

 public:
  struct TempStorage {
    WarpEntries entries[kTileWarps];
    std::uint32_t counts[kTileWarps];  // of the warps' parts
    SplitCounts before;                // of the tile
    SplitSums sums[kTileWarps];        // of the warps' parts; then the sums before them
    ChildNode nodes[kSegments][2];
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
    this->LoadNodes();
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
    FixedSum lane_before{0, 0};  // of the part, before the lane's slots
    SplitSums of_part = this->ScanLanes(part.n_left, &lane_before);
    SplitSums sums_before = this->SumBefore(of_part, carry, n_left, first);
    this->Search({part.n_left, of_part.left, before, sums_before}, lane_before);
  }

 private:
  /** @brief The warp's part, left entries first, and what lies before it in the segment. */
  struct Part {
    std::uint32_t n_left;
    FixedSum left;
    SplitCounts counts_before;
    SplitSums sums_before;
  };

  [[nodiscard]] __device__ unsigned SegmentInBlock() const { return kWarpSegments ? warp_ : 0; }
  [[nodiscard]] __device__ ChildSearch const& Child(bool left) const {
    return temp_.children[SegmentInBlock()][left ? 0 : 1];
  }
  [[nodiscard]] __device__ WarpEntries& Entries() const { return temp_.entries[warp_]; }

  /** @brief Early, by a warp that the block does not wait for. */
  __device__ void LoadNodes() {
    if ((kWarpSegments || warp_ == kTileWarps - 1) && lane_ < 2) {
      temp_.nodes[SegmentInBlock()][lane_] = ChildNode::Load(
          ref_.level, 2 * parent_.index + lane_, ref_.columns.features[segment_.column]);
    }
  }

  /** @brief Counts before the warp's part. @param n_left Of the part; then of the segment. */
  __device__ SplitCounts CountBefore(SplitPrefix const& part, TileCarry const& carry,
                                     std::uint32_t* n_left) {
    SplitCounts before{0, 0, SplitPrefix::Begin().flags};
    if (kWarpSegments) {
      return before;
    }
    if (lane_ == 0) {
      temp_.counts[warp_] = PartCounts::Pack(part);
    }
    __syncthreads();
    PartCounts parts{lane_ < kTileWarps ? temp_.counts[lane_] : 0, kTileWarps};
    if (carry.status != nullptr) {
      if (warp_ == 0) {
        LookBack look{carry.status, carry.stride, carry.n_before};
        SplitCounts c = look.Counts<kTileEntries>(parts.First(kTileWarps, 0));
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
    } else {
      *n_left = parts.First(kTileWarps, 0).n_left;
    }
    SplitCounts own = parts.First(warp_, before.flags);
    return {before.n_left + own.n_left, before.n + own.n, own.flags};
  }

  /**
   * @brief Writes entries to the children, and to shared memory their gradients and which of them
   *        are candidates.
   * @param n_left Of the warp's part.
   * @param before Of the segment before it.
   */
  __device__ void Write(WarpTile const& tile, std::uint32_t n_left, SplitCounts const& before,
                        RowIdx right_begin) const {
    // Beside the flag of a value: the entry is the child's first, and no candidate.
    constexpr std::uint32_t kFirst = PlaceWord::kNewValue >> 1;
    std::uint32_t const n_right = before.n - before.n_left;
    std::uint32_t const first_left =
        ((before.flags & SplitPrefix::kNewLeft) != 0 ? PlaceWord::kNewValue : 0) |
        (before.n_left == 0 ? kFirst : 0);
    std::uint32_t const first_right =
        ((before.flags & SplitPrefix::kNewRight) != 0 ? PlaceWord::kNewValue : 0) |
        (n_right == 0 ? kFirst : 0);
    std::uint32_t* places = ref_.to.places + segment_.column_begin;
    EntryGradient* gpair = ref_.to.gpair + segment_.column_begin;
    RowIdx const left_to = segment_.range.begin + before.n_left;
    RowIdx const right_to = right_begin + n_right;
    bool const drop_right = ref_.root;
    std::uint32_t lefts{0};
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      bool is_left = (tile.left[j] >> lane_ & 1u) != 0;
      std::uint32_t rank = lefts + __popc(tile.left[j] & LanesBelow());
      rank = is_left ? rank : j * 32 + lane_ - rank;
      std::uint32_t flags = tile.begins[j] << (31 - lane_) & PlaceWord::kNewValue;
      if (rank == 0) {
        flags |= is_left ? first_left : first_right;
      }
      // Past the end the slots are those of right entries that are not there.
      Entries().Put(
          rank + (is_left ? 0 : n_left), tile.gpair[j],
          tile.Has(j) && (flags & (PlaceWord::kNewValue | kFirst)) == PlaceWord::kNewValue);
      if (kMoves && tile.Has(j) && (is_left || !drop_right)) {
        RowIdx to = rank + (is_left ? left_to : right_to);
        places[to] = tile.place[j] | (flags & PlaceWord::kNewValue);
        if (ref_.write_gpair) {
          gpair[to] = tile.gpair[j];
        }
      }
      lefts += __popc(tile.left[j]);
    }
  }

  /** @brief Sums of the part, and of what lies before the lane's slots in it. */
  __device__ SplitSums ScanLanes(std::uint32_t n_left, FixedSum* before) const {
    GradientPair slots[kSplitItems];
    Entries().Load(slots);
    int const n_left_slots = static_cast<int>(n_left) - static_cast<int>(lane_ * kSplitItems);
    FixedSum sum{0, 0}, left{0, 0};
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      if (k == n_left_slots) {
        left = sum;
      }
      sum = sum + Quantiser::FromUnits(slots[k]);
    }
    FixedSum to = sum;
    for (int step = 1; step < 32; step *= 2) {
      FixedSum s = ShuffleUp(to, step);
      if (static_cast<int>(lane_) >= step) {
        to = to + s;
      }
    }
    *before = to - sum;
    SplitSums part{{0, 0}, Shuffle(to, 31)};
    part.left = n_left == kWarpEntries
                    ? part.all
                    : Shuffle(*before + left, static_cast<int>(n_left / kSplitItems));
    return part;
  }

  /**
   * @brief Makes the children ready. @return Sums before the warp's part.
   * @param n_left Of the segment.
   */
  __device__ SplitSums SumBefore(SplitSums const& part, TileCarry const& carry,
                                 std::uint32_t n_left, bool first) {
    if (kWarpSegments) {
      this->PrepareChildren(part, n_left, first);
      __syncwarp();
      return {{0, 0}, {0, 0}};
    }
    if (lane_ == 0) {
      temp_.sums[warp_] = part;
    }
    __syncthreads();
    if (warp_ == 0) {
      this->SumTile(carry, n_left, first);
    }
    __syncthreads();
    return temp_.sums[warp_];
  }

  /** @brief From sums of the warps to sums before them. All lanes of the first warp. */
  __device__ void SumTile(TileCarry const& carry, std::uint32_t n_left, bool first) {
    SplitSums own{{0, 0}, {0, 0}};
    if (lane_ < kTileWarps) {
      own = temp_.sums[lane_];
    }
    SplitSums to = own;
    for (int step = 1; step < kTileWarps; step *= 2) {
      SplitSums s{ShuffleUp(to.left, step), ShuffleUp(to.all, step)};
      if (static_cast<int>(lane_) >= step) {
        to = to + s;
      }
    }
    SplitSums tile{Shuffle(to.left, kTileWarps - 1), Shuffle(to.all, kTileWarps - 1)};
    SplitSums before{{0, 0}, {0, 0}};
    if (carry.status != nullptr) {
      before = LookBack{carry.status, carry.stride, carry.n_before}.Sums(tile);
      // Of a column without missing values: those of the nodes.
      FixedSum left = temp_.nodes[0][0].total;
      this->PrepareChildren({left, left + temp_.nodes[0][1].total}, n_left, first);
    } else if (carry.before != nullptr) {
      before = {carry.before->left, carry.before->all};
      this->PrepareChildren({carry.total->left, carry.total->all}, n_left, first);
    } else {
      this->PrepareChildren(tile, n_left, first);
    }
    if (lane_ < kTileWarps) {
      temp_.sums[lane_] = {before.left + to.left - own.left, before.all + to.all - own.all};
    }
  }

  /**
   * @brief Two lanes of a warp make the children ready, and offer their present keys.
   * @param sums, n_left Of the segment.
   */
  __device__ void PrepareChildren(SplitSums const& sums, std::uint32_t n_left, bool first) {
    if (lane_ >= 2) {
      return;
    }
    LevelRef const& level = ref_.level;
    bool left = lane_ == 0;
    Bucket bucket = 2 * parent_.index + lane_;
    FixedSum present = left ? sums.left : sums.all - sums.left;
    RowIdx n = left ? n_left : segment_.range.end - segment_.range.begin - n_left;
    RowIdx begin = segment_.range.begin + (left ? 0 : n_left);
    ChildNode const& node = temp_.nodes[SegmentInBlock()][lane_];
    NodeBound bound = NodeBound::Make(node.total, present, node.bar);
    temp_.children[SegmentInBlock()][lane_] = {bound, present, begin};
    if (!first || bucket >= level.n_nodes) {
      return;
    }
    if (n != 0 && bound.has_missing != 0.0f && !isnan(node.bar) &&
        level.bound.MayReach(node.bar, present, node.total - present)) {
      OfferPresent(level, bucket, ref_.columns.features[segment_.column], present);
    }
    std::uint32_t sparse = ref_.columns.sparse[segment_.column];
    if (sparse != SortedColumnsRef::kDense) {
      ref_.child_segments[std::uint64_t{bucket} * ref_.columns.n_sparse + sparse] = {begin,
                                                                                     begin + n};
    }
  }

  /** @brief Sum of the right child's entries before the warp's part. */
  [[nodiscard]] __device__ static FixedSum RightBefore(Part const& part) {
    return part.sums_before.all - part.sums_before.left;
  }

  /** @param lane_before Sum of the part before the lane's slots. */
  __device__ void Search(Part const& part, FixedSum const& lane_before) const {
    std::uint32_t const first = lane_ * kSplitItems;
    FixedSum const before =
        lane_before + (first < part.n_left ? part.sums_before.left : RightBefore(part) - part.left);
    GradientPair slots[kSplitItems];  // read again: registers are few
    Entries().Load(slots);
    // The lane in which left entries end goes on to the right ones.
    int const enters = first < part.n_left ? static_cast<int>(part.n_left - first) : 0;
    std::uint32_t wanted{0};
    WalkBound walk{ref_.level.bound, this->Child(enters != 0).bound, before};
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      if (k != 0 && k == enters) {
        walk = WalkBound{ref_.level.bound, this->Child(false).bound, RightBefore(part)};
      }
      wanted |= walk.MayReach() ? 1u << k : 0;
      walk.Pass(slots[k]);
    }
    wanted &= Entries().Candidates();
    if (__any_sync(kAllLanes, wanted != 0)) {
      this->OfferExact(part, before, wanted);
    }
  }

  /** @brief A lane goes ahead to its next candidate, so that lanes divide together. */
  __device__ void OfferExact(Part const& part, FixedSum sum, std::uint32_t wanted) const {
    FeatureIdx f = ref_.columns.features[segment_.column];
    auto first_value = ref_.level.columns.Values(f).first;
    std::uint32_t slot = lane_ * kSplitItems;
    bool left = slot < part.n_left;
    for (int k = 0; __any_sync(kAllLanes, wanted != 0);) {
      for (; wanted != 0; ++k, ++slot) {
        if (left && slot == part.n_left) {
          sum = RightBefore(part);
          left = false;
        }
        if ((wanted >> k & 1u) != 0) {
          break;
        }
        sum = sum + Entries().Get(k);
      }
      if (wanted != 0) {
        std::uint32_t rank =
            left ? part.counts_before.n_left + slot
                 : part.counts_before.n - part.counts_before.n_left + slot - part.n_left;
        ChildSearch const& child = this->Child(left);
        auto value = static_cast<ValueId>(first_value + child.begin + rank);
        OfferBoundary(ref_.level, 2 * parent_.index + (left ? 0 : 1), f, value, sum, child.present);
        wanted &= ~(1u << k);
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
