/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "hooks/pruner.h"

#include <dmlc/registry.h>
#include <xgboost/tree_updater.h>

#include <vector>

#include "load/release.h"

namespace gpu_exact {
namespace {
thread_local PruneFollows* current{nullptr};

/** @brief Stands in for `prune` where trees are pruned already. */
class NothingToPrune final : public xgboost::TreeUpdater {
 public:
  using TreeUpdater::TreeUpdater;

  UsedParameters Configure(xgboost::Args const&) override { return UsedParameters(); }
  void LoadConfig(xgboost::Json const&) override {}
  void SaveConfig(xgboost::Json*) const override {}
  [[nodiscard]] bool CanModifyTree() const override { return true; }
  [[nodiscard]] char const* Name() const override { return "prune"; }
  void Update(xgboost::tree::TrainParam const*, xgboost::GradientContainer*, xgboost::DMatrix*,
              xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>>,
              std::vector<xgboost::RegTree*> const&) override {}
};
}  // namespace

PruneFollows::PruneFollows() : outer_{current} { current = this; }
PruneFollows::~PruneFollows() { current = outer_; }

bool PruneFollows::Claim() {
  if (current == nullptr) {
    return false;
  }
  current->claimed_ = true;
  return true;
}

bool PruneFollows::Claimed() { return current != nullptr && current->claimed_; }

void RegisterPruner() {
  auto& entry = dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->__REGISTER__("prune");
  entry.set_body([make = entry.body](xgboost::Context const* ctx, xgboost::ObjInfo const* task) {
    return PruneFollows::Claimed() ? new NothingToPrune{ctx} : make(ctx, task);
  });
}
}  // namespace gpu_exact
