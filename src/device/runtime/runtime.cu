/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements runtime.cuh, and the probe for a usable device.
 */
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "device/runtime/device_context.cuh"
#include "device/runtime/runtime.cuh"
#include "host/build_advice.h"

namespace gpu_exact {
namespace {
constexpr std::size_t kLittle = 1 << 16;  // bytes that a kernel has copied before a copy begins

Ledger of_process;

__global__ void ProbeKernel(int* out) {
  WaitForPreviousKernel();
  *out = 1;
}

struct SentWords {
  std::uint32_t words[256];
};

// one thread a word that comes or is cleared
__global__ void ReceiveKernel(__grid_constant__ SentWords const sent, std::size_t n_words,
                              std::uint32_t* to, WordsToClear clear) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i < n_words) {
    to[i] = sent.words[i];
  }
  if (i < clear.n) {
    clear.words[i] = 0;
  }
}

// one thread a word
__global__ void CopyPinnedKernel(std::uint32_t const* from, std::size_t n_words,
                                 std::uint32_t* to) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n_words) {
    to[i] = from[i];
  }
}

std::string Describe(cudaError_t status) {
  return std::string{cudaGetErrorName(status)} + ", " + cudaGetErrorString(status);
}

int CapabilityOf(int device) {
  int major{0}, minor{0};
  EXACT_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  EXACT_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

/** @brief Tell whether WaitForPreviousKernel() waits: in code that was compiled for Hopper or
 *         later, whatever runs it. All devices of the process must be alike, as only the first one
 *         that is used is asked. */
bool MayBeginEarly() {
  static bool const may = [] {
    int current{0};
    cudaFuncAttributes attributes{};
    EXACT_CUDA(cudaGetDevice(&current));
    EXACT_CUDA(cudaFuncGetAttributes(&attributes, ProbeKernel));
    int const capability = CapabilityOf(current);
    bool all{capability >= kHopper && attributes.ptxVersion >= kHopper};
    for (int device = 0, n = CountDevices(); all && device < n; ++device) {
      all = CapabilityOf(device) == capability;
    }
    return all;
  }();
  return may;
}

/** @param lasts It stays so while the process lives. */
DeviceStatus Refuse(std::string name, std::string reason, bool lasts = false) {
  return {false, std::move(name), std::move(reason), lasts};
}

/** @brief Tell why the driver or CUDA's runtime shows no device. */
DeviceStatus RefuseAll(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
      return Refuse("", "No NVIDIA driver was found, or it is older than " +
                            std::string{CUDART_VERSION < 13000 ? "525" : "580"} +
                            ", which this build by CUDA " + std::to_string(CUDART_VERSION / 1000) +
                            "." + std::to_string(CUDART_VERSION % 1000 / 10) +
                            " needs: install a newer driver.");
    case cudaErrorInitializationError:
      return Refuse("", kForkedAfterCuda);
    case cudaErrorNoDevice:
      return Refuse("",
                    "No NVIDIA GPU is visible to this process; check nvidia-smi and "
                    "CUDA_VISIBLE_DEVICES.");
    default:
      return Refuse(
          "", "The NVIDIA driver does not answer (" + Describe(status) + "); check nvidia-smi.");
  }
}

/**
 * @brief Start the driver. Where that fails, if only for the moment, CUDA's runtime must not be asked:
 *        it would give the same answer as long as the process lives.
 */
cudaError_t StartDriver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);  // never unloaded
  auto const init = reinterpret_cast<int (*)(unsigned)>(driver ? dlsym(driver, "cuInit") : nullptr);
  return init == nullptr ? cudaErrorInsufficientDriver : static_cast<cudaError_t>(init(0));
}
}  // namespace

void CheckCuda(cudaError_t status, char const* call, char const* file, int line) {
  if (status == cudaSuccess) {
    return;
  }
  static_cast<void>(cudaGetLastError());  // clears an error that does not stick
  std::ostringstream msg;
  msg << "CUDA error " << Describe(status) << " from " << call;
  if (file != nullptr) {
    msg << " at " << file << ":" << line;
  }
  if (status == cudaErrorMemoryAllocation) {
    msg << ". Free memory on the GPU, or train with fewer rows or columns.";
    throw OutOfDeviceMemory{msg.str()};
  }
  if (status == cudaErrorInitializationError) {
    msg << ". Was the process forked after CUDA was used? Start workers with `spawn`.";
  } else if (status == cudaErrorDevicesUnavailable) {
    msg << ". Is the GPU another process's alone? See its compute mode: nvidia-smi -q -d COMPUTE.";
  } else if (std::size_t free{0}, total{0}; !Succeeds(cudaMemGetInfo(&free, &total))) {
    msg << ". The GPU is lost to this process: save models, then restart the process; "
           "GPU_EXACT_SYNC=1 in its environment names the kernel.";
  } else {
    msg << ". Train again; if that fails too, restart the process; GPU_EXACT_SYNC=1 in its "
           "environment names the kernel.";
  }
  throw DeviceError{msg.str()};
}

