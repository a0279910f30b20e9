/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_work.cuh.
 */
#include "src/device/histogram/histogram_work.cuh"

namespace gpu_exact {
HistogramWork::HistogramWork(BinnedColumns const& columns) {
  for (BinGroup const& group : columns.Groups()) {
    slicer_.AddGroup(group.n_elements, columns.NumRows(), group.n_bins);
  }
}

WorkRef HistogramWork::Plan(std::vector<BuiltNode> const& nodes, std::uint32_t max_slices) {
  std::vector<WorkPoint> const slices = slicer_.Slices(nodes, max_slices);
  return {nodes_.Upload(nodes), slices_.Upload(slices),
          static_cast<std::uint32_t>(nodes.size() - 1),
          slicer_.NumGroups(), static_cast<std::uint32_t>(slices.size() - 1)};
}
}  // namespace gpu_exact
