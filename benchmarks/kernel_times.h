/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Device time of every kernel that runs between Start and Stop, by CUPTI's activity records:
 *        nothing has to be added to the kernels or to their launches.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpu_exact::bench {
struct KernelTime {
  // <source file>:<kernel>, gpu_exact:<kernel> of a header, cub:<kernel>, with the template's flag
  // where it has one; or copies and fills of memory
  std::string name;
  std::uint64_t calls;
  double ms;
};

/** @brief Begin to record; the reason why not, where CUPTI is not usable, else an empty string. */
[[nodiscard]] std::string StartKernelTimes();

/** @brief Stop and hand out what was recorded, the longest first. The device must be idle. */
[[nodiscard]] std::vector<KernelTime> StopKernelTimes();
}  // namespace gpu_exact::bench
