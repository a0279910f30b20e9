/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/refusals.h"

#include <xgboost/logging.h>

#include "gpu_exact/types.h"
#include "load/release.h"
#include "src/collective/communicator-inl.h"
#include "src/common/error_msg.h"
#include "train/feature_sampler.h"
#include "train/table_cache.h"

namespace gpu_exact {
namespace {
using xgboost::tree::TrainParam;

constexpr char const* kUpdater = "Updater `grow_colmaker` or `exact` tree method";
constexpr char const* kNeedsPython = ", whose wheels need Python 3.12.";

void RefuseData(xgboost::DMatrix const& data) {
  if (data.Info().num_row_ > kMostRows) {
    LOG(FATAL) << "The table has " << data.Info().num_row_ << " rows, and at most " << kMostRows
               << " fit: ids of rows have 32 bits, as those of XGBoost's own exact builder. Train "
               << "with fewer rows, or use `tree_method=\"hist\"`.";
  }
}

void RefuseParam(TrainParam const& param, std::size_t n_features) {
  InteractionGroups{param.interaction_constraints};  // refuses what it cannot parse
  if (param.monotone_constraints.size() > n_features) {
    LOG(FATAL) << "The size of monotone constraint should be less or equal to the number of "
               << "features. " << param.monotone_constraints.size() << " constraints are given for "
               << n_features << " features; give at most one for each.";
  }
  if (param.subsample < 1.0f && param.sampling_method != TrainParam::kUniform) {
    LOG(FATAL) << "Only uniform sampling is supported, gradient-based sampling is only support by "
               << "the `hist` tree method. Set `sampling_method=\"uniform\"`.";
  }
  if (!kSamplesAsHist && param.colsample_bynode != 1.0f) {
    LOG(FATAL) << "`colsample_bynode` is " << param.colsample_bynode
               << ", and column sample by node "
               << "is not supported by exact trees beside this release of XGBoost, whose `hist` "
               << "draws in another way. Set it to 1, or install XGBoost 3.3 or later"
               << kNeedsPython;
  }
  if (!kSamplesAsHist && param.grow_policy == TrainParam::kLossGuide &&
      TreeFeatures::Sampled(param)) {
    LOG(FATAL) << "`colsample_bytree` is " << param.colsample_bytree << " and `colsample_bylevel` "
               << param.colsample_bylevel << ", and with `grow_policy=\"lossguide\"` column sample "
               << "is not supported beside this release of XGBoost, whose `hist` draws in another "
               << "way. Set both to 1, or install XGBoost 3.3 or later" << kNeedsPython;
  }
}
}  // namespace

void RefuseUnsupported(TrainParam const& param, xgboost::GradientContainer const& gradients,
                       xgboost::DMatrix const& data, std::vector<xgboost::RegTree*> const& trees) {
  RefuseData(data);
  if (!data.PageExists<xgboost::SparsePage>()) {
    LOG(FATAL) << "Only `hist` tree method can use `QuantileDMatrix`."
               << " Make a `DMatrix` for exact trees; XGBRegressor and XGBClassifier do so with"
               << " `tree_method=\"exact\"`, SparkXGBRegressor and SparkXGBClassifier with an"
               << " `updater` and `tree_method=\"approx\"`.";
  }
  auto const& gpair = *gradients.FullGradOnly();
  bool multi_target = gpair.Shape(1) != 1;
  for (auto const* tree : trees) {
    multi_target = multi_target || tree->IsMultiTarget();
  }
  if (multi_target) {
    LOG(FATAL) << "exact" << xgboost::MTNotImplemented()
               << " Set `multi_strategy=\"one_output_per_tree\"`.";
  }
  CHECK_EQ(gpair.Shape(0), data.Info().num_row_)
      << "There must be one gradient for each row of the DMatrix.";
  RefuseParam(param, data.Info().num_col_);
}

std::string WhyNotOnGpu([[maybe_unused]] TrainParam const& param) {
  if constexpr (kGainRules == GainRules::kOld) {
    if (param.min_child_weight == 0.0f) {
      return "By this release of XGBoost a child may have no hessian where `min_child_weight` is "
             "0, which the GPU does not try. Set it above 0, or install XGBoost 3.4" +
             std::string{kNeedsPython};
    }
  }
  return "";
}

std::string WhyNotOnCpu(TrainParam const& param, xgboost::DMatrix const& data,
                        std::string const& reason) {
  if (xgboost::collective::IsDistributed()) {
    return std::string{kUpdater} +
           " doesn't support distributed training. Only the GPU's builder does, and: " + reason;
  }
  if (!TypesOf(data.Info()).empty()) {
    return xgboost::error::NoCategorical(kUpdater) +
           " Only the GPU's builder does, and: " + reason +
           " Encode them as numbers, or use `tree_method=\"hist\"`.";
  }
  if (!data.SingleColBlock()) {
    return std::string{kUpdater} +
           " doesn't support external memory training. Only the GPU's builder has it, and: " +
           reason + " Make one `DMatrix` of the data, or use `tree_method=\"hist\"`.";
  }
  if (param.colsample_bynode != 1.0f) {
    return "column sample by node is not yet supported by the exact tree method. Only the GPU's "
           "builder has it, and: " +
           reason + " Set `colsample_bynode` to 1, or use `colsample_bylevel`.";
  }
  if (param.grow_policy == TrainParam::kLossGuide) {
    return "XGBoost's own exact builder ignores `grow_policy=\"lossguide\"`. Only the GPU's "
           "builder has it, and: " +
           reason + " Leave it out, or use `tree_method=\"hist\"`.";
  }
  if (param.max_depth == 0) {
    return "exact tree method doesn't support unlimited depth. Only the GPU's builder has it, "
           "and: " +
           reason + " Set `max_depth`.";
  }
  return "";
}
}  // namespace gpu_exact
