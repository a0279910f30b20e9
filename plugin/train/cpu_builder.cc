/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/cpu_builder.h"

#include <memory>

#include "train/drawing_context.h"

namespace gpu_exact {
void GrowByColMaker(
    UpdaterFactory const& colmaker, xgboost::Context const* ctx, xgboost::ObjInfo const* task,
    ColMakerParam const& colmaker_param, xgboost::tree::TrainParam const* param,
    xgboost::GradientContainer* gradients, xgboost::DMatrix* data,
    xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>> out_position,
    std::vector<xgboost::RegTree*> const& trees) {
  DrawingContext cpu_ctx{ctx};
  std::unique_ptr<xgboost::TreeUpdater> const updater{colmaker(cpu_ctx.Get(), task)};
  auto const settings = colmaker_param.__DICT__();
  updater->Configure({settings.cbegin(), settings.cend()});
  updater->Update(param, gradients, data, out_position, trees);
  cpu_ctx.Keep();
}
}  // namespace gpu_exact
