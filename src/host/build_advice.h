/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells whether another build would have faster kernels for a GPU.
 */
#pragma once

#include <string>

namespace gpu_exact {
/** @brief Sets the compute capability, 10 * major + minor, from which on kernels use clusters and
 *         are made ready while the one before ends. Only kernels compiled for it, or for a later
 *         one, do. */
inline constexpr int kHopper = 90;

/**
 * @brief Advise another build in one sentence where it would be faster; empty where this one is
 *        fine.
 *
 * @param name         The GPU's name.
 * @param capability   The GPU's compute capability, as kHopper.
 * @param compiled_for The capability that its kernels in this build were compiled for.
 */
[[nodiscard]] std::string AdviseBuild(std::string const& name, int capability, int compiled_for);
}  // namespace gpu_exact
