/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "dropped_updater.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>
#include <xgboost/tree_updater.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cpu_builder.h"

namespace gpu_exact {
namespace {
// XGBoost destroys and makes updaters in one call, so the last one dropped by the thread is enough.
thread_local xgboost::Context const* last_dropped{nullptr};

/** @brief A `hist` updater that says once that it was not asked for. */
class UnaskedHist final : public xgboost::TreeUpdater {
 public:
  UnaskedHist(xgboost::Context const* ctx, xgboost::TreeUpdater* hist)
      : TreeUpdater{ctx}, hist_{hist} {}

  void Configure(xgboost::Args const& args) override {
    // Whoever names a method or an updater wants this one. And a booster gets `validate_parameters`
    // when it is made: this is another one, at the address of the old.
    unasked_ = unasked_ && std::none_of(args.cbegin(), args.cend(), [](auto const& arg) {
                 return arg.first == "tree_method" || arg.first == "updater" ||
                        arg.first == "validate_parameters";
               });
    hist_->Configure(args);
  }
  void LoadConfig(xgboost::Json const& in) override { hist_->LoadConfig(in); }
  void SaveConfig(xgboost::Json* p_out) const override { hist_->SaveConfig(p_out); }
  [[nodiscard]] bool CanModifyTree() const override { return hist_->CanModifyTree(); }
  [[nodiscard]] char const* Name() const override { return hist_->Name(); }

  void Update(xgboost::tree::TrainParam const* param, xgboost::GradientContainer* gradients,
              xgboost::DMatrix* data,
              xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>> out_position,
              std::vector<xgboost::RegTree*> const& trees) override {
    if (std::exchange(unasked_, false)) {
      LOG(WARNING)
          << "XGBoost has dropped `updater=\"grow_gpu_exact\"`, as it does when parameters "
          << "are set later or a booster is loaded, and grows trees with `hist` now. Set "
          << "`updater` again along with them, or use `tree_method=\"exact\"`.";
    }
    hist_->Update(param, gradients, data, out_position, trees);
  }

 private:
  std::unique_ptr<xgboost::TreeUpdater> hist_;
  bool unasked_{true};
};
}  // namespace

void NoteDropped(xgboost::Context const* ctx) { last_dropped = ctx; }

void WatchHist() {
  for (auto const* name : {"grow_quantile_histmaker", "grow_gpu_hist"}) {
    auto* registry = dmlc::Registry<xgboost::TreeUpdaterReg>::Get();
    if (registry->Find(name) == nullptr) {  // an XGBoost without CUDA
      continue;
    }
    auto& entry = registry->__REGISTER__(name);
    entry.set_body([make = entry.body](xgboost::Context const* ctx, xgboost::ObjInfo const* task) {
      auto* hist = make(ctx, task);
      bool const unasked = std::exchange(last_dropped, nullptr) == ctx;
      return unasked ? new UnaskedHist{ctx, hist} : hist;
    });
  }
}
}  // namespace gpu_exact
