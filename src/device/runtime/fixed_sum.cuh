/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Adds sums in fixed point among threads: no order of addition changes them.
 */
#pragma once

#include "core/quantise.h"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
/** @brief Add by an atomic operation; zeros take no access. */
__device__ inline void AtomicAdd(FixedSum* sum, FixedSum const& value) {
  auto add = [](std::int64_t* to, std::int64_t x) {
    if (x != 0) {
      atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
    }
  };
  add(&sum->grad, value.grad);
  add(&sum->hess, value.hess);
}

/** @brief Give what a lane has to all lanes of its warp. */
__device__ inline FixedSum Shuffle(FixedSum const& s, int lane) { return ThisWarp().shfl(s, lane); }
}  // namespace gpu_exact
