/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The plugin with a builder that grows one tree and gives it, and the leaves of its rows, ever
 *        again: what a round takes then is XGBoost's own part, its gradients and predictions.
 *
 * The linker gives the plugin's calls of MakeDeviceBuilder() to the function below (--wrap).
 */
#include <algorithm>
#include <memory>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "src/copy_crew.h"

#define MAKE_DEVICE_BUILDER \
  "_ZN9gpu_exact17MakeDeviceBuilderERKSt6vectorIiSaIiEERKNS_7CsrViewERKNS_12TableOptionsE"

namespace gpu_exact {
namespace {
class FixedTree final : public TreeBuilder {
 public:
  FixedTree(std::unique_ptr<TreeBuilder> builder, RowIdx n_rows)
      : builder_{std::move(builder)}, positions_(n_rows) {}

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override {
    if (tree_.empty()) {
      tree_ = builder_->Build(param, gradients, row_included, features);
      team_ = param.team;
    }
    return tree_;
  }
  /** @brief Of a tree that is not pruned, on the host. */
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override {
    if (!are_known_ || memory != Memory::kHost) {
      builder_->WritePositions(remap, memory, out_positions);
      are_known_ = memory == Memory::kHost;
      std::copy_n(out_positions, are_known_ ? positions_.size() : 0, positions_.begin());
      return;
    }
    constexpr std::size_t kChunk = std::size_t{1} << 18;
    std::size_t const n_chunks = (positions_.size() + kChunk - 1) / kChunk;
    auto const copy = [&](std::size_t i) {
      std::size_t const n = std::min(kChunk, positions_.size() - i * kChunk);
      std::copy_n(positions_.begin() + i * kChunk, n, out_positions + i * kChunk);
    };
    std::size_t const n_helpers = static_cast<std::size_t>(std::max(team_.n_threads, 1)) - 1;
    CopyCrew::Run(team_, n_helpers, n_chunks, copy, [&](CopyCrew* crew) {
      crew->Allow(n_chunks);
      crew->Await(n_chunks);
    });
  }
  [[nodiscard]] bool AnyDeletedRow(GradientPair const* gradients) override {
    return builder_->AnyDeletedRow(gradients);
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override { return builder_->DeviceBytes(); }
  [[nodiscard]] TreeStats Stats() const override { return builder_->Stats(); }

 private:
  std::unique_ptr<TreeBuilder> builder_;
  GrownTree tree_;
  std::vector<NodeIdx> positions_;
  bool are_known_{false};
  HostTeam team_;
};
}  // namespace

std::unique_ptr<TreeBuilder> MakeRealBuilder(
    std::vector<int> const& ordinals, CsrView const& table,
    TableOptions const& options) __asm__("__real_" MAKE_DEVICE_BUILDER);
std::unique_ptr<TreeBuilder> MakeFixedTree(
    std::vector<int> const& ordinals, CsrView const& table,
    TableOptions const& options) __asm__("__wrap_" MAKE_DEVICE_BUILDER);

std::unique_ptr<TreeBuilder> MakeFixedTree(std::vector<int> const& ordinals, CsrView const& table,
                                           TableOptions const& options) {
  return std::make_unique<FixedTree>(MakeRealBuilder(ordinals, table, options), table.n_rows);
}
}  // namespace gpu_exact
