/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements row_positions.cuh.
 */
#include "device/level/row_positions.cuh"

namespace gpu_exact {
namespace {
// one thread a row
__global__ void RemapKernel(NodeIdx const* positions, NodeIdx const* remap, RowIdx n_rows,
                            NodeIdx* out) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row < n_rows) {
    NodeIdx position = positions[row];
    out[row] = EncodePosition(remap[DecodePosition(position)], position >= 0);
  }
}

/** @brief Tell whether kernels may write there: device memory that is the current device's. */
bool IsHere(void const* p) {
  int device{0};
  cudaPointerAttributes attributes{};
  EXACT_CUDA(cudaGetDevice(&device));
  EXACT_CUDA(cudaPointerGetAttributes(&attributes, p));
  return attributes.device == device;
}
}  // namespace

RowPositions::RowPositions(RowIdx n_rows) { positions_.Reserve(n_rows); }

void RowPositions::Write(RowIdx first, RowIdx n, std::vector<NodeIdx> const& remap, Memory memory,
                         NodeIdx* out_positions, HostCopier* copier) {
  NodeIdx const* from = positions_.Data() + first;
  if (!remap.empty() && n != 0) {
    bool const is_here = memory == Memory::kDevice && IsHere(out_positions);
    NodeIdx* to = is_here ? out_positions : out_positions_.Reserve(n);
    CopyFromHost(remap_.Reserve(remap.size()), remap.data(), remap.size());
    LaunchN("Remap", RemapKernel, n, from, remap_.Data(), n, to);
    from = to;
  }
  if (memory == Memory::kHost) {
    copier->CopyToHost(out_positions, from, n);
  } else if (from != out_positions) {
    CopyAsync(out_positions, from, n);
  }
  Synchronize();  // remap goes
}
}  // namespace gpu_exact
