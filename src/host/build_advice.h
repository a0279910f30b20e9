/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Whether a GPU could run faster kernels than a build has for it.
 */
#pragma once

#include <string>

namespace gpu_exact {
/** @brief Compute capability, as 10 * major + minor, from which on kernels use clusters of blocks and are
 *         made ready while the one before ends. Only kernels compiled for it, or for a later one, do. */
inline constexpr int kHopper = 90;

/**
 * @brief One sentence where another build would be faster; empty where this one is fine.
 *
 * @param name         Of the GPU.
 * @param capability   The GPU's, as kHopper.
 * @param compiled_for The capability that its kernels in this build were compiled for.
 */
[[nodiscard]] std::string AdviseBuild(std::string const& name, int capability, int compiled_for);
}  // namespace gpu_exact
