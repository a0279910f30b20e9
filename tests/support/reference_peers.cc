/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief For tests: calls of Peers by the workers of this thread's communicator.
 */
#include "plugin/xgboost_peers.h"

extern "C" {
__attribute__((visibility("default"))) void GpuExactReferenceAllGather(void* inout, size_t bytes) {
  if (auto const peers = gpu_exact::CurrentPeers()) {
    peers->AllGather(inout, bytes);
  }
}

__attribute__((visibility("default"))) void GpuExactReferenceAllReduce(uint64_t* inout, size_t n) {
  if (auto const peers = gpu_exact::CurrentPeers()) {
    peers->AllReduce(inout, n);
  }
}
}
