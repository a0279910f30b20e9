/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Loops over levels: finds the best split of every node, splits, moves rows to the children.
 * @see   Mitchell and Frank, "Accelerating the XGBoost algorithm using GPU computing",
 *        PeerJ CS 3:e127
 */
#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "core/tree_grower.h"
#include "device/builder/device_builder.cuh"
#include "device/level/leaf_sums.cuh"
#include "device/level/node_states.cuh"
#include "device/runtime/device_context.cuh"
#include "device/runtime/host_copy.cuh"
#include "device/runtime/pool_release_threshold.cuh"
#include "device/runtime/uploader.cuh"
#include "device/workers/split_exchange.cuh"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
namespace {
/** @brief Limits the nodes whose results are written to the host's memory by the kernel that makes them:
 *         few writes over the bus take less than another launch. */
constexpr LevelNode kWrittenToHost = 256;

/** @brief Say why a tree whose rows keep few bits is not grown here. */
GradientRange FarApart(Rounding const& rounding, Quantiser const& quantiser) {
  std::ostringstream msg;
  msg << "The gradients or hessians of " << rounding.n_few_bits
      << " rows are too small beside the largest gradient, " << quantiser.max_grad
      << ", or hessian, " << quantiser.max_hess
      << ", to be summed with it on the GPU; check labels and weights for outliers.";
  return GradientRange{msg.str()};
}

// one thread a row; result: a row that is not sampled is like a deleted one
__global__ void DeleteKernel(std::uint8_t const* included, RowIdx n_rows, GradientPair* gpair) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row < n_rows && included[row] == 0) {
    gpair[row] = {0.0f, -1.0f};
  }
}

/** @brief Choose what the pool of the device keeps for positions: nothing where these are short, and take
 *         little time, or where it would be much beside what the table takes. */
std::uint64_t PoolBytes(RowIdx n_rows, TreeStats const& planned, bool has_workers) {
  constexpr std::uint64_t kShort = std::uint64_t{1} << 20;
  std::uint64_t const part = has_workers ? 4 : 16;  // with workers it saves more
  std::uint64_t const bytes = std::uint64_t{n_rows} * sizeof(NodeIdx);
  std::uint64_t const kept = CeilDiv(bytes, kPoolStep) * kPoolStep;
  return bytes >= kShort && part * kept <= planned.planned_bytes ? kept : 0;
}

