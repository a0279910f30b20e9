/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Searches one tile of entries for splits by a block: a segmented scan of gradients, then
 *        the gain before every entry. Shallow and deep levels differ only in how a tile is loaded
 *        and in what is carried into it.
 *
 * A segment is a run of entries of one node and one feature, ascending by value.
 */
#pragma once

#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>

#include "device/level/level_ref.cuh"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
inline constexpr int kTileThreads = 256;
inline constexpr LevelNode kNoLevelNode = 0xffffffffu;

/**
 * @brief Holds a tile in shared memory, segment after segment; every 32nd word is skipped.
 * @tparam kItems Entries a thread.
 */
template <int kItems>
struct TileEntries {
  static constexpr int kSize = kTileThreads * kItems;
  static constexpr int kPadded = kSize + kSize / 32;

  ValueId value[kPadded];
  GradientUnits units[kPadded];
  std::uint32_t segment[kPadded];  // what Segments of a SplitAgent read

  /** @brief Tell where item i lies: blocked reads of 4 or 8 items a thread meet no bank
   *         conflict. */
  __device__ static int At(int i) { return i + i / 32; }

  __device__ void Store(int i, ValueId v, GradientUnits const& u, std::uint32_t s) {
    EXACT_DEVICE_CHECK(i >= 0 && i < kSize);
    value[At(i)] = v;
    units[At(i)] = u;
    segment[At(i)] = s;
  }
};

/**
 * @brief Sums all entries of a tile before one, and counts the segments before it. Sums of several
 *        columns may wrap around, their differences within a segment are right.
 */
struct TilePrefix {
  std::uint64_t grad;
  std::uint64_t hess;
  std::uint32_t heads;

  __device__ friend TilePrefix operator+(TilePrefix const& a, TilePrefix const& b) {
    return {a.grad + b.grad, a.hess + b.hess, a.heads + b.heads};
  }
  __device__ void Add(GradientUnits const& units) {
    FixedSum const sum = units.Fixed();
    grad += static_cast<std::uint64_t>(sum.grad);
    hess += static_cast<std::uint64_t>(sum.hess);
  }
  /** @brief Sum what lies between two entries. */
  __device__ FixedSum Since(FixedSum const& begin) const {
    return {static_cast<std::int64_t>(grad - static_cast<std::uint64_t>(begin.grad)),
            static_cast<std::int64_t>(hess - static_cast<std::uint64_t>(begin.hess))};
  }
  /** @brief Give the sum that Since() wants. */
  [[nodiscard]] __device__ FixedSum Point() const {
    return {static_cast<std::int64_t>(grad), static_cast<std::int64_t>(hess)};
  }
};

/** @brief Holds what the search of a segment needs to know from outside the tile. */
struct SegmentCarry {
  FixedSum before;     // of its entries in earlier tiles
  FixedSum present;    // of all its entries
  FixedSum total;      // of its node
  float to_beat;       // of its node
  ValueId last_value;  // of its last entry in an earlier tile
  bool continues;      // it has entries in earlier tiles
  bool ends;           // its last entry lies in this tile
};

/**
 * @tparam kItems       Entries a thread.
 * @tparam Segments     Tells the segments of a tile apart by a word for each entry:
 *                      LevelNodeOf(word), and Differ(word, value, word, value) of two neighbours,
 *                      asked in order.
 */
template <int kItems, typename Segments>
class SplitAgent {
  using Tile = TileEntries<kItems>;
  using BlockScan = cub::BlockScan<TilePrefix, kTileThreads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  struct TempStorage {
    typename BlockScan::TempStorage scan;
    FixedSum begins[Tile::kSize + 1];  // TilePrefix::Point() of each segment's head, and the end
    std::uint32_t n_segments;
  };

  __device__ SplitAgent(TempStorage* temp, LevelRef const& level, Tile const& tile, int n)
      : temp_{*temp},
        level_{level},
        tile_{tile},
        begin_{static_cast<int>(threadIdx.x) * kItems},
        end_{min(begin_ + kItems, n)} {}

