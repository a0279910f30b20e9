/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells whether there is a GPU that can build trees, and what goes wrong on it.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Holds what a process knows of one GPU. */
struct DeviceStatus {
  bool usable{false};
  std::string name;      // as the driver calls it; empty where there is none
  std::string reason;    // why it is not usable: one sentence with the remedy; empty where it is
  bool lasts{false};     // it stays so while the process lives: one that is usable does
  std::string advice{};  // which build would be faster on it; empty where this one is fine
};

/** @brief Gives the reason in a process that was forked once CUDA's driver had been started. */
inline constexpr char const* kForkedAfterCuda =
    "This process was forked after CUDA was used, and CUDA does not survive that: fork before the "
    "first booster, or start workers that are not forked (Python: `spawn`; R: a PSOCK cluster).";

/**
 * @brief Tell whether the device can run this library's kernels.
 *
 * The first CUDA call of the process that comes from this library; makes a context. Never throws.
 *
 * @param ordinal The CUDA device, or -1 for the first visible one.
 */
[[nodiscard]] DeviceStatus ProbeDevice(int ordinal);

/**
 * @brief Number the CUDA context that libraries share on a device.
 *
 * A context that another library has reset comes back under another number. What was allocated in the
 * old one is gone: it may neither be used nor freed.
 *
 * @param ordinal The CUDA device, or -1 for the first visible one.
 * @return 0 where it cannot be told.
 */
[[nodiscard]] std::uint64_t ContextOf(int ordinal);

/** @brief Count the CUDA devices that this process sees; 0 where there is no driver. Throws
 *         DeviceError. */
[[nodiscard]] int CountDevices();

/**
 * @brief Choose the devices to share a table among, by the parameter `gpu_exact_devices`.
 *
 * @param text      Empty: the first alone. "all": the first and all others, if the table has
 *                  enough entries to be worth it. Else ordinals with commas between, in any order:
 *                  these devices, the first one before the others, whatever the table.
 * @param first     The booster's device.
 * @param n_visible Devices there are.
 * @throw std::invalid_argument where the text is none of that, names a device that is not there, or
 *        leaves out the first.
 */
[[nodiscard]] std::vector<int> ChooseDevices(std::string const& text, int first, int n_visible,
                                             EntryIdx n_entries);

/** @brief Tells which CUDA call failed, where, and the driver's words. */
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** @brief Tells that the table does not fit: bytes asked, free, total, what each part takes, the
 *         remedy. */
struct OutOfDeviceMemory : DeviceError {
  using DeviceError::DeviceError;
};

/** @brief Refuses a table of which no tree can grow here, before anything is begun. */
struct UnfitTable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** @brief Refuses a value of a categorical feature that is no category. */
struct InvalidCategory : UnfitTable {
  FeatureIdx feature;
  float value;

  /** @param name The feature's name; empty: it has none. */
  InvalidCategory(FeatureIdx f, float v, std::string const& name = "")
      : UnfitTable{"Invalid categorical value detected: column " + std::to_string(f) +
                   (name.empty() ? "" : ", \"" + name + "\",") + " has " + TextOf(v) +
                   "; give its categories whole numbers from 0 to " +
                   std::to_string(kMostCategories - 1) + ", and make missing what is none."},
        feature{f},
        value{v} {}

  /** @brief Tell whether a value is none. */
  [[nodiscard]] static constexpr bool Is(float value) {
    return !(value >= 0.0f && value < static_cast<float>(kMostCategories));
  }

 private:
  /** @brief Write a value with all its digits. */
  [[nodiscard]] static std::string TextOf(float value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
    return text;
  }
};

/** @brief Refuses gradients of which no tree can grow here, before anything is begun. */
struct UnfitGradients : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** @brief Refuses a gradient or hessian that is NaN or infinite: no sums of it exist. */
struct NonFiniteGradient : UnfitGradients {
  using UnfitGradients::UnfitGradients;
};

/** @brief Refuses gradients that are too far apart to be summed exactly: most would be rounded
 *         away. */
struct GradientRange : UnfitGradients {
  using UnfitGradients::UnfitGradients;
};
}  // namespace gpu_exact
