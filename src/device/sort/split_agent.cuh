/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches one tile of entries for splits by a block: a segmented scan of gradients, then
 *        the gain before every entry.
 *
 * A segment is what a tile has of one node and one column, ascending by value. Tiles hold whole
 * columns, so a segment is all that the node has of the column.
 */
#pragma once

#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>

#include "device/level/level_ref.cuh"
#include "device/runtime/warp.cuh"
#include "device/sort/row_nodes.cuh"

namespace gpu_exact {
inline constexpr int kTileThreads = 256;
inline constexpr int kTileItems = 4;  // entries a thread

/** @brief Number a segment of a tile by column of the tile and node. */
__device__ inline std::uint32_t SegmentOf(std::uint32_t column, LevelNode level_node) {
  return column << kNodeBits | level_node;
}
__device__ inline LevelNode NodeOfSegment(std::uint32_t segment) { return segment & kNoLevelNode; }

/** @brief Holds what the search asks of a node. */
struct NodeTotal {
  FixedSum sum;
  float to_beat;  // see LevelRef::GainToBeat()
};

/** @brief Holds a tile in shared memory, segment after segment; every 32nd word is skipped. */
struct TileEntries {
  static constexpr int kSize = kTileThreads * kTileItems;
  static constexpr int kPadded = kSize + kSize / 32;

  ValueId value[kPadded];
  GradientUnits units[kPadded];
  std::uint32_t segment[kPadded];

  /** @brief Tell where item i lies: reads of kTileItems neighbours by each thread meet no bank
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

class SplitAgent {
  using BlockScan = cub::BlockScan<TilePrefix, kTileThreads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  struct TempStorage {
    typename BlockScan::TempStorage scan;
    FixedSum begins[TileEntries::kSize + 1];  // Point() of each segment's head, and the end
  };

  __device__ SplitAgent(TempStorage* temp, LevelRef const& lv, TileEntries const& tile, int n)
      : temp_{*temp},
        lv_{lv},
        tile_{tile},
        begin_{static_cast<int>(threadIdx.x) * kTileItems},
        end_{min(begin_ + kTileItems, n)} {}

  /**
   * @brief Offer the tile's candidates. All threads of the block; the tile is written and synced.
   *
   * First every candidate is held against the gain to beat, in single precision. Then those that
   * may reach it get their exact gain; a lane goes ahead to its next one, so that lanes divide
   * together.
   *
   * @param total total(level_node) -> NodeTotal.
   */
  template <typename TotalFn>
  __device__ void Search(TotalFn&& total) {
    TilePrefix const prefix = this->ScanSegments();
    __syncthreads();            // begins of segments are written
    std::uint32_t boundary{0};  // bit k: the candidate before item k may reach the gain to beat
    std::uint32_t present{0};   // bit k: so may the one between present and missing values
    Walk walk{*this, prefix};
#pragma unroll
    for (int k = 0; k < kTileItems; ++k) {
      if (begin_ + k >= end_) {
        break;
      }
      walk.Enter(k, total);
      if (walk.IsBoundary() && lv_.MayReach(walk.total.to_beat, walk.total.sum, walk.Before(),
                                            walk.present, walk.missing)) {
        boundary |= 1u << k;
      }
      if (walk.head && walk.missing && walk.allowed &&
          lv_.bound.MayReach(walk.total.to_beat, walk.present, walk.total.sum - walk.present)) {
        present |= 1u << k;
      }
      walk.Leave(k);
    }
    this->OfferExact(prefix, boundary, present, total);
  }

 private:
  /** @brief Walks along a thread's items, and knows the segment of each. */
  struct Walk {
    SplitAgent const& agent;
    TilePrefix prefix;       // of the item; heads: its own segment's too, once it is entered
    FixedSum begin{0, 0};    // of the segment
    FixedSum present{0, 0};  // sum of the segment
    NodeTotal total{};       // of the segment's node
    LevelNode level_node{kNoLevelNode};
    ValueId value{0};
    ValueId last{0};      // value of the entry before the item, unless the item is a head
    bool head{false};     // the item is the first one of its segment
    bool allowed{false};  // whether any candidate of the segment may be a split
    bool missing{false};  // some of the node's weight has no value of the feature

    __device__ Walk(SplitAgent const& a, TilePrefix const& p) : agent{a}, prefix{p} {}

