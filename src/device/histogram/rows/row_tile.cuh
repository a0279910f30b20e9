/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Cuts the rows of a level's nodes into tiles, one a block. A tile is of one node.
 */
#pragma once

#include <type_traits>

#include "device/level/rows_ref.cuh"

namespace gpu_exact {
/**
 * @brief Names the rows of a block: kSlots neighbours of those that its warps have, of one node.
 *
 * Node b's tiles begin at number begin / kRows + b: so it has enough of them, and some are empty, as are those
 * of slots between nodes. Tiles of up to kStreams parts of the level are worked on side by side: those of nodes alike in size are of
 * the same rows, and share what the cache has of their values. For that a right child is read from its end:
 * its rows descend, as the partitioner fills it from there.
 */
template <int kThreads, int kSlots>
struct RowTile {
  static constexpr RowIdx kRows = kThreads * kSlots;
  static constexpr std::uint32_t kStreams = 64;

  LevelNode node;
  RowRange slots;  // of the node
  RowIdx first;    // rows of the node before the tile's

  [[nodiscard]] static std::uint64_t Grid(RowIdx n_slots, LevelNode n_nodes) {
    std::uint64_t const streams = Streams(n_nodes);
    return CeilDiv(n_slots / kRows + std::uint64_t{n_nodes}, streams) * streams;
  }
  /** @param rows Of nodes that begin in their order. */
  __device__ RowTile(RowsRef const& rows, LevelNode n_nodes) {
    std::uint32_t const streams = Streams(n_nodes);
    std::uint64_t const tile =
        std::uint64_t{blockIdx.x % streams} * (gridDim.x / streams) + blockIdx.x / streams;
    auto const first_tile = [nodes = rows.nodes](LevelNode b) {
      return nodes[b].begin / kRows + std::uint64_t{b};
    };
    node = WarpPartitionPoint(LevelNode{1}, n_nodes,
                              [&](LevelNode b) { return first_tile(b) > tile; }) -
           1;
    slots = rows.nodes[node];
    // Tiles before the first node's come out past its end, as 2^32 are past all rows.
    first = static_cast<RowIdx>((tile - first_tile(node)) * kRows);
  }

  [[nodiscard]] __device__ bool IsEmpty() const { return first >= slots.Size(); }
  [[nodiscard]] __device__ RowIdx Size() const { return min(kRows, slots.Size() - first); }
  /** @brief Number the thread's j-th row in the tile. */
  [[nodiscard]] __device__ RowIdx InTile(int j) const {
    return (threadIdx.x / 32 * kSlots + j) * 32 + threadIdx.x % 32;
  }
  [[nodiscard]] __device__ bool Has(int j) const { return first + this->InTile(j) < slots.Size(); }
  [[nodiscard]] __device__ RowIdx Slot(int j) const {
    RowIdx const i = first + this->InTile(j);
    return node % 2 == 0 ? slots.begin + i : slots.end - 1 - i;
  }

 private:
  [[nodiscard]] __host__ __device__ static std::uint32_t Streams(LevelNode n_nodes) {
    return n_nodes < kStreams ? n_nodes : kStreams;
  }
};

/**
 * @brief Call fn(std::integral_constant<int, n>()), n rows for each thread: kSlots, or one where with more
 *        of them multiprocessors would stay idle.
 */
template <int kSlots, typename FnT>
void WithSlots(std::uint64_t n_rows, FnT&& fn) {
  constexpr std::uint64_t kFewRows = std::uint64_t{1} << 18;
  if (n_rows <= kFewRows) {
    fn(std::integral_constant<int, 1>{});
  } else {
    fn(std::integral_constant<int, kSlots>{});
  }
}
}  // namespace gpu_exact
