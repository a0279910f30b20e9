/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Every CUDA call of the module, CUB's too, as one that may fail: see faults.h.
 *
 * cuda_calls.inc is written by tests/cmake/WriteCudaCalls.cmake: lines of CUDA_CALL(index, name).
 * Here cudaError_t is an int: no header of CUDA is needed.
 */
#include <cstddef>
#include <mutex>

#include "tests/support/faults.h"

namespace {
using gpu_exact::faults::Held;
using gpu_exact::faults::Kind;

thread_local int last_error{0};  // of a call that was made to fail, until it is asked for

/** @brief As CUDA would tell it now: one that sticks for ever, another one until it is asked for. */
int LastError() noexcept {
  int const sticking = gpu_exact::faults::Sticking();
  return sticking != 0 ? sticking : last_error;
}

int NextFault(char const* name) noexcept {
  if (int const sticking = gpu_exact::faults::Sticking(); sticking != 0) {
    return sticking;
  }
  int const status = gpu_exact::faults::Next(Kind::kDevice, name);
  if (status != 0 && gpu_exact::faults::Sticking() == 0) {
    last_error = status;
  }
  return status;
}

/** @brief A call that takes something, which counts as held where the call has succeeded. */
template <typename... Args>
int Take(char const* name, Held what, long long amount, int (*call)(void**, Args...), void** p,
         Args... args) {
  int status = NextFault(name);
  status = status != 0 ? status : call(p, args...);
  if (status == 0) {
    gpu_exact::faults::Hold(what, *p, amount);
  }
  return status;
}

/** @brief One that gives something back, which it does even where it fails. */
int GiveBack(char const* name, Held what, int (*call)(void*), void* p) {
  gpu_exact::faults::Release(what, p);
  int const status = call(p);
  int const fault = NextFault(name);
  return fault != 0 ? fault : status;
}

/** @brief The device's memory in somebody else's hands. */
struct Taken {
  std::mutex mutex;
  long long leave{-1};  // what the next cudaMemGetInfo() leaves of what is free; -1: all
  void* memory{nullptr};
} taken;

char const* const kNames[] = {
#define CUDA_CALL(index, name) #name,
#include "cuda_calls.inc"
#undef CUDA_CALL
};
}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) int gpu_exact_next_cuda_fault(int index) {
  return NextFault(kNames[index]);
}

// Calls that only return a status: ask, then return it or go on to CUDA with all arguments.
#define CUDA_CALL(index, name)                                                                \
  asm(".pushsection .text\n .globl __wrap_" #name "\n .hidden __wrap_" #name                  \
      "\n .type __wrap_" #name ", %function\n__wrap_" #name                                   \
      ":\n .cfi_startproc\n"                                                                  \
      " push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n sub $8, %rsp\n" \
      " .cfi_adjust_cfa_offset 56\n mov $" #index                                             \
      ", %edi\n call gpu_exact_next_cuda_fault\n"                                             \
      " add $8, %rsp\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n"       \
      " .cfi_adjust_cfa_offset -56\n test %eax, %eax\n jne 1f\n jmp __real_" #name            \
      "\n1: ret\n"                                                                            \
      " .cfi_endproc\n .popsection\n");
#include "cuda_calls.inc"
#undef CUDA_CALL

int __real_cudaGetLastError();
int __wrap_cudaGetLastError() {
  int const injected = LastError();
  last_error = 0;
  int const real = __real_cudaGetLastError();
  return injected != 0 ? injected : real;
}

int __real_cudaPeekAtLastError();
int __wrap_cudaPeekAtLastError() {
  int const injected = LastError();
  return injected != 0 ? injected : __real_cudaPeekAtLastError();
}

