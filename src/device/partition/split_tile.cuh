/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief A tile of entries of one node and feature on its way to the node's children: each warp
 *        holds 256 neighbours, striped over its lanes, and knows by ballots which go left and where
 *        values begin.
 */
#pragma once

#include "src/device/fixed_sum.cuh"
#include "src/device/partition/sides.cuh"
#include "src/device/partition/split_prefix.cuh"
#include "src/device/warp.cuh"

namespace gpu_exact {
inline constexpr int kSplitItems = 8;
inline constexpr int kWarpEntries = 32 * kSplitItems;

/** @brief An entry's row: a place below 2^31; the top bit says that a value begins here. */
struct PlaceWord {
  static constexpr std::uint32_t kNewValue = 0x80000000u;
};

/** @brief A gradient pair that moves in one piece. */
struct alignas(8) EntryGradient {
  GradientPair pair;
};

/** @brief Entries sorted by value, in columns; a structure of arrays. */
struct EntriesRef {
  std::uint32_t* places;  // PlaceWord
  EntryGradient* gpair;   // carried along
};

/**
 * @brief A warp's entries, left ones first: their gradients in fixed point, and which are
 *        candidates. Read eight neighbours a lane.
 */
struct WarpEntries {
  static constexpr int kStride = kSplitItems + 1;  // no two lanes meet in a bank
  FixedSum sums[32 * kStride];
  std::uint8_t candidates[kWarpEntries];

  __device__ void Put(std::uint32_t slot, FixedSum const& sum, bool candidate) {
    sums[slot + slot / kSplitItems] = sum;
    candidates[slot] = candidate ? 1 : 0;
  }
  /** @brief The lane's k-th slot. */
  [[nodiscard]] __device__ FixedSum Get(int k) const {
    return sums[threadIdx.x % 32 * kStride + k];
  }
  /** @brief One byte for each of the lane's slots, 0 or 1. */
  [[nodiscard]] __device__ std::uint64_t Candidates() const {
    return reinterpret_cast<std::uint64_t const*>(candidates)[threadIdx.x % 32];
  }
};

/** @brief Whether a value begins after the last left and the last right entry so far. */
struct SideFlags {
  std::uint32_t left;  // 0 or 1
  std::uint32_t right;

  [[nodiscard]] __device__ std::uint32_t Bits() const {
    static_assert(SplitPrefix::kNewLeft == 1 && SplitPrefix::kNewRight == 2);
    return left | right << 1;
  }
  __device__ static SideFlags FromBits(std::uint32_t bits) { return {bits & 1, bits >> 1 & 1}; }

  /**
   * @brief Go past 32 neighbours.
   * @param lefts  Which of them go left, of the valid ones, which come first.
   * @param values Where a value of the node begins.
   * @return Which entries begin a value of their child.
   */
  __device__ std::uint32_t Pass(std::uint32_t lefts, std::uint32_t valid, std::uint32_t values) {
    return Begins(lefts, values, &left) | Begins(valid & ~lefts, values, &right);
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

/** @brief A warp's part of a tile. Item j of a lane is entry 32 j + lane of the part. */
struct WarpTile {
  int n;                             // entries of the part, 0 to 256
  std::uint32_t place[kSplitItems];  // PlaceWord; new places once they are moved
  GradientPair gpair[kSplitItems];
  std::uint32_t left[kSplitItems];   // ballots
  std::uint32_t value[kSplitItems];  // a value begins

  [[nodiscard]] __device__ bool Has(int j) const {
    return j * 32 + static_cast<int>(threadIdx.x % 32) < n;
  }
  [[nodiscard]] __device__ std::uint32_t Valid(int j) const {
    return __ballot_sync(kAllLanes, this->Has(j));
  }

  /** @brief Reads entries [begin, begin + n). */
  __device__ void Load(EntriesRef const& entries, EntryIdx begin) {
    auto places = entries.places + begin + threadIdx.x % 32;
    auto gradients = entries.gpair + begin + threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      place[j] = Has(j) ? places[j * 32] : 0;
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      gpair[j] = Has(j) ? gradients[j * 32].pair : GradientPair{0.0f, 0.0f};
    }
  }

  /** @brief All entries stay and go left: the root. */
  __device__ void Stay() {
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      left[j] = this->Valid(j);
      value[j] = __ballot_sync(kAllLanes, (place[j] & PlaceWord::kNewValue) != 0);
    }
  }

  /** @brief Moves places to the children. */
  __device__ void Move(ChildPlaces const& children) {
    SideWord words[kSplitItems];  // all are asked for before the first is used
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      words[j] = children.Word(place[j] & ~PlaceWord::kNewValue);
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::uint32_t flag = place[j] & PlaceWord::kNewValue;
      bool is_left{false};
      RowIdx to = children.Of(words[j], place[j] ^ flag, &is_left);
      place[j] = to | flag;
      left[j] = __ballot_sync(kAllLanes, Has(j) && is_left);
      value[j] = __ballot_sync(kAllLanes, flag != 0);
    }
  }

  /** @brief Counts and flags of the part; sums are left to the caller. */
  [[nodiscard]] __device__ SplitPrefix Count() const {
    SplitPrefix p = SplitPrefix::None();
    p.n = n;
    SideFlags flags{0, 0};
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      p.n_left += __popc(left[j]);
      static_cast<void>(flags.Pass(left[j], this->Valid(j), value[j]));
    }
    p.flags = flags.Bits();
    return p;
  }
};
}  // namespace gpu_exact
