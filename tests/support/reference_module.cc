/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Puts the reference builder in the place of the GPU's.
 */
#include <atomic>
#include <chrono>
#include <thread>

#include "gpu_exact/device.h"
#include "tests/support/reference_builder.h"

namespace {
std::atomic<int> set_up_ms{0};
}  // namespace

/** @brief For tests: from now on a table takes so long to prepare. */
extern "C" __attribute__((visibility("default"))) void GpuExactReferenceSetUpMs(int ms) {
  set_up_ms = ms;
}

namespace gpu_exact {
DeviceStatus ProbeDevice(int) { return {true, "reference builder (no GPU)", ""}; }

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int, CsrView const& table, Strategy) {
  std::this_thread::sleep_for(std::chrono::milliseconds{set_up_ms});
  return MakeReferenceBuilder(table);
}
}  // namespace gpu_exact
