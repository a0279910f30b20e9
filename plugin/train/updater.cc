/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/updater.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <new>
#include <optional>
#include <utility>

#include "gpu_exact/source_hash.h"
#include "hooks/param_json.h"
#include "hooks/round.h"
#include "load/binding.h"
#include "train/device_status.h"
#include "train/drawing_context.h"
#include "train/feature_sampler.h"
#include "train/refusals.h"
#include "train/run_log.h"
#include "train/tree_writer.h"
#include "train/warn_once.h"
#include "workers/tell_all.h"

namespace gpu_exact {
namespace {
using xgboost::HostDeviceVector;
using xgboost::tree::TrainParam;

static_assert(sizeof(GradientPair) == sizeof(xgboost::GradientPair));
static_assert(sizeof(NodeIdx) == sizeof(xgboost::bst_node_t));

GradientView ViewOf(HostDeviceVector<xgboost::GradientPair> const& gradients,
                    xgboost::Context const* ctx) {
  if (ctx->IsCUDA()) {
    gradients.SetDevice(ctx->Device());
    return {reinterpret_cast<GradientPair const*>(gradients.ConstDevicePointer()), Memory::kDevice};
  }
  return {reinterpret_cast<GradientPair const*>(gradients.ConstHostPointer()), Memory::kHost};
}

/**
 * @brief Holds the positions that XGBoost wants of a tree.
 *
 * They are new memory for every tree. The system gives the host's page by page: that takes longer than
 * the copy, so that it is done while the tree grows. A device's may come from its pool.
 */
class Positions {
 public:
  Positions(xgboost::Context const* ctx, std::size_t n_rows, HostDeviceVector<NodeIdx>* out)
      : out_{out}, n_rows_{n_rows} {
    constexpr std::size_t kWorthAThread = 1 << 17;
    if (ctx->IsCUDA()) {
      device_ = ctx->Device();
      return;
    }
    auto* host = &out_->HostVector();
    host->reserve(n_rows);  // by this thread, whose heap it comes from
    auto when = std::launch::deferred;
    if (n_rows >= kWorthAThread) {
      when |= std::launch::async;  // or deferred, if there is no thread
    }
    resized_ = std::async(when, [host, n_rows] { host->resize(n_rows); });
  }

  void Write(TreeBuilder* builder, std::vector<NodeIdx> const& remap) {
    if (resized_.valid()) {
      resized_.get();
      builder->WritePositions(remap, Memory::kHost, out_->HostPointer());
    } else {
      VectorsFromPool const pool{builder->KeepsPool()};  // a vector keeps how it was set up
      out_->SetDevice(device_);
      out_->Resize(n_rows_);
      builder->WritePositions(remap, Memory::kDevice, out_->DevicePointer());
    }
  }

 private:
  HostDeviceVector<NodeIdx>* out_;
  std::size_t n_rows_;
  xgboost::DeviceOrd device_{xgboost::DeviceOrd::CPU()};
  std::future<void> resized_;  // of the host's; waits for its thread when it goes
};

/** @brief RecordTree(), and a line of it at verbosity 2. */
void Tell(TreeRecord record) {
  using Logger = xgboost::ConsoleLogger;
  if (Logger::ShouldLog(Logger::LV::kInfo)) {
    LOG(INFO) << LineOf(record);
  }
  RecordTree(std::move(record));
}

TreeRecord RecordOf(xgboost::DMatrix const& data, std::string const& device) {
  TreeRecord record;
  record.device = device;
  record.rows = data.Info().num_row_;
  record.columns = data.Info().num_col_;
  record.entries = data.Info().num_nonzero_;
  return record;
}

/**
 * @brief Restores the learning rate. XGBoost divides it among the trees of a round, and multiplies
 *        it again where all of them grow. Where one does not, this does.
 */
class SharedLearningRate {
 public:
  SharedLearningRate(TrainParam const* param, std::size_t n_trees)
      : param_{const_cast<TrainParam*>(param)}, n_trees_{static_cast<float>(n_trees)} {}
  ~SharedLearningRate() {
    if (restored_by_xgboost_) {
      return;
    }
    float const share = param_->learning_rate;
    char text[32];
    std::snprintf(text, sizeof(text), "%.6g", static_cast<double>(share * n_trees_));
    float const rounded = std::strtof(text, nullptr);  // as it was given: the share has lost a bit
    param_->learning_rate = rounded / n_trees_ == share ? rounded : share * n_trees_;
  }
  SharedLearningRate(SharedLearningRate const&) = delete;
  SharedLearningRate& operator=(SharedLearningRate const&) = delete;

