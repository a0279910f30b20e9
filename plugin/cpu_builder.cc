/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "cpu_builder.h"

namespace gpu_exact {
CpuBuilder::CpuBuilder(UpdaterFactory const& colmaker, xgboost::Context const* ctx,
                       xgboost::ObjInfo const* task)
    : ctx_{ctx}, cpu_ctx_{ctx->MakeCPU()}, updater_{colmaker(&cpu_ctx_, task)} {}

void CpuBuilder::Update(
    ColMakerParam const& colmaker_param, xgboost::tree::TrainParam const* param,
    xgboost::GradientContainer* gradients, xgboost::DMatrix* data,
    xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>> out_position,
    std::vector<xgboost::RegTree*> const& trees) {
  auto const settings = colmaker_param.__DICT__();
  updater_->Configure({settings.cbegin(), settings.cend()});
  cpu_ctx_ = ctx_->MakeCPU();  // threads, device and random numbers may have moved on
  updater_->Update(param, gradients, data, out_position, trees);
  ctx_->Rng() = cpu_ctx_.Rng();
}
}  // namespace gpu_exact
