/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "hooks/register.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>
#include <xgboost/tree_updater.h>

#include <string>

#include "hooks/booster.h"
#include "hooks/names.h"
#include "hooks/pruner.h"
#include "hooks/take_over.h"
#include "train/updater.h"

namespace gpu_exact {
namespace {
xgboost::TreeUpdaterReg& EntryOf(char const* name) {
  return dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->__REGISTER__(name);
}

UpdaterFactory Make(std::string const& name, UpdaterFactory const& colmaker) {
  return [=](xgboost::Context const* ctx, xgboost::ObjInfo const* task) -> xgboost::TreeUpdater* {
    if (name == kColMakerName && !IsTakenOver()) {
      return colmaker(ctx, task);
    }
    auto* const list = PruneFollows::Current();
    bool const inside = name == kOwnName || list != nullptr;
    auto const pruning = inside ? Pruning::kInside : Pruning::kFollowing;
    auto* const updater = new GpuExactUpdater{name, pruning, ctx, task, colmaker};
    if (list != nullptr) {
      list->Claim(updater);
    }
    return updater;
  };
}
}  // namespace

void Register() {
  UpdaterFactory const colmaker = EntryOf(kColMakerName).body;
  CHECK(colmaker) << "This libxgboost has no updater `" << kColMakerName
                  << "`; install a stock XGBoost.";
  EntryOf(kOwnName)
      .describe("Grow exact greedy trees on a GPU; the same trees as grow_colmaker.")
      .set_body(Make(kOwnName, colmaker));
  RegisterPruner();
  RegisterBooster();
  EntryOf(kColMakerName).set_body(Make(kColMakerName, colmaker));
}
}  // namespace gpu_exact
