/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Reads what dlsym does not see: the full symbol table of an ELF file, and where calls go.
 */
#pragma once

#include <link.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace gpu_exact {
/**
 * @brief Reads an ELF file, opened once: what is read is of one file, whatever takes its place.
 *
 * Everything throws std::runtime_error with the path where the file cannot be read.
 */
class ElfFile {
 public:
  explicit ElfFile(std::string const& path);

  /**
   * @brief Tell whether a loaded object was made of this file, and not of one that was there
   *        before.
   *
   * Told by the build id. Where neither has one, by the place of each function that the file exports.
   *
   * @param handle What dlopen() returned.
   * @param object The same.
   */
  [[nodiscard]] bool IsThatOf(void* handle, link_map const& object);

  /**
   * @brief Find addresses of functions, relative to where the file is loaded; throws where it is
   *        stripped.
   *
   * One pass over the table.
   *
   * @param names Mangled names.
   * @return shape: (names.size()); 0 for a name that is not defined there.
   */
  [[nodiscard]] std::vector<std::uintptr_t> FunctionAddresses(
      std::vector<std::string> const& names);

 private:
  /** @brief Calls fn(symbol, name) for each function that a table of symbols defines. */
  template <typename FnT>
  void ForEachFunction(ElfW(Shdr) const& table, FnT&& fn);
  /** @brief Find the table of a type, or nullptr. */
  [[nodiscard]] ElfW(Shdr) const* FindTable(decltype(ElfW(Shdr)::sh_type) type) const;
  [[nodiscard]] std::string BuildId();
  template <typename T>
  [[nodiscard]] std::vector<T> Read(std::uint64_t offset, std::uint64_t n);

  std::string path_;
  std::ifstream file_;
  std::uint64_t size_{0};
  ElfW(Ehdr) header_{};
  std::vector<ElfW(Shdr)> sections_;
};

/**
 * @brief Find where a loaded object's own calls of another one's function go.
 *
 * That may be another definition than dlsym finds among what the object depends on: one that the
 * program, or an object that was loaded for all, had before comes first.
 *
 * @param handle What dlopen() returned.
 * @param object The same.
 * @return nullptr: it calls none that is not its own.
 */
[[nodiscard]] void* CalledFunction(void* handle, link_map const& object, char const* name);
}  // namespace gpu_exact
