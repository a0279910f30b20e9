/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief For tests without a GPU: boosters that believe to be on one while they are configured.
 *
 * Part of the reference module's adapters only. XGBoost refuses or accepts a combination of parameters, and the
 * plugin comes between, in `Configure` and `SaveConfig`; neither makes a CUDA call there. So the
 * context says CUDA in these two, and trees grow and predictions are made on the CPU.
 */
#include "tests/support/layout_hooks.h"

#include <dmlc/registry.h>

#include "hooks/delegating_booster.h"
#include "hooks/temporary_context.h"
#include "workers/xgboost_communicator.h"

namespace gpu_exact {
namespace {
class PretendingBooster final : public DelegatingBooster {
 public:
  using DelegatingBooster::DelegatingBooster;

  UsedParameters Configure(xgboost::Args const& args) override {
    TemporaryContext const on_cuda{ctx_, ctx_->MakeCUDA()};
    return DelegatingBooster::Configure(args);
  }
  void SaveConfig(xgboost::Json* p_out) const override {
    TemporaryContext const on_cuda{ctx_, ctx_->MakeCUDA()};
    DelegatingBooster::SaveConfig(p_out);
  }
};

void PretendCuda(bool enable) {
  auto& entry = dmlc::Registry<xgboost::GradientBoosterReg>::Get()->__REGISTER__("gbtree");
  static auto const honest = entry.body;  // NOLINT
  if (!enable) {
    entry.set_body(honest);
    return;
  }
  entry.set_body([](LearnerModel const* param, xgboost::Context const* ctx) {
    return new PretendingBooster{ctx, honest(param, ctx)};
  });
}
}  // namespace
}  // namespace gpu_exact

extern "C" gpu_exact::LayoutHooks GPU_EXACT_HOOKS() {
  return {gpu_exact::PretendCuda, gpu_exact::CurrentCommunicator};
}
