/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Is there a GPU that can build trees, and what goes wrong on it.
 */
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gpu_exact {
/** @brief What a process knows of one GPU. */
struct DeviceStatus {
  bool usable{false};
  std::string name;    // as the driver calls it; empty where there is none
  std::string reason;  // why it is not usable: one sentence with the remedy; empty where it is
};

/**
 * @brief Whether the device can run this library's kernels.
 *
 * The first CUDA call of the process that comes from this library; makes a context. Never throws.
 *
 * @param ordinal The CUDA device, or -1 for the first visible one.
 */
[[nodiscard]] DeviceStatus ProbeDevice(int ordinal);

/** @brief A CUDA call failed: the call, where, and the driver's words. */
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** @brief The table does not fit: bytes asked, free, total, what each part takes, the remedy. */
struct OutOfDeviceMemory : DeviceError {
  using DeviceError::DeviceError;
};

/** @brief A gradient or hessian is NaN or infinite: no sums of it exist. */
struct NonFiniteGradient : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** @brief Gradients that are too far apart to be summed exactly: most would be rounded away. */
struct GradientRange : std::runtime_error {
  using std::runtime_error::runtime_error;
};
}  // namespace gpu_exact
