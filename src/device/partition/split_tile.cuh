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
#include "src/device/runtime.cuh"

namespace gpu_exact {
inline constexpr int kSplitItems = 8;
inline constexpr int kWarpEntries = 32 * kSplitItems;
inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

/** @brief An entry's row: a place below 2^31; the top bit says that a value begins here. */
struct PlaceWord {
  static constexpr std::uint32_t kNewValue = 0x80000000u;
};

/** @brief Entries sorted by value, in columns; a structure of arrays. */
struct EntriesRef {
  std::uint32_t* places;  // PlaceWord
  GradientPair* gpair;    // carried along
};

/** @brief The gradients of a warp's entries, to read eight neighbours a lane. */
struct WarpGradients {
  static constexpr int kSize = kWarpEntries + kWarpEntries / 32;
  float grad[kSize];
  float hess[kSize];

  /** @brief Every 32nd word is skipped: no two lanes meet in a bank. */
  __device__ static int At(int i) { return i + i / 32; }
  __device__ void Put(int i, GradientPair const& g) {
    grad[At(i)] = g.grad;
    hess[At(i)] = g.hess;
  }
  [[nodiscard]] __device__ GradientPair Get(int i) const { return {grad[At(i)], hess[At(i)]}; }
};

/** @brief One bit for each of a lane's eight neighbouring items, from ballots over striped ones. */
__device__ inline std::uint32_t LaneBits(std::uint32_t const (&ballots)[kSplitItems]) {
  unsigned const lane = threadIdx.x % 32;
  std::uint32_t word{0};
#pragma unroll
  for (unsigned j = 0; j < kSplitItems; ++j) {
    // A mask: a choice would be one of addresses, and the ballots then lie in memory.
    word |= ballots[j] & -static_cast<std::uint32_t>(lane / 4 == j);
  }
  return word >> (lane % 4 * 8) & 0xffu;
}

__device__ inline std::uint32_t LanesBelow() { return (1u << threadIdx.x % 32) - 1; }

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

  /** @brief Reads entries [begin, begin + n). */
  __device__ void Load(EntriesRef const& entries, EntryIdx begin) {
    unsigned const lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      place[j] = Has(j) ? entries.places[begin + j * 32 + lane] : 0;
    }
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      gpair[j] = Has(j) ? entries.gpair[begin + j * 32 + lane] : GradientPair{0.0f, 0.0f};
    }
  }

  /** @brief Moves places to the children. */
  __device__ void Move(ChildPlaces const& children) {
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      std::uint32_t flag = place[j] & PlaceWord::kNewValue;
      bool is_left{false};
      RowIdx to = Has(j) ? children.Of(place[j] ^ flag, &is_left) : 0;
      place[j] = to | flag;
      left[j] = __ballot_sync(kAllLanes, is_left);
      value[j] = __ballot_sync(kAllLanes, flag != 0);
    }
  }

  /** @brief Counts and flags of the part; sums are left to the caller. */
  [[nodiscard]] __device__ SplitPrefix Count() const {
    SplitPrefix p = SplitPrefix::None();
    p.n = n;
    bool new_left{false}, new_right{false};
#pragma unroll
    for (int j = 0; j < kSplitItems; ++j) {
      p.n_left += __popc(left[j]);
      new_left = After(left[j], value[j], new_left);
      new_right = After(Valid(j) & ~left[j], value[j], new_right);
    }
    p.flags = (new_left ? SplitPrefix::kNewLeft : 0) | (new_right ? SplitPrefix::kNewRight : 0);
    return p;
  }

  [[nodiscard]] __device__ std::uint32_t Valid(int j) const {
    int rest = n - j * 32;
    return rest >= 32 ? kAllLanes : rest <= 0 ? 0 : (1u << rest) - 1;
  }

  /** @brief Whether a value begins after the last of a child's entries. */
  __device__ static bool After(std::uint32_t members, std::uint32_t values, bool before) {
    if (members == 0) {
      return before || values != 0;
    }
    int last = 31 - __clz(members);
    return (values >> last >> 1) != 0;
  }
  /** @brief Whether a value begins after the child's entry before this lane's, up to the lane's. */
  __device__ static bool UpToLane(std::uint32_t members, std::uint32_t values, bool before) {
    std::uint32_t earlier = members & LanesBelow();
    std::uint32_t up_to = values & (LanesBelow() * 2 + 1);
    if (earlier == 0) {
      return before || up_to != 0;
    }
    int last = 31 - __clz(earlier);
    return (up_to >> last >> 1) != 0;
  }
};
}  // namespace gpu_exact
