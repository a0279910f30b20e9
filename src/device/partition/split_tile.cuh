/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief A tile of entries of one node and feature on its way to the node's children: each warp
 *        holds 256 neighbours, striped over its lanes, and knows by ballots which go left and where
 *        values begin.
 */
#pragma once

#include <cuda_pipeline.h>

#include "src/device/fixed_sum.cuh"
#include "src/device/partition/sides.cuh"
#include "src/device/partition/split_prefix.cuh"
#include "src/device/warp.cuh"
#include "src/quantise.h"

namespace gpu_exact {
inline constexpr int kSplitItems = 8;
inline constexpr int kWarpEntries = 32 * kSplitItems;

/** @brief An entry's row: a place below 2^31; the top bit says that a value begins here. */
struct PlaceWord {
  static constexpr std::uint32_t kNewValue = 0x80000000u;

  /** @brief Without the flag. */
  __device__ static RowIdx Place(std::uint32_t word) { return word & ~kNewValue; }
};

/** @brief A gradient pair in units of the quantiser, whole numbers. */
struct EntryGradient {
  GradientPair units;
};

/** @brief Entries sorted by value, in columns; a structure of arrays. */
struct SplitEntriesRef {
  std::uint32_t* places;  // PlaceWord
  EntryGradient* gpair;   // carried along
};

/** @brief Whether a value begins after the last left and the last right entry so far. */
struct SideFlags {
  std::uint32_t left;  // 0 or 1
  std::uint32_t right;

  [[nodiscard]] __device__ std::uint32_t Bits() const {
    static_assert(SplitPrefix::kNewLeft == 1 && SplitPrefix::kNewRight == 2);
    return left | right << 1;
  }

  /**
   * @brief Go past 32 neighbours.
   * @param lefts  Which of them go left; the others go right.
   * @param values Where a value of the node begins.
   * @return Which entries begin a value of their child.
   */
  __device__ std::uint32_t Pass(std::uint32_t lefts, std::uint32_t values) {
    return Begins(lefts, values, &left) | Begins(~lefts, values, &right);
  }

 private:
  /**
   * @brief Members that begin a value: one begins at them or at others since the member before.
   *
   * The others are ones in an addition: a value that begins there is carried up to the next member,
   * which is a zero, or out of the word.
   */
  __device__ static std::uint32_t Begins(std::uint32_t members, std::uint32_t values,
                                         std::uint32_t* pending) {
    std::uint32_t others = ~members;
    std::uint64_t sum = std::uint64_t{others} + (values & others) + *pending;
    *pending = static_cast<std::uint32_t>(sum >> 32);
    return (static_cast<std::uint32_t>(sum) | values) & members;
  }
};

/**
 * @brief A warp's part of a tile. Item j of a lane is entry 32 j + lane of the part. Past the end
 *        there are right entries without weight, which nobody comes after.
 */
struct WarpTile {
  int n;                              // entries of the part, 0 to 256
  std::uint32_t place[kSplitItems];   // PlaceWord; new places once they are moved
  std::uint32_t left[kSplitItems];    // ballots
  std::uint32_t begins[kSplitItems];  // a value of the node begins; once counted: of the child

  [[nodiscard]] __device__ bool Has(int j) const {
    return j * 32 + static_cast<int>(threadIdx.x % 32) < n;
  }

  /** @param places Of the part. */
  __device__ void LoadPlaces(std::uint32_t const* places) {
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      place[j] = Has(j) ? places[j * 32 + threadIdx.x % 32] : 0;
    }
  }

  /** @brief All entries stay and go left: the root, where no row is left out. */
  __device__ void Stay() {
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      left[j] = __ballot_sync(kAllLanes, this->Has(j));
      begins[j] = __ballot_sync(kAllLanes, (place[j] & PlaceWord::kNewValue) != 0);
    }
  }

  /** @brief Moves places to the children. */
  __device__ void Move(ChildPlaces const& children) {
    SideWord words[kSplitItems];  // all are asked for before the first is used
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      words[j] = children.Word(PlaceWord::Place(place[j]));
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::uint32_t flag = place[j] & PlaceWord::kNewValue;
      bool is_left{false};
      place[j] = children.Of(words[j], place[j] ^ flag, &is_left);
      left[j] = __ballot_sync(kAllLanes, Has(j) && is_left);
      begins[j] = __ballot_sync(kAllLanes, flag != 0);
    }
  }

  /** @brief Counts and flags of the part, whose first entries have nothing before them; sums are
   *         left to the caller. */
  [[nodiscard]] __device__ SplitPrefix Count() {
    SplitPrefix p = SplitPrefix::None();
    p.n = n;
    SideFlags flags{0, 0};
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      p.n_left += __popc(left[j]);
      begins[j] = flags.Pass(left[j], begins[j]);
    }
    p.flags = flags.Bits();
    return p;
  }
};

