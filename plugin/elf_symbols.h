/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Reads what dlsym does not see: the full symbol table of an ELF file.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpu_exact {
/**
 * @brief Addresses of functions, relative to where the file is loaded.
 *
 * One pass over the table. Throws std::runtime_error where the file cannot be read or is stripped.
 *
 * @param names Mangled names.
 * @return shape: (names.size()); 0 for a name that is not defined there.
 */
[[nodiscard]] std::vector<std::uintptr_t> ReadFunctionAddresses(
    std::string const& path, std::vector<std::string> const& names);
}  // namespace gpu_exact
