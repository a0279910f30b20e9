/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Shortens ColumnsRef::FeatureOf on tables of many features, where it bisects long.
 *
 * Memory: an eighth of a byte a distinct value.
 */
#pragma once

#include "device/table/column_store.cuh"

namespace gpu_exact {
class FeatureHints {
 public:
  /** @brief Make the hints; none for a table of few features. Does not wait. */
  explicit FeatureHints(ColumnsRef const& columns);

  /** @brief Give ColumnsRef::feature_hints. */
  [[nodiscard]] FeatureIdx const* Data() const { return hints_.Data(); }

 private:
  DeviceBuffer<FeatureIdx> hints_{"feature hints"};
};
}  // namespace gpu_exact
