/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tables made on the device from hashes of (row, column): nothing is copied, and a shape is
 *        the same on every machine.
 */
#pragma once

#include <string>

#include "device/runtime/runtime.cuh"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact::bench {
/** @brief A shape as in datasets/: the names and sizes are the same, the values are not. */
struct Shape {
  std::string name;
  RowIdx n_rows;
  FeatureIdx n_features;
  std::int32_t max_depth;
  std::uint32_t distinct;         // values a column; 0: continuous; kVaried: 2 to 65,536
  float missing;                  // part of the values
  FeatureIdx missing_together;    // columns that are missing at once, as those of a station
  std::uint32_t entries_per_row;  // 0: by `missing`; else so many, of Zipf frequency
  float signal{2.0f};             // that gradients of a logistic loss have; 0: labels at random
};
inline constexpr std::uint32_t kVaried = ~0u;

/** @throw std::invalid_argument where there is no such shape; names those that there are. */
[[nodiscard]] Shape FindShape(std::string const& name);

/** @brief A table in device memory, and gradients that its values explain in part. */
class DeviceTable {
 public:
  /** @brief Makes both. Waits. */
  explicit DeviceTable(Shape const& shape);

  [[nodiscard]] CsrView View() const;
  [[nodiscard]] GradientView Gradients() const { return {gradients_.Data(), Memory::kDevice}; }
  /** @brief Add the tree built last to the model that the gradients are of. Waits. */
  void Boost(TreeBuilder* builder, GrownTree const& tree);
  [[nodiscard]] EntryIdx NumEntries() const { return n_entries_; }
  /** @brief Free the table; the gradients stay. */
  void ReleaseEntries();

 private:
  DeviceBuffer<EntryIdx> offsets_{"row offsets"};
  DeviceBuffer<CsrEntry> entries_{"table"};
  DeviceBuffer<GradientPair> gradients_{"gradients"};
  DeviceBuffer<float> labels_{"labels"};
  DeviceBuffer<float> margins_{"margins"};
  DeviceBuffer<float> weights_{"weights of nodes"};
  DeviceBuffer<NodeIdx> positions_{"positions"};
  EntryIdx n_entries_{0};
  RowIdx n_rows_;
  FeatureIdx n_features_;
};
}  // namespace gpu_exact::bench
