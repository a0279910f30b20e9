/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "hooks/booster.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>
#include <xgboost/predictor.h>
#include <xgboost/tree_updater.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hooks/default_device.h"
#include "hooks/delegating_booster.h"
#include "hooks/json_text.h"
#include "hooks/names.h"
#include "hooks/param_json.h"
#include "hooks/pruner.h"
#include "hooks/round.h"
#include "hooks/take_over.h"
#include "hooks/temporary_context.h"
#include "load/release.h"
#include "src/common/common.h"
#include "src/data/cat_container.h"
#include "train/device_status.h"
#include "train/param.h"

namespace gpu_exact {
namespace {
using xgboost::Args;
using xgboost::Context;
using xgboost::Json;

constexpr char const* kExact = "exact";
constexpr char const* kExactUpdaters = "grow_colmaker,prune";  // what XGBoost makes of it
constexpr char const* kAuto = "auto";
constexpr char const* kNamed = "named";
constexpr char const* kKey = "gpu_exact";  // of what a saved configuration says in other words

/** @brief Find the value of a parameter, or nullptr. */
std::string const* Find(Args const& args, char const* name) {
  auto const found =
      std::find_if(args.cbegin(), args.cend(), [&](auto const& arg) { return arg.first == name; });
  return found == args.cend() ? nullptr : &found->second;
}

/** @brief Split a list of updaters into names, as XGBoost reads it. */
std::vector<std::string> Split(std::string const& list) {
  return xgboost::common::Split(list, ',');
}

bool Names(std::string const& list, char const* updater) {
  auto const names = Split(list);
  return std::find(names.cbegin(), names.cend(), updater) != names.cend();
}

template <typename ParamT>
bool HasParam(std::string const& name) {
  return ParamT::__MANAGER__()->Find(name) != nullptr;
}

/** @brief Stands in for XGBoost's booster under its name, whose parameters it has too. */
std::vector<std::string> Replaced(std::vector<std::string> names) {
  std::replace(names.begin(), names.end(), std::string{kOwnName}, std::string{kColMakerName});
  return names;
}

/** @brief Write other names for the updaters of a configuration. */
void NameUpdaters(std::vector<std::string> const& names, Json* config) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    (*config)["updater"][static_cast<int>(i)]["name"] = QuoteJson(names[i]);
    list += (i == 0 ? "" : ",") + names[i];
  }
  for (auto const* key : {"updater", "updater_seq"}) {  // one parameter, saved under both its names
    (*config)["gbtree_train_param"][key] = QuoteJson(list);
  }
}

bool XGBoostHasCuda() {
  return dmlc::Registry<xgboost::TreeUpdaterReg>::Get()->Find("grow_gpu_hist") != nullptr;
}

void WarnOnceOfNoCuda() {
  static std::once_flag warned;
  std::call_once(warned, [] {
    LOG(WARNING) << "This XGBoost is built without CUDA: trees are grown on the GPU, but gradients "
                 << "and predictions are computed on the CPU. Install the wheel `xgboost` in the "
                 << "place of `xgboost-cpu` to have both on the GPU.";
  });
}

/**
 * @brief Move a learner's context from the CPU to the default device.
 *
 * Does nothing where that GPU is not usable, and warns once where XGBoost is built without CUDA.
 *
 * @param ctx A member of a learner: only this view of it is constant.
 */
void MoveToDefaultDevice(xgboost::Context const* ctx) {
  int const ordinal = DefaultOrdinal();
  if (ordinal < 0 || !ctx->IsCPU() || !StatusOf(ordinal).usable) {
    return;  // without a GPU the updater says what grows the trees
  }
  if (!XGBoostHasCuda()) {
    WarnOnceOfNoCuda();
    return;
  }
  const_cast<xgboost::Context*>(ctx)->UpdateAllowUnknown(
      xgboost::Args{{"device", "cuda:" + std::to_string(ordinal)}});
}

/**
 * @brief Hands every call on to XGBoost's tree booster, and comes between in five of them.
 *
 * - PredictBatch: the margins of a model that goes on are made by XGBoost's CPU predictor, also on a GPU.
 *   It reads the model's categories where they lie, in the GPU's memory, which ends the process. Margins
 *   that are there already it leaves to the GPU's predictor, which makes them first.
 * - Boost: of a round that fails nothing stays. A tree may fail after others have drawn random
 *   numbers, and a class after others have added their trees, which nobody will have, to the cached
 *   predictions. Those of a single class are as they were and stay: made anew, sums of several trees
 *   may be rounded otherwise on a GPU.
 * - Configure: while XGBoost looks up the updaters of `exact`, the context is one of the CPU, as
 *   XGBoost refuses others. Updaters and predictors keep a pointer to the context, which is that of
 *   the GPU again when they use it. An explicit list of updaters with ours in it is passed again,
 *   and so is what our updater was told: XGBoost makes it anew, without, when others come between.
 * - SaveConfig: says what XGBoost alone can load, predict with and train on with. That is no `exact`
 *   on a GPU, which it would refuse even for predictions, and no updater of ours. What is in truth
 *   so is kept beside it.
 * - LoadConfig: the reverse.
 */
class ExactBooster final : public DelegatingBooster {
 public:
  using DelegatingBooster::DelegatingBooster;

