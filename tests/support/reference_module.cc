/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Puts the reference builder in the place of the GPU's, and is as strict as CUDA about forks:
 *        what a process has touched ends every process that is forked from it and touches it too.
 */
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gpu_exact/device.h"
#include "host/all_or_none.h"
#include "plan/memory_plan.h"
#include "tests/support/faults.h"
#include "tests/support/reference_builder.h"

namespace {
std::atomic<int> set_up_ms{0};
std::atomic<gpu_exact::EntryIdx> held_entries{0};  // of all builders
std::atomic<std::uint64_t> context{1};
std::string failing_stage;

/** @brief Whether tables would hold more entries than an environment variable of a test's allows. */
bool IsBeyond(char const* variable, gpu_exact::EntryIdx n_entries) {
  auto const* limit = std::getenv(variable);
  return limit != nullptr && held_entries + n_entries > std::strtoull(limit, nullptr, 10);
}
}  // namespace

/** @brief For tests: the next "set up", "build" or "positions" of this process has no memory. */
extern "C" __attribute__((visibility("default"))) void GpuExactReferenceFail(char const* stage) {
  failing_stage = stage;
}

/** @brief For tests: from now on a table takes so long to prepare. */
extern "C" __attribute__((visibility("default"))) void GpuExactReferenceSetUpMs(int ms) {
  set_up_ms = ms;
}

/** @brief For tests: another library has reset the device's context. */
extern "C" __attribute__((visibility("default"))) void GpuExactReferenceReset() {
  ++context;
  held_entries = 0;  // what lay there is gone
}

