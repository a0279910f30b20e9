/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Copies of large arrays between pageable host memory and the device.
 */
#pragma once

#include <cstddef>
#include <vector>

#include "device/runtime/runtime.cuh"
#include "device/runtime/stream_event.cuh"
#include "gpu_exact/host_team.h"

namespace gpu_exact {
/** @brief Sets how a HostCopier divides its work. Memory: n_slots x chunk_bytes, page-locked. */
struct CopyPlan {
  std::size_t chunk_bytes{std::size_t{1} << 18};
  std::size_t n_slots{32};                      // at least 2
  std::size_t n_threads{16};                    // at most, of the host, the calling one included
  std::size_t min_bytes{std::size_t{1} << 19};  // not more is copied by one CUDA call
};

/**
 * @brief Copies through page-locked memory, which several threads of the host fill or empty while
 *        the device copies other parts of it.
 *
 * A call of cudaMemcpyAsync copies pageable memory by one thread, several times slower than the
 * bus is. The page-locked memory is taken at the first large copy and kept. Where there is none to
 * be had, or no thread, arrays are copied all the same.
 *
 * All CUDA calls are made by the calling thread, in the order of its stream. One copy at a time,
 * always on one device. Errors: DeviceError where a CUDA call fails; the copied-to array is
 * undefined then.
 */
class HostCopier {
 public:
  explicit HostCopier(CopyPlan const& plan = {}) : plan_{plan} {}

  /** @brief Set the threads of the host that may copy, up to the plan's number. */
  void SetTeam(HostTeam const& team) { team_ = team; }

  /** @brief Copy in the order of the stream. Host memory may go when the call returns. */
  template <typename T>
  void CopyToDevice(T* to, T const* from, std::size_t n) {
    this->Upload(reinterpret_cast<char*>(to), reinterpret_cast<char const*>(from), n * sizeof(T));
  }
  /** @brief Copy; host memory is written when the call returns. */
  template <typename T>
  void CopyToHost(T* to, T const* from, std::size_t n) {
    this->Download(reinterpret_cast<char*>(to), reinterpret_cast<char const*>(from), n * sizeof(T));
  }

  /** @brief Count the page-locked host memory held. */
  [[nodiscard]] std::size_t HostBytes() const { return ring_.Bytes(); }

 private:
  void Upload(char* to, char const* from, std::size_t n_bytes);
  void Download(char* to, char const* from, std::size_t n_bytes);
  /** @brief Tell whether to copy through the ring, which is there then. */
  [[nodiscard]] bool UseRing(std::size_t n_bytes);
  [[nodiscard]] std::size_t NumThreads() const;
  /** @brief Count the threads beside the calling one, which copies too. */
  [[nodiscard]] std::size_t NumHelpers(std::size_t n_chunks) const;
  [[nodiscard]] std::size_t NumChunks(std::size_t n_bytes) const {
    return CeilDiv(n_bytes, plan_.chunk_bytes);
  }
  [[nodiscard]] char* Slot(std::size_t chunk) const {
    return ring_.Data() + chunk % plan_.n_slots * plan_.chunk_bytes;
  }
  [[nodiscard]] StreamEvent& EventOf(std::size_t chunk) { return events_[chunk % plan_.n_slots]; }
  /** @brief Sets how many copies of the device may be on their way when one of them is waited
   *         for. */
  [[nodiscard]] std::size_t Lag() const { return plan_.n_slots / 2; }

  CopyPlan plan_;
  HostTeam team_;
  bool has_no_ring_{false};                                    // asked for in vain
  PinnedBuffer<char> ring_{"copies between host and device"};  // shape: (n_slots, chunk_bytes)
  std::vector<StreamEvent> events_;                            // shape: (n_slots)
};
}  // namespace gpu_exact