  /**
   * @brief Offer the tile's candidates. All threads of the block; the tile is written and synced.
   *
   * First every candidate is held against the gain to beat, in single precision. Then those that
   * may reach it get their exact gain; a lane goes ahead to its next one, so that lanes divide
   * together.
   *
   * @param carry carry(segment, level_node, segment_sum) -> SegmentCarry; segments count from 0.
   */
  template <typename CarryFn>
  __device__ void Search(CarryFn&& carry) {
    TilePrefix const prefix = this->ScanSegments();
    __syncthreads();            // begins of segments are written
    std::uint32_t boundary{0};  // bit k: the candidate before item k may reach the gain to beat
    std::uint32_t present{0};   // bit k: so may the one between present and missing values
    Walk walk{*this, prefix};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (begin_ + k >= end_) {
        break;
      }
      walk.Enter(k, carry);
      if (walk.IsBoundary() && level_.MayReach(walk.outside.to_beat, walk.outside.total,
                                               walk.Before(), walk.outside.present, walk.missing)) {
        boundary |= 1u << k;
      }
      if (walk.head && walk.outside.ends && walk.missing && walk.allowed &&
          level_.bound.MayReach(walk.outside.to_beat, walk.outside.present,
                                walk.outside.total - walk.outside.present)) {
        present |= 1u << k;
      }
      walk.Leave(k);
    }
    this->OfferExact(prefix, boundary, present, carry);
  }

  /** @brief Count the segments in the tile; for carry functions. */
  [[nodiscard]] __device__ std::uint32_t NumSegments() const { return temp_.n_segments; }

 private:
  /** @brief Walks along a thread's items, and knows the segment of each. */
  struct Walk {
    SplitAgent const& agent;
    TilePrefix prefix;     // of the item; heads: its own segment's too, once it is entered
    FixedSum begin{0, 0};  // of the segment
    SegmentCarry outside{};
    LevelNode level_node{kNoLevelNode};
    ValueId value{0};
    ValueId last{0};  // value of the segment's entry before the item
    bool has_last{false};
    bool head{false};
    bool allowed{false};  // whether any candidate of the segment may be a split
    bool missing{false};  // some of the node's weight has no value of the feature

    __device__ Walk(SplitAgent const& a, TilePrefix const& p) : agent{a}, prefix{p} {}

    template <typename CarryFn>
    __device__ void Enter(int k, CarryFn&& carry) {
      Tile const& tile = agent.tile_;
      value = tile.value[Tile::At(agent.begin_ + k)];
      head = (agent.heads_ >> k & 1u) != 0;
      if (!head && k != 0) {
        return;
      }
      prefix.heads += head ? 1 : 0;
      std::uint32_t const segment = prefix.heads - 1;
      begin = agent.temp_.begins[segment];
      FixedSum const end = agent.temp_.begins[segment + 1];
      FixedSum const in_tile =
          TilePrefix{static_cast<std::uint64_t>(end.grad), static_cast<std::uint64_t>(end.hess), 0}
              .Since(begin);
      level_node = Segments::LevelNodeOf(tile.segment[Tile::At(agent.begin_ + k)]);
      outside = carry(segment, level_node, in_tile);
      allowed = agent.level_.MaySplit(level_node, value, outside.present);
      missing = !(outside.present == outside.total);
      has_last = !head || outside.continues;
      last = head ? outside.last_value : tile.value[Tile::At(agent.begin_ + k - 1)];
    }
    /** @brief Sum the segment's entries before the item. */
    [[nodiscard]] __device__ FixedSum Before() const {
      return prefix.Since(begin) + outside.before;
    }
    [[nodiscard]] __device__ bool IsBoundary() const {
      return has_last && last != value && allowed;
    }
    __device__ void Leave(int k) {
      prefix.Add(agent.tile_.units[Tile::At(agent.begin_ + k)]);
      last = value;
      has_last = true;
    }
  };

  template <typename CarryFn>
  __device__ void OfferExact(TilePrefix const& prefix, std::uint32_t boundary,
                             std::uint32_t present, CarryFn&& carry) const {
    std::uint32_t wanted = boundary | present;
    if (!__any_sync(kAllLanes, wanted != 0)) {
      return;
    }
    Walk walk{*this, prefix};
    int k{0};
    while (true) {
      while (wanted != 0 && (wanted >> k & 1u) == 0) {
        walk.Enter(k, carry);
        walk.Leave(k++);
      }
      if (!__any_sync(kAllLanes, wanted != 0)) {
        return;
      }
      std::uint64_t key{0};
      if (wanted != 0) {
        walk.Enter(k, carry);
        NodeState const& node = level_.nodes[walk.level_node];
        FeatureIdx feature = level_.columns.FeatureOf(walk.value);
        if ((boundary >> k & 1u) != 0) {
          key = level_.BoundaryKey(node, feature, walk.value, walk.Before(), walk.outside.present);
        }
        if ((present >> k & 1u) != 0) {
          key = max(key, level_.PresentKey(node, feature, walk.outside.present));
        }
        wanted &= ~(1u << k);
        walk.Leave(k++);
      }
      this->OfferByLanes(walk.level_node, key);
    }
  }

  /** @brief Offer by all lanes of a warp. Those of one node, as nearly always, offer their best as
   *         one. */
  __device__ void OfferByLanes(LevelNode level_node, std::uint64_t key) const {
    unsigned const offers = __ballot_sync(kAllLanes, key != 0);
    if (offers == 0) {
      return;
    }
    LevelNode const node = __shfl_sync(kAllLanes, level_node, __ffs(offers) - 1);
    if (__any_sync(kAllLanes, key != 0 && level_node != node)) {
      if (key != 0) {  // else the lane may be at no node
        level_.Offer(level_node, key);
      }
      return;
    }
    level_.OfferByWarp(node, key);
  }

  /** @brief Writes the begins of segments. @return Of the thread's first item. */
  __device__ TilePrefix ScanSegments() {
    TilePrefix own{0, 0, 0};
    Segments segments{level_};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      int const i = begin_ + k;
      if (i >= end_) {
        break;
      }
      int const at = Tile::At(i);
      int const before = Tile::At(i - 1);
      bool const head = i == 0 || segments.Differ(tile_.segment[before], tile_.value[before],
                                                  tile_.segment[at], tile_.value[at]);
      heads_ |= static_cast<std::uint32_t>(head) << k;
      own.Add(tile_.units[at]);
    }
    own.heads = __popc(heads_);
    TilePrefix prefix, total;
    BlockScan{temp_.scan}.ExclusiveScan(own, prefix, TilePrefix{0, 0, 0}, cuda::std::plus<>{},
                                        total);
    TilePrefix running = prefix;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (begin_ + k >= end_) {
        break;
      }
      if ((heads_ >> k & 1u) != 0) {
        temp_.begins[running.heads++] = running.Point();
      }
      running.Add(tile_.units[Tile::At(begin_ + k)]);
    }
    if (threadIdx.x == 0) {
      temp_.n_segments = total.heads;
      temp_.begins[total.heads] = total.Point();
    }
    return prefix;
  }

  TempStorage& temp_;
  LevelRef const& level_;
  Tile const& tile_;
  // The thread's items, and which of them begin a segment within this tile.
  int begin_;
  int end_;
  std::uint32_t heads_{0};
};
}  // namespace gpu_exact