class DeviceBuilder : public TreeBuilder {
 public:
  DeviceBuilder(std::shared_ptr<DeviceContext> context, RowIdx n_rows,
                std::unique_ptr<SplitStrategy> strategy, TreeStats const& stats,
                std::unique_ptr<ColumnPartition> partition)
      : context_{std::move(context)},
        n_rows_{n_rows},
        own_{0, n_rows},
        given_{own_},
        column_partition_{std::move(partition)},
        strategy_{std::move(strategy)},
        stats_{stats},
        pool_{PoolBytes(n_rows, stats, column_partition_ != nullptr)} {
    if (column_partition_ != nullptr) {
      auto const rank = column_partition_->Workers()->Rank();
      auto const first = static_cast<RowIdx>(column_partition_->RowBegins()[rank]);
      own_ = {first, static_cast<RowIdx>(column_partition_->RowBegins()[rank + 1])};
      given_ = own_;
      exchange_ = std::make_unique<SplitExchange>(*column_partition_);
      gradients_.Reserve(n_rows);
      stats_.through_host = column_partition_->Workers()->Kind() == Transport::kHost;
    }
  }

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override {
    DeviceContext::Scope const scope{*context_};
    try {
      return this->Grow(param, gradients, row_included, features);
    } catch (UnfitGradients const&) {  // every worker throws it
      throw;
    } catch (...) {
      if (column_partition_ != nullptr) {
        column_partition_->Workers()->Leave();
      }
      throw;
    }
  }
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override {
    DeviceContext::Scope const scope{*context_};
    std::vector<NodeIdx> ids = final_ids_;
    for (std::size_t i = 0; !remap.empty() && i < ids.size(); ++i) {
      ids[i] = remap[ids[i]];
    }
    strategy_->Positions().Write(given_.begin, given_.Size(), ids.empty() ? remap : ids, memory,
                                 out_positions, &copier_);
  }
  [[nodiscard]] bool KeepsPool() const override { return pool_.Keeps(); }
  [[nodiscard]] bool AnyDeletedRow(GradientPair const* gradients) override {
    DeviceContext::Scope const scope{*context_};
    return scan_.AnyDeleted({gradients, nullptr, own_.Size()});
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override { return context_->Bytes(); }
  [[nodiscard]] TreeStats Stats() const override { return stats_; }

 private:
  /** @brief Holds a tree in progress. */
  struct Tree {
    FeaturePolicy* features;
    TreeGrower grower;
    std::int32_t const* monotone;  // by feature, device memory; nullptr: none
    Rounding rounding;
    TreeStart start;
    LevelRef ref;  // what kernels know of every level

    /** @brief Give the CandidateKey that a candidate must beat on the next level. */
    [[nodiscard]] std::uint64_t ToBeat() const {
      return CandidateKey::GainToBeat(grower.LeastLossChange());
    }
  };

  GrownTree Grow(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                 FeaturePolicy* features);
  /** @brief Bring gradients to the device, and measure them. */
  Tree Start(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
             FeaturePolicy* features);
  /** @brief Wait for the stream; what other workers told is right, or this throws. */
  void WaitForAnswers();
  /** @brief Add up the rows of each leaf by units of its own, where a leaf's are too coarse. Waits. */
  void RefineLeaves(Tree const& tree, GrownTree* grown);
  /** @brief Bring gradients of all rows to the device, the sampled ones and those of all workers. */
  [[nodiscard]] TrainingRows Gather(GradientView gradients, std::uint8_t const* row_included);

  // The phases, see split_strategy.cuh.
  void BeginTree(Tree const& tree, Level* root);
  [[nodiscard]] std::vector<LevelResult> FindSplits(Level const& level);
  void Partition(Tree* tree, Level const& level, std::vector<NodeSplit>* node_splits,
                 Level* children);
  void EndTree(Tree* tree, Level const& level);

  /** @brief Make the level of the live nodes, with room for most nodes. */
  void MakeLevel(Tree const& tree, std::size_t most, Level* level) const;
  /** @brief Ask which features the nodes of a level may use. */
  void SelectFeatures(Tree const& tree, Level* level);

  std::shared_ptr<DeviceContext> context_;
  RowIdx n_rows_;   // of all workers
  RowRange own_;    // rows of the table that this worker has
  RowRange given_;  // of the last tree: whose gradients came, and positions go
  std::unique_ptr<ColumnPartition> column_partition_;  // nullptr: there is one worker
  std::unique_ptr<SplitExchange> exchange_;
  std::unique_ptr<SplitStrategy> strategy_;
  RowScan scan_;
  HostCopier copier_;
  TreeStats stats_;
  PoolReleaseThreshold pool_;       // for positions
  std::vector<NodeIdx> final_ids_;  // of the nodes that positions name; empty: these are the tree's
  DeviceBuffer<GradientPair> gradients_{"gradients"};
  DeviceBuffer<std::uint8_t> row_included_{"sampled rows"};
  DeviceBuffer<std::int32_t> monotone_{"monotone constraints"};
  DeviceBuffer<FeatureRule> rules_{"feature rules"};
  Level level_;
  Level children_;
  // Of the level that is searched next, see LevelRef::mask:
  Uploader masks_{"allowed features"};
  DeviceBuffer<std::uint32_t> own_masks_{"allowed features of the worker"};
  DeviceBuffer<LevelResult> results_{"best splits"};
  PinnedBuffer<LevelResult> host_results_{"best splits"};
  PinnedBuffer<NodeState> host_states_{"nodes of the last level"};
  Uploader node_splits_{"split orders"};
};

GrownTree DeviceBuilder::Grow(GrowParam const& param, GradientView gradients,
                              std::uint8_t const* row_included, FeaturePolicy* features) {
  ProfilerRange const range{"gpu_exact: tree"};
  SyncOnExit wait;  // another thread's stream may use the builder next
  auto const begin = std::chrono::steady_clock::now();
  Tree tree = this->Start(param, gradients, row_included, features);
  this->BeginTree(tree, &level_);
  stats_.start_ms = MillisecondsSince(begin);
  while (level_.is_searched) {
    std::vector<NodeSplit> node_splits = tree.grower.Expand(this->FindSplits(level_));
    if (tree.grower.NumLive() == 0) {
      break;
    }
    this->Partition(&tree, level_, &node_splits, &children_);
    std::swap(level_, children_);
  }
  if (tree.grower.NumLive() != 0) {
    NodeState* const host = host_states_.Reserve(level_.nodes.n);
    CopyPinned(host, level_.states.Data(), level_.nodes.n);
    Synchronize();
    tree.grower.Close({host, host + level_.nodes.n});
  }
  stats_.levels_ms = MillisecondsSince(begin) - stats_.start_ms;
  this->EndTree(&tree, level_);
  FinishedTree finished = tree.grower.Finish();
  final_ids_ = std::move(finished.final_ids);
  return std::move(finished.tree);
}

void DeviceBuilder::BeginTree(Tree const& tree, Level* root) {
  this->MakeLevel(tree, 1, root);
  scan_.Sum(tree.start.rows, tree.start.quantiser, &root->states.Data()->sum);
  CompleteRoot(tree.start.param, tree.monotone, tree.ToBeat(), rules_.Data(), root);
  strategy_->BeginTree(tree.start, root);
  this->SelectFeatures(tree, root);
}

std::vector<LevelResult> DeviceBuilder::FindSplits(Level const& level) {
  ProfilerRange const range{"gpu_exact: find splits"};
  LevelNode const n = level.nodes.n;
  LevelResult* const host = host_results_.Reserve(n);
  bool const to_host = exchange_ == nullptr && n <= kWrittenToHost;
  LevelResult* const out = to_host ? host : results_.Reserve(n);
  strategy_->FindSplits(level, out);
  if (to_host) {
    strategy_->AwaitSplits();
  } else {
    CopyPinned(host, out, n);
    this->WaitForAnswers();
  }
  strategy_->EndSearch(level);
  return {host, host + n};
}

void DeviceBuilder::Partition(Tree* tree, Level const& level, std::vector<NodeSplit>* node_splits,
                              Level* children) {
  ProfilerRange const range{"gpu_exact: partition"};
  this->MakeLevel(*tree, 2 * std::size_t{level.nodes.n}, children);
  for (LevelNode b = 0; b < level.nodes.n; ++b) {
    if ((*node_splits)[b].left != kNoNode) {
      children->parents.push_back(b);
    }
  }
  NodeSplit const* const on_device = node_splits_.Upload(
      *node_splits, WordsToClear::Of(children->states.Data(), children->nodes.n));
  strategy_->Partition(level, {node_splits, on_device}, children);
  tree->grower.SetThresholds(*node_splits);
  CompleteChildren(level, on_device, tree->monotone, tree->ToBeat(), children);
  this->SelectFeatures(*tree, children);
}

void DeviceBuilder::EndTree(Tree* tree, Level const& level) {
  GrownTree* const grown = tree->grower.Nodes();
  std::vector<NodeSplit> node_splits;
  for (TreeNode const& n : *grown) {
    node_splits.push_back({n.feature, n.left, n.threshold, n.default_left});
  }
  strategy_->EndTree(level, node_splits);
  this->WaitForAnswers();
  for (std::size_t nidx = 0; nidx < grown->size(); ++nidx) {
    (*grown)[nidx].categories = strategy_->Categories(static_cast<NodeIdx>(nidx));
  }
  this->RefineLeaves(*tree, grown);
  stats_.refined_share = strategy_->RefinedShare();
  stats_.peak_bytes = PeakDeviceBytes();
}

void DeviceBuilder::RefineLeaves(Tree const& tree, GrownTree* grown) {
  bool const refine = std::any_of(grown->cbegin(), grown->cend(), [&](TreeNode const& node) {
    return tree.start.quantiser.MayChangeNode(tree.rounding, {node.sum_grad, node.sum_hess});
  });
  if (refine) {
    NodeIdx const* const positions = strategy_->Positions().Data();
    SetSums(tree.start.param, SumLeaves(tree.start.rows, positions, grown->size()), grown);
  }
}

void DeviceBuilder::MakeLevel(Tree const& tree, std::size_t most, Level* level) const {
  TreeGrower const& grower = tree.grower;
  level->depth = grower.Depth();
  level->nodes = {grower.FirstLive(), static_cast<LevelNode>(grower.NumLive())};
  level->is_searched = grower.MaySplit();
  level->is_last = grower.Depth() + 1 == tree.start.param.max_depth;
  level->parents.clear();
  level->ref = tree.ref;
  level->ref.nodes = level->states.Reserve(most);
  level->ref.best = level->best.Reserve(most);
  level->ref.n_nodes = level->nodes.n;
}

void DeviceBuilder::SelectFeatures(Tree const& tree, Level* level) {
  FeatureMask mask;
  if (!level->is_searched || tree.features == nullptr ||
      !tree.features->Select(level->depth, tree.grower.LiveNodes(), &mask)) {
    return;
  }
  LevelRef& ref = level->ref;
  ref.mask_words = mask.n_words;
  ref.mask_per_node = mask.bits.size() > mask.n_words;
  ref.mask = masks_.Upload(mask.bits);
  if (exchange_ != nullptr) {
    std::size_t const n_masks = ref.mask_per_node ? level->nodes.n : 1;
    ref.mask_words = SplitExchange::MaskWords(ref.columns.n_features);
    std::uint32_t* const own_masks = own_masks_.Reserve(n_masks * ref.mask_words);
    exchange_->SelectOwn(ref.mask, mask.n_words, n_masks, own_masks);
    ref.mask = own_masks;
  }
}

void DeviceBuilder::WaitForAnswers() {
  Synchronize();
  if (column_partition_ != nullptr) {
    column_partition_->Workers()->Check();
  }
}

DeviceBuilder::Tree DeviceBuilder::Start(GrowParam const& param, GradientView gradients,
                                         std::uint8_t const* row_included,
                                         FeaturePolicy* features) {
  copier_.SetTeam(param.team);
  TrainingRows const rows = this->Gather(gradients, row_included);
  RowSummary summary = scan_.Summarise(rows);
  if (summary.n_not_finite != 0) {
    throw NonFiniteGradient{std::to_string(summary.n_not_finite) +
                            " rows have a gradient or hessian that is NaN or infinite; check the "
                            "objective and the labels."};
  }
  Quantiser quantiser = summary.ByLargest(n_rows_).Refined(summary.magnitudes, n_rows_);
  Rounding rounding{};
  if (!quantiser.IsFine(summary.LeastGrad(), summary.LeastHess())) {
    rounding = scan_.SumRounding(rows, quantiser);
    if (quantiser.MayChangeSplits(rounding, GainParam{param})) {
      throw FarApart(rounding, quantiser);
    }
  }

  ColumnsRef const columns = strategy_->Candidates();
  auto monotone = param.monotone_constraints;
  bool const has_monotone = param.HasMonotone();
  if (has_monotone) {
    monotone.resize(
        column_partition_ != nullptr ? column_partition_->Whole().n_features : columns.n_features,
        0);
    CopyFromHost(monotone_.Reserve(monotone.size()), monotone.data(), monotone.size());
  }
  LevelRef ref{};
  ref.columns = columns;
  ref.rules = rules_.Reserve(columns.n_features);
  ref.gain = GainParam{param};
  ref.quantiser = quantiser;
  if (summary.HessiansAreAlike(n_rows_)) {
    ref.hess_of_row = quantiser.Fixed({0.0f, quantiser.max_hess}).hess;
  }
  ref.bound = GainBound::Make(ref.gain, ref.quantiser);
  ref.max_cat_threshold = static_cast<std::uint32_t>(param.max_cat_threshold);
  ref.features = column_partition_ != nullptr ? column_partition_->Features() : ColumnFeatures{};
  std::int32_t const* const by_feature = has_monotone ? monotone_.Data() : nullptr;
  return {features,
          TreeGrower{param, quantiser},
          by_feature,
          rounding,
          {param, rows, summary.n_left_out, quantiser, exchange_.get()},
          ref};
}

TrainingRows DeviceBuilder::Gather(GradientView gradients, std::uint8_t const* row_included) {
  given_ = gradients.are_all ? RowRange{0, n_rows_} : own_;
  TrainingRows rows{gradients.data, nullptr, n_rows_};
  if (gradients.memory == Memory::kHost) {
    copier_.CopyToDevice(gradients_.Reserve(n_rows_) + given_.begin, gradients.data, given_.Size());
    rows.gpair = gradients_.Data();
  } else if (column_partition_ != nullptr) {
    CopyAsync(gradients_.Data() + given_.begin, gradients.data, given_.Size());
    rows.gpair = gradients_.Data();
  }
  if (row_included != nullptr) {
    copier_.CopyToDevice(row_included_.Reserve(given_.Size()), row_included, given_.Size());
    rows.included = row_included_.Data();
  }
  if (column_partition_ != nullptr && !gradients.are_all) {
    if (row_included != nullptr) {
      LaunchN("Delete", DeleteKernel, given_.Size(), rows.included, given_.Size(),
              gradients_.Data() + given_.begin);
      rows.included = nullptr;
    }
    column_partition_->Workers()->AllGatherWords(
        reinterpret_cast<std::uint32_t*>(gradients_.Data()),
        {column_partition_->RowBegins(), sizeof(GradientPair)});
    this->WaitForAnswers();
  }
  return rows;
}
}  // namespace

std::unique_ptr<TreeBuilder> MakeTreeBuilder(std::shared_ptr<DeviceContext> context, RowIdx n_rows,
                                             std::unique_ptr<SplitStrategy> strategy,
                                             TreeStats const& stats,
                                             std::unique_ptr<ColumnPartition> partition) {
  DeviceContext::Scope const scope{*context};
  context->ReleaseScratch();  // sorting a table takes more than growing a tree
  auto builder = std::make_unique<DeviceBuilder>(std::move(context), n_rows, std::move(strategy),
                                                 stats, std::move(partition));
  Synchronize();  // another thread's stream may build the first tree
  return builder;
}
}  // namespace gpu_exact
