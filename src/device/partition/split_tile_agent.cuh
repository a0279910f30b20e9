/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief One block moves one tile of entries to the children of their node, and searches it for
 *        splits of the children; or each of its warps the whole segment of a small node.
 *
 * The root is a node that moves to its only child, the left one: entries of rows left out go right,
 * and are dropped.
 *
 * First the entries are counted, put in order in shared memory and summed by child; once it is
 * known what lies before them, they are written and searched.
 */
#pragma once

#include "src/device/partition/fused_finder.cuh"
#include "src/device/partition/look_back.cuh"

namespace gpu_exact {
inline constexpr int kTileWarps = 8;
inline constexpr std::uint32_t kTileEntries = kTileWarps * kWarpEntries;
static_assert(kTileEntries == MemoryPlan::kTileEntries);

/** @brief Entries of one feature and one node: relative to the column, and where the column is. */
struct Segment {
  std::uint32_t column;
  EntryIdx column_begin;
  RowRange range;
};

template <bool kRoot>
__device__ Segment FindSegment(FusedRef const& ref, SplitParent const& parent,
                               std::uint32_t column) {
  SortedColumnsRef const& c = ref.columns;
  Segment s{column, c.offsets[column], parent.rows};
  std::uint32_t sparse = c.sparse[column];
  if (sparse != SortedColumnsRef::kDense) {
    s.range = kRoot ? RowRange{0, static_cast<RowIdx>(c.offsets[column + 1] - s.column_begin)}
                    : ref.parent_segments[std::uint64_t{parent.bucket} * c.n_sparse + sparse];
  }
  return s;
}

/** @brief Which child each entry of a tile goes to. */
template <bool kRoot>
__device__ void MoveTile(FusedRef const& ref, SplitParent const& parent, WarpTile* tile) {
  if (kRoot && !ref.moves) {
    tile->Stay();
  } else {
    RowRange right = kRoot ? RowRange{0, 0} : ref.children[2 * parent.index + 1];
    tile->Move({ref.sides, parent.rows, right});
  }
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

/** @brief Where values begin in the parts of a tile, one a lane. All lanes of a warp. */
class PartFlags {
 public:
  /** @param n_left, flags Of the lane's part, one of n_parts; 0 past the last one. */
  __device__ PartFlags(std::uint32_t n_left, std::uint32_t flags, unsigned n_parts)
      : members_{__ballot_sync(kAllLanes, n_left != 0),
                 __ballot_sync(kAllLanes, Lane() < n_parts && n_left != kWarpEntries)},
        news_{__ballot_sync(kAllLanes, (flags & SplitPrefix::kNewLeft) != 0),
              __ballot_sync(kAllLanes, (flags & SplitPrefix::kNewRight) != 0)} {}

  /** @brief Flags after the first n parts, all of them full. @param before Flags before them. */
  [[nodiscard]] __device__ std::uint32_t After(unsigned n, std::uint32_t before) const {
    std::uint32_t mask = (1u << n) - 1;
    bool left = Pending(members_[0] & mask, news_[0] & mask, (before & SplitPrefix::kNewLeft) != 0);
    bool right =
        Pending(members_[1] & mask, news_[1] & mask, (before & SplitPrefix::kNewRight) != 0);
    return (left ? SplitPrefix::kNewLeft : 0) | (right ? SplitPrefix::kNewRight : 0);
  }

 private:
  __device__ static unsigned Lane() { return threadIdx.x % 32; }
  /** @brief Whether a value begins after the last entry of a child: the part that has it knows of
   *         itself, and those after it add theirs. */
  __device__ static bool Pending(std::uint32_t members, std::uint32_t news, bool before) {
    return members == 0 ? before || news != 0 : news >> (31 - __clz(members)) != 0;
  }

  std::uint32_t members_[2];  // parts that have left entries, or right ones
  std::uint32_t news_[2];     // parts with the flag
};

/**
 * @brief Move and search. result: entries of the children, candidates offered to them.
 *
 * The entries of a warp are put in order in shared memory, left ones first. Of a tile's block one
 * more warp finds out what lies before the tile while the others read their entries.
 *
 * @tparam kWarpSegments A warp serves the whole segment of a small node. Otherwise a block serves a
 *                       tile.
 * @tparam kRoot         Gradients are gathered from those by row.
 */
template <bool kWarpSegments, bool kRoot>
class SplitTileAgent {
  static constexpr int kSegments = kWarpSegments ? kTileWarps : 1;
  static_assert(kSplitItems <= GainBound::kMaxWalk);

 public:
  struct TempStorage {
    WarpEntries entries[kTileWarps];
    SplitPrefix parts[kTileWarps];  // of the warps; then what lies before them
    SplitPrefix before;             // the tile
    ChildNode nodes[kSegments][2];
    ChildSearch children[kSegments][2];
  };

  __device__ SplitTileAgent(TempStorage* temp, FusedRef const& ref, SplitParent const& parent,
                            Segment const& segment)
      : temp_{*temp},
        ref_{ref},
        parent_{parent},
        segment_{segment},
        warp_{
            __shfl_sync(kAllLanes, threadIdx.x / 32, 0)},  // the compiler sees that all lanes agree
        lane_{threadIdx.x % 32} {}

  /**
   * @brief One tile. All kTileWarps + 1 warps of the block.
   * @param begin Its first entry, relative to the column.
   * @param first Whether it is the segment's first.
   */
  __device__ void RunTile(RowIdx begin, TileCarry const& carry, bool first) {
    if (warp_ == kTileWarps) {
      bool known = this->FindBefore(carry, first);
      Meet();
      this->JoinParts(carry, first, known);
      Meet();
    } else {
      SplitPrefix part = this->Take(begin + warp_ * kWarpEntries);
      if (lane_ == 0) {
        temp_.parts[warp_] = part;
      }
      Meet();  // now they can be joined
      Meet();  // and they are
      this->Finish(part, temp_.parts[warp_]);
    }
  }

  /** @brief A whole segment, of kWarpEntries at most. One warp. */
  __device__ void RunSegment() {
    SplitPrefix part = this->Take(segment_.range.begin);
    this->LoadNodes();
    this->PrepareChildren({part.left, part.all}, part.n_left, true);
    __syncwarp();
    this->Finish(part, SplitPrefix::Begin());
  }

 private:
  [[nodiscard]] __device__ unsigned SegmentInBlock() const { return kWarpSegments ? warp_ : 0; }
  [[nodiscard]] __device__ ChildSearch const& Child(bool left) const {
    return temp_.children[SegmentInBlock()][left ? 0 : 1];
  }
  [[nodiscard]] __device__ WarpEntries& Entries() const { return temp_.entries[warp_]; }

  /** @brief __syncthreads() for warps that come from different places in the code. */
  __device__ static void Meet() {
    asm volatile("barrier.sync 1, %0;" ::"n"(32 * (kTileWarps + 1)) : "memory");
  }

  /** @brief Reads the warp's entries and puts them in order. @return Of these alone. */
  __device__ SplitPrefix Take(RowIdx begin) const {
    WarpTile tile;
    tile.n = WarpCount(segment_.range, begin);
    EntryIdx const first = segment_.column_begin + begin;
    tile.LoadPlaces(ref_.from + first);
    if constexpr (kRoot) {
      Entries().GatherAsync(ref_.row_gpair, tile);
    } else {
      Entries().LoadAsync(ref_.from_gpair + first, tile.n);
    }
    MoveTile<kRoot>(ref_, parent_, &tile);
    SplitPrefix part = tile.Count();
    Entries().Arrange(tile, part.n_left, [&](GradientPair const& g) {
      return kRoot ? ref_.level.quantiser.Units(g) : g;
    });
    SplitSums sums = this->ScanLanes(part.n_left);
    part.left = sums.left;
    part.all = sums.all;
    return part;
  }

  /** @brief Sums of the warp's entries; the lanes keep what lies before their slots. */
  __device__ SplitSums ScanLanes(std::uint32_t n_left) const {
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
    FixedSum before = to - sum;
    Entries().before[lane_] = before;
    SplitSums part{{0, 0}, Shuffle(to, 31)};
    part.left = n_left == kWarpEntries
                    ? part.all
                    : Shuffle(before + left, static_cast<int>(n_left / kSplitItems));
    return part;
  }

  __device__ LookBack Look(TileCarry const& carry) const {
    return {carry.status, carry.stride, carry.n_before, kTileEntries};
  }

  /**
   * @brief Looks for what lies before the tile, and makes the children ready where the tile is not
   *        all there is of them. Waits for no tile: its own comes first.
   * @return Whether it is known yet.
   */
  __device__ bool FindBefore(TileCarry const& carry, bool first) {
    this->LoadNodes();
    __syncwarp();
    bool known{true};
    SplitPrefix before = SplitPrefix::Begin();
    if (carry.status != nullptr) {
      // Of a column without missing values: those of the nodes.
      FixedSum left = temp_.nodes[0][0].total;
      RowRange left_rows = ref_.children[2 * parent_.index];
      this->PrepareChildren({left, left + temp_.nodes[0][1].total}, left_rows.end - left_rows.begin,
                            first);
      known = this->Look(carry).Find(false, &before);
    } else if (carry.before != nullptr) {
      this->PrepareChildren({carry.total->left, carry.total->all}, carry.total->n_left, first);
      before = *carry.before;
    }
    if (lane_ == 0) {
      temp_.before = before;  // registers are few
    }
    return known;
  }

  /** @brief From what lies in each part to what lies before it. @param known Before the tile. */
  __device__ void JoinParts(TileCarry const& carry, bool first, bool known) {
    SplitPrefix to = SplitPrefix::None();  // up to the end of the lane's part
    if (lane_ < kTileWarps) {
      to = temp_.parts[lane_];
    }
    PartFlags const flags{to.n_left, to.flags, kTileWarps};
    for (int step = 1; step < kTileWarps; step *= 2) {
      FixedSum left = ShuffleUp(to.left, step);
      FixedSum all = ShuffleUp(to.all, step);
      std::uint32_t n_left = __shfl_up_sync(kAllLanes, to.n_left, step);
      if (static_cast<int>(lane_) >= step) {
        to.left = to.left + left;
        to.all = to.all + all;
        to.n_left += n_left;
      }
    }
    SplitPrefix before = temp_.before;
    if (carry.status != nullptr || carry.before == nullptr) {
      SplitPrefix tile = SplitPrefix::None();
      tile.left = Shuffle(to.left, kTileWarps - 1);
      tile.all = Shuffle(to.all, kTileWarps - 1);
      tile.n_left = __shfl_sync(kAllLanes, to.n_left, kTileWarps - 1);
      tile.n = kTileEntries;
      tile.flags = flags.After(kTileWarps, 0);
      if (carry.status == nullptr) {
        this->PrepareChildren({tile.left, tile.all}, tile.n_left, first);
      } else {
        LookBack const look = this->Look(carry);
        if (!known) {
          look.Publish(tile, TileWord::kTile);
          look.Find(true, &before);
        }
        look.Publish(SplitPrefixOp{}(before, tile), TileWord::kAll);
      }
    }
    if (lane_ < kTileWarps) {
      SplitPrefix const own = temp_.parts[lane_];
      temp_.parts[lane_] = {before.left + to.left - own.left,       before.all + to.all - own.all,
                            before.n_left + to.n_left - own.n_left, before.n + lane_ * kWarpEntries,
                            flags.After(lane_, before.flags),       0};
    }
  }

  __device__ void LoadNodes() {
    if (lane_ < 2) {
      temp_.nodes[SegmentInBlock()][lane_] = ChildNode::Load(
          ref_.level, 2 * parent_.index + lane_, ref_.columns.features[segment_.column]);
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
    bool const is_child = bucket < level.n_nodes;  // the root has one
    FixedSum present = left ? sums.left : is_child ? sums.all - sums.left : FixedSum{0, 0};
    RowIdx n = left ? n_left : segment_.range.end - segment_.range.begin - n_left;
    RowIdx begin = segment_.range.begin + (left ? 0 : n_left);
    ChildNode const& node = temp_.nodes[SegmentInBlock()][lane_];
    NodeBound bound = NodeBound::Make(node.total, present, node.bar);
    temp_.children[SegmentInBlock()][lane_] = {bound, present, begin};
    if (!first || !is_child) {
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

  __device__ void Finish(SplitPrefix const& part, SplitPrefix const& before) const {
    this->Search(part, before, this->Write(part, before));
  }

  /** @brief Writes the warp's entries to the children. @return The lane's candidates, a bit a slot.
   */
  __device__ std::uint32_t Write(SplitPrefix const& part, SplitPrefix const& before) const {
    std::uint32_t* places = ref_.to.places + segment_.column_begin;
    EntryGradient* gpair = ref_.to.gpair + segment_.column_begin;
    std::uint32_t const n_right = before.n - before.n_left;
    RowIdx const left_to = segment_.range.begin + before.n_left;
    RowIdx const right_to = this->Child(false).begin + n_right - part.n_left;
    std::uint32_t const n = kRoot ? part.n_left : part.n;  // the root drops right ones
    // The first entries of the children: what begins before them is known now, and they are no
    // candidates where the child's segment begins with them.
    std::uint32_t const new_left =
        (before.flags & SplitPrefix::kNewLeft) != 0 ? PlaceWord::kNewValue : 0;
    std::uint32_t const new_right =
        (before.flags & SplitPrefix::kNewRight) != 0 ? PlaceWord::kNewValue : 0;
    std::uint32_t const skip_right = n_right == 0 ? part.n_left : kWarpEntries;
    bool const skip_left = lane_ == 0 && part.n_left != 0 && before.n_left == 0;
    std::uint32_t candidates{0};  // of the window of the lane's slots
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::uint32_t slot = j * 32 + lane_;
      std::uint32_t word = Entries().places[slot];
      if (j == 0 && lane_ == 0 && part.n_left != 0) {
        word |= new_left;
      }
      if (slot == part.n_left) {
        word |= new_right;
      }
      bool candidate = (word & PlaceWord::kNewValue) != 0 && slot < n && slot != skip_right;
      std::uint32_t window = __ballot_sync(kAllLanes, candidate && !(j == 0 && skip_left));
      candidates = lane_ / 4 == j ? window : candidates;
      if (slot < n) {
        RowIdx to = slot + (slot < part.n_left ? left_to : right_to);
        if (!kRoot || ref_.moves) {  // else the columns' own are as good
          places[to] = word;
        }
        if (ref_.write_gpair) {
          gpair[to] = Entries().At(slot);
        }
      }
    }
    static_assert(kSplitItems == 8);
    return candidates >> lane_ % 4 * 8 & 0xffu;
  }

  /** @brief Sum of the right child's entries before the warp's. */
  [[nodiscard]] __device__ static FixedSum RightBefore(SplitPrefix const& before) {
    return before.all - before.left;
  }

  /**
   * @brief The lane's slots before which a candidate may reach the bar, a bit each.
   * @param sum Of the child's entries before the lane's first slot.
   */
  template <bool kMissing>
  __device__ std::uint32_t Walk(SplitPrefix const& part, SplitPrefix const& before,
                                FixedSum const& sum) const {
    std::uint32_t const first = lane_ * kSplitItems;
    GradientPair slots[kSplitItems];
    Entries().Load(slots);
    // The lane in which left entries end goes on to the right ones.
    int const enters = first < part.n_left ? static_cast<int>(part.n_left - first) : 0;
    std::uint32_t wanted{0};
    WalkBound walk{ref_.level.bound, this->Child(enters != 0).bound, sum};
#pragma unroll
    for (int k = 0; k < kSplitItems; ++k) {
      if (k != 0 && k == enters) {
        walk = WalkBound{ref_.level.bound, this->Child(false).bound, RightBefore(before)};
      }
      wanted |= walk.MayReach<kMissing>() ? 1u << k : 0;
      walk.Pass(slots[k]);
    }
    return wanted;
  }

  /** @param candidates A bit for each of the lane's slots. */
  __device__ void Search(SplitPrefix const& part, SplitPrefix const& before,
                         std::uint32_t candidates) const {
    std::uint32_t const first = lane_ * kSplitItems;
    FixedSum const sum = Entries().before[lane_] +
                         (first < part.n_left ? before.left : RightBefore(before) - part.left);
    bool const missing =
        this->Child(true).bound.has_missing + this->Child(false).bound.has_missing != 0.0f;
    std::uint32_t wanted =
        missing ? this->Walk<true>(part, before, sum) : this->Walk<false>(part, before, sum);
    wanted &= candidates;
    if (__any_sync(kAllLanes, wanted != 0)) {
      this->OfferExact(part, before, sum, wanted);
    }
  }

  /** @brief A lane goes ahead to its next candidate, so that lanes divide together. */
  __device__ void OfferExact(SplitPrefix const& part, SplitPrefix const& before, FixedSum sum,
                             std::uint32_t wanted) const {
    FeatureIdx f = ref_.columns.features[segment_.column];
    auto first_value = ref_.level.columns.Values(f).first;
    std::uint32_t slot = lane_ * kSplitItems;
    bool left = slot < part.n_left;
    for (int k = 0; __any_sync(kAllLanes, wanted != 0);) {
      for (; wanted != 0; ++k, ++slot) {
        if (left && slot == part.n_left) {
          sum = RightBefore(before);
          left = false;
        }
        if ((wanted >> k & 1u) != 0) {
          break;
        }
        sum = sum + Entries().Get(k);
      }
      if (wanted != 0) {
        std::uint32_t rank =
            left ? before.n_left + slot : before.n - before.n_left + slot - part.n_left;
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
