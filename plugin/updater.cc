/**
 * Copyright 2026, the gpu_exact contributors
 */
#include "updater.h"

#include <dmlc/registry.h>
#include <xgboost/logging.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <mutex>
#include <set>
#include <utility>

#include "binding.h"
#include "device_status.h"
#include "feature_sampler.h"
#include "param_json.h"
#include "refusals.h"
#include "run_log.h"
#include "tree_writer.h"

namespace gpu_exact {
namespace {
using xgboost::HostDeviceVector;
using xgboost::tree::TrainParam;

static_assert(sizeof(GradientPair) == sizeof(xgboost::GradientPair));
static_assert(sizeof(NodeIdx) == sizeof(xgboost::bst_node_t));

constexpr char const* kParamKey = "gpu_exact_train_param";
constexpr char const* kColMakerKey = "colmaker_train_param";  // as XGBoost's own updater saves it

GradientView ViewOf(HostDeviceVector<xgboost::GradientPair> const& gradients,
                    xgboost::Context const* ctx) {
  if (ctx->IsCUDA()) {
    gradients.SetDevice(ctx->Device());
    return {reinterpret_cast<GradientPair const*>(gradients.ConstDevicePointer()), Memory::kDevice};
  }
  return {reinterpret_cast<GradientPair const*>(gradients.ConstHostPointer()), Memory::kHost};
}

/**
 * @brief The positions that XGBoost wants of a tree.
 *
 * On the host they are new memory for every tree, which the system gives page by page: that takes
 * longer than the copy, so that it is done while the tree grows.
 */
class Positions {
 public:
  Positions(xgboost::Context const* ctx, std::size_t n_rows, HostDeviceVector<NodeIdx>* out)
      : out_{out}, n_rows_{n_rows} {
    constexpr std::size_t kWorthAThread = 1 << 17;
    if (ctx->IsCUDA()) {
      out_->SetDevice(ctx->Device());
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
      out_->Resize(n_rows_);
      builder->WritePositions(remap, Memory::kDevice, out_->DevicePointer());
    }
  }

