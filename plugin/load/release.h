/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds all that differs among the releases of XGBoost: sources that see XGBoost's headers
 *        are compiled once for each layout of its classes, and know releases by this header alone.
 */
#pragma once

#include <xgboost/context.h>
#include <xgboost/gbm.h>
#include <xgboost/parameter.h>
#include <xgboost/predictor.h>
#include <xgboost/task.h>
#include <xgboost/tree_updater.h>
#include <xgboost/version_config.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "gpu_exact/tree_builder.h"
#include "src/collective/comm.h"
#include "src/common/random.h"

#define GPU_EXACT_XGBOOST (100 * XGBOOST_VER_MAJOR + XGBOOST_VER_MINOR)

namespace gpu_exact {
inline constexpr GainRules kGainRules = GPU_EXACT_XGBOOST < 304 ? GainRules::kOld : GainRules::kNew;

/**
 * @brief Tell whether XGBoost reads the positions of all trees. Earlier releases read them where the
 *        objective sets leaves, and the last updater says that it has positions.
 */
inline constexpr bool kReadsPositions = GPU_EXACT_XGBOOST >= 304;

/** @brief Tell whether the objective sets leaves by the rows in them, as those of absolute and quantile
 *         errors did before 3.4. */
inline bool SetsLeaves([[maybe_unused]] xgboost::ObjInfo const& task) {
#if GPU_EXACT_XGBOOST >= 304
  return false;
#else
  return task.UpdateTreeLeaf();
#endif
}

/** @brief Tells XGBoost whether the objective may set the leaves of the trees grown last. */
class PositionedUpdater : public xgboost::TreeUpdater {
 public:
  using TreeUpdater::TreeUpdater;
#if GPU_EXACT_XGBOOST >= 304
  [[nodiscard]] virtual bool HasNodePosition() const { return false; }  // earlier ones have it
#endif
};

/** @brief Tell whether `hist` draws the features of each tree anew, so that sampling that XGBoost's exact
 *         builder lacks (by node, leaf-wise) can be as in `hist`. In 3.2 it has one sampler for all
 *         trees, which draws those of the first tree twice. */
inline constexpr bool kSamplesAsHist = GPU_EXACT_XGBOOST >= 303;

using RandomEngine = std::mt19937;

/** @brief Find the generator that a booster of this context draws from in this thread. */
inline RandomEngine& RandomOf([[maybe_unused]] xgboost::Context const* ctx) {
#if GPU_EXACT_XGBOOST >= 303
  return ctx->Rng();
#else
  return xgboost::common::GlobalRandom();  // of the thread, for all boosters
#endif
}

/** @brief Wraps XGBoost's sampler of the features of one tree. */
class ColumnSampler {
 public:
#if GPU_EXACT_XGBOOST >= 303
  explicit ColumnSampler(xgboost::Context const*) {}
#else
  /** @brief Draws a seed, for a tree that samples nothing too. */
  explicit ColumnSampler(xgboost::Context const* ctx)
      : sampler_{static_cast<std::uint32_t>(RandomOf(ctx)())} {}
#endif

  template <typename... Args>
  void Init(Args&&... args) {
    sampler_.Init(std::forward<Args>(args)...);
  }
  [[nodiscard]] auto GetFeatureSet([[maybe_unused]] xgboost::Context const* ctx,
                                   std::int32_t depth) {
#if GPU_EXACT_XGBOOST >= 303
    return sampler_.GetFeatureSet(ctx, depth);
#else
    return sampler_.GetFeatureSet(depth);
#endif
  }

