/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Which rows a tree is trained on, and what is known of their gradients before it grows.
 */
#pragma once

#include "src/device/runtime.cuh"
#include "src/quantise.h"

namespace gpu_exact {
/** @brief Rows with gradients on the device; borrowed. */
struct TrainingRows {
  GradientPair const* gpair;     // shape: (n_rows)
  std::uint8_t const* included;  // 0: not sampled; nullptr: all are
  RowIdx n_rows;

  /** @brief Whether the row is trained on: neither left out nor deleted. */
  __device__ bool Has(RowIdx row) const {
    return !(gpair[row].hess < 0.0f) && (included == nullptr || included[row] != 0);
  }
};

/** @brief What one pass over the rows of a new tree finds out. */
struct RowSummary {
  std::uint32_t max_grad_bits;  // largest absolute gradient, as the bits of a float
  std::uint32_t max_hess_bits;
  std::uint32_t n_not_finite;
  std::uint32_t n_left_out;  // rows not sampled or deleted
};

/** @brief Passes over all rows. Results do not depend on the grid. */
class RowScan {
 public:
  /** @param max_blocks Of the grids, enough for any GPU. */
  explicit RowScan(std::uint64_t max_blocks = 132 * 16);

  /** @brief Waits for the device. */
  RowSummary Summarise(TrainingRows const& rows);
  /** @brief Sums of absolute gradients and of hessians of the trained rows. Waits. */
  FixedSum SumMagnitudes(TrainingRows const& rows, Quantiser const& quantiser);
  /** @brief Gradient sum of the trained rows, written to device memory. Does not wait. */
  void Sum(TrainingRows const& rows, Quantiser const& quantiser, FixedSum* out);

 private:
  [[nodiscard]] std::uint64_t Grid(RowIdx n_rows) const;

  std::uint64_t max_blocks_;
  DeviceBuffer<RowSummary> summary_{"row summary"};
  DeviceBuffer<FixedSum> magnitudes_{"sum of magnitudes"};
};
}  // namespace gpu_exact
