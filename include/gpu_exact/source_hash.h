/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells which sources a binary was built of, so that no result is taken for that of others.
 */
#pragma once

namespace gpu_exact {
/** @brief Give the SHA-256 of all that is compiled, 64 hexadecimal digits:
 *         plugin/cmake/WriteSourceHash.cmake. */
[[nodiscard]] char const* SourceHash();
}  // namespace gpu_exact