  UsedParameters Configure(Args const& args) override {
    auto const* method = Find(args, "tree_method");
    auto const* updater = Find(args, "updater");
    if (method) {
      tree_method_ = *method;
    }
    if (method || updater) {  // whoever names a method alone wants no updater named earlier
      updater_ = updater && Names(*updater, kOwnName) ? *updater : "";
    }
    device_named_ = device_named_ || Find(args, "device");

    auto told = told_;
    for (auto const& [name, value] : args) {
      if (HasParam<GpuExactParam>(name) || HasParam<ColMakerParam>(name)) {
        told[name] = value;
      }
    }
    auto passed = args;
    for (auto const& [name, value] : told) {
      if (!Find(args, name.c_str())) {
        passed.emplace_back(name, value);
      }
    }
    if (!updater && !updater_.empty()) {
      passed.emplace_back("updater", updater_);
    }
    bool const exact = !updater && this->WantsExact() && IsTakenOver();
    if (!device_named_ && (exact || !updater_.empty())) {
      MoveToDefaultDevice(ctx_);
    }
    std::optional<PruneFollows> prune_follows;
    std::optional<TemporaryContext> on_cpu;
    if (exact) {
      prune_follows.emplace();
      if (ctx_->IsCUDA()) {
        on_cpu.emplace(ctx_, ctx_->MakeCPU());
      }
    }
    return InTurn(
        [&] { return DelegatingBooster::Configure(passed); },  // an error where a value is bad
        [&] {
          told_ = std::move(told);
          bool const own = updater ? Names(*updater, kOwnName) || Names(*updater, kColMakerName)
                                   : this->WantsExact() || !updater_.empty();
          if (!own) {  // XGBoost's own exact builder is not told again once another one has come
            for (auto const& [name, value] : ColMakerParam{}.__DICT__()) {
              told_.erase(name);
            }
          }
        });
  }

  void PredictBatch(DataPointer data, Predictions* out, bool training, xgboost::bst_layer_t begin,
                    xgboost::bst_layer_t end) override {
    if (training && ctx_->IsCUDA() && this->Cats()->HasCategorical()) {
      DelegatingBooster::PredictBatch(data, out, false, begin, end);
    }
    DelegatingBooster::PredictBatch(std::move(data), out, training, begin, end);
  }

  void SaveConfig(Json* p_out) const override {
    DelegatingBooster::SaveConfig(p_out);
    bool const exact_here = this->WantsExact() && (ctx_->IsCUDA() || device_named_);
    if (updater_.empty() && !exact_here) {
      return;  // as XGBoost, byte for byte
    }
    auto& out = *p_out;
    auto& param = out["gbtree_train_param"];
    param["tree_method"] = QuoteJson(ctx_->IsCUDA() ? kAuto : kExact);
    if (!updater_.empty()) {
      NameUpdaters(Replaced(Split(updater_)), &out);
    }
    out[kKey] = ParseJson(R"({"tree_method": ")" + tree_method_ + R"(", "updater": ")" + updater_ +
                          R"(", "device": ")" + (device_named_ ? kNamed : "") + R"("})");
  }

  void LoadConfig(Json const& in) override {
    auto config = ParseJson(DumpJson(in));  // a copy of it would share what is in there
    auto& param = config["gbtree_train_param"];
    device_named_ = false;
    if (auto& kept = config[kKey]; DumpJson(kept) != "null") {
      param["tree_method"] = kept["tree_method"];
      device_named_ = UnquoteJson(kept["device"]) == kNamed;
      if (auto const list = UnquoteJson(kept["updater"]); !list.empty()) {
        NameUpdaters(Split(list), &config);
      }
    }
    tree_method_ = UnquoteJson(param["tree_method"]);
    auto const list = UnquoteJson(param["updater_seq"]);
    updater_ = Names(list, kOwnName) ? list : "";
    auto const saved = DumpJson(config["updater"]);  // a list; by name before XGBoost 2.0
    told_ = FindParam(saved, kParamKey);
    told_.merge(FindParam(saved, kColMakerKey));

    std::optional<PruneFollows> prune_follows;
    if (list == kExactUpdaters) {
      prune_follows.emplace();
    }
    DelegatingBooster::LoadConfig(config);
  }

 private:
  void Boost(BoostRound const& given) override {
    auto const generator = RandomOf(ctx_);
    Round const round{static_cast<std::uint32_t>(this->BoostedRounds()),
                      static_cast<std::uint32_t>(given.gradients->gpair.Shape(1))};
    try {
      DelegatingBooster::Boost(given);
    } catch (...) {
      RandomOf(ctx_) = generator;
      if (round.n_groups > 1) {  // trees of some classes were added
        this->PredictAnew(given);
      }
      throw;
    }
  }

  /** @brief Tell whether XGBoost makes the updaters of `exact`, unless others are named
   *         meanwhile. */
  [[nodiscard]] bool WantsExact() const { return updater_.empty() && tree_method_ == kExact; }

  // As XGBoost has them: kept here, as it cannot be asked before it is configured.
  std::string tree_method_{kAuto};
  std::string updater_;                      // the explicit list, where ours is in it
  std::map<std::string, std::string> told_;  // parameters of our updater
  bool device_named_{false};                 // by the user, now or earlier
};
}  // namespace

void RegisterBooster() {
  auto& entry = dmlc::Registry<xgboost::GradientBoosterReg>::Get()->__REGISTER__("gbtree");
  entry.set_body([make = entry.body](LearnerModel const* param, Context const* ctx) {
    return new ExactBooster{ctx, make(param, ctx)};
  });
}
}  // namespace gpu_exact
