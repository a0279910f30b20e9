/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief ProbeDevice(), asked once in a process for each device.
 */
#pragma once

#include "gpu_exact/device.h"

namespace gpu_exact {
/**
 * @brief The status of a device. The first call makes a CUDA context; what lasts is asked once.
 *
 * @param ordinal The CUDA device, or -1 for the first visible one.
 */
[[nodiscard]] DeviceStatus StatusOf(int ordinal);
}  // namespace gpu_exact
