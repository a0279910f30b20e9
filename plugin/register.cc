/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "register.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>
#include <xgboost/tree_updater.h>

#include <string>

#include "booster.h"
#include "names.h"
#include "pruner.h"
#include "updater.h"

namespace gpu_exact {
namespace {
xgboost::TreeUpdaterReg& EntryOf(char const* name) {
  return dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->__REGISTER__(name);
}

/** @brief XGBoost's own exact builder; the first call must come before any take-over. */
UpdaterFactory const& ColMaker() {
  static UpdaterFactory const original = EntryOf(kColMakerName).body;  // NOLINT
  CHECK(original) << "This libxgboost has no updater `" << kColMakerName
                  << "`; install a stock XGBoost.";
  return original;
}

UpdaterFactory Make(std::string const& name) {
  return [name, colmaker = ColMaker()](xgboost::Context const* ctx, xgboost::ObjInfo const* task) {
    bool const inside = name == kOwnName || PruneFollows::Claim();
    auto const pruning = inside ? Pruning::kInside : Pruning::kFollowing;
    return new GpuExactUpdater{name, pruning, ctx, task, colmaker};
  };
}
}  // namespace

void Register() {
  EntryOf(kOwnName)
      .describe("Grow exact greedy trees on a GPU; the same trees as grow_colmaker.")
      .set_body(Make(kOwnName));
  RegisterPruner();
  RegisterBooster();
}

void TakeOver(bool enable) {
  auto const& colmaker = ColMaker();
  EntryOf(kColMakerName).set_body(enable ? Make(kColMakerName) : colmaker);
  AllowExactOnCuda(enable);
}
}  // namespace gpu_exact