    template <typename TotalFn>
    __device__ void Enter(int k, TotalFn&& total_of) {
      TileEntries const& tile = agent.tile_;
      value = tile.value[TileEntries::At(agent.begin_ + k)];
      head = (agent.heads_ >> k & 1u) != 0;
      if (!head && k != 0) {
        return;
      }
      prefix.heads += head ? 1 : 0;
      begin = agent.temp_.begins[prefix.heads - 1];
      FixedSum const end = agent.temp_.begins[prefix.heads];
      present =
          TilePrefix{static_cast<std::uint64_t>(end.grad), static_cast<std::uint64_t>(end.hess), 0}
              .Since(begin);
      level_node = NodeOfSegment(tile.segment[TileEntries::At(agent.begin_ + k)]);
      total = total_of(level_node);
      allowed = agent.lv_.MaySplit(level_node, value, present);
      missing = !(present == total.sum);
      if (!head) {
        last = tile.value[TileEntries::At(agent.begin_ - 1)];
      }
    }
    /** @brief Sum the segment's entries before the item. */
    [[nodiscard]] __device__ FixedSum Before() const { return prefix.Since(begin); }
    [[nodiscard]] __device__ bool IsBoundary() const { return !head && last != value && allowed; }
    __device__ void Leave(int k) {
      prefix.Add(agent.tile_.units[TileEntries::At(agent.begin_ + k)]);
      last = value;
    }
  };

  template <typename TotalFn>
  __device__ void OfferExact(TilePrefix const& prefix, std::uint32_t boundary,
                             std::uint32_t present, TotalFn&& total) const {
    std::uint32_t wanted = boundary | present;
    if (!__any_sync(kAllLanes, wanted != 0)) {
      return;
    }
    Walk walk{*this, prefix};
    int k{0};
    while (true) {
      while (wanted != 0 && (wanted >> k & 1u) == 0) {
        walk.Enter(k, total);
        walk.Leave(k++);
      }
      if (!__any_sync(kAllLanes, wanted != 0)) {
        return;
      }
      std::uint64_t key{0};
      if (wanted != 0) {
        walk.Enter(k, total);
        NodeState const& node = lv_.nodes[walk.level_node];
        FeatureIdx feature = lv_.columns.FeatureOf(walk.value);
        if ((boundary >> k & 1u) != 0) {
          key = lv_.BoundaryKey(node, feature, walk.value, walk.Before(), walk.present);
        }
        if ((present >> k & 1u) != 0) {
          key = max(key, lv_.PresentKey(node, feature, walk.present));
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
        lv_.Offer(level_node, key);
      }
      return;
    }
    lv_.OfferByWarp(node, key);
  }

  /** @brief Writes the begins of segments. @return What lies before the thread's first item. */
  __device__ TilePrefix ScanSegments() {
    TilePrefix own{0, 0, 0};
#pragma unroll
    for (int k = 0; k < kTileItems; ++k) {
      int const i = begin_ + k;
      if (i >= end_) {
        break;
      }
      bool const head =
          i == 0 || tile_.segment[TileEntries::At(i - 1)] != tile_.segment[TileEntries::At(i)];
      heads_ |= static_cast<std::uint32_t>(head) << k;
      own.Add(tile_.units[TileEntries::At(i)]);
    }
    own.heads = __popc(heads_);
    TilePrefix prefix, total;
    BlockScan{temp_.scan}.ExclusiveScan(own, prefix, TilePrefix{0, 0, 0}, cuda::std::plus<>{},
                                        total);
    TilePrefix running = prefix;
#pragma unroll
    for (int k = 0; k < kTileItems; ++k) {
      if (begin_ + k >= end_) {
        break;
      }
      if ((heads_ >> k & 1u) != 0) {
        temp_.begins[running.heads++] = running.Point();
      }
      running.Add(tile_.units[TileEntries::At(begin_ + k)]);
    }
    if (threadIdx.x == 0) {
      temp_.begins[total.heads] = total.Point();
    }
    return prefix;
  }

  TempStorage& temp_;
  LevelRef const& lv_;
  TileEntries const& tile_;
  // The thread's items, and which of them begin a segment.
  int begin_;
  int end_;
  std::uint32_t heads_{0};
};
}  // namespace gpu_exact
