/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Marks a point in a stream that the host, or other streams, can wait for.
 */
#pragma once

#include "device/runtime/runtime.cuh"

namespace gpu_exact {
class StreamEvent {
 public:
  StreamEvent() { EXACT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~StreamEvent() { Succeeds(cudaEventDestroy(event_)); }
  StreamEvent(StreamEvent const&) = delete;
  StreamEvent& operator=(StreamEvent const&) = delete;

  [[nodiscard]] cudaEvent_t Get() const { return event_; }
  void Record(cudaStream_t stream = Stream()) { EXACT_CUDA(cudaEventRecord(event_, stream)); }
  /** @brief Let a stream wait for the last Record() before what it is given from now on. */
  void WaitBy(cudaStream_t stream) const { EXACT_CUDA(cudaStreamWaitEvent(stream, event_, 0)); }
  /** @brief Let the host wait until the stream has come so far. */
  void Await() const { EXACT_CUDA(cudaEventSynchronize(event_)); }
  /** @brief Tell whether the stream has come so far. */
  [[nodiscard]] bool IsReached() const {
    cudaError_t const status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    CheckCuda(status, "cudaEventQuery", __FILE__, __LINE__);
    return true;
  }

 private:
  cudaEvent_t event_{nullptr};
};
}  // namespace gpu_exact
