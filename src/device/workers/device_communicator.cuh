/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Moves device memory between the workers of a group.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/runtime/runtime.cuh"
#include "gpu_exact/communicator.h"

namespace gpu_exact {
class Mailbox;

/** @brief Names how device memory travels; short messages of kAuto and kCopies by a Mailbox, if
 *         possible. */
enum class Transport : std::uint8_t {
  kAuto,    // the first of the following that can be had
  kCopies,  // threads of one process copy from each other
  kNccl,    // one device for each worker, and NCCL to be found
  kHost     // through the host's memory and Communicator
};

/** @brief Tells the others what a worker has, so that all choose the same transport. */
struct WorkerInfo {
  std::int64_t process;
  std::int64_t born;  // with the process id: one process of all
  cudaUUID_t device;
  std::uint64_t has_nccl;
};

/** @brief Choose the first Transport that all of these can have. */
[[nodiscard]] Transport ChooseTransport(std::vector<WorkerInfo> const& workers);

/** @brief Divides an array among workers: part r is [begins[r], begins[r + 1]). */
struct Parts {
  std::vector<std::uint64_t> begins;  // shape: (n_workers + 1), in units
  std::size_t unit{1};                // bytes

  [[nodiscard]] std::uint64_t Begin(std::int32_t rank) const { return begins[rank] * unit; }
  [[nodiscard]] std::uint64_t Bytes(std::int32_t rank) const {
    return (begins[rank + 1] - begins[rank]) * unit;
  }
};

/**
 * @brief Makes collective calls upon device memory, in the order of the stream.
 *
 * Errors: WorkerError where a worker is gone or stuck; the group is of no use afterwards.
 */
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator();
  DeviceCommunicator(DeviceCommunicator const&) = delete;
  DeviceCommunicator& operator=(DeviceCommunicator const&) = delete;

  /**
   * @brief Collective; of the current device, on which all other calls are made too.
   * @param comm  Borrowed.
   */
  [[nodiscard]] static std::unique_ptr<DeviceCommunicator> Make(
      Communicator* comm, Transport transport = Transport::kAuto);

  /** @brief Send every part to every worker: the own part is read, the others are written. */
  virtual void AllGather(void* inout, Parts const& parts) = 0;
  /**
   * @brief Send a part from each worker to each.
   * @param send    Part r goes to worker r.
   * @param receive Part r comes from worker r.
   */
  virtual void AllToAll(void const* send, Parts const& send_parts, void* receive,
                        Parts const& receive_parts) = 0;
  /**
   * @brief Waits for the calls above, until the deadline of GPU_EXACT_PEER_TIMEOUT seconds (60).
   *
   * To be called before anything else waits for the stream, which has no deadline: nor have calls
   * that allocate or free memory.
   */
  virtual void Await() {}
  [[nodiscard]] virtual Transport Kind() const = 0;

  /**
   * @brief AllGather() little, and wait where that must be. What has come is right if Check() says
   *        so later.
   * @param parts Their unit is 4 B, or a multiple.
   */
  void AllGatherWords(std::uint32_t* inout, Parts const& parts);
  /** @brief AllToAll() parts of whatever size. Waits. @param send_parts, receive_parts As for
   *         AllGatherWords(). */
  void AllToAllAndWait(void const* send, Parts const& send_parts, void* receive,
                       Parts const& receive_parts);
  /** @brief Throws WorkerError where an AllGatherWords() was in vain; the stream has been waited
   *         for. */
  void Check() const;
  /** @brief Tell the others that this worker has failed; those that hear it need not wait for the
   *         deadline. */
  void Leave() noexcept;

  [[nodiscard]] std::int32_t Rank() const { return comm_->Rank(); }
  [[nodiscard]] std::int32_t Size() const { return comm_->Size(); }
  /** @brief Give the same group, for host memory. */
  [[nodiscard]] Communicator* OfHost() const { return comm_; }

 protected:
  explicit DeviceCommunicator(Communicator* comm);

  /** @brief Copy the part that a worker sends to itself. */
  void CopyOwn(void const* send, Parts const& send_parts, void* receive,
               Parts const& receive_parts) const;

 private:
  Communicator* comm_;
  std::unique_ptr<Mailbox> mailbox_;  // nullptr: workers do not reach each other's memory
};
}  // namespace gpu_exact
