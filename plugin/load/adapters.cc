/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lists the adapters of this build. adapters.inc is written by CMake: lines of
 *        SERVES(release, function that gives its adapter).
 */
#include "load/adapter.h"

extern "C" {
#define SERVES(release, function) gpu_exact::Adapter const* function();
#include "adapters.inc"
#undef SERVES
}

namespace gpu_exact {
Adapter const* AdapterTo(std::string const& release) {
#define SERVES(served, function) \
  if (release == served) {       \
    return function();           \
  }
#include "adapters.inc"
#undef SERVES
  return nullptr;
}
}  // namespace gpu_exact
