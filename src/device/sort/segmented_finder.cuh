/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Finds splits of deeper levels: entries are sorted by node, then by feature and value, so
 *        that a plain segmented scan serves each node and feature.
 *
 * Two passes over the entries: sums of the segments that cross tiles, then the search. Work: open
 * entries, whatever the number of nodes and features. Extra memory: 120 B a tile of 1,024 entries.
 */
#pragma once

#include "device/level/level_ref.cuh"
#include "device/sort/entries.cuh"

namespace gpu_exact {
/** @brief Tells kernels where the entries of each open node lie; closed nodes leave holes between
 *         them. */
struct NodeRangesRef {
  EntryRange const* ranges;   // shape: (n_nodes), by node
  EntryIdx const* open_ends;  // open entries up to and including the node, shape: (n_nodes)
  LevelNode n_nodes;
  EntryIdx max_open;  // at least NumOpen(), for grids: the host may not know that yet

  /** @brief Count the entries of all open nodes. */
  __device__ EntryIdx NumOpen() const { return n_nodes == 0 ? 0 : open_ends[n_nodes - 1]; }
  /** @brief Find the node of the i-th open entry. */
  __device__ LevelNode NodeOf(EntryIdx i) const {
    auto ends = open_ends;
    return PartitionPoint(LevelNode{0}, n_nodes, [=](LevelNode b) { return ends[b] > i; });
  }
  /** @brief Give the position of the i-th open entry, which is of the node. */
  __device__ EntryIdx Position(LevelNode level_node, EntryIdx i) const {
    return ranges[level_node].end - (open_ends[level_node] - i);
  }
};

/** @brief Sums a tile's outer segments: up to its first head, and from its last one. */
struct OuterSums {
  FixedSum left;
  FixedSum right;
  std::uint32_t has_head;   // 0: one segment crosses the tile, left and right are the whole
  std::uint32_t continues;  // the first entry is of the same segment as the one before the tile

  /** @brief Add the next run of entries. */
  GPU_EXACT_HD friend OuterSums operator+(OuterSums const& a, OuterSums const& b) {
    return {a.has_head != 0 ? a.left : a.left + b.left,
            b.has_head != 0 ? b.right : a.right + b.right, a.has_head | b.has_head, a.continues};
  }
};

class SegmentedFinder {
 public:
  /**
   * @brief Offer every candidate of the level. Does not wait.
   */
  void Find(LevelRef const& level, EntriesRef const& entries, NodeRangesRef const& ranges);

 private:
  DeviceBuffer<OuterSums> outer_{"outer sums of tiles"};
  DeviceBuffer<OuterSums> before_{"sums before tiles"};
  DeviceBuffer<OuterSums> after_{"sums after tiles"};
};
}  // namespace gpu_exact
