/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Lends rows in the order of the open nodes to kernels.
 */
#pragma once

#include <type_traits>

#include "core/level.h"
#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Holds a LevelNode in two bytes, so that those of 20 million rows stay in the cache. */
using ShortLevelNode = std::uint16_t;
inline constexpr ShortLevelNode kNowhere = 0xffffu;
/** @brief Limits the nodes of a level whose rows can be followed. */
inline constexpr LevelNode kMostFollowed = kNowhere;
/** @brief Limits the nodes of which a block knows something each, in 16 KiB of shared memory. */
inline constexpr LevelNode kMostByRow = 4096;

/** @brief Lends the trained rows of the open nodes to kernels, node by node. */
struct RowsRef {
  RowIdx const* rows;          // the row in each slot
  GradientUnits const* units;  // and its gradients
  RowRange const* nodes;       // slots of each open node, by node, shape: (n_nodes); side by side
  // For those who come from sorted columns, by row of the table, not by slot:
  ShortLevelNode const* node_of;  // kNowhere: no open node; of at most kMostFollowed nodes
  GradientUnits const* units_of_row;
  bool are_all;  // whether one open node has every row of the table

  /** @brief Find the open node of a slot. @param from The node of an earlier slot. */
  [[nodiscard]] __device__ LevelNode NodeOf(RowIdx slot, LevelNode n_nodes, LevelNode from) const {
    auto ranges = nodes;
    if (from < n_nodes && ranges[from].end > slot) {  // most neighbours are of one node
      return from;
    }
    return PartitionPoint(from, n_nodes, [=](LevelNode k) { return ranges[k].end > slot; });
  }
};

/**
 * @brief Deals out slots so that nodes are worked on side by side.
 *
 * A node's rows ascend, so that the k-th parts of nodes alike in size are of the same rows: worked
 * on at a time, they share what the cache has of those rows' values and positions.
 */
struct SlotTurns {
  static constexpr std::uint32_t kMost = 64;

  [[nodiscard]] __host__ __device__ static std::uint32_t Streams(LevelNode n_nodes) {
    return n_nodes < kMost ? (n_nodes == 0 ? 1 : n_nodes) : kMost;
  }
  /** @brief Count the blocks for n_slots, a multiple of the streams. */
  [[nodiscard]] static std::uint64_t Grid(std::uint64_t n_slots, std::uint64_t of_block,
                                          LevelNode n_nodes) {
    std::uint64_t const streams = Streams(n_nodes);
    return CeilDiv(CeilDiv(n_slots, of_block), streams) * streams;
  }
  /** @brief Give the part of the slots that this block works on. */
  [[nodiscard]] __device__ static std::uint64_t Part(LevelNode n_nodes) {
    std::uint32_t const streams = Streams(n_nodes);
    return std::uint64_t{blockIdx.x % streams} * (gridDim.x / streams) + blockIdx.x / streams;
  }
};

/** @brief Give the j-th slot of a thread: those of a warp are neighbours. */
template <int kThreads, int kSlots>
__device__ inline std::uint64_t SlotOf(LevelNode n_nodes, int j) {
  std::uint64_t const warp = SlotTurns::Part(n_nodes) * (kThreads / 32) + threadIdx.x / 32;
  return (warp * kSlots + j) * 32 + threadIdx.x % 32;
}

/**
 * @brief Call fn(std::integral_constant<int, n>()), n slots for each thread: kSlots, as neighbours
 *        share what they look up, or one where with more of them multiprocessors would stay idle.
 */
template <int kSlots, typename FnT>
void WithSlots(std::uint64_t n_slots, FnT&& fn) {
  constexpr std::uint64_t kFewSlots = std::uint64_t{1} << 18;
  if (n_slots <= kFewSlots) {
    fn(std::integral_constant<int, 1>{});
  } else {
    fn(std::integral_constant<int, kSlots>{});
  }
}

/**
 * @brief Call fn(j, slot, node) for each slot of the thread, all lanes of a warp together.
 *
 * Past the last slot the node is n_nodes. Grid: SlotTurns::Grid().
 */
template <int kThreads, int kSlots, typename FnT>
__device__ void ForEachSlot(RowsRef const& rows, LevelNode n_nodes, RowIdx n_slots, FnT&& fn) {
  LevelNode node{0};
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    std::uint64_t const slot = SlotOf<kThreads, kSlots>(n_nodes, j);
    node = slot < n_slots ? rows.NodeOf(static_cast<RowIdx>(slot), n_nodes, node) : n_nodes;
    fn(j, slot, node);
  }
}
}  // namespace gpu_exact