/** @brief Answers rightly, but then others take what it has told; see GpuExactFaultTake(). */
int __real_cudaMemGetInfo(std::size_t* free, std::size_t* total);
int __real_cudaMalloc(void** p, std::size_t bytes);
int __real_cudaFree(void* p);
int __wrap_cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  int const fault = NextFault("cudaMemGetInfo");
  int const status = fault != 0 ? fault : __real_cudaMemGetInfo(free, total);
  std::lock_guard<std::mutex> guard{taken.mutex};
  if (status == 0 && taken.leave >= 0) {
    auto const leave = static_cast<std::size_t>(taken.leave);
    taken.leave = -1;
    if (*free > leave && __real_cudaMalloc(&taken.memory, *free - leave) != 0) {
      taken.memory = nullptr;
      static_cast<void>(__real_cudaGetLastError());
    }
  }
  return status;
}

/**
 * @brief Memory of the device is taken once, right after the module has asked how much is free.
 * @param leave Bytes that are left; -1: what was taken is given back, and no more is.
 * @return Whether anything was held until now.
 */
__attribute__((visibility("default"))) int GpuExactFaultTake(long long leave) {
  std::lock_guard<std::mutex> guard{taken.mutex};
  bool const held = taken.memory != nullptr;
  if (held) {
    static_cast<void>(__real_cudaFree(taken.memory));
    taken.memory = nullptr;
  }
  taken.leave = leave;
  return held ? 1 : 0;
}

int __wrap_cudaMalloc(void** p, std::size_t bytes) {
  auto const amount = static_cast<long long>(bytes);
  return Take("cudaMalloc", Held::kDevice, amount, __real_cudaMalloc, p, bytes);
}
int __wrap_cudaFree(void* p) { return GiveBack("cudaFree", Held::kDevice, __real_cudaFree, p); }
int __real_cudaHostAlloc(void** p, std::size_t bytes, unsigned flags);
int __wrap_cudaHostAlloc(void** p, std::size_t bytes, unsigned flags) {
  auto const amount = static_cast<long long>(bytes);
  return Take("cudaHostAlloc", Held::kPinned, amount, __real_cudaHostAlloc, p, bytes, flags);
}
int __real_cudaFreeHost(void* p);
int __wrap_cudaFreeHost(void* p) {
  return GiveBack("cudaFreeHost", Held::kPinned, __real_cudaFreeHost, p);
}
int __real_cudaEventCreateWithFlags(void** p, unsigned flags);
int __wrap_cudaEventCreateWithFlags(void** p, unsigned flags) {
  auto const real = __real_cudaEventCreateWithFlags;
  return Take("cudaEventCreateWithFlags", Held::kEvents, 1, real, p, flags);
}
int __real_cudaEventDestroy(void* p);
int __wrap_cudaEventDestroy(void* p) {
  return GiveBack("cudaEventDestroy", Held::kEvents, __real_cudaEventDestroy, p);
}
int __real_cudaStreamCreateWithFlags(void** p, unsigned flags);
int __wrap_cudaStreamCreateWithFlags(void** p, unsigned flags) {
  auto const real = __real_cudaStreamCreateWithFlags;
  return Take("cudaStreamCreateWithFlags", Held::kStreams, 1, real, p, flags);
}
int __real_cudaStreamDestroy(void* p);
int __wrap_cudaStreamDestroy(void* p) {
  return GiveBack("cudaStreamDestroy", Held::kStreams, __real_cudaStreamDestroy, p);
}
struct IpcHandle {
  char reserved[64];
};
int __real_cudaIpcOpenMemHandle(void** p, IpcHandle handle, unsigned flags);
int __wrap_cudaIpcOpenMemHandle(void** p, IpcHandle handle, unsigned flags) {
  auto const real = __real_cudaIpcOpenMemHandle;
  return Take("cudaIpcOpenMemHandle", Held::kHandles, 1, real, p, handle, flags);
}
int __real_cudaIpcCloseMemHandle(void* p);
int __wrap_cudaIpcCloseMemHandle(void* p) {
  return GiveBack("cudaIpcCloseMemHandle", Held::kHandles, __real_cudaIpcCloseMemHandle, p);
}
}
