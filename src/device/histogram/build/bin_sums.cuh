/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Defines what a histogram adds up in each bin, and histograms in global memory.
 */
#pragma once

#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
/** @brief Sums the rows of one bin. */
struct BinSum {
  FixedSum sum;
  std::uint32_t magnitude;  // Magnitude of the gradients; 0 where no bin is a range
};

/** @brief Lends bins in global memory. */
struct BinSums {
  FixedSum* sums;             // aligned to 16 B
  std::uint32_t* magnitudes;  // nullptr: no bin is a range

  [[nodiscard]] __device__ BinSums At(std::uint64_t bin) const {
    return {sums + bin, magnitudes == nullptr ? nullptr : magnitudes + bin};
  }
  [[nodiscard]] __device__ BinSum Load(std::uint64_t bin) const {
    longlong2 const sum = *reinterpret_cast<longlong2 const*>(sums + bin);
    return {{sum.x, sum.y}, magnitudes == nullptr ? 0 : magnitudes[bin]};
  }
  __device__ void Store(std::uint64_t bin, BinSum const& value) const {
    *reinterpret_cast<longlong2*>(sums + bin) = {value.sum.grad, value.sum.hess};
    if (magnitudes != nullptr) {
      magnitudes[bin] = value.magnitude;
    }
  }
  /** @brief Add in any order. */
  __device__ void Add(std::uint64_t bin, BinSum const& value) const {
    AtomicAdd(sums + bin, value.sum);
    if (magnitudes != nullptr && value.magnitude != 0) {
      atomicAdd(magnitudes + bin, value.magnitude);
    }
  }
};
}  // namespace gpu_exact
