/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The work on some nodes of a level, cut into slices, one a block, as kernels see it.
 */
#pragma once

#include "src/device/histogram/searched_node.cuh"
#include "src/histogram_plan.h"

namespace gpu_exact {
struct WorkRef {
  BuiltNode const* nodes;   // shape: (n_nodes + 1)
  WorkPoint const* slices;  // where each begins, shape: (n_slices + 1)
  std::uint32_t n_nodes;
  std::uint32_t n_groups;
  std::uint32_t n_slices;

  [[nodiscard]] __device__ RowIdx NumRows(std::uint32_t node) const {
    return static_cast<RowIdx>(nodes[node + 1].before - nodes[node].before);
  }
  /** @brief The beginning of the segment after the point's. */
  [[nodiscard]] __device__ WorkPoint Next(WorkPoint const& point) const {
    return point.group + 1 < n_groups ? WorkPoint{point.node, point.group + 1, 0}
                                      : WorkPoint{point.node + 1, 0, 0};
  }
  /** @brief Whether a slice begins within a segment, which then has several blocks. */
  [[nodiscard]] __device__ bool Cuts(std::uint32_t slice) const {
    return slice < n_slices && slices[slice].row != 0;
  }
};

/** @brief Work as the host plans it. */
struct PlannedWork {
  std::vector<BuiltNode> nodes;  // as WorkSlicer wants them
  std::vector<WorkPoint> slices;
  std::size_t d_nodes;  // their numbers in the arena
  std::size_t d_slices;

  /** @brief Adds a node. @param node Its index among the searched ones. */
  void Add(std::uint32_t node, RowRange const& rows) {
    if (nodes.empty()) {
      nodes.push_back({0, 0, 0});
    }
    auto const before = nodes.back().before;
    nodes.back() = {rows.begin, node, before};
    nodes.push_back({0, 0, before + rows.end - rows.begin});
  }
  /** @brief Cuts the work; none has no slices. */
  void Slice(WorkSlicer const& slicer, std::uint32_t max_slices, std::uint64_t min_slice,
             UploadArena* arena) {
    slices = nodes.empty() || slicer.NumGroups() == 0 ? std::vector<WorkPoint>{}
                                                      : slicer.Slices(nodes, max_slices, min_slice);
    d_nodes = arena->Add(nodes);
    d_slices = arena->Add(slices);
  }
  [[nodiscard]] WorkRef Ref(WorkSlicer const& slicer, UploadArena const& arena) const {
    return {arena.Data<BuiltNode>(d_nodes), arena.Data<WorkPoint>(d_slices),
            static_cast<std::uint32_t>(nodes.size() - 1), slicer.NumGroups(),
            static_cast<std::uint32_t>(slices.size() - 1)};
  }
};
}  // namespace gpu_exact
