/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows in the order of the open nodes, as kernels see them.
 */
#pragma once

#include "src/device/runtime.cuh"
#include "src/level.h"

namespace gpu_exact {
/** @brief Slots of a node's rows: [begin, end). */
struct RowRange {
  RowIdx begin;
  RowIdx end;
};

/** @brief The trained rows of the open nodes, node by node. Borrowed by kernels. */
struct RowsRef {
  RowIdx const* rows;         // the row in each slot
  GradientPair const* gpair;  // and its gradients
  RowRange const* nodes;      // slots of each open node, by bucket, shape: (n_nodes); closed nodes
                              // leave holes between them

  /** @brief The open node of a slot; n_nodes, as many as there are, where it is in none. */
  [[nodiscard]] __device__ Bucket NodeOf(RowIdx slot, Bucket n_nodes) const {
    Bucket b = this->FirstNode(slot, n_nodes, 0);
    return this->Has(b, slot, n_nodes) ? b : n_nodes;
  }

  /** @brief The first open node that ends past a slot. @param from That of an earlier slot. */
  [[nodiscard]] __device__ Bucket FirstNode(RowIdx slot, Bucket n_nodes, Bucket from) const {
    auto ranges = nodes;
    if (from < n_nodes && ranges[from].end > slot) {  // most neighbours are of one node
      return from;
    }
    return FirstIndex(from, n_nodes, [=](Bucket k) { return ranges[k].end > slot; });
  }
  /** @brief Whether a slot is in its FirstNode(). */
  [[nodiscard]] __device__ bool Has(Bucket first, RowIdx slot, Bucket n_nodes) const {
    return first < n_nodes && nodes[first].begin <= slot;
  }
};

/** @brief The j-th slot of a thread: those of a warp are neighbours. */
template <int kThreads, int kSlots>
__device__ inline std::uint64_t SlotOf(int j) {
  std::uint64_t const warp = std::uint64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  return (warp * kSlots + j) * 32 + threadIdx.x % 32;
}

/** @brief Calls fn(j, slot, node) for each slot of the thread, all lanes of a warp together;
 *         where no open node has the slot, the node is n_nodes. */
template <int kThreads, int kSlots, typename FnT>
__device__ void ForEachSlot(RowsRef const& rows, Bucket n_nodes, RowIdx n_slots, FnT&& fn) {
  Bucket node{0};
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    std::uint64_t const slot = SlotOf<kThreads, kSlots>(j);
    bool is_open{false};
    if (slot < n_slots) {
      node = rows.FirstNode(static_cast<RowIdx>(slot), n_nodes, node);
      is_open = rows.Has(node, static_cast<RowIdx>(slot), n_nodes);
    }
    fn(j, slot, is_open ? node : n_nodes);
  }
}
}  // namespace gpu_exact
