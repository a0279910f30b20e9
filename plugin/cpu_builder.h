/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Handing trees over to XGBoost's own exact builder.
 */
#pragma once

#include <xgboost/context.h>
#include <xgboost/tree_updater.h>

#include <functional>
#include <memory>
#include <vector>

#include "param.h"

namespace gpu_exact {
/** @brief Makes an updater, as XGBoost's registry stores it. */
using UpdaterFactory =
    std::function<xgboost::TreeUpdater*(xgboost::Context const*, xgboost::ObjInfo const*)>;

/**
 * @brief XGBoost's `grow_colmaker` on a CPU copy of the booster's context: the trees, positions and
 *        random numbers are those that XGBoost alone would give.
 */
class CpuBuilder {
 public:
  CpuBuilder(UpdaterFactory const& colmaker, xgboost::Context const* ctx,
             xgboost::ObjInfo const* task);

  void Update(ColMakerParam const& colmaker_param, xgboost::tree::TrainParam const* param,
              xgboost::GradientContainer* gradients, xgboost::DMatrix* data,
              xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>> out_position,
              std::vector<xgboost::RegTree*> const& trees);

 private:
  xgboost::Context const* ctx_;
  xgboost::Context cpu_ctx_;  // the updater below keeps a pointer to it
  std::unique_ptr<xgboost::TreeUpdater> updater_;
};
}  // namespace gpu_exact
