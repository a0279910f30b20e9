/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Sends short messages between GPUs of one machine: kernels write them into each other's
 *        memory.
 *
 * Every worker has a box on its device, which the others see: by its address in one process, by
 * CUDA's handles between processes. A call writes the own part into all other boxes, waits until the
 * others have written theirs, and reads the own box.
 *
 * Processes wait by flags: one kernel on each worker writes a flag behind its words and looks for the
 * others' flags, so that no host takes part. Threads of one process wait by events, as a kernel that
 * waits there could hold up what the other threads ask of CUDA; their hosts meet once a call.
 *
 * Words lie in two places of a box in turn. Who writes into one for the second next call has seen that
 * the others have come to the next one, and so have read it. A worker whose call was in vain writes
 * nothing more.
 *
 * A box is freed without a meeting. Another process may have it mapped still, which keeps the memory
 * from others, and writes into it no more: all its calls have been answered, or it fails, too.
 */
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/runtime/runtime.cuh"
#include "gpu_exact/communicator.h"

namespace gpu_exact {
class Mailbox {
 public:
  static constexpr std::int32_t kMostWorkers = 16;
  static constexpr std::uint64_t kCapacity = std::uint64_t{8}
                                             << 20;  // bytes of all parts of a call

  /**
   * @brief Collective; of the current device, on which all calls are made.
   * @param comm     Borrowed.
   * @param deadline How long a call waits for other processes.
   * @return nullptr on every worker: some cannot see each other's memory, or processes share a
   *         device, or GPU_EXACT_PEER_MEMORY=0 in the environment says no.
   */
  [[nodiscard]] static std::unique_ptr<Mailbox> Make(Communicator* comm,
                                                     std::chrono::seconds deadline);
  ~Mailbox();
  Mailbox(Mailbox const&) = delete;
  Mailbox& operator=(Mailbox const&) = delete;

  /** @brief Tell whether parts are short enough. @param begins See AllGather(). */
  [[nodiscard]] static bool Takes(std::vector<std::uint64_t> const& begins) {
    return begins.back() <= kCapacity / sizeof(std::uint32_t);
  }
  /**
   * @brief Send every part to every worker, in the order of the stream. Collective. Does not wait
   *        for the device.
   * @param begins Where each part begins, in 4 B, shape: (n_workers + 1); the same on every worker.
   */
  void AllGather(std::uint32_t* inout, std::vector<std::uint64_t> const& begins);
  /**
   * @brief Check that what was read is what the others wrote; the stream has been waited for.
   * @throw WorkerError where another process has not answered in time, or has left.
   */
  void Check() const;
  /** @brief Tell other processes not to wait for this one, which has failed. */
  void Leave() noexcept;

 private:
  struct Box;
  struct View;

  Mailbox(Communicator* comm, std::chrono::seconds deadline);
  /** @brief Open the others' boxes; false where that cannot be. Collective. */
  bool Open();
  /** @brief Tell whether a first message arrives as it was sent. Collective. */
  bool Try();

  Communicator* comm_;
  std::chrono::seconds deadline_;
  bool of_one_process_{true};
  std::shared_ptr<Box> own_;
  std::vector<std::unique_ptr<View>> others_;  // by rank
  std::uint32_t n_calls_{0};
};
}  // namespace gpu_exact
