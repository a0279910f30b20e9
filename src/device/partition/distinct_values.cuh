/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The distinct values of columns that have few of them.
 */
#pragma once

#include <vector>

#include "gpu_exact/types.h"
#include "src/device/runtime.cuh"

namespace gpu_exact {
/** @brief Listed values, borrowed by kernels. */
struct DistinctRef {
  float const* values;           // by feature, ascending
  std::uint64_t const* offsets;  // shape: (n_features + 1)
};

/**
 * @brief Lists a column's distinct values where they are not more than its limit.
 *
 * Work: one pass over the entries, each of which looks its value up in the column's hash set. A
 * column leaves the pass once it has too many.
 *
 * Memory kept: 4 B a listed value, 8 B a feature; at most 20 B for each value of the limits before.
 */
class DistinctValues {
 public:
  /**
   * @brief Waits for the device.
   *
   * @param table  Device memory.
   * @param limits By feature; 0: the column is not looked at. A column without entries has none.
   */
  DistinctValues(CsrView const& table, std::vector<std::uint32_t> const& limits);

  [[nodiscard]] DistinctRef Ref() const { return {values_.Data(), offsets_.Data()}; }
  /** @brief Number of a column's values; 0: they are not listed. */
  [[nodiscard]] std::uint32_t NumValues(FeatureIdx f) const { return n_values_[f]; }
  [[nodiscard]] std::uint64_t Bytes() const { return values_.Bytes() + offsets_.Bytes(); }

 private:
  std::vector<std::uint32_t> n_values_;
  DeviceBuffer<float> values_{"distinct values"};
  DeviceBuffer<std::uint64_t> offsets_{"distinct values by feature"};
};
}  // namespace gpu_exact
