/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares what is compiled once for each layout of XGBoost's classes. The rest of the
 *        module knows nothing of XGBoost's headers, and calls the adapter to the library of the
 *        process.
 */
#pragma once

#include <cstddef>
#include <string>

namespace gpu_exact {
using ImportTarget = void (*)();

/** @brief Lists the XGBoost functions that an adapter calls; written at build time from its
 *         objects. */
struct ImportTable {
  char const* const* names;  // mangled, shape: (n)
  ImportTarget* targets;     // where the stubs jump to, shape: (n)
  std::size_t n;
};

struct Adapter {
  ImportTable imports;  // to be bound before anything else is called
  void (*do_register)();
};

/** @brief Find the adapter to a release of XGBoost; nullptr: this build does not know its
 *         layout. */
[[nodiscard]] Adapter const* AdapterTo(std::string const& release);
}  // namespace gpu_exact