bool Succeeds(cudaError_t status) noexcept {
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // it is not the next launch's
  }
  return status == cudaSuccess;
}

void Ledger::Add(std::size_t bytes) noexcept {
  std::size_t const held = held_ += bytes;
  for (std::size_t peak = peak_; peak < held;) {
    peak_.compare_exchange_weak(peak, held);  // another thread's may be higher: told in `peak`
  }
}

void* DeviceMemory::Allocate(std::size_t bytes, char const* what) {
  void* p{nullptr};
  cudaError_t status = cudaMalloc(&p, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free{0}, total{0};
    EXACT_CUDA(cudaMemGetInfo(&free, &total));
    std::ostringstream msg;
    msg << "Out of device memory: " << bytes << " bytes asked for " << what << ", " << free
        << " of " << total
        << " bytes free. Free memory on the GPU, or train with fewer rows or columns.";
    throw OutOfDeviceMemory{msg.str()};
  }
  CheckCuda(status, "cudaMalloc", __FILE__, __LINE__);
  ledger = DeviceContext::Current().Memory();
  ledger->Add(bytes);
  of_process.Add(bytes);
  return p;
}

void DeviceMemory::Free(void* p, std::size_t bytes) noexcept {
  if (p == nullptr) {
    return;
  }
  CaptureGuard const guard;
  Succeeds(cudaFree(p));
  ledger->Subtract(bytes);
  of_process.Subtract(bytes);
}

std::size_t PeakDeviceBytes() { return of_process.Peak(); }

void* PinnedMemory::Allocate(std::size_t bytes, char const* what) {
  void* p{nullptr};
  cudaError_t status = cudaHostAlloc(&p, bytes, cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw DeviceError{"Out of page-locked host memory: " + std::to_string(bytes) +
                      " bytes asked for " + what + ". Free memory of the host."};
  }
  CheckCuda(status, "cudaHostAlloc", __FILE__, __LINE__);
  return p;
}

void PinnedMemory::Free(void* p, std::size_t) noexcept {
  if (p == nullptr) {
    return;
  }
  CaptureGuard const guard;
  Succeeds(cudaFreeHost(p));
}

bool SendBytes(void* to, void const* from, std::size_t n_bytes, WordsToClear const& clear) {
  SentWords sent{};
  if (n_bytes > sizeof(sent) || n_bytes % sizeof(std::uint32_t) != 0) {
    return false;
  }
  std::size_t const n_words = n_bytes / sizeof(std::uint32_t);
  if (n_words != 0) {
    std::memcpy(sent.words, from, n_bytes);
  }
  LaunchN("Receive", ReceiveKernel, std::max(n_words, clear.n), sent, n_words,
          static_cast<std::uint32_t*>(to), clear);
  return true;
}

void CopyPinnedBytes(void* to, void const* from, std::size_t n_bytes) {
  using Word = std::uint32_t;
  if (n_bytes > kLittle || n_bytes % sizeof(Word) != 0) {
    CopyAsync(static_cast<char*>(to), static_cast<char const*>(from), n_bytes);
  } else {
    std::size_t const n_words = n_bytes / sizeof(Word);
    LaunchN("CopyPinned", CopyPinnedKernel, n_words, static_cast<Word const*>(from), n_words,
            static_cast<Word*>(to));
  }
}

void Synchronize() { EXACT_CUDA(cudaStreamSynchronize(Stream())); }

void CheckLaunch(cudaError_t status, char const* kernel) {
  static bool const sync = [] {
    char const* value = std::getenv("GPU_EXACT_SYNC");
    return value != nullptr && value[0] == '1';
  }();
  CheckCuda(status, kernel, nullptr, 0);
  if (sync) {
    CheckCuda(cudaStreamSynchronize(Stream()), kernel, nullptr, 0);
  }
}

void CheckGrid(char const* kernel, std::uint64_t grid) {
  if (grid > kMaxGrid) {
    throw DeviceError{std::string{"Kernel "} + kernel + " wants " + std::to_string(grid) +
                      " blocks, and CUDA takes " + std::to_string(kMaxGrid) +
                      "; train with fewer rows or columns."};
  }
}