  void AllGrew() { restored_by_xgboost_ = true; }

 private:
  TrainParam* param_;
  float n_trees_;
  bool restored_by_xgboost_{false};
};

/** @brief Throws dmlc::Error where only the GPU can grow the tree. */
void RefuseOnCpu(TrainParam const& param, xgboost::DMatrix const& data, std::string const& reason) {
  if (auto const why = WhyNotOnCpu(param, data, reason); !why.empty()) {
    LOG(FATAL) << why;
  }
}

/** @brief Decide what is to happen without a GPU; an error where the environment says neither. */
Fallback FallbackOf(GpuExactParam const& param) {
  char const* said = std::getenv(kFallbackVariable);
  said = said == nullptr ? std::getenv(kOldFallbackVariable) : said;
  std::string const word{said == nullptr ? "" : said};
  if (word != "" && word != "warn" && word != "error") {
    LOG(FATAL) << kFallbackVariable << " is `" << word << "`: set it to `warn` or `error`.";
  }
  if (param.gpu_exact_fallback != kFallbackDefault) {
    return static_cast<Fallback>(param.gpu_exact_fallback);
  }
  return word == "error" ? kFallbackError : kFallbackWarn;
}
}  // namespace

DMLC_REGISTER_PARAMETER(GpuExactParam);
DMLC_REGISTER_PARAMETER(ColMakerParam);

GpuExactUpdater::GpuExactUpdater(std::string name, Pruning pruning, xgboost::Context const* ctx,
                                 xgboost::ObjInfo const* task, UpdaterFactory colmaker)
    : PositionedUpdater{ctx},
      name_{std::move(name)},
      pruning_{pruning},
      task_{task},
      colmaker_{std::move(colmaker)} {
  this->Configure({});
}

UsedParameters GpuExactUpdater::Configure(xgboost::Args const& args) {
  return InTurn(
      [&] { return UpdateParameters(args, &param_, &colmaker_param_); },
      [&] {
        static_cast<void>(FallbackOf(param_));  // may be an error
        if (std::isnan(param_.gpu_exact_memory_limit)) {
          LOG(FATAL)
              << "`gpu_exact_memory_limit` is nan: give bytes, or up to 1 the share of what is "
                 "free.";
        }
      });
}

void GpuExactUpdater::LoadConfig(xgboost::Json const& in) {
  LoadParam(in, kColMakerKey, &colmaker_param_);
  LoadParam(in, kParamKey, &param_);
}

void GpuExactUpdater::SaveConfig(xgboost::Json* p_out) const {
  SaveParam(colmaker_param_, kColMakerKey, p_out);
  SaveParam(param_, kParamKey, p_out);
}

void GpuExactUpdater::Update(TrainParam const* param, xgboost::GradientContainer* gradients,
                             xgboost::DMatrix* data,
                             xgboost::common::Span<HostDeviceVector<NodeIdx>> out_position,
                             std::vector<xgboost::RegTree*> const& trees) {
  SharedLearningRate learning_rate{param, trees.size()};
  auto const& info = data->Info();
  sets_leaves_ = SetsLeaves(*task_) && !WhyNotOnCpu(*param, *data, "").empty();
  auto const ordinal = ctx_->IsCUDA() ? ctx_->Ordinal() : 0;
  DeviceStatus status;
  std::shared_ptr<DeviceTable> table;
  std::string whose;  // an error that one of several workers meets
  try {
    auto const comm = CurrentCommunicator();
    if (comm) {
      whose = NameRanks({comm->Rank()}) + " of " + std::to_string(comm->Size()) + ": ";
    }
    std::vector<int> devices{ordinal};
    auto const worker_states = TellAll(comm.get(), [&] {
      RefuseUnsupported(*param, *gradients, *data, trees);
      status = StatusOf(ordinal);
      WarnOnce(status.advice, status.advice);
      if (status.usable) {
        table = tables_.Get(info, ordinal);
      } else if (comm) {
        RefuseOnCpu(*param, *data, status.reason);
      }
      if (comm && !param_.gpu_exact_devices.empty()) {
        LOG(FATAL)
            << "`gpu_exact_devices` is \"" << param_.gpu_exact_devices << "\", but among "
            << "several workers each has one GPU. Leave it out, and start a worker for each.";
      }
      if (!comm && !param_.gpu_exact_devices.empty()) {  // no list is an error without a GPU too
        constexpr int kMoreThanListed = 10000;
        int const n_visible = table ? CountDevices() : kMoreThanListed;
        devices = ChooseDevices(param_.gpu_exact_devices, ordinal, n_visible, info.num_nonzero_);
      }
      if (!data->SingleColBlock() && (comm || devices.size() > 1)) {
        LOG(FATAL) << "A DMatrix of several batches trains on one GPU alone. Make one `DMatrix` of "
                   << "the rows of each worker, or leave `gpu_exact_devices` out.";
      }
      return comm ? this->MakeWorkerState(*param, info, trees.size(), table.get()) : WorkerState{};
    });
    if (table && param->grow_policy == TrainParam::kLossGuide) {
      WarnOnce(
          "lossguide",
          "`grow_policy=\"lossguide\"`: the leaf that gains most is split next, as by"
          " `tree_method=\"hist\"`. XGBoost's own exact builder ignores it; for its trees leave"
          " `grow_policy` out.");
    }
    HostDeviceVector<float> all_weights;
    auto const* feature_weights = &info.feature_weights;
    auto types = TypesOf(info);
    std::uint64_t epoch{0};
    if (comm) {
      CheckEqual(worker_states);
      epoch = AgreeOnEpoch(worker_states);
      if (TreeFeatures::Sampled(*param)) {
        all_weights.HostVector() = AgreeOn(comm.get(), worker_states, &WorkerState::weights,
                                           info.feature_weights.ConstHostVector());
        feature_weights = &all_weights;
      }
      types = AgreeOn(comm.get(), worker_states, &WorkerState::types, std::move(types));
    }
    for (std::size_t i = 0; i < trees.size(); ++i) {
      Task const task{*param, gradients,        data,    *feature_weights, types,
                      comm,   &out_position[i], trees[i]};
      if (!table) {
        this->GrowOnCpu(task, "no GPU " + std::to_string(ordinal), status.reason);
        continue;
      }
      if (auto const why = WhyNotOnGpu(*param); !why.empty()) {
        this->GrowOnCpu(task, why, why);
        continue;
      }
      try {
        this->GrowOnGpu(task, table.get(), devices, epoch, status.name);
      } catch (NonFiniteGradient const& e) {
        this->GrowOnCpu(task, "not finite", e.what());
      } catch (GradientRange const& e) {
        this->GrowOnCpu(task, "range", e.what());
      }
    }
    learning_rate.AllGrew();
  } catch (InvalidCategory const& e) {
    auto const& names = info.feature_names;
    auto const name = e.feature < names.size() ? names[e.feature] : "";
    throw dmlc::Error{whose + InvalidCategory{e.feature, e.value, name}.what()};
  } catch (UnfitTable const& e) {
    throw dmlc::Error{whose + e.what()};
  } catch (OutOfDeviceMemory const& e) {
    throw dmlc::Error{whose + e.what() +
                      (BoundToR() ? " What a fit that failed holds there is freed by gc()." : "")};
  } catch (DeviceError const& e) {
    throw dmlc::Error{whose + e.what()};
  } catch (std::bad_alloc const& e) {
    throw dmlc::Error{whose + WordsOf(e)};
  }
}

std::uint64_t GpuExactUpdater::HashOfSettings(TrainParam const& param, std::size_t n_trees) const {
  Hash hash;
  hash.Add(name_);  // XGBoost's `prune`, if it follows, is collective too
  for (auto const& [name, value] : param.__DICT__()) {
    hash.Add(name).Add(value);
  }
  for (auto const& [name, value] : colmaker_param_.__DICT__()) {
    hash.Add(name).Add(value);
  }
  for (std::uint64_t number : {static_cast<std::uint64_t>(param_.gpu_exact_strategy),
                               static_cast<std::uint64_t>(pruning_), std::uint64_t{n_trees}}) {
    hash.Add(&number, sizeof(number));
  }
  return hash.Value();
}

WorkerState GpuExactUpdater::MakeWorkerState(TrainParam const& param, xgboost::MetaInfo const& info,
                                             std::size_t n_trees, DeviceTable* table) const {
  WorkerState worker_state;
  {
    std::lock_guard<std::mutex> guard{table->mutex};
    worker_state.epoch = table->Epoch(info, this->MakeTableOptions());
  }
  worker_state.newest_epoch = NewestEpoch();
  worker_state.sources = Hash{}.Add(SourceHash()).Value();
  worker_state.settings = this->HashOfSettings(param, n_trees);
  worker_state.last_tree = last_tree_;
  if (auto const& weights = info.feature_weights.ConstHostVector();
      TreeFeatures::Sampled(param) && !weights.empty()) {
    worker_state.weights = Hash{}.Add(weights.data(), weights.size() * sizeof(float)).Value();
  }
  if (auto const types = TypesOf(info); info.num_row_ != 0 || !types.empty()) {
    worker_state.types = Hash{}.Add(types.data(), types.size() * sizeof(types[0])).Value();
  }
  auto random = RandomOf(ctx_);  // a copy
  worker_state.random = static_cast<std::uint32_t>(random());
  worker_state.n_features = static_cast<std::uint32_t>(info.num_col_);
  if (auto const* round = Round::Current()) {
    worker_state.n_rounds = round->n_before;
    worker_state.n_groups = round->n_groups;
  }
  return worker_state;
}

TableOptions GpuExactUpdater::MakeTableOptions() const {
  return {static_cast<Strategy>(param_.gpu_exact_strategy), param_.gpu_exact_memory_limit};
}

GrowParam GpuExactUpdater::MakeGrowParam(TrainParam const& param) const {
  GrowParam grow;
  grow.max_depth = param.max_depth;
  if (param.grow_policy == TrainParam::kLossGuide) {  // as `hist`
    grow.grow_policy = GrowPolicy::kLossGuide;
    grow.max_leaves = param.max_leaves;
    grow.min_split_loss = param.min_split_loss;
  } else {
    // With a depth grow_colmaker does not look at max_leaves, and without one it grows nothing.
    grow.max_leaves = param.max_depth == 0 ? param.max_leaves : 0;
  }
  grow.min_child_weight = param.min_child_weight;
  grow.reg_lambda = param.reg_lambda;
  grow.reg_alpha = param.reg_alpha;
  grow.max_delta_step = param.max_delta_step;
  grow.opt_dense_col = colmaker_param_.opt_dense_col;
  grow.gain_rules = kGainRules;
  grow.default_direction = static_cast<DefaultDirection>(colmaker_param_.default_direction);
  grow.monotone_constraints = param.monotone_constraints;
  grow.max_cat_to_onehot = param.max_cat_to_onehot;
  grow.max_cat_threshold = param.max_cat_threshold;
  grow.team = TeamOfXGBoost(ctx_->Threads());
  return grow;
}

void GpuExactUpdater::GrowOnGpu(Task const& task, DeviceTable* table,
                                std::vector<int> const& devices, std::uint64_t epoch,
                                std::string const& device) {
  std::lock_guard<std::mutex> guard{table->mutex};
  auto* builder =
      table->Builder(task.data, devices, this->MakeTableOptions(), task.types, task.comm, epoch);
  TreeRecord record = RecordOf(*task.data, device);
  record.set_up_ms = table->SetUpMs();
  try {
    this->GrowTree(task, builder, &record);
  } catch (UnfitGradients const&) {  // the builder is as it was
    throw;
  } catch (...) {
    table->Drop();
    throw;
  }
  Tell(std::move(record));
}

void GpuExactUpdater::GrowTree(Task const& task, TreeBuilder* builder, TreeRecord* record) {
  auto const begin = std::chrono::steady_clock::now();
  auto const& gpair = *task.gradients->FullGradOnly()->Data();
  std::optional<Positions> positions;
  if (kReadsPositions || sets_leaves_) {
    positions.emplace(ctx_, gpair.Size(), task.out_position);
  }
  // Random numbers are drawn from a copy, so that a tree that fails has drawn none.
  DrawingContext cpu_ctx{ctx_};
  auto const* rows = task.param.subsample < 1.0f
                         ? row_sampler_.Sample(ctx_, builder, gpair, task.param.subsample,
                                               task.comm.get(), &RandomOf(cpu_ctx.Get()))
                         : nullptr;
  record->sample_ms = MillisecondsSince(begin);
  auto const sampled = std::chrono::steady_clock::now();
  TreeFeatures features{cpu_ctx.Get(), task.param,
                        static_cast<FeatureIdx>(task.data->Info().num_col_), task.feature_weights};
  last_tree_ = task.comm ? kUnfinishedTree : 0;  // of a worker that fails, be it alone
  auto const grown = builder->Build(this->MakeGrowParam(task.param), ViewOf(gpair, ctx_), rows,
                                    features.Restricted() ? &features : nullptr);
  cpu_ctx.Keep();
  record->build_ms = MillisecondsSince(sampled);
  auto const built = std::chrono::steady_clock::now();
  WriteTree(grown, task.param, pruning_ == Pruning::kInside, task.tree);
  auto const remap = this->Prune(task);
  if (positions) {
    positions->Write(builder, remap);
  }
  last_tree_ = task.comm ? HashOf(grown) : 0;
  record->write_ms = MillisecondsSince(built);
  record->stats = builder->Stats();
  if (record->stats.through_host) {
    WarnOnce("through the host",
             "Workers tell each other through the host's memory, which takes longer: two of them"
             " share a GPU, or NCCL was not found. Give each a GPU of its own, by"
             " `CUDA_VISIBLE_DEVICES` or `device`, and name NCCL by `GPU_EXACT_NCCL`.");
  }
  record->device_bytes = builder->DeviceBytes();
}

void GpuExactUpdater::GrowOnCpu(Task const& task, std::string const& kind,
                                std::string const& reason) {
  RefuseOnCpu(task.param, *task.data, reason);
  if (FallbackOf(param_) == kFallbackError) {
    LOG(FATAL) << reason << " To train on the CPU instead, set `gpu_exact_fallback=\"warn\"`.";
  }
  WarnOnce(kind, reason +
                     " XGBoost's own exact builder grows the trees on the CPU instead; set"
                     " `gpu_exact_fallback=\"error\"` to raise an error.");
  GrowByColMaker(colmaker_, ctx_, task_, colmaker_param_, &task.param, task.gradients, task.data,
                 {task.out_position, 1}, {task.tree});
  TreeRecord record = RecordOf(*task.data, "CPU");
  record.reason = reason;
  Tell(std::move(record));
  auto const remap = this->Prune(task);
  if (remap.empty()) {
    return;
  }
  for (auto& position : task.out_position->HostVector()) {
    position = EncodePosition(remap[DecodePosition(position)], position >= 0);
  }
}

std::vector<NodeIdx> GpuExactUpdater::Prune(Task const& task) const {
  return pruning_ == Pruning::kInside ? PruneTree(task.param, task.tree) : std::vector<NodeIdx>{};
}
}  // namespace gpu_exact
