/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief For tests: what they call of the reference module. hooks.inc is written by CMake: lines of
 *        LAYOUT(function that gives an adapter, function that gives its hooks).
 */
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "load/binding.h"
#include "tests/support/layout_hooks.h"

extern "C" {
#define LAYOUT(adapter, hooks)         \
  gpu_exact::Adapter const* adapter(); \
  gpu_exact::LayoutHooks hooks();
#include "hooks.inc"
#undef LAYOUT
}

namespace {
gpu_exact::LayoutHooks Hooks() {
  auto const* bound = &gpu_exact::BindXGBoost();
#define LAYOUT(adapter, hooks) \
  if (bound == adapter()) {    \
    return hooks();            \
  }
#include "hooks.inc"
#undef LAYOUT
  throw std::logic_error{"An adapter without hooks."};
}
}  // namespace

extern "C" {
/** @brief 1: boosters made from now on pretend to be on a GPU; 0: no longer. */
__attribute__((visibility("default"))) void GpuExactPretendCuda(int enable) {
  Hooks().pretend_cuda(enable != 0);
}

/** @brief Calls of Communicator by the workers of this thread's communicator. */
__attribute__((visibility("default"))) void GpuExactReferenceAllGather(void* inout,
                                                                       std::size_t bytes) {
  if (auto const comm = Hooks().current_communicator()) {
    comm->AllGather(inout, bytes);
  }
}

__attribute__((visibility("default"))) void GpuExactReferenceAllReduce(std::uint64_t* inout,
                                                                       std::size_t n) {
  if (auto const comm = Hooks().current_communicator()) {
    comm->AllReduce(inout, n);
  }
}
}
