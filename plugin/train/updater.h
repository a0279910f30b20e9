/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Connects XGBoost's calls of a tree updater with a TreeBuilder.
 */
#pragma once

#include <xgboost/tree_updater.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "load/release.h"
#include "src/tree/param.h"
#include "train/cpu_builder.h"
#include "train/param.h"
#include "train/row_sampler.h"
#include "train/run_log.h"
#include "train/table_cache.h"
#include "workers/handshake.h"

namespace gpu_exact {
/** @brief Names who takes back splits that gain less than `gamma`. */
enum class Pruning : std::uint8_t {
  kInside,    // the updater
  kFollowing  // XGBoost's updater `prune`, if the user has put it into the list of updaters
};

/** @brief Grows exact greedy trees on a GPU; the same trees as XGBoost's `grow_colmaker`. */
class GpuExactUpdater final : public PositionedUpdater {
 public:
  /**
   * @param name     The name that the updater is registered under; XGBoost makes updaters anew when
   *                 they call themselves something else.
   * @param colmaker Makes XGBoost's own exact builder, for trees that the GPU cannot grow.
   */
  GpuExactUpdater(std::string name, Pruning pruning, xgboost::Context const* ctx,
                  xgboost::ObjInfo const* task, UpdaterFactory colmaker);

  UsedParameters Configure(xgboost::Args const& args) override;
  void LoadConfig(xgboost::Json const& in) override;
  void SaveConfig(xgboost::Json* p_out) const override;
  /** @brief Tell it of trees that only the GPU can grow. XGBoost's own exact builder has none, so that
   *         its leaves stay as they are; so do those of the same trees here. */
  [[nodiscard]] bool HasNodePosition() const override { return sets_leaves_; }
  [[nodiscard]] char const* Name() const override { return name_.c_str(); }

  void Update(xgboost::tree::TrainParam const* param, xgboost::GradientContainer* gradients,
              xgboost::DMatrix* data,
              xgboost::common::Span<xgboost::HostDeviceVector<xgboost::bst_node_t>> out_position,
              std::vector<xgboost::RegTree*> const& trees) override;

 private:
  /** @brief Holds one tree and what it is grown from. */
  struct Task {
    xgboost::tree::TrainParam const& param;
    xgboost::GradientContainer* gradients;
    xgboost::DMatrix* data;
    xgboost::HostDeviceVector<float> const& feature_weights;
    std::vector<FeatureType> const& types;      // of features
    std::shared_ptr<Communicator> const& comm;  // nullptr: this worker is alone
    xgboost::HostDeviceVector<xgboost::bst_node_t>* out_position;
    xgboost::RegTree* tree;
  };

  [[nodiscard]] std::vector<NodeIdx> Prune(Task const& task) const;
  [[nodiscard]] TableOptions MakeTableOptions() const;
  [[nodiscard]] GrowParam MakeGrowParam(xgboost::tree::TrainParam const& param) const;
  /** @brief Hash all that must be equal on workers that grow a tree together. */
  [[nodiscard]] std::uint64_t HashOfSettings(xgboost::tree::TrainParam const& param,
                                             std::size_t n_trees) const;
  /** @param table The table that the trees are grown on. */
  [[nodiscard]] WorkerState MakeWorkerState(xgboost::tree::TrainParam const& param,
                                            xgboost::MetaInfo const& info, std::size_t n_trees,
                                            DeviceTable* table) const;
  /** @brief Grow under the table's lock. A builder that failed amid a tree goes: its state is
   *         unknown. */
  void GrowOnGpu(Task const& task, DeviceTable* table, std::vector<int> const& devices,
                 std::uint64_t epoch, std::string const& device);
  /** @param record Times and sizes are filled in. */
  void GrowTree(Task const& task, TreeBuilder* builder, TreeRecord* record);
  /** @param kind The kind of the reason, which is told once: see WarnOnce(). */
  void GrowOnCpu(Task const& task, std::string const& kind, std::string const& reason);

  std::string name_;
  Pruning pruning_;
  xgboost::ObjInfo const* task_;
  UpdaterFactory colmaker_;
  GpuExactParam param_;
  ColMakerParam colmaker_param_;
  TableCache tables_;
  RowSampler row_sampler_;
  bool sets_leaves_{false};     // the objective, of the trees grown last
  std::uint64_t last_tree_{0};  // hash of the one grown last, by several workers
};
}  // namespace gpu_exact
