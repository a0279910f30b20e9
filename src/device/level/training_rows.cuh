/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells which rows a tree is trained on, and what is known of their gradients before it
 *        grows.
 */
#pragma once

#include <cstring>
#include <limits>

#include "core/quantise.h"
#include "device/runtime/runtime.cuh"

namespace gpu_exact {
/** @brief Lends rows with gradients on the device. */
struct TrainingRows {
  GradientPair const* gpair;     // shape: (n_rows)
  std::uint8_t const* included;  // 0: not sampled; nullptr: all are
  RowIdx n_rows;

  /** @brief Tell whether the row is trained on: neither left out nor deleted. */
  __device__ bool Has(RowIdx row) const {
    return !this->Deleted(row) && (included == nullptr || included[row] != 0);
  }
  __device__ bool Deleted(RowIdx row) const { return gpair[row].hess < 0.0f; }
};

/** @brief Summarises the rows of a new tree. */
struct RowSummary {
  std::uint32_t max_grad_bits;  // largest absolute gradient, as the bits of a float
  std::uint32_t max_hess_bits;
  std::uint32_t min_grad_bits;  // least absolute gradient but 0, its bits inverted; 0: none
  std::uint32_t min_hess_bits;
  std::uint32_t n_not_finite;
  std::uint32_t n_left_out;  // rows not sampled or deleted
  FixedSum magnitudes;       // absolute gradients and hessians of the others, by ByLargest()

  [[nodiscard]] GPU_EXACT_HD Quantiser ByLargest(RowIdx n_rows) const {
    return Quantiser::Make(FloatOf(max_grad_bits), FloatOf(max_hess_bits), n_rows);
  }
  /** @brief Tell whether the hessians of all trained rows are the largest one. */
  [[nodiscard]] bool HessiansAreAlike(RowIdx n_rows) const {
    FixedSum const largest = this->ByLargest(n_rows).Fixed({0.0f, FloatOf(max_hess_bits)});
    return magnitudes.hess == (n_rows - n_left_out) * largest.hess;
  }
  /** @brief Give the least absolute gradient that is not 0; infinity where all are. */
  [[nodiscard]] float LeastGrad() const { return LeastOf(min_grad_bits); }
  /** @brief Give the least positive hessian; infinity where there is none. */
  [[nodiscard]] float LeastHess() const { return LeastOf(min_hess_bits); }

 private:
  GPU_EXACT_HD static float FloatOf(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  }
  static float LeastOf(std::uint32_t inverted) {
    return inverted == 0 ? std::numeric_limits<float>::infinity() : FloatOf(~inverted);
  }
};

/** @brief Holds what blocks add up; all zero between passes. */
struct RowScanSums {
  RowSummary summary;
  FixedSum sum;
  std::uint32_t n_ended;  // blocks
};

/** @brief Makes passes over all rows. Results do not depend on the grid. */
class RowScan {
 public:
  /** @param max_blocks Limits the grids; the default is enough for any GPU. */
  explicit RowScan(std::uint64_t max_blocks = 132 * 16);

  /** @brief Summarise in two passes: magnitudes are summed by the largest. Waits for the device,
   *         once. */
  RowSummary Summarise(TrainingRows const& rows);
  /** @brief Sum the rounding errors of the trained rows. Waits. */
  [[nodiscard]] Rounding SumRounding(TrainingRows const& rows, Quantiser const& quantiser);
  /** @brief Tell whether any row is deleted, sampled or not. Waits. */
  bool AnyDeleted(TrainingRows const& rows);
  /** @brief Sum the gradients of the trained rows, to device memory. Does not wait. */
  void Sum(TrainingRows const& rows, Quantiser const& quantiser, FixedSum* out);

 private:
  [[nodiscard]] std::uint64_t Grid(RowIdx n_rows) const;

  std::uint64_t max_blocks_;
  DeviceBuffer<RowScanSums> sums_{"sums of rows"};
  PinnedBuffer<RowSummary> host_summary_{"row summary"};
  DeviceBuffer<Rounding> rounding_{"what rounding changes"};
  PinnedBuffer<std::uint32_t> any_deleted_{"whether rows are deleted"};
};
}  // namespace gpu_exact
