/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares the few functions of NCCL that are called; the library is looked for at run time.
 * @see   https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html, NCCL 2.14 or newer.
 */
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

namespace gpu_exact {
struct Nccl {
  using Communicator = void*;
  struct UniqueId {
    char bytes[128];
  };
  /** @brief Mirrors NCCL 2.14's; newer ones take it too, and read no further. */
  struct Config {
    std::size_t size{sizeof(Config)};
    unsigned magic{0xcafebeef};
    unsigned version{21400};
    int blocking{0};
  };
  static constexpr int kSuccess = 0;
  static constexpr int kInProgress = 7;
  static constexpr int kBytes = 1;  // ncclUint8

  int (*GetUniqueId)(UniqueId*);
  int (*CommInitRankConfig)(Communicator*, int size, UniqueId, int rank, Config*);
  int (*CommGetAsyncError)(Communicator, int* state);
  int (*CommAbort)(Communicator);
  int (*GroupStart)();
  int (*GroupEnd)();
  int (*Send)(void const*, std::size_t n, int type, int peer, Communicator, cudaStream_t);
  int (*Recv)(void*, std::size_t n, int type, int peer, Communicator, cudaStream_t);
  char const* (*GetErrorString)(int);

  /**
   * @brief Load the library that GPU_EXACT_NCCL names in the environment; else the one that is in
   *        the process already; else libnccl.so.2 where the loader finds it.
   * @return nullptr: there is none, or it is older. The answer is the same until the process ends.
   */
  [[nodiscard]] static Nccl const* Load();
};
}  // namespace gpu_exact