 private:
  xgboost::common::ColumnSampler sampler_;
};

/** @brief Find the connection to another worker; nullptr where there is none. */
inline std::shared_ptr<xgboost::collective::Channel> ChannelTo(
    xgboost::collective::Comm const& comm, std::int32_t rank) {
#if GPU_EXACT_XGBOOST >= 303
  return comm.HasChan(rank) ? comm.Chan(rank) : nullptr;
#else
  return comm.Chan(rank);
#endif
}

#if GPU_EXACT_XGBOOST >= 305
using LearnerModel = xgboost::LearnerModelState;

/** @brief Collect the names of parameters that somebody takes: XGBoost warns of others. */
using UsedParameters = std::set<std::string>;
using DataPointer = std::shared_ptr<xgboost::DMatrix>;
using Predictions = xgboost::HostDeviceVector<float>;
#else
using LearnerModel = xgboost::LearnerModelParam;
using UsedParameters = void;
using DataPointer = xgboost::DMatrix*;
using Predictions = xgboost::PredictionCacheEntry;
#endif

/** @brief Give parameters the values among the arguments that are theirs. */
template <typename... ParamT>
UsedParameters UpdateParameters(xgboost::Args const& args, ParamT*... out_params) {
#if GPU_EXACT_XGBOOST >= 305
  UsedParameters used;
  (used.merge(xgboost::UpdateAndGetUsedParameters(out_params, args)), ...);
  return used;
#else
  (out_params->UpdateAllowUnknown(args), ...);
#endif
}

/** @brief Call both, one after the other. @return What the first gives. */
template <typename First, typename Second>
auto InTurn(First&& first, Second&& second) {
  if constexpr (std::is_void_v<decltype(first())>) {
    first();
    second();
  } else {
    auto result = first();
    second();
    return result;
  }
}

/** @brief Holds what XGBoost gives a booster for a round. */
struct BoostRound {
  DataPointer data;
  xgboost::GradientContainer* gradients;
  Predictions* cache;  // from release 3.5 on the booster has it: nullptr
  xgboost::ObjFunction const* obj;
};

/** @brief Hands the calls whose forms differ on to another gradient booster. */
class HandingBooster : public xgboost::GradientBooster {
 public:
  HandingBooster(xgboost::Context const* ctx, xgboost::GradientBooster* booster)
      : GradientBooster{ctx}, booster_{booster} {}

  UsedParameters Configure(xgboost::Args const& args) override { return booster_->Configure(args); }
  void PredictBatch(DataPointer data, Predictions* out, bool training, xgboost::bst_layer_t begin,
                    xgboost::bst_layer_t end) override {
    booster_->PredictBatch(std::move(data), out, training, begin, end);
  }
  void InplacePredict(std::shared_ptr<xgboost::DMatrix> data, float missing, Predictions* out,
                      xgboost::bst_layer_t begin, xgboost::bst_layer_t end) const override {
    booster_->InplacePredict(std::move(data), missing, out, begin, end);
  }

#if GPU_EXACT_XGBOOST >= 305
  void DoBoost(DataPointer data, xgboost::GradientContainer* gradients,
               xgboost::ObjFunction const* obj) override {
    this->Boost({std::move(data), gradients, nullptr, obj});
  }
#else
  [[nodiscard]] bool ModelFitted() const override { return booster_->ModelFitted(); }
  void DoBoost(DataPointer data, xgboost::GradientContainer* gradients, Predictions* cache,
               xgboost::ObjFunction const* obj) override {
    this->Boost({data, gradients, cache, obj});
  }
#endif

#if GPU_EXACT_XGBOOST >= 304
  void PredictLeaf(xgboost::DMatrix* data, xgboost::HostDeviceVector<float>* out,
                   xgboost::bst_layer_t begin, xgboost::bst_layer_t end,
                   bool strict_shape) override {
    booster_->PredictLeaf(data, out, begin, end, strict_shape);
  }
#else
  void PredictLeaf(xgboost::DMatrix* data, xgboost::HostDeviceVector<float>* out, unsigned begin,
                   unsigned end) override {
    booster_->PredictLeaf(data, out, begin, end);
  }
#endif

 protected:
  virtual void Boost(BoostRound const& round) {
#if GPU_EXACT_XGBOOST >= 305
    booster_->DoBoost(round.data, round.gradients, round.obj);
#else
    booster_->DoBoost(round.data, round.gradients, round.cache, round.obj);
#endif
  }

  /** @brief Make the cached predictions of the round's data anew, of the trees that there are; what
   *         fails is made by the next prediction. */
  void PredictAnew(BoostRound const& round) {
#if GPU_EXACT_XGBOOST >= 305
    auto const n_rounds = booster_->BoostedRounds();
    Predictions out;
    try {  // a range that does not begin at 0 gives up the cached sums
      booster_->PredictBatch(round.data, &out, false, n_rounds > 0 ? 1 : 0, n_rounds);
      booster_->PredictBatch(round.data, &out, false, 0, 0);
    } catch (...) {
    }
#else
    round.cache->version = 0;
    try {
      booster_->PredictBatch(round.data, round.cache, false, 0, 0);
    } catch (...) {
      round.cache->version = 0;
    }
#endif
  }

  std::unique_ptr<xgboost::GradientBooster> booster_;
};
}  // namespace gpu_exact
