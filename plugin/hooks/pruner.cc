/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
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
class NothingToPrune final : public PositionedUpdater {
 public:
  /** @param before Lives as long: XGBoost makes a list of updaters as a whole. */
  NothingToPrune(xgboost::Context const* ctx, PositionedUpdater const* before)
      : PositionedUpdater{ctx}, before_{before} {}

  UsedParameters Configure(xgboost::Args const&) override { return UsedParameters(); }
  void LoadConfig(xgboost::Json const&) override {}
  void SaveConfig(xgboost::Json*) const override {}
  [[nodiscard]] bool CanModifyTree() const override { return true; }
  [[nodiscard]] bool HasNodePosition() const override { return before_->HasNodePosition(); }
  [[nodiscard]] char const* Name() const override { return "prune"; }
  void Update(xgboost::tree::TrainParam const*, xgboost::GradientContainer*, xgboost::DMatrix*,
              xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>>,
              std::vector<xgboost::RegTree*> const&) override {}

 private:
  PositionedUpdater const* before_;
};
}  // namespace

PruneFollows::PruneFollows() : outer_{current} { current = this; }
PruneFollows::~PruneFollows() { current = outer_; }

PruneFollows* PruneFollows::Current() { return current; }

void RegisterPruner() {
  auto& entry = dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->__REGISTER__("prune");
  entry.set_body([make = entry.body](xgboost::Context const* ctx,
                                     xgboost::ObjInfo const* task) -> xgboost::TreeUpdater* {
    auto const* before = current == nullptr ? nullptr : current->Claimed();
    return before == nullptr ? make(ctx, task) : new NothingToPrune{ctx, before};
  });
}
}  // namespace gpu_exact
