/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Owns what all objects of a builder share on a device: the count of its memory, and CUB's
 *        temporary storage.
 *
 * Like CUDA's device, a context is current for a thread: within a Scope. Device memory that is allocated
 * there is counted by it, wherever it is freed, and CUB's calls share its storage, as they follow one
 * another in the thread's stream.
 */
#pragma once

#include "device/runtime/runtime.cuh"

namespace gpu_exact {
class DeviceContext {
 public:
  /** @param ordinal -1: the first device. */
  explicit DeviceContext(int ordinal) : ordinal_{ordinal} {}
  DeviceContext(DeviceContext const&) = delete;
  DeviceContext& operator=(DeviceContext const&) = delete;

  /** @brief Give the thread's context. A thread that is in no Scope has one of its own, on the device
   *         that is current. */
  [[nodiscard]] static DeviceContext& Current();

  /** @brief Give the count of device memory, which may outlive the context. */
  [[nodiscard]] std::shared_ptr<Ledger> const& Memory() const { return ledger_; }
  /** @brief Count the device memory held. */
  [[nodiscard]] std::size_t Bytes() const { return ledger_->Held(); }

  /** @brief Give temporary storage to the next call of CUB. Waits for the device when it grows. */
  [[nodiscard]] void* Scratch(std::size_t bytes) { return scratch_.Reserve(bytes); }
  /** @brief Give it back. Waits for the device. */
  void ReleaseScratch() { scratch_.Release(); }

  /** @brief Makes a context and its device the thread's. */
  class Scope {
   public:
    explicit Scope(DeviceContext& context);
    ~Scope();
    Scope(Scope const&) = delete;
    Scope& operator=(Scope const&) = delete;

   private:
    CaptureGuard capture_;
    DeviceContext* previous_;
    int previous_device_{0};
    bool moved_{false};
  };

 private:
  int ordinal_;
  std::shared_ptr<Ledger> ledger_{std::make_shared<Ledger>()};
  DeviceBuffer<unsigned char> scratch_{"CUB scratch"};
};

/**
 * @brief Call CUB. Does not wait.
 * @param fn         Called twice as fn(void* storage, std::size_t& bytes), as CUB wants it.
 * @param file, line Where the caller is, for the error.
 */
template <typename FnT>
void CallCub(FnT&& fn, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  std::size_t bytes{0};
  CheckCuda(fn(nullptr, bytes), "CUB", file, line);
  void* const storage = DeviceContext::Current().Scratch(std::max<std::size_t>(bytes, 1));
  CheckCuda(fn(storage, bytes), "CUB", file, line);
}
}  // namespace gpu_exact
