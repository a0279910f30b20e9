/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements nccl.cuh.
 */
#include <dlfcn.h>

#include <cstdlib>

#include "device/workers/nccl.cuh"

namespace gpu_exact {
namespace {
constexpr char const* kName = "libnccl.so.2";

void* Open() {
  char const* named = std::getenv("GPU_EXACT_NCCL");
  if (named != nullptr && named[0] != '\0') {
    return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  }
  void* const loaded = dlopen(kName, RTLD_NOW | RTLD_NOLOAD);
  return loaded != nullptr ? loaded : dlopen(kName, RTLD_NOW | RTLD_LOCAL);
}

template <typename FnT>
bool Bind(void* library, char const* name, FnT* out) {
  *out = reinterpret_cast<FnT>(dlsym(library, name));
  return *out != nullptr;
}

bool BindAll(void* library, Nccl* out) {
  return Bind(library, "ncclGetUniqueId", &out->GetUniqueId) &&
         Bind(library, "ncclCommInitRankConfig", &out->CommInitRankConfig) &&
         Bind(library, "ncclCommGetAsyncError", &out->CommGetAsyncError) &&
         Bind(library, "ncclCommAbort", &out->CommAbort) &&
         Bind(library, "ncclGroupStart", &out->GroupStart) &&
         Bind(library, "ncclGroupEnd", &out->GroupEnd) && Bind(library, "ncclSend", &out->Send) &&
         Bind(library, "ncclRecv", &out->Recv) &&
         Bind(library, "ncclGetErrorString", &out->GetErrorString);
}
}  // namespace

Nccl const* Nccl::Load() {
  static Nccl functions{};
  static bool const found = [] {
    void* const library = Open();
    return library != nullptr && BindAll(library, &functions);
  }();
  return found ? &functions : nullptr;
}
}  // namespace gpu_exact
