/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of row_positions.cuh.
 */
#include "src/device/row_positions.cuh"

namespace gpu_exact {
namespace {
// one thread a row
__global__ void RemapKernel(NodeIdx const* positions, NodeIdx const* remap, RowIdx n_rows,
                            NodeIdx* out) {
  auto row = GlobalIdx();
  if (row < n_rows) {
    NodeIdx position = positions[row];
    out[row] = EncodePosition(remap[DecodePosition(position)], position >= 0);
  }
}
}  // namespace

RowPositions::RowPositions(RowIdx n_rows) : n_rows_{n_rows} { positions_.Reserve(n_rows); }

void RowPositions::Write(std::vector<NodeIdx> const& remap, Memory memory, NodeIdx* out_positions,
                         HostCopier* copier) {
  NodeIdx const* from = positions_.Data();
  if (!remap.empty()) {
    NodeIdx* to = memory == Memory::kDevice ? out_positions : out_positions_.Reserve(n_rows_);
    CopyAsync(remap_.Reserve(remap.size()), remap.data(), remap.size());
    LaunchN("Remap", RemapKernel, n_rows_, positions_.Data(), remap_.Data(), n_rows_, to);
    from = to;
  }
  if (memory == Memory::kHost) {
    copier->CopyToHost(out_positions, from, n_rows_);
  } else if (from != out_positions) {
    CopyAsync(out_positions, from, n_rows_);
  }
  Synchronize();  // remap goes
}
}  // namespace gpu_exact