namespace gpu_exact {
namespace {
/** @brief What a CUDA call does to a process that was forked after one. */
void CheckProcess(char const* what) {
  static pid_t const process = getpid();  // NOLINT
  if (getpid() != process) {
    std::fprintf(stderr, "%s in a process forked after CUDA was used.\n", what);
    std::_Exit(70);
  }
}

/** @brief Throws where a test wants it. */
void MayFail(char const* stage) {
  if (failing_stage == stage) {
    failing_stage.clear();
    throw std::bad_alloc{};
  }
}

/** @brief AllOrNone(), or fn alone where there is one worker. */
template <typename Fn>
void Together(Communicator* comm, Fn const& fn) {
  if (comm) {
    AllOrNone(comm, fn);
  } else {
    fn();
  }
}

/** @brief In the place of a CUDA call: it may be made to fail, see faults.h. */
void TouchDevice(char const* what) {
  CheckProcess(what);
  if (faults::Sticking() != 0 || faults::Next(faults::Kind::kDevice, what) != 0) {
    throw DeviceError{std::string{"CUDA error from "} + what +
                      ", as a test wants it. Restart the process."};
  }
}

/** @brief The reference builder as one whose memory lies on a device. */
class StrictBuilder final : public TreeBuilder {
 public:
  StrictBuilder(CsrView const& rows, Communicator* comm, std::uint64_t host_bytes)
      : builder_{MakeReferenceBuilder(rows, comm)},
        n_entries_{rows.n_entries},
        host_bytes_{host_bytes} {
    held_entries += n_entries_;
  }
  ~StrictBuilder() override {
    this->Check("~TreeBuilder()");
    held_entries -= n_entries_;
  }
  StrictBuilder(StrictBuilder const&) = delete;
  StrictBuilder& operator=(StrictBuilder const&) = delete;

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override {
    this->Check("Build()");
    TouchDevice("Build()");
    MayFail("build");
    auto const begin = std::chrono::steady_clock::now();
    auto grown = builder_->Build(param, gradients, row_included, features);
    build_ms_ =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return grown;
  }
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override {
    MayFail("positions");
    TouchDevice("WritePositions()");
    builder_->WritePositions(remap, memory, out_positions);
  }
  [[nodiscard]] bool AnyDeletedRow(GradientPair const* gradients) override {
    TouchDevice("AnyDeletedRow()");
    return builder_->AnyDeletedRow(gradients);
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override { return kDeviceBytes; }
  [[nodiscard]] TreeStats Stats() const override {
    TreeStats stats = builder_->Stats();
    stats.peak_bytes = 2 * kDeviceBytes;
    stats.planned_host_bytes = host_bytes_;
    stats.refined_share = 0.0;
    stats.start_ms = build_ms_ / 4;  // some of it: phases are to be told apart
    stats.levels_ms = build_ms_ / 2;
    stats.through_host = std::getenv("GPU_EXACT_REFERENCE_THROUGH_HOST") != nullptr;
    return stats;
  }

 private:
  // What it says that it holds; none of the entries are looked into.
  static constexpr std::uint64_t kDeviceBytes = std::uint64_t{3} << 20;

  /** @brief What it does to a process to touch memory of a context that is gone. */
  void Check(char const* what) const {
    CheckProcess(what);
    if (context_ != context) {
      std::fprintf(stderr, "%s on memory of a context that was reset.\n", what);
      std::_Exit(71);
    }
  }

  std::unique_ptr<TreeBuilder> builder_;
  EntryIdx n_entries_;
  std::uint64_t host_bytes_;
  std::uint64_t context_{context};
  double build_ms_{0.0};
};
}  // namespace

/** @brief Weak: host tests have one of their own, which answers as they want. */
__attribute__((weak)) DeviceStatus ProbeDevice(int) {
  CheckProcess("ProbeDevice()");
  // As CUDA's own exit handlers, which are there from the first call on.
  static int const kSetUp = std::atexit([] { CheckProcess("an exit handler of CUDA"); });
  static_cast<void>(kSetUp);
  auto const* reason = std::getenv("GPU_EXACT_REFERENCE_REFUSES");
  auto const* advice = std::getenv("GPU_EXACT_REFERENCE_ADVICE");
  return {reason == nullptr, "reference builder (no GPU)", reason == nullptr ? "" : reason,
          reason == nullptr, advice == nullptr ? "" : advice};
}

int CountDevices() { return 2; }

std::uint64_t ContextOf(int) { return context; }

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(std::vector<int> const& ordinals,
                                               CsrView const& table, TableOptions const& options) {
  return MakeDeviceBuilder(ordinals.front(), table, options);
}

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int, CsrView const& rows,
                                               TableOptions const& options, Communicator* comm) {
  std::this_thread::sleep_for(std::chrono::milliseconds{set_up_ms});
  TouchDevice("MakeDeviceBuilder()");
  std::vector<EntryIdx> offsets{0};
  std::vector<CsrEntry> entries;
  CsrView all = rows;
  bool const partly_on_host = IsBeyond("GPU_EXACT_REFERENCE_DEVICE_ENTRIES", rows.n_entries);
  Together(comm, [&] {
    MayFail("set up");
    if (IsBeyond("GPU_EXACT_REFERENCE_ENTRIES", rows.n_entries) ||
        (options.device_only && partly_on_host)) {
      throw OutOfDeviceMemory{"Out of device memory, as a test wants it."};
    }
    constexpr std::uint64_t kTotal = std::uint64_t{1} << 40;
    // As if each column had one category.
    FeatureIdx const n_categorical = NumCategorical(rows);
    CategoricalColumns const categorical{
        std::vector<std::uint32_t>(n_categorical, 1),
        std::min(rows.n_entries, std::uint64_t{n_categorical} * rows.n_rows)};
    static_cast<void>(ChooseMemory(rows, Strategy::kHistogram,
                                   {kTotal, kTotal, options.memory_limit}, categorical));
    if (rows.pages == nullptr) {
      return;
    }
    rows.pages->ForEach([&](CsrView const& page, RowIdx first_row) {
      if (first_row + 1 != offsets.size()) {
        throw std::logic_error{"Pages are not in order."};
      }
      for (RowIdx r = 0; r < page.n_rows; ++r) {
        entries.insert(entries.end(), page.entries + page.offsets[r],
                       page.entries + page.offsets[r + 1]);
        offsets.push_back(entries.size());
      }
    });
    if (entries.size() != rows.n_entries || offsets.size() != std::size_t{rows.n_rows} + 1) {
      throw std::logic_error{"Pages are not the whole table."};
    }
    all = {offsets.data(),  entries.data(), rows.n_entries, rows.n_rows,
           rows.n_features, Memory::kHost,  nullptr,        rows.feature_types};
  });
  return std::make_unique<StrictBuilder>(all, comm, partly_on_host ? rows.n_entries : 0);
}
}  // namespace gpu_exact
