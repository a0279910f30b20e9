/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lends kernels the work on some nodes of a level, cut into slices, one a block.
 */
#pragma once

#include "device/histogram/build/searched_node.cuh"
#include "device/runtime/uploader.cuh"
#include "plan/load_balancer.h"

namespace gpu_exact {
/** @brief Names a histogram to search, with the sibling that is what the parent has left. */
struct HistogramSearch {
  static constexpr SearchedIdx kNone = 0xffffffffu;

  SearchedIdx node;
  SearchedIdx larger;  // or kNone
};

struct WorkRef {
  BuiltNode const* nodes;    // shape: (n_nodes + 1)
  WorkOffset const* slices;  // where each begins, shape: (n_slices + 1)
  std::uint32_t n_nodes;
  std::uint32_t n_groups;
  std::uint32_t n_slices;

  [[nodiscard]] __device__ RowIdx NumRows(std::uint32_t built) const {
    return static_cast<RowIdx>(nodes[built + 1].before - nodes[built].before);
  }
  /** @brief Give the beginning of the segment after the point's. */
  [[nodiscard]] __device__ WorkOffset Next(WorkOffset const& point) const {
    return point.group + 1 < n_groups ? WorkOffset{point.built, point.group + 1, 0}
                                      : WorkOffset{point.built + 1, 0, 0};
  }
  /** @brief Tell whether a slice clears the segment it begins in, to which several blocks add: the
   *         first one that begins within it does, or its first part. */
  [[nodiscard]] __device__ bool Clears(std::uint32_t slice) const {
    WorkOffset const point = slices[slice];
    if (point.row == 0) {
      return nodes[point.built].part == NodePart::kFirst;
    }
    WorkOffset const before = slices[slice == 0 ? 0 : slice - 1];
    return slice == 0 || before.row == 0 || !before.SameSegment(point);
  }
};

/** @brief Plans work on the host: on the rows of some nodes, and on histograms once these are built. */
struct PlannedWork {
  std::vector<BuiltNode> nodes;  // as LoadBalancer wants them
  std::vector<WorkOffset> slices;
  std::vector<HistogramSearch> searches;  // of histograms, these nodes' among them
  std::uint32_t n_nodes;                  // or parts of them, that the slices are of
  std::size_t d_nodes;                    // their numbers in the upload
  std::size_t d_slices;
  std::size_t d_searches;

  /** @brief Adds a node. */
  void Add(SearchedIdx node, RowRange const& rows) {
    if (nodes.empty()) {
      nodes.push_back({0, 0, 0});
    }
    auto const before = nodes.back().before;
    nodes.back() = {rows.begin, node, before};
    nodes.push_back({0, 0, before + rows.end - rows.begin});
  }
  /** @brief Cuts the work for blocks that add up rows. */
  void Slice(LoadBalancer const& slicer, BuildLimits const& limits, Uploader* uploader) {
    auto const parts = nodes.empty() ? nodes : slicer.Parts(nodes, limits);
    if (parts.empty()) {
      this->Slice(slicer, limits.n_blocks, LoadBalancer::kMinSlice, uploader);
    } else {
      slices = slicer.Segments(static_cast<std::uint32_t>(parts.size() - 1));
      this->AddTo(uploader, parts);
    }
  }
  /** @brief Cuts the work into slices of equal cost; none has no slices. */
  void Slice(LoadBalancer const& slicer, std::uint32_t max_slices, std::uint64_t min_slice,
             Uploader* uploader) {
    slices = nodes.empty() || slicer.NumGroups() == 0 ? std::vector<WorkOffset>{}
                                                      : slicer.Slices(nodes, max_slices, min_slice);
    this->AddTo(uploader, nodes);
  }
  void AddTo(Uploader* uploader, std::vector<BuiltNode> const& of_slices) {
    n_nodes = static_cast<std::uint32_t>(of_slices.size()) - 1;
    d_nodes = uploader->Add(of_slices);
    d_slices = uploader->Add(slices);
  }
  [[nodiscard]] WorkRef Ref(LoadBalancer const& slicer, Uploader const& uploader) const {
    return {uploader.Data<BuiltNode>(d_nodes), uploader.Data<WorkOffset>(d_slices), n_nodes,
            slicer.NumGroups(), static_cast<std::uint32_t>(slices.size() - 1)};
  }
};
}  // namespace gpu_exact
