/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Puts the reference builder in the place of the GPU's.
 */
#include "gpu_exact/device.h"
#include "tests/support/reference_builder.h"

namespace gpu_exact {
DeviceStatus ProbeDevice(int) { return {true, "reference builder (no GPU)", ""}; }

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int, CsrView const& table, Strategy) {
  return MakeReferenceBuilder(table);
}
}  // namespace gpu_exact
