/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Wraps CUDA: checked calls and launches, device buffers.
 */
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nvtx3/nvtx3.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/platform.h"
#include "gpu_exact/device.h"

/** @brief Check a CUDA call; a failure throws DeviceError with the call and the driver's words. */
#define EXACT_CUDA(call) ::gpu_exact::CheckCuda((call), #call, __FILE__, __LINE__)

/**
 * @brief Check in a kernel what it relies on, in builds with GPU_EXACT_CHECKS; others have no trace of
 *        it. Where it does not hold, the file and the line are printed, and the next wait throws.
 */
#ifdef GPU_EXACT_CHECKS
#define EXACT_DEVICE_CHECK(condition) assert(condition)
#else
#define EXACT_DEVICE_CHECK(condition) static_cast<void>(sizeof(condition))
#endif

namespace gpu_exact {
#ifdef GPU_EXACT_CHECKS
inline constexpr bool kChecks = true;  // the host checks too
#else
inline constexpr bool kChecks = false;
#endif
inline constexpr unsigned kAllLanes = 0xffffffffu;  // all lanes of a warp

/** @brief Give XGBoost's own stream; everything here runs in its order. */
inline cudaStream_t Stream() { return cudaStreamPerThread; }

void CheckCuda(cudaError_t status, char const* call, char const* file, int line);

/** @brief Counts device memory, bytes; by any number of threads. */
class Ledger {
 public:
  void Add(std::size_t bytes) noexcept;
  void Subtract(std::size_t bytes) noexcept { held_ -= bytes; }
  [[nodiscard]] std::size_t Held() const { return held_; }
  /** @brief Give the most that was held at a time. */
  [[nodiscard]] std::size_t Peak() const { return peak_; }

 private:
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> peak_{0};
};

/** @brief Gives device memory to a Buffer. */
struct DeviceMemory {
  std::shared_ptr<Ledger> ledger;  // of the context that was current when memory was allocated

  /** @brief Call cudaMalloc; throws OutOfDeviceMemory with the array and the bytes asked, free,
   *         total. */
  void* Allocate(std::size_t bytes, char const* what);
  void Free(void* p, std::size_t bytes) noexcept;
};
/** @brief Give the most bytes of all devices that this process has held at a time. */
[[nodiscard]] std::size_t PeakDeviceBytes();

/** @brief Gives page-locked host memory to a Buffer, which kernels read and write too. */
struct PinnedMemory {
  /** @brief Allocate; throws DeviceError. */
  static void* Allocate(std::size_t bytes, char const* what);
  static void Free(void* p, std::size_t bytes) noexcept;
};

/** @brief Clear and ignore the error of a call; tells whether there was none. */
bool Succeeds(cudaError_t status) noexcept;

/** @brief Waits for the stream. */
void Synchronize();

/** @brief Waits for the stream at the end of its scope, also where an exception ends it. */
struct SyncOnExit {
  SyncOnExit() = default;
  ~SyncOnExit() { Succeeds(cudaStreamSynchronize(Stream())); }
  SyncOnExit(SyncOnExit const&) = delete;
  SyncOnExit& operator=(SyncOnExit const&) = delete;
};

/** @brief Names a range of the host's time in a profiler's timeline; does nothing without a
 *         profiler. */
using ProfilerRange = nvtx3::scoped_range;

/** @brief Check a launch. With GPU_EXACT_SYNC=1 in the environment, wait for it, to place
 *         errors. */
void CheckLaunch(cudaError_t status, char const* kernel);

/** @brief Get an attribute of the current device. */
[[nodiscard]] int DeviceAttribute(cudaDeviceAttr attribute);

/** @brief Let the current device's kernels and copies reach another's memory; false where they
 *         cannot. */
[[nodiscard]] bool ReachDevice(int other);

/** @brief Lets this thread make any CUDA call in its scope, while another thread captures a graph. */
class CaptureGuard {
 public:
  CaptureGuard() noexcept { this->Exchange(); }
  ~CaptureGuard() { this->Exchange(); }
  CaptureGuard(CaptureGuard const&) = delete;
  CaptureGuard& operator=(CaptureGuard const&) = delete;

 private:
  void Exchange() noexcept { Succeeds(cudaThreadExchangeStreamCaptureMode(&mode_)); }

