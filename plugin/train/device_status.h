/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Asks ProbeDevice() once in a process for each device where the answer lasts, and never in
 *        a forked process whose parent had used the GPU.
 */
#pragma once

#include "gpu_exact/device.h"

namespace gpu_exact {
/**
 * @brief Give the status of a device. The first call makes a CUDA context; what lasts is asked
 *        once.
 *
 * What may change, such as a driver that is starting or a GPU that is busy, is asked again, but not
 * before 20 times as long has gone by as the question took.
 *
 * @param ordinal The CUDA device, or -1 for the first visible one.
 */
[[nodiscard]] DeviceStatus StatusOf(int ordinal);

/**
 * @brief Tell whether this process was forked after its parent had used the GPU through this
 *        library.
 *
 * What the parent has on the device can neither be used nor freed here: no CUDA call may be made.
 */
[[nodiscard]] bool ForkedAfterCuda();
}  // namespace gpu_exact
