/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "gpu_exact/c_api.h"

#include <exception>
#include <mutex>
#include <string>

#include "gpu_exact/memory_estimate.h"
#include "gpu_exact/source_hash.h"
#include "hooks/default_device.h"
#include "hooks/take_over.h"
#include "load/binding.h"
#include "train/device_status.h"
#include "train/per_process.h"
#include "train/run_log.h"
#include "versions.h"

namespace {
thread_local std::string last_error;  // NOLINT

/** @brief Run it; no exception leaves the module. */
template <typename Fn>
int Guarded(Fn&& fn) {
  try {
    fn();
    return 0;
  } catch (std::exception const& e) {
    last_error = e.what();
  } catch (...) {
    last_error = "An error of an unknown type.";
  }
  return -1;
}

gpu_exact::PerProcess<std::mutex> registry_mutex;

/** @brief Register. The caller holds registry_mutex. A call that failed may be repeated. */
void RegisterOnce() {
  static bool registered = false;
  if (!registered) {
    gpu_exact::BindXGBoost().do_register();
    registered = true;
  }
}
}  // namespace

char const* GpuExactGetLastError() { return last_error.c_str(); }

char const* GpuExactVersion() { return gpu_exact::kVersion; }

int GpuExactRegister() {
  return Guarded([] {
    std::lock_guard<std::mutex> guard{registry_mutex.Get()};
    RegisterOnce();
  });
}

int GpuExactTakeOver(int enable) {
  return Guarded([&] {
    std::lock_guard<std::mutex> guard{registry_mutex.Get()};
    RegisterOnce();
    gpu_exact::TakeOver(enable != 0);
  });
}

int GpuExactSetDefaultDevice(char const* device) {
  return Guarded([&] { gpu_exact::SetDefaultDevice(device); });
}

int GpuExactDeviceStatus(int ordinal, int* out_usable, char const** out_text) {
  return Guarded([&] {
    auto const status = gpu_exact::StatusOf(ordinal);
    thread_local std::string text;  // until the next call
    text = status.usable ? status.name : status.reason;
    if (!status.advice.empty()) {
      text += ". " + status.advice;
    }
    *out_usable = status.usable ? 1 : 0;
    *out_text = text.c_str();
  });
}

int GpuExactLastRun(char const** out_json) {
  return Guarded([&] {
    thread_local std::string json;  // until the next call
    json = gpu_exact::LastRunJson();
    *out_json = json.c_str();
  });
}

int GpuExactMemoryEstimate(uint64_t rows, uint64_t columns, uint64_t entries, int max_depth,
                           uint32_t const* categories, uint64_t n_categorical,
                           char const** out_json) {
  return Guarded([&] {
    thread_local std::string json;  // until the next call
    json = gpu_exact::MemoryEstimate(rows, columns, entries, max_depth,
                                     {categories, categories + n_categorical});
    *out_json = json.c_str();
  });
}

char const* GpuExactSourceHash() { return gpu_exact::SourceHash(); }
