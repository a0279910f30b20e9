/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of runtime.cuh, and the probe for a usable device.
 */
#include <cstdlib>
#include <sstream>

#include "src/device/runtime.cuh"

namespace gpu_exact {
namespace {
__global__ void ProbeKernel(int* out) { *out = 1; }

std::string Describe(cudaError_t status) {
  return std::string{cudaGetErrorName(status)} + ", " + cudaGetErrorString(status);
}

DeviceStatus Refuse(std::string name, std::string reason) {
  static_cast<void>(cudaGetLastError());
  return {false, std::move(name), std::move(reason)};
}
}  // namespace

void CheckCuda(cudaError_t status, char const* call, char const* file, int line) {
  if (status == cudaSuccess) {
    return;
  }
  static_cast<void>(cudaGetLastError());  // clears an error that does not stick
  std::ostringstream msg;
  msg << "CUDA error " << Describe(status) << " from " << call << " at " << file << ":" << line;
  throw DeviceError{msg.str()};
}

void* AllocateDevice(std::size_t bytes, char const* what) {
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
  EXACT_CUDA(status);
  return p;
}

void FreeDevice(void* p) noexcept { static_cast<void>(cudaFree(p)); }

void Synchronize() { EXACT_CUDA(cudaStreamSynchronize(Stream())); }

void CheckLaunch(char const* kernel) {
  static bool const sync = [] {
    char const* value = std::getenv("GPU_EXACT_SYNC");
    return value != nullptr && value[0] == '1';
  }();
  CheckCuda(cudaGetLastError(), kernel, "launch", 0);
  if (sync) {
    CheckCuda(cudaStreamSynchronize(Stream()), kernel, "execution", 0);
  }
}

DeviceGuard::DeviceGuard(int ordinal) {
  EXACT_CUDA(cudaGetDevice(&previous_));
  EXACT_CUDA(cudaSetDevice(ordinal < 0 ? 0 : ordinal));
}

DeviceGuard::~DeviceGuard() { static_cast<void>(cudaSetDevice(previous_)); }

DeviceStatus ProbeDevice(int ordinal) {
  int n_devices{0};
  cudaError_t status = cudaGetDeviceCount(&n_devices);
  if (status == cudaErrorInsufficientDriver) {
    return Refuse("", "The NVIDIA driver is missing or older than this build's CUDA " +
                          std::to_string(CUDART_VERSION / 1000) + "." +
                          std::to_string(CUDART_VERSION % 1000 / 10) + "; install a newer driver.");
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && n_devices == 0)) {
    return Refuse("",
                  "No NVIDIA GPU is visible to this process; check nvidia-smi and "
                  "CUDA_VISIBLE_DEVICES.");
  }
  if (status != cudaSuccess) {
    return Refuse(
        "", "The NVIDIA driver does not answer (" + Describe(status) + "); check nvidia-smi.");
  }
  int device = ordinal < 0 ? 0 : ordinal;
  if (device >= n_devices) {
    return Refuse("", "There is no GPU with ordinal " + std::to_string(device) + ", only " +
                          std::to_string(n_devices) + "; set device to a lower one.");
  }
  cudaDeviceProp prop{};
  status = cudaGetDeviceProperties(&prop, device);
  std::string name = status == cudaSuccess ? prop.name : "";
  try {
    DeviceGuard guard{device};
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
    std::ostringstream reason;
    reason << name << " (compute capability " << prop.major << "." << prop.minor
           << ") cannot run this build: " << e.what()
           << ". Build with -DCMAKE_CUDA_ARCHITECTURES=" << prop.major << prop.minor << ".";
    return Refuse(name, reason.str());
  }
  return {true, name, ""};
}
}  // namespace gpu_exact
