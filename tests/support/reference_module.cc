/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Puts the reference builder in the place of the GPU's, and is as strict as CUDA about forks:
 *        what a process has touched ends every process that is forked from it and touches it too.
 */
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gpu_exact/device.h"
#include "src/memory_plan.h"
#include "tests/support/reference_builder.h"

namespace {
std::atomic<int> set_up_ms{0};
}  // namespace

/** @brief For tests: from now on a table takes so long to prepare. */
extern "C" __attribute__((visibility("default"))) void GpuExactReferenceSetUpMs(int ms) {
  set_up_ms = ms;
}

namespace gpu_exact {
namespace {
/** @brief What a CUDA call does to a process that was forked after one. */
void TouchDevice(char const* what) {
  static pid_t const process = getpid();
  if (getpid() != process) {
    std::fprintf(stderr, "%s in a process forked after CUDA was used.\n", what);
    std::_Exit(70);
  }
}

/** @brief The reference builder as one whose memory lies on a device. */
class StrictBuilder final : public TreeBuilder {
 public:
  explicit StrictBuilder(CsrView const& table) : builder_{MakeReferenceBuilder(table)} {}
  ~StrictBuilder() override { TouchDevice("~TreeBuilder()"); }
  StrictBuilder(StrictBuilder const&) = delete;
  StrictBuilder& operator=(StrictBuilder const&) = delete;

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override {
    TouchDevice("Build()");
    return builder_->Build(param, gradients, row_included, features);
  }
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override {
    builder_->WritePositions(remap, memory, out_positions);
  }
  [[nodiscard]] bool AnyDeletedRow(GradientPair const* gradients) override {
    return builder_->AnyDeletedRow(gradients);
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override { return builder_->DeviceBytes(); }
  [[nodiscard]] TreeStats Stats() const override { return builder_->Stats(); }

 private:
  std::unique_ptr<TreeBuilder> builder_;
};
}  // namespace

DeviceStatus ProbeDevice(int) {
  TouchDevice("ProbeDevice()");
  return {true, "reference builder (no GPU)", ""};
}

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int, CsrView const& table, Strategy,
                                               double memory_limit) {
  std::this_thread::sleep_for(std::chrono::milliseconds{set_up_ms});
  TouchDevice("MakeDeviceBuilder()");
  auto const* limit = std::getenv("GPU_EXACT_REFERENCE_ENTRIES");  // of a table; set by tests
  if (limit != nullptr && table.n_entries > std::strtoull(limit, nullptr, 10)) {
    throw OutOfDeviceMemory{"Out of device memory, as a test wants it."};
  }
  constexpr std::uint64_t kTotal = std::uint64_t{1} << 40;
  static_cast<void>(ChooseMemory(table, Strategy::kHistogram, {kTotal, kTotal, memory_limit}));
  if (table.pages == nullptr) {
    return std::make_unique<StrictBuilder>(table);
  }
  std::vector<EntryIdx> offsets{0};
  std::vector<CsrEntry> entries;
  table.pages->ForEach([&](CsrView const& page, RowIdx first_row) {
    if (first_row + 1 != offsets.size()) {
      throw std::logic_error{"Pages are not in order."};
    }
    for (RowIdx r = 0; r < page.n_rows; ++r) {
      entries.insert(entries.end(), page.entries + page.offsets[r],
                     page.entries + page.offsets[r + 1]);
      offsets.push_back(entries.size());
    }
  });
  if (entries.size() != table.n_entries || offsets.size() != std::size_t{table.n_rows} + 1) {
    throw std::logic_error{"Pages are not the whole table."};
  }
  return std::make_unique<StrictBuilder>(CsrView{offsets.data(), entries.data(), table.n_entries,
                                                 table.n_rows, table.n_features, Memory::kHost});
}
}  // namespace gpu_exact
