/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Defines one stub for each XGBoost function that an adapter calls, and the adapter.
 *        imports.inc is written by cmake/WriteImports.cmake: lines of IMPORT(index, mangled name).
 */
#include <iterator>
#include <stdexcept>

#include "hooks/register.h"
#include "load/adapter.h"

namespace {
[[noreturn]] void Unbound() {
  throw std::logic_error{"gpu_exact called XGBoost before BindXGBoost()."};
}
}  // namespace

extern "C" {
extern gpu_exact::ImportTarget gpu_exact_import_targets[];  // by this name in the stubs
gpu_exact::ImportTarget gpu_exact_import_targets[] = {
#define IMPORT(index, symbol) Unbound,
#include "imports.inc"
#undef IMPORT
};
}

#define EXACT_SLOT(index) "gpu_exact_import_targets + 8 * " #index
#if defined(__x86_64__)
#define EXACT_JUMP(slot) "jmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define EXACT_JUMP(slot) "adrp x16, " slot "\n ldr x16, [x16, :lo12:" slot "]\n br x16\n"
#else
#error "gpu_exact has call stubs for x86-64 and AArch64 only."
#endif
#define EXACT_STUB(symbol, jump)                                                    \
  asm(".pushsection .text\n .globl " symbol "\n .hidden " symbol "\n .type " symbol \
      ", %function\n" symbol ":\n " jump " .popsection\n");

#define IMPORT(index, symbol) EXACT_STUB(#symbol, EXACT_JUMP(EXACT_SLOT(index)))
#include "imports.inc"
#undef IMPORT

extern "C" gpu_exact::Adapter const* GPU_EXACT_ADAPTER() {
  static char const* const kNames[] = {
#define IMPORT(index, symbol) #symbol,
#include "imports.inc"
#undef IMPORT
  };
  static gpu_exact::Adapter const adapter{// NOLINT
                                          {kNames, gpu_exact_import_targets, std::size(kNames)},
                                          gpu_exact::Register};
  return &adapter;
}
