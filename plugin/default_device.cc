/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "default_device.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>
#include <xgboost/tree_updater.h>

#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "device_status.h"

namespace gpu_exact {
namespace {
constexpr int kCpu = -1;
std::atomic<int> default_ordinal{kCpu};

/** @brief The CUDA ordinal that a device's name stands for, kCpu for the CPU. */
std::optional<int> ParseDevice(std::string const& device) {
  std::string const prefix{"cuda:"};
  if (device == "cpu") {
    return kCpu;
  }
  if (device == "cuda") {
    return 0;
  }
  int ordinal{0};
  auto const* end = device.data() + device.size();
  if (device.compare(0, prefix.size(), prefix) != 0 || device.back() == ':') {
    return std::nullopt;
  }
  auto const parsed = std::from_chars(device.data() + prefix.size(), end, ordinal);
  bool const valid = parsed.ec == std::errc{} && parsed.ptr == end && ordinal >= 0;
  return valid ? std::optional<int>{ordinal} : std::nullopt;
}

bool XGBoostHasCuda() {
  return dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->Find("grow_gpu_hist") != nullptr;
}

void WarnOnceOfNoCuda() {
  static std::once_flag warned;
  std::call_once(warned, [] {
    LOG(WARNING) << "This XGBoost is built without CUDA: trees are grown on the GPU, but gradients "
                 << "and predictions are computed on the CPU. Install the wheel `xgboost` in the "
                 << "place of `xgboost-cpu` to have both on the GPU.";
  });
}
}  // namespace

void SetDefaultDevice(std::string const& device) {
  auto const ordinal = ParseDevice(device);
  if (!ordinal) {
    throw std::invalid_argument{"`" + device + "` is no device for exact boosters: say `cpu`, " +
                                "`cuda` or `cuda:<ordinal>`."};
  }
  default_ordinal = *ordinal;
}

void MoveToDefaultDevice(xgboost::Context const* ctx) {
  int const ordinal = default_ordinal;
  if (ordinal == kCpu || !ctx->IsCPU() || !StatusOf(ordinal).usable) {
    return;  // without a GPU the updater says what grows the trees
  }
  if (!XGBoostHasCuda()) {
    WarnOnceOfNoCuda();
    return;
  }
  const_cast<xgboost::Context*>(ctx)->UpdateAllowUnknown(
      xgboost::Args{{"device", "cuda:" + std::to_string(ordinal)}});
}
}  // namespace gpu_exact
