/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Warns once in a process.
 */
#pragma once

#include <string>

namespace gpu_exact {
/**
 * @brief Tell each kind of text once in a process; one that nobody was to see has not been told.
 * @param kind What is told once: the text itself, or a word for texts that differ in numbers.
 */
void WarnOnce(std::string const& kind, std::string const& text);
}  // namespace gpu_exact
