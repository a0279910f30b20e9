/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief For tests without a GPU: boosters that believe to be on one while they are configured.
 *
 * Part of the reference module only. XGBoost refuses or accepts a combination of parameters, and the
 * plugin comes between, in `Configure` and `SaveConfig`; neither makes a CUDA call there. So the
 * context says CUDA in these two, and trees grow and predictions are made on the CPU.
 */
#include <dmlc/registry.h>

#include "plugin/delegating_booster.h"
#include "plugin/temporary_context.h"

namespace {
using gpu_exact::TemporaryContext;

class PretendingBooster final : public gpu_exact::DelegatingBooster {
 public:
  using DelegatingBooster::DelegatingBooster;

  void Configure(xgboost::Args const& args) override {
    TemporaryContext const on_cuda{ctx_, ctx_->MakeCUDA()};
    DelegatingBooster::Configure(args);
  }
  void SaveConfig(xgboost::Json* p_out) const override {
    TemporaryContext const on_cuda{ctx_, ctx_->MakeCUDA()};
    DelegatingBooster::SaveConfig(p_out);
  }
};
}  // namespace

/** @brief 1: boosters made from now on pretend; 0: no longer. The plugin must be registered. */
extern "C" __attribute__((visibility("default"))) void GpuExactPretendCuda(int enable) {
  auto& entry = dmlc::Registry<xgboost::GradientBoosterReg>::Get()->__REGISTER__("gbtree");
  static auto const honest = entry.body;  // NOLINT
  if (enable == 0) {
    entry.set_body(honest);
    return;
  }
  entry.set_body([](xgboost::LearnerModelParam const* param, xgboost::Context const* ctx) {
    return new PretendingBooster{ctx, honest(param, ctx)};
  });
}
