/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Hands every call on to another gradient booster, for others to derive from.
 *
 * Every virtual function of GradientBooster is here, those too that it defines itself: a forgotten
 * one would compile, and say that "the current booster" does not support it.
 */
#pragma once

#include <xgboost/feature_map.h>
#include <xgboost/gbm.h>
#include <xgboost/json.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "load/release.h"

namespace gpu_exact {
class DelegatingBooster : public HandingBooster {
 public:
  /** @param booster What is handed on to; becomes owned. */
  DelegatingBooster(xgboost::Context const* ctx, xgboost::GradientBooster* booster)
      : HandingBooster{ctx, booster} {}

  void LoadConfig(xgboost::Json const& in) override { booster_->LoadConfig(in); }
  void SaveConfig(xgboost::Json* p_out) const override { booster_->SaveConfig(p_out); }
  void LoadModel(xgboost::Json const& in) override { booster_->LoadModel(in); }
  void SaveModel(xgboost::Json* p_out) const override { booster_->SaveModel(p_out); }

  void Slice(xgboost::bst_layer_t begin, xgboost::bst_layer_t end, xgboost::bst_layer_t step,
             GradientBooster* out, bool* out_of_bound) const override {
    // XGBoost's booster copies its trees into one of its own kind.
    auto* delegating = dynamic_cast<DelegatingBooster*>(out);
    booster_->Slice(begin, end, step, delegating ? delegating->booster_.get() : out, out_of_bound);
  }

  [[nodiscard]] std::int32_t BoostedRounds() const override { return booster_->BoostedRounds(); }

  void PredictContribution(xgboost::DMatrix* data, xgboost::HostDeviceVector<float>* out,
                           xgboost::bst_layer_t begin, xgboost::bst_layer_t end,
                           bool approximate) override {
    booster_->PredictContribution(data, out, begin, end, approximate);
  }
  void PredictInteractionContributions(xgboost::DMatrix* data,
                                       xgboost::HostDeviceVector<float>* out,
                                       xgboost::bst_layer_t begin, xgboost::bst_layer_t end,
                                       bool approximate) override {
    booster_->PredictInteractionContributions(data, out, begin, end, approximate);
  }

  [[nodiscard]] std::vector<std::string> DumpModel(xgboost::FeatureMap const& names,
                                                   bool with_stats,
                                                   std::string format) const override {
    return booster_->DumpModel(names, with_stats, std::move(format));
  }
  void FeatureScore(std::string const& type, xgboost::common::Span<std::int32_t const> trees,
                    std::vector<xgboost::bst_feature_t>* features,
                    std::vector<float>* scores) const override {
    booster_->FeatureScore(type, trees, features, scores);
  }
  [[nodiscard]] xgboost::CatContainer const* Cats() const override { return booster_->Cats(); }
};
}  // namespace gpu_exact