  cudaStreamCaptureMode mode_{
      cudaStreamCaptureModeRelaxed};  // that of outside the scope, within it
};

/** @brief Owns an uninitialised array, which keeps its size or grows, and loses its content
 *         then. */
template <typename T, typename MemoryT>
class Buffer {
 public:
  explicit Buffer(char const* what) : what_{what} {}
  ~Buffer() { memory_.Free(data_, this->Bytes()); }
  Buffer(Buffer const&) = delete;
  Buffer& operator=(Buffer const&) = delete;
  Buffer(Buffer&& that) noexcept : what_{that.what_} { *this = std::move(that); }
  Buffer& operator=(Buffer&& that) noexcept {
    std::swap(what_, that.what_);
    std::swap(memory_, that.memory_);
    std::swap(data_, that.data_);
    std::swap(size_, that.size_);
    return *this;
  }

  /** @brief Make room for n elements. Waits for the device when it grows. */
  T* Reserve(std::size_t n) {
    if (n > size_) {
      this->Release();
      data_ = static_cast<T*>(memory_.Allocate(n * sizeof(T), what_));
      size_ = n;
    }
    return data_;
  }
  void Release() {
    memory_.Free(std::exchange(data_, nullptr), this->Bytes());
    size_ = 0;
  }

  [[nodiscard]] T* Data() const { return data_; }
  [[nodiscard]] std::size_t Bytes() const { return size_ * sizeof(T); }

 private:
  char const* what_;
  MemoryT memory_;
  T* data_{nullptr};
  std::size_t size_{0};
};
template <typename T>
using DeviceBuffer = Buffer<T, DeviceMemory>;
template <typename T>
using PinnedBuffer = Buffer<T, PinnedMemory>;

/**
 * @brief Copies in the order of the stream: between memory of devices, or from or to the host's. What
 *        is copied from the host must stay until the stream was waited for (see CopyFromHost()), and
 *        what is copied to it is there then.
 */
template <typename T>
void CopyAsync(T* to, T const* from, std::size_t n) {
  if (n != 0) {
    EXACT_CUDA(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDefault, Stream()));
  }
}

/** @brief Copy to the host. Waits. */
template <typename T>
std::vector<T> ToHost(T const* from, std::size_t n) {
  std::vector<T> to(n);
  CopyAsync(to.data(), from, n);
  Synchronize();
  return to;
}

/** @brief Names words of device memory that become zero with an upload. */
struct WordsToClear {
  std::uint32_t* words{nullptr};
  std::size_t n{0};

  template <typename T>
  static WordsToClear Of(T* p, std::size_t n) {
    static_assert(sizeof(T) % sizeof(std::uint32_t) == 0);
    return {reinterpret_cast<std::uint32_t*>(p), n * sizeof(T) / sizeof(std::uint32_t)};
  }
};

/**
 * @brief Copy up to 1 KiB of whole words to the device with the parameters of a launch, so that it
 *        need not read the host's memory over the bus. Does not wait; the host's memory may go at once.
 * @param clear Become zero in the same launch.
 * @return Whether it did: it does nothing where there are more bytes, or other than whole words.
 */
[[nodiscard]] bool SendBytes(void* to, void const* from, std::size_t n_bytes,
                             WordsToClear const& clear = {});

/**
 * @brief Copies from pageable host memory, which may go at once. Of more than 1 KiB it waits for the
 *        stream: CUDA does not say that an asynchronous copy has read such memory when it returns.
 */
template <typename T>
void CopyFromHost(T* to, T const* from, std::size_t n) {
  if (!SendBytes(to, from, n * sizeof(T))) {
    CopyAsync(to, from, n);
    Synchronize();
  }
}

/** @brief See CopyPinned(). */
void CopyPinnedBytes(void* to, void const* from, std::size_t n_bytes);

/**
 * @brief Copy between the device's memory and page-locked memory: little by a kernel, which
 *        begins some microseconds sooner than a copy.
 */
template <typename T>
void CopyPinned(T* to, T const* from, std::size_t n) {
  CopyPinnedBytes(to, from, n * sizeof(T));
}

