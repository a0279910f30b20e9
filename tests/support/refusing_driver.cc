/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A libcuda.so.1 that cannot be started: the first calls of cuInit() return the numbers of the
 *        environment variable GPU_EXACT_CUINIT, such as "802,100", and all later ones the last.
 */
#include <cstdlib>

// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) {
  static char const* next = std::getenv("GPU_EXACT_CUINIT");
  char* end{nullptr};
  int const status = static_cast<int>(std::strtol(next, &end, 10));
  next = *end == ',' ? end + 1 : next;
  return status;
}
