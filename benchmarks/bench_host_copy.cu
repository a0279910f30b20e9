/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Times copies between pageable host memory and the device: one JSON line for each size and
 *        plan, the median of 21 copies. One thread: by CUDA alone.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "src/device/host_copy.cuh"

namespace gpu_exact::bench {
namespace {
template <typename FnT>
double MedianMs(FnT&& fn) {
  std::vector<double> ms;
  for (int i = 0; i < 21; ++i) {
    auto const start = std::chrono::steady_clock::now();
    fn();
    Synchronize();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                     .count());
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

void Time(std::size_t n_bytes, CopyPlan const& plan) {
  HostCopier copier{plan};
  copier.SetTeam({static_cast<std::int32_t>(plan.n_threads)});
  std::vector<char> host(n_bytes, 1);
  DeviceBuffer<char> device{"a benchmark's array"};
  device.Reserve(n_bytes);
  copier.CopyToDevice(device.Data(), host.data(), n_bytes);  // takes the page-locked memory
  double const up = MedianMs([&] { copier.CopyToDevice(device.Data(), host.data(), n_bytes); });
  double const down = MedianMs([&] { copier.CopyToHost(host.data(), device.Data(), n_bytes); });
  std::printf(
      "{\"bytes\": %zu, \"threads\": %zu, \"chunk_bytes\": %zu, \"slots\": %zu, "
      "\"to_device_ms\": %.3f, \"to_host_ms\": %.3f}\n",
      n_bytes, plan.n_threads, plan.chunk_bytes, plan.n_slots, up, down);
}
}  // namespace
}  // namespace gpu_exact::bench

int main() {
  using namespace gpu_exact::bench;  // NOLINT
  constexpr std::size_t kKiB = 1024;
  for (std::size_t n_bytes : {kKiB * kKiB, 4 * kKiB * kKiB, 8 * kKiB * kKiB, 42 * kKiB * kKiB,
                              84 * kKiB * kKiB, 256 * kKiB * kKiB}) {
    for (std::size_t n_threads : {1, 2, 4, 8, 16}) {
      for (std::size_t chunk : {256 * kKiB, 512 * kKiB, 1024 * kKiB, 2048 * kKiB}) {
        if (n_threads > 1 || chunk == 256 * kKiB) {
          Time(n_bytes, {chunk, 2 * std::max<std::size_t>(n_threads, 8), n_threads, 0});
        }
      }
    }
  }
}
