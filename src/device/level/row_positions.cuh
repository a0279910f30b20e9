/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the node of every row, encoded as by EncodePosition.
 */
#pragma once

#include <vector>

#include "device/runtime/host_copy.cuh"
#include "device/runtime/runtime.cuh"
#include "gpu_exact/types.h"

namespace gpu_exact {
class RowPositions {
 public:
  explicit RowPositions(RowIdx n_rows);

  [[nodiscard]] NodeIdx* Data() const { return positions_.Data(); }
  /**
   * @brief Write those of the rows [first, first + n); see TreeBuilder::WritePositions.
   * @param memory Device memory may be another device's.
   * @param copier Copies from this device to host memory.
   */
  void Write(RowIdx first, RowIdx n, std::vector<NodeIdx> const& remap, Memory memory,
             NodeIdx* out_positions, HostCopier* copier);

 private:
  DeviceBuffer<NodeIdx> positions_{"row positions"};
  DeviceBuffer<NodeIdx> remap_{"leaves after pruning"};
  DeviceBuffer<NodeIdx> out_positions_{"row positions to copy"};
};
}  // namespace gpu_exact
