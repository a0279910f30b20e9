/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "register.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>
#include <xgboost/tree_updater.h>

#include <string>

#include "dropped_updater.h"
#include "updater.h"

namespace gpu_exact {
namespace {
constexpr char const* kOwnName = "grow_gpu_exact";
constexpr char const* kColMakerName = "grow_colmaker";

xgboost::TreeUpdaterReg& EntryOf(char const* name) {
  return dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->__REGISTER__(name);
}

/** @brief XGBoost's own exact builder; the first call must come before any take-over. */
UpdaterFactory const& ColMaker() {
  static UpdaterFactory const original = EntryOf(kColMakerName).body;
  CHECK(original) << "This libxgboost has no updater `" << kColMakerName
                  << "`; install a stock XGBoost 3.4.1.";
  return original;
}

UpdaterFactory Make(std::string const& name, Pruning pruning) {
  return [name, pruning, colmaker = ColMaker()](xgboost::Context const* ctx,
                                                xgboost::ObjInfo const* task) {
    return new GpuExactUpdater{name, pruning, ctx, task, colmaker};
  };
}
}  // namespace

void RegisterUpdater() {
  EntryOf(kOwnName)
      .describe("Grow exact greedy trees on a GPU; the same trees as grow_colmaker.")
      .set_body(Make(kOwnName, Pruning::kInside));
  WatchHist();
}

void TakeOver(bool enable) {
  auto const& colmaker = ColMaker();
  EntryOf(kColMakerName).set_body(enable ? Make(kColMakerName, Pruning::kFollowing) : colmaker);
}
}  // namespace gpu_exact