template <typename T>
void ZeroAsync(T* p, std::size_t n) {
  if (n != 0) {
    EXACT_CUDA(cudaMemsetAsync(p, 0, n * sizeof(T), Stream()));
  }
}

[[nodiscard]] constexpr std::uint64_t CeilDiv(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

/** @brief Count the bits that hold every number below n. */
[[nodiscard]] constexpr int BitsBelow(std::uint64_t n) {
  int bits{0};
  while ((std::uint64_t{1} << bits) < n) {
    ++bits;
  }
  return bits;
}

/** @brief Sets the most blocks of a grid. */
inline constexpr std::uint64_t kMaxGrid = 0x7fffffff;

/** @brief Throws DeviceError where a grid has more blocks than CUDA takes. */
void CheckGrid(char const* kernel, std::uint64_t grid);

/** @brief Holds the threads of a block, bytes of shared memory beside the kernel's own, and its
 *         cluster. */
struct BlockSize {
  unsigned n_threads;
  std::size_t shared_bytes;
  unsigned cluster{1};  // blocks of a cluster, neighbours in the grid; 1: there are none

  BlockSize(unsigned threads, std::size_t bytes = 0)  // NOLINT: most launches name threads alone
      : n_threads{threads}, shared_bytes{bytes} {}
};

/** @brief Sets how a kernel begins on the stream: while the one before it ends, where
 *         WaitForPreviousKernel() waits. */
struct LaunchConfig {
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};

  LaunchConfig(std::uint64_t grid, BlockSize const& block);
  LaunchConfig(LaunchConfig const&) = delete;
  LaunchConfig& operator=(LaunchConfig const&) = delete;
};

/**
 * @brief Wait for what the stream did before: the first statement of every kernel.
 *
 * Compiled for Hopper or later, a kernel is made ready while the last blocks of the one before it end
 * (programmatic dependent launch). It may touch no memory before this. As every kernel waits, the one
 * before has waited for all that came before it.
 */
__device__ inline void WaitForPreviousKernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/**
 * @brief Launch on the stream; an empty grid is no launch. Does not wait.
 * @param kernel Begins with WaitForPreviousKernel().
 */
template <typename... ParamsT, typename... ArgsT>
void Launch(char const* name, void (*kernel)(ParamsT...), std::uint64_t grid, BlockSize block,
            ArgsT&&... args) {
  if (grid == 0) {
    return;
  }
  CheckGrid(name, grid);
  LaunchConfig const launch{grid, block};
  CheckLaunch(cudaLaunchKernelEx(&launch.config, kernel, std::forward<ArgsT>(args)...), name);
}

/** @brief Launch one thread an element. */
template <typename... ParamsT, typename... ArgsT>
void LaunchN(char const* name, void (*kernel)(ParamsT...), std::uint64_t n, ArgsT&&... args) {
  constexpr unsigned kBlock = 256;
  Launch(name, kernel, CeilDiv(n, kBlock), kBlock, std::forward<ArgsT>(args)...);
}

/**
 * @brief Tell whether all other blocks of the grid have come here; what they wrote before is seen then. By
 *        one thread of each block.
 * @param n_ended 0 before the grid, and after it.
 */
__device__ inline bool EndsGrid(std::uint32_t* n_ended) {
  __threadfence();
  bool const is_last = atomicInc(n_ended, gridDim.x - 1) == gridDim.x - 1;
  __threadfence();
  return is_last;
}

/** @brief Give the index of this thread in a one-dimensional grid. */
__device__ inline std::uint64_t GlobalIdx() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/** @brief Find PartitionPoint() by all lanes of a warp, which get the answer; 32 places are looked
 *         at a step. */
template <typename IndexT, typename FnT>
__device__ IndexT WarpPartitionPoint(IndexT begin, IndexT end, FnT&& above) {
  while (begin < end) {
    IndexT step = (end - begin + 31) / 32;
    IndexT place = begin + (threadIdx.x % 32 + 1) * step - 1;
    unsigned hits = __ballot_sync(kAllLanes, place >= end || above(place));
    if (hits == 0) {
      return end;
    }
    begin += (__ffs(hits) - 1) * step;
    end = end - begin < step ? end : begin + step - 1;
  }
  return begin;
}
}  // namespace gpu_exact
