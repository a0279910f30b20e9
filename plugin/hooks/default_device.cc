/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "hooks/default_device.h"

#include <atomic>
#include <charconv>
#include <optional>
#include <stdexcept>

namespace gpu_exact {
namespace {
constexpr int kCpu = -1;
std::atomic<int> default_ordinal{kCpu};

/** @brief Read the CUDA ordinal off a device's name, kCpu for the CPU. */
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
}  // namespace

void SetDefaultDevice(std::string const& device) {
  auto const ordinal = ParseDevice(device);
  if (!ordinal) {
    throw std::invalid_argument{"`" + device + "` is no device for exact boosters: say `cpu`, " +
                                "`cuda` or `cuda:<ordinal>`."};
  }
  default_ordinal = *ordinal;
}

int DefaultOrdinal() { return default_ordinal; }
}  // namespace gpu_exact
