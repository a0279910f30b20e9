/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A libxgboost without XGBoost: a version, and perhaps functions that return their number.
 *
 * FAKE_VERSION: its version, such as "1.2.3". FAKE_SCOPE: ".globl" exports the functions, ".local"
 * leaves them to the symbol table; not defined: there are none. FAKE_MOVED: 1 has them, and an exported
 * one, elsewhere than 0, but XGBoostVersion at the same place. FAKE_OPENMP: it has a loop by OpenMP.
 */
#include <cstdio>

extern "C" __attribute__((visibility("default"))) void XGBoostVersion(int* major, int* minor,
                                                                      int* patch) {
  std::sscanf(FAKE_VERSION, "%d.%d.%d", major, minor, patch);
}

#if defined(FAKE_OPENMP)
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" void GOMP_parallel(void (*fn)(void*), void* data, unsigned n_threads, unsigned flags);
extern "C" __attribute__((visibility("default"))) void FakeLoop(void (*fn)(void*), void* data) {
  GOMP_parallel(fn, data, 1, 0);
}
#endif

#if defined(FAKE_SCOPE)
#if defined(__x86_64__)
#define RETURN(index) "mov $" #index ", %eax\n ret\n"
#else
#define RETURN(index) "mov w0, #" #index "\n ret\n"
#endif
#define IMPORT(index, symbol)                                                                    \
  asm(".pushsection .text\n " FAKE_SCOPE " " #symbol "\n .type " #symbol ", %function\n" #symbol \
      ":\n" RETURN(index) ".popsection");
#if defined(FAKE_MOVED)
#define SKIP() asm(".pushsection .text\n .skip 64\n .popsection")
#if FAKE_MOVED
SKIP();
#endif
asm(".pushsection .text\n .globl FakeMoved\n .type FakeMoved, %function\nFakeMoved:\n" RETURN(
    0) ".popsection");
#endif
#include "imports.inc"
#if defined(FAKE_MOVED) && !FAKE_MOVED
SKIP();
#endif
#endif
