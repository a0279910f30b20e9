/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "host/build_advice.h"

namespace gpu_exact {
std::string AdviseBuild(std::string const& name, int capability, int compiled_for) {
  if (capability < kHopper || compiled_for >= kHopper) {
    return "";
  }
  return name + " runs kernels that were compiled for compute capability " +
         std::to_string(compiled_for / 10) + "." + std::to_string(compiled_for % 10) +
         ", slower than its own would be; build with -DCMAKE_CUDA_ARCHITECTURES=native where it is "
         "visible.";
}
}  // namespace gpu_exact
