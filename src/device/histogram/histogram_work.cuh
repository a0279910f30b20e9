/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The work on some nodes of a level, cut into slices, one a block, as kernels see it.
 */
#pragma once

#include "src/device/histogram/binned_columns.cuh"
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
  /** @brief The first slice that begins within the segment in which this one begins. */
  [[nodiscard]] __device__ std::uint32_t FirstCut(std::uint32_t slice) const {
    auto all = slices;
    WorkPoint point = slices[slice];
    return FirstIndex(std::uint32_t{0}, slice, [=](std::uint32_t s) {
      return all[s].row != 0 && all[s].SameSegment(point);
    });
  }
};

/** @brief Owns the slices of one kernel's work. */
class HistogramWork {
 public:
  explicit HistogramWork(BinnedColumns const& columns);

  /** @brief Does not wait. @param nodes As WorkSlicer::Slices wants them. */
  [[nodiscard]] WorkRef Plan(std::vector<BuiltNode> const& nodes, std::uint32_t max_slices);
  [[nodiscard]] std::uint64_t Bytes() const { return nodes_.Bytes() + slices_.Bytes(); }

 private:
  WorkSlicer slicer_;
  UploadBuffer<BuiltNode> nodes_{"nodes to add up"};
  UploadBuffer<WorkPoint> slices_{"slices of the histograms' work"};
};
}  // namespace gpu_exact