 private:
  HostDeviceVector<NodeIdx>* out_;
  std::size_t n_rows_;
  std::future<void> resized_;  // of the host's; waits for its thread when it goes
};

TreeRecord RecordOf(xgboost::DMatrix const& data, std::string const& device) {
  TreeRecord record;
  record.device = device;
  record.rows = data.Info().num_row_;
  record.columns = data.Info().num_col_;
  record.entries = data.Info().num_nonzero_;
  return record;
}

/**
 * @brief Each kind of reason is told once in a process; one that nobody was to see has not been told.
 * @param kind Of the reason: the text itself, or a word for reasons with other numbers each time.
 */
void WarnOnce(std::string const& kind, std::string const& reason) {
  using Logger = xgboost::ConsoleLogger;
  static std::mutex mutex;
  static std::set<std::string> told;
  if (!Logger::ShouldLog(Logger::LV::kWarning)) {
    return;
  }
  {
    std::lock_guard<std::mutex> guard{mutex};
    if (!told.insert(kind).second) {
      return;
    }
  }
  LOG(WARNING) << reason << " XGBoost's own exact builder grows the trees on the CPU instead; set"
               << " `gpu_exact_fallback=\"error\"` to raise an error.";
}
}  // namespace

DMLC_REGISTER_PARAMETER(GpuExactParam);
DMLC_REGISTER_PARAMETER(ColMakerParam);

GpuExactUpdater::GpuExactUpdater(std::string name, Pruning pruning, xgboost::Context const* ctx,
                                 xgboost::ObjInfo const* task, UpdaterFactory colmaker)
    : TreeUpdater{ctx},
      name_{std::move(name)},
      pruning_{pruning},
      task_{task},
      colmaker_{std::move(colmaker)} {
  this->Configure({});
}

void GpuExactUpdater::Configure(xgboost::Args const& args) {
  param_.UpdateAllowUnknown(args);
  colmaker_param_.UpdateAllowUnknown(args);
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
  RefuseUnsupported(*param, *gradients, *data, trees);
  auto const ordinal = ctx_->IsCUDA() ? ctx_->Ordinal() : 0;
  auto const status = StatusOf(ordinal);
  try {
    auto const table = status.usable ? tables_.Get(data->Info(), ordinal) : nullptr;
    TableOptions const options{static_cast<Strategy>(param_.gpu_exact_strategy),
                               param_.gpu_exact_memory_limit};
    for (std::size_t i = 0; i < trees.size(); ++i) {
      Task const task{*param, gradients, data, &out_position[i], trees[i]};
      if (!table) {
        this->GrowOnCpu(task, status.reason, status.reason);
        continue;
      }
      try {
        std::lock_guard<std::mutex> guard{table->mutex};
        auto* builder = table->Builder(data, ordinal, options);
        TreeRecord record = RecordOf(*data, status.name);
        record.set_up_ms = table->SetUpMs();
        this->GrowOnGpu(task, builder, &record);
        RecordTree(std::move(record));
      } catch (NonFiniteGradient const& e) {
        this->GrowOnCpu(task, "not finite", e.what());
      } catch (GradientRange const& e) {
        this->GrowOnCpu(task, "range", e.what());
      }
    }
  } catch (OutOfDeviceMemory const& e) {
    throw dmlc::Error{std::string{e.what()} +
                      (BoundToR() ? " What a fit that failed holds there is freed by gc()." : "")};
  } catch (DeviceError const& e) {
    throw dmlc::Error{e.what()};
  }
}

GrowParam GpuExactUpdater::MakeGrowParam(TrainParam const& param) const {
  GrowParam grow;
  grow.max_depth = param.max_depth;
  // With a depth grow_colmaker does not look at max_leaves, and without one it grows nothing.
  grow.max_leaves = param.max_depth == 0 ? param.max_leaves : 0;
  grow.min_child_weight = param.min_child_weight;
  grow.reg_lambda = param.reg_lambda;
  grow.reg_alpha = param.reg_alpha;
  grow.max_delta_step = param.max_delta_step;
  grow.opt_dense_col = colmaker_param_.opt_dense_col;
  grow.default_direction = static_cast<DefaultDirection>(colmaker_param_.default_direction);
  grow.monotone_constraints = param.monotone_constraints;
  grow.interleaved_levels = param_.gpu_exact_interleaved_levels;
  grow.n_threads = ctx_->Threads();
  return grow;
}

void GpuExactUpdater::GrowOnGpu(Task const& task, TreeBuilder* builder, TreeRecord* record) {
  auto const begin = std::chrono::steady_clock::now();
  auto const& gpair = *task.gradients->FullGradOnly()->Data();
  Positions positions{ctx_, gpair.Size(), task.out_position};
  // Random numbers are drawn from a copy, so that a tree that fails has drawn none.
  auto const cpu_ctx = ctx_->MakeCPU();
  auto const* rows =
      task.param.subsample < 1.0f
          ? row_sampler_.Sample(ctx_, builder, gpair, task.param.subsample, &cpu_ctx.Rng())
          : nullptr;
  record->sample_ms = MillisecondsSince(begin);
  TreeFeatures features{&cpu_ctx, task.param, task.data->Info()};
  auto const grown = builder->Build(this->MakeGrowParam(task.param), ViewOf(gpair, ctx_), rows,
                                    features.Restricted() ? &features : nullptr);
  ctx_->Rng() = cpu_ctx.Rng();
  record->build_ms = MillisecondsSince(begin) - record->sample_ms;

  WriteTree(grown, task.param.learning_rate, task.tree);
  positions.Write(builder, this->Prune(task));
  record->write_ms = MillisecondsSince(begin) - record->sample_ms - record->build_ms;
  record->stats = builder->Stats();
  record->device_bytes = builder->DeviceBytes();
}

void GpuExactUpdater::GrowOnCpu(Task const& task, std::string const& kind,
                                std::string const& reason) {
  if (param_.gpu_exact_fallback == kFallbackError) {
    LOG(FATAL) << reason << " To train on the CPU instead, set `gpu_exact_fallback=\"warn\"`.";
  }
  RefuseOnCpu(task.param, *task.data, reason);
  WarnOnce(kind, reason);
  if (!cpu_builder_) {
    cpu_builder_ = std::make_unique<CpuBuilder>(colmaker_, ctx_, task_);
  }
  cpu_builder_->Update(colmaker_param_, &task.param, task.gradients, task.data,
                       {task.out_position, 1}, {task.tree});
  TreeRecord record = RecordOf(*task.data, "CPU");
  record.reason = reason;
  RecordTree(std::move(record));
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