LaunchConfig::LaunchConfig(std::uint64_t grid, BlockSize const& block) {
  if (block.cluster != 1) {
    auto& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {block.cluster, 1, 1};
  }
  if (MayBeginEarly()) {
    auto& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  config.gridDim = static_cast<unsigned>(grid);
  config.blockDim = block.n_threads;
  config.dynamicSmemBytes = block.shared_bytes;
  config.stream = Stream();
  config.attrs = attributes;
}

int DeviceAttribute(cudaDeviceAttr attribute) {
  int device{0};
  int value{0};
  EXACT_CUDA(cudaGetDevice(&device));
  EXACT_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

bool ReachDevice(int other) {
  int device{0};
  int can{0};
  EXACT_CUDA(cudaGetDevice(&device));
  if (other == device) {
    return true;
  }
  EXACT_CUDA(cudaDeviceCanAccessPeer(&can, device, other));
  cudaError_t const status =
      can == 0 ? cudaErrorPeerAccessUnsupported : cudaDeviceEnablePeerAccess(other, 0);
  static_cast<void>(cudaGetLastError());  // not the next launch's
  return status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
}

std::uint64_t ContextOf(int ordinal) {
  // Of the driver, whose calls need no context to be current; its types are not needed either.
  using DeviceGet = int (*)(int* device, int ordinal);
  using Retain = int (*)(void** context, int device);
  using GetId = int (*)(void* context, unsigned long long* id);
  using Release = int (*)(int device);
  auto const find = [](char const* name) {
    constexpr unsigned kSince = 12000;
    void* fn{nullptr};
    cudaDriverEntryPointQueryResult result{};
    return Succeeds(cudaGetDriverEntryPointByVersion(name, &fn, kSince, cudaEnableDefault, &result))
               ? fn
               : nullptr;
  };
  static auto const device_get = reinterpret_cast<DeviceGet>(find("cuDeviceGet"));
  static auto const retain = reinterpret_cast<Retain>(find("cuDevicePrimaryCtxRetain"));
  static auto const get_id = reinterpret_cast<GetId>(find("cuCtxGetId"));
  static auto const release = reinterpret_cast<Release>(find("cuDevicePrimaryCtxRelease"));
  int device{0};
  void* context{nullptr};
  if (device_get == nullptr || retain == nullptr || get_id == nullptr || release == nullptr ||
      device_get(&device, std::max(ordinal, 0)) != 0 || retain(&context, device) != 0) {
    return 0;
  }
  unsigned long long id{0};
  bool const has_id = get_id(context, &id) == 0;
  static_cast<void>(release(device));
  return has_id ? id : 0;
}

int CountDevices() {
  int n_devices{0};
  cudaError_t const status = cudaGetDeviceCount(&n_devices);
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  CheckCuda(status, "cudaGetDeviceCount", __FILE__, __LINE__);
  return n_devices;
}

DeviceStatus ProbeDevice(int ordinal) {
  cudaError_t status = StartDriver();
  if (status != cudaSuccess) {
    return RefuseAll(status);
  }
  CaptureGuard const guard;  // a call of the runtime, as all that follow
  int n_devices{0};
  if (!Succeeds(status = cudaGetDeviceCount(&n_devices))) {
    return RefuseAll(status);
  }
  if (n_devices == 0) {
    return RefuseAll(cudaErrorNoDevice);
  }
  int device = std::max(ordinal, 0);
  if (device >= n_devices) {
    return Refuse("",
                  "There is no GPU with ordinal " + std::to_string(device) + ", only " +
                      std::to_string(n_devices) + "; set device to a lower one.",
                  true);
  }
  cudaDeviceProp prop{};
  if (!Succeeds(status = cudaGetDeviceProperties(&prop, device))) {
    return Refuse("", "GPU " + std::to_string(device) + " does not answer (" + Describe(status) +
                          "); check nvidia-smi.");
  }
  std::string name = prop.name;
  std::string advice;
  int const capability = 10 * prop.major + prop.minor;
  try {
    DeviceContext context{device};
    DeviceContext::Scope const scope{context};
    cudaFuncAttributes attributes{};
    static_cast<void>(Succeeds(status = cudaFuncGetAttributes(&attributes, ProbeKernel)));
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
        status == cudaErrorUnsupportedPtxVersion) {
      return Refuse(name,
                    "This build has no kernels for " + name + "; build with " +
                        "-DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(capability) + ".",
                    true);
    }
    advice = AdviseBuild(name, capability, attributes.ptxVersion);
    DeviceBuffer<int> buffer{"the probe"};
    int value{0};
    buffer.Reserve(1);
    Launch("ProbeKernel", ProbeKernel, 1, 1, buffer.Data());
    CopyAsync(&value, buffer.Data(), 1);
    Synchronize();
    if (value != 1) {
      return Refuse(name, name + " ran a kernel without effect; check nvidia-smi.");
    }
  } catch (DeviceError const& e) {
    return Refuse(name, name + " cannot be used: " + e.what());
  }
  return {true, name, "", true, advice};
}
}  // namespace gpu_exact
