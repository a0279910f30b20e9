/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Reads what dlsym does not see: the full symbol table of an ELF file, and where calls go.
 */
#pragma once

#include <link.h>

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

/**
 * @brief Where a loaded object's own calls of another one's function go.
 *
 * That may be another definition than dlsym finds among what the object depends on: one that the
 * program, or an object that was loaded for all, had before comes first.
 *
 * @param handle Of dlopen().
 * @param object The same.
 * @return nullptr: it calls none that is not its own.
 */
[[nodiscard]] void* CalledFunction(void* handle, link_map const& object, char const* name);
}  // namespace gpu_exact