/** @brief A warp's entries in shared memory, left ones first. Read eight neighbours a lane. */
struct WarpEntries {
  alignas(16) EntryGradient gpair[kWarpEntries];  // read two at a time; see Swizzled()
  std::uint32_t places[kWarpEntries];             // PlaceWord
  FixedSum before[32];                            // of the lanes' slots

  [[nodiscard]] __device__ EntryGradient& At(std::uint32_t slot) { return gpair[Swizzled(slot)]; }
  /** @brief The lane's k-th slot. */
  [[nodiscard]] __device__ FixedSum Get(int k) const {
    return Quantiser::FromUnits(gpair[Swizzled(threadIdx.x % 32 * kSplitItems + k)].units);
  }
  /** @brief The lane's slots, in units. */
  __device__ void Load(GradientPair (&out)[kSplitItems]) const {
#pragma unroll
    for (int k = 0; k < kSplitItems; k += 2) {
      std::uint32_t const slot = threadIdx.x % 32 * kSplitItems + k;
      float4 two = *reinterpret_cast<float4 const*>(gpair + Swizzled(slot));
      out[k] = {two.x, two.y};
      out[k + 1] = {two.z, two.w};
    }
  }
  /** @brief Where a slot lies: pairs of slots are permuted among eight, so that lanes meet in no
   *         bank, whether they read neighbours or eight slots each. */
  [[nodiscard]] __device__ static std::uint32_t Swizzled(std::uint32_t slot) {
    static_assert(kSplitItems == 8);
    return slot ^ (slot >> 4 & 7) << 1;
  }

  /** @brief Begin to read gradients, in the order of the entries; those past the n-th are zero. */
  __device__ void LoadAsync(EntryGradient const* from, int n) {
    int const lane = threadIdx.x % 32;
    if (n == kWarpEntries) {
#pragma unroll
      for (int j = 0; j < kSplitItems; ++j) {
        __pipeline_memcpy_async(gpair + j * 32 + lane, from + j * 32 + lane, sizeof(EntryGradient));
      }
    } else {
      for (int i = lane; i < kWarpEntries; i += 32) {
        std::size_t zeros = i < n ? 0 : sizeof(EntryGradient);
        __pipeline_memcpy_async(gpair + i, from + (i < n ? i : 0), sizeof(EntryGradient), zeros);
      }
    }
    __pipeline_commit();
  }
  /** @brief The same from gradients by row, as they are. @param tile Its places are rows, some row
   *         past the end. */
  __device__ void GatherAsync(GradientPair const* by_row, WarpTile const& tile) {
    int const lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::size_t zeros = tile.Has(j) ? 0 : sizeof(EntryGradient);
      __pipeline_memcpy_async(gpair + j * 32 + lane, by_row + PlaceWord::Place(tile.place[j]),
                              sizeof(EntryGradient), zeros);
    }
    __pipeline_commit();
  }

  /**
   * @brief Puts entries in order, once their gradients are there.
   * @param tile     Counted.
   * @param in_units in_units(g): of gradients as they were read.
   */
  template <typename UnitsFn>
  __device__ void Arrange(WarpTile const& tile, std::uint32_t n_left, UnitsFn&& in_units) {
    std::uint32_t const lane = threadIdx.x % 32;
    EntryGradient own[kSplitItems];
    __pipeline_wait_prior(0);  // each lane reads what it asked for
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      own[j] = {in_units(gpair[j * 32 + lane].units)};
    }
    __syncwarp();
    std::uint32_t lefts{0};
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::uint32_t rank = lefts + __popc(tile.left[j] & LanesBelow());
      bool is_left = (tile.left[j] >> lane & 1u) != 0;
      std::uint32_t slot = is_left ? rank : n_left + j * 32 + lane - rank;
      At(slot) = own[j];
      places[slot] = tile.place[j] | (tile.begins[j] << (31 - lane) & PlaceWord::kNewValue);
      lefts += __popc(tile.left[j]);
    }
    __syncwarp();
  }
};
}  // namespace gpu_exact
