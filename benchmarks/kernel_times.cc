/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implementation of kernel_times.h. CUPTI is loaded when it is asked for, so that the
 *        program runs where it is not installed.
 */
#include "benchmarks/kernel_times.h"

#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>

namespace gpu_exact::bench {
namespace {
constexpr std::size_t kBufferBytes = 4 << 20;
constexpr std::size_t kAlignment = 8;  // asked for by CUPTI
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

std::string LibraryName() { return "libcupti.so." + std::to_string(CUDA_VERSION / 1000); }

/** @brief The functions of CUPTI that are used. */
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks{nullptr};
  decltype(&cuptiActivityEnable) enable{nullptr};
  decltype(&cuptiActivityDisable) disable{nullptr};
  decltype(&cuptiActivityFlushAll) flush{nullptr};
  decltype(&cuptiActivityGetNextRecord) next{nullptr};

  /** @brief Whether all were found. */
  bool Load() {
    void* library = dlopen(LibraryName().c_str(), RTLD_NOW);
    auto find = [&](char const* function, auto* out) {
      *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(
          library == nullptr ? nullptr : dlsym(library, function));
      return *out != nullptr;
    };
    return find("cuptiActivityRegisterCallbacks", &register_callbacks) &&
           find("cuptiActivityEnable", &enable) && find("cuptiActivityDisable", &disable) &&
           find("cuptiActivityFlushAll", &flush) && find("cuptiActivityGetNextRecord", &next);
  }
};

// CUPTI's callbacks have no argument of the caller's.
Cupti cupti;
std::map<std::string, KernelTime> times;

/**
 * @brief <where>:<kernel>. Kernels in a source file are in its anonymous namespace, whose mangled
 *        name holds the file.
 */
std::string ShortName(std::string const& mangled) {
  static std::regex const kOurs{"^_ZN9gpu_exact([0-9]+_GLOBAL__N__[0-9a-f]+_[0-9]+_(\\w+?)_cu_)?"};
  static std::regex const kKernel{"[0-9]([A-Z][A-Za-z]*Kernel)(ILb([01])E)?"};
  std::smatch ours, kernel;
  std::string where = !std::regex_search(mangled, ours, kOurs) ? "cub"
                      : ours[2].matched                        ? ours[2].str()
                                                               : "gpu_exact";
  if (!std::regex_search(mangled, kernel, kKernel)) {
    return where + ":" + mangled;
  }
  std::string flag = !kernel[3].matched ? "" : kernel[3] == "1" ? "<true>" : "<false>";
  return where + ":" + kernel[1].str() + flag;
}

void Add(std::string const& name, std::uint64_t begin_ns, std::uint64_t end_ns) {
  KernelTime& time = times.try_emplace(name, KernelTime{name, 0, 0.0}).first->second;
  ++time.calls;
  time.ms += static_cast<double>(end_ns - begin_ns) * 1e-6;
}

void AddRecord(CUpti_Activity const* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    auto kernel = reinterpret_cast<CUpti_ActivityKernel10 const*>(record);
    Add(ShortName(kernel->name), kernel->start, kernel->end);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    auto copy = reinterpret_cast<CUpti_ActivityMemcpy6 const*>(record);
    bool to_device = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    bool to_host = copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    Add(to_device ? "copy to device"
        : to_host ? "copy to host"
                  : "copy on device",
        copy->start, copy->end);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    auto fill = reinterpret_cast<CUpti_ActivityMemset4 const*>(record);
    Add("fill", fill->start, fill->end);
  }
}

void CUPTIAPI GiveBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                         std::size_t valid) {
  CUpti_Activity* record{nullptr};
  while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
    AddRecord(record);
  }
  std::free(buffer);
}
}  // namespace

std::string StartKernelTimes() {
  if (cupti.next == nullptr && !cupti.Load()) {
    return LibraryName() +
           " was not found; it comes with the CUDA toolkit, name its folder in LD_LIBRARY_PATH";
  }
  times.clear();
  bool ok = cupti.register_callbacks(GiveBuffer, TakeBuffer) == CUPTI_SUCCESS;
  for (CUpti_ActivityKind kind : kKinds) {
    ok = ok && cupti.enable(kind) == CUPTI_SUCCESS;
  }
  return ok ? "" : "CUPTI refuses to record kernels on this machine";
}

std::vector<KernelTime> StopKernelTimes() {
  for (CUpti_ActivityKind kind : kKinds) {
    static_cast<void>(cupti.disable(kind));
  }
  static_cast<void>(cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  std::vector<KernelTime> sorted;
  for (auto const& item : times) {
    sorted.push_back(item.second);
  }
  std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.ms > b.ms; });
  return sorted;
}
}  // namespace gpu_exact::bench
