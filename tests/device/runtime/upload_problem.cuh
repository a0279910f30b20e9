/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Small arrays to copy, and a stream that is busy.
 */
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
/** @brief Lengths in bytes: with the parameters of a launch, by a kernel, by a copy. */
inline constexpr std::size_t kLengths[] = {0,    1,    4,     6,     1020,  1024,
                                           1025, 1028, 65536, 65540, 300001};

inline std::vector<unsigned char> Numbers(std::size_t n, int first) {
  std::vector<unsigned char> numbers(n);
  std::iota(numbers.begin(), numbers.end(), static_cast<unsigned char>(first));
  return numbers;
}

// one thread; a template, so that several files may include it
template <typename CyclesT>
__global__ void SpinKernel(CyclesT n_cycles) {
  WaitForPreviousKernel();
  for (auto const begin = clock64(); clock64() - begin < n_cycles;) {
  }
}

/** @brief Keep the stream busy for about a tenth of a second. Does not wait. */
inline void KeepBusy() { Launch("Spin", SpinKernel<long long>, 1, 1, 200'000'000LL); }
}  // namespace gpu_exact
