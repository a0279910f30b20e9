/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The level loop: find the best split of every node, split, move rows to the children.
 * @see   Mitchell and Frank, "Accelerating the XGBoost algorithm using GPU computing",
 *        PeerJ CS 3:e127
 */
#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "core/tree_grower.h"
#include "device/histogram/bins/binned_table.cuh"
#include "device/level/leaf_sums.cuh"
#include "device/level/node_states.cuh"
#include "device/level/split_strategy.cuh"
#include "device/runtime/host_copy.cuh"
#include "device/runtime/pool_release_threshold.cuh"
#include "gpu_exact/device.h"
#include "gpu_exact/tree_builder.h"
#include "host/all_or_none.h"
#include "plan/bin_bound.h"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
/** @brief Strategy kAuto: histograms where columns are long; many short ones are sorted. */
constexpr EntryIdx kLongColumn = 256;
constexpr std::uint64_t kSmallTable = std::uint64_t{1} << 26;  // row offsets

/** @brief Results of up to so many nodes are written to the host's memory by the kernel that makes them:
 *         few writes over the bus take less than another launch. */
constexpr LevelNode kWrittenToHost = 256;

/** @brief Count the categorical features of a table. */
FeatureIdx NumCategorical(CsrView const& table) {
  auto const* types = table.feature_types;
  return types == nullptr ? 0
                          : static_cast<FeatureIdx>(std::count(types, types + table.n_features,
                                                               FeatureType::kCategorical));
}

/** @brief Why a table cannot have histograms; empty where it can. */
std::string WhyNotHistogram(CsrView const& table) {
  constexpr RowIdx kMaxRows = std::numeric_limits<std::int32_t>::max();
  if (table.n_rows > kMaxRows) {
    return "at most " + std::to_string(kMaxRows) + " rows, the table has " +
           std::to_string(table.n_rows);
  }
  return "";
}

/**
 * @brief A strategy for a table, as far as memory goes; stats are told what was planned.
 * @param share Of several workers, whose slice the table is, and is released; nullptr: there is one.
 */
std::unique_ptr<SplitStrategy> MakeStrategy(CsrView const& table, Strategy strategy,
                                            TableOptions const& options, ColumnPartition* share,
                                            TreeStats* stats) {
  ProfilerRange const range{"gpu_exact: set-up"};
  std::size_t free{0}, total{0};
  EXACT_CUDA(cudaMemGetInfo(&free, &total));
  DeviceTraits const device{BinMatrix::MaxBins(),
                            DeviceAttribute(cudaDevAttrComputeCapabilityMajor) < 9};
  std::uint64_t const rows_bytes = share != nullptr ? share->OwnTableBytes() : 0;
  ChosenMemory const chosen = ChooseMemory(
      table, strategy, {free + rows_bytes, total, options.memory_limit, device, rows_bytes});
  if (options.device_only && chosen.plan.HostBytes() != 0) {
    throw OutOfDeviceMemory{
        "The table does not fit on the GPU as a whole: " + chosen.plan.Describe() + "."};
  }
  std::uint64_t const exchange_bytes = share != nullptr ? share->ExchangeBytes() : 0;
  *stats = {strategy, std::max(chosen.plan.Peak(), exchange_bytes), chosen.plan.HostBytes()};
  auto const release_own_table = [&] {
    if (share != nullptr) {
      share->ReleaseOwnTable();
    }
  };
  if (strategy == Strategy::kHistogram) {
    StagedTable staged{table, chosen.memory};
    if (staged.WholeRead()) {
      release_own_table();
    }
    auto binned = std::make_unique<BinnedTable>(std::move(staged), std::vector<std::uint32_t>{},
                                                chosen.memory);
    release_own_table();
    return MakeHistogramStrategy(std::move(binned), chosen.memory);
  }
  auto columns = MakeSortStrategy(table);
  release_own_table();
  return columns;
}

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

/** @brief What the pool of the device should keep for positions: nothing where these are short, and take
 *         little time, or where it would be much beside what the table takes. */
std::uint64_t PoolBytes(RowIdx n_rows, TreeStats const& planned, bool has_workers) {
  constexpr std::uint64_t kShort = std::uint64_t{1} << 20;
  std::uint64_t const part = has_workers ? 4 : 16;  // with workers it saves more
  std::uint64_t const bytes = std::uint64_t{n_rows} * sizeof(NodeIdx);
  std::uint64_t const kept = CeilDiv(bytes, kPoolStep) * kPoolStep;
  return bytes >= kShort && part * kept <= planned.planned_bytes ? kept : 0;
}

/** @brief Rows of the table that a worker has, or has been given. */
struct RowsOfWorker {
  RowIdx first;
  RowIdx n;
};

class DeviceBuilder : public TreeBuilder {
 public:
  DeviceBuilder(int ordinal, RowIdx n_rows, std::unique_ptr<SplitStrategy> strategy,
                TreeStats const& stats, std::unique_ptr<ColumnPartition> share)
      : ordinal_{ordinal},
        n_rows_{n_rows},
        own_{0, n_rows},
        given_{own_},
        share_{std::move(share)},
        strategy_{std::move(strategy)},
        stats_{stats},
        pool_{PoolBytes(n_rows, stats, share_ != nullptr)} {
    if (share_ != nullptr) {
      auto const rank = share_->Workers()->Rank();
      auto const first = static_cast<RowIdx>(share_->RowBegins()[rank]);
      own_ = {first, static_cast<RowIdx>(share_->RowBegins()[rank + 1]) - first};
      given_ = own_;
      exchange_ = std::make_unique<SplitExchange>(*share_);
      gradients_.Reserve(n_rows);
      stats_.through_host = share_->Workers()->Kind() == Transport::kHost;
    }
  }

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override {
    DeviceGuard guard{ordinal_};
    try {
      return this->Grow(param, gradients, row_included, features);
    } catch (UnfitGradients const&) {  // every worker throws it
      throw;
    } catch (...) {
      if (share_ != nullptr) {
        share_->Workers()->Leave();
      }
      throw;
    }
  }
  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override {
    DeviceGuard guard{ordinal_};
    std::vector<NodeIdx> ids = final_ids_;
    for (std::size_t i = 0; !remap.empty() && i < ids.size(); ++i) {
      ids[i] = remap[ids[i]];
    }
    strategy_->Positions().Write(given_.first, given_.n, ids.empty() ? remap : ids, memory,
                                 out_positions, &copier_);
  }
  [[nodiscard]] bool KeepsPool() const override { return pool_.Keeps(); }
  [[nodiscard]] bool AnyDeletedRow(GradientPair const* gradients) override {
    DeviceGuard guard{ordinal_};
    return scan_.AnyDeleted({gradients, nullptr, own_.n});
  }
  [[nodiscard]] std::uint64_t DeviceBytes() const override {
    return strategy_->Bytes() + gradients_.Bytes() + row_included_.Bytes() + monotone_.Bytes() +
           rules_.Bytes() + states_[0].Bytes() + states_[1].Bytes() + states_[2].Bytes() +
           mask_.Bytes() + best_.Bytes() + results_.Bytes() + node_splits_.Bytes() +
           own_mask_.Bytes() + (share_ != nullptr ? share_->Bytes() + exchange_->Bytes() : 0);
  }
  [[nodiscard]] TreeStats Stats() const override { return stats_; }

 private:
  /** @brief A tree in progress. */
  struct Tree {
    GrowParam const& param;
    FeaturePolicy* features;
    Quantiser quantiser;
    TreeGrower grower;
    std::int32_t const* monotone;  // by feature, device memory; nullptr: none
    TrainingRows rows;
    Rounding rounding;
  };

  GrownTree Grow(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                 FeaturePolicy* features);
  Tree Start(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
             FeaturePolicy* features);
  /** @brief Waits for the stream; what other workers told is right, or this throws. */
  void WaitForAnswers();
  void Finish(GrownTree const& tree);
  void ReadCategories(GrownTree* tree) const;
  /** @brief Add up the rows of each leaf by units of its own, where a leaf's are too coarse. Waits. */
  void RefineLeaves(Tree const& tree, GrownTree* grown);
  /** @brief Gradients of all rows on the device, the sampled ones and those of all workers. */
  [[nodiscard]] TrainingRows Gather(GradientView gradients, std::uint8_t const* row_included);
  /** @brief Room for those of the open nodes, if they may be split. @param children The states. */
  [[nodiscard]] LevelZeros ReserveZeros(Tree const& tree, DeviceBuffer<NodeState>* children);
  [[nodiscard]] LevelRef MakeLevel(Tree const& tree);
  std::vector<LevelResult> FindSplits(Tree const& tree);
  void MoveRows(Tree const& tree, NodeIdx first_node, std::vector<NodeSplit> const& node_splits,
                std::vector<LevelResult> const& results);

  int ordinal_;
  RowIdx n_rows_;  // of all workers
  RowsOfWorker own_;
  RowsOfWorker given_;  // of the last tree: whose gradients came, and positions go
  std::unique_ptr<ColumnPartition> share_;  // nullptr: there is one worker
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
  DeviceBuffer<NodeState> states_[3]{DeviceBuffer<NodeState>{"node states"},
                                     DeviceBuffer<NodeState>{"node states, next level"},
                                     DeviceBuffer<NodeState>{"node states, the level after"}};
  DeviceBuffer<std::uint32_t> mask_{"open features"};
  DeviceBuffer<std::uint32_t> own_mask_{"open features, own columns"};
  DeviceBuffer<std::uint64_t> best_{"best candidates"};
  DeviceBuffer<LevelResult> results_{"best splits"};
  PinnedBuffer<LevelResult> host_results_{"best splits"};
  PinnedBuffer<NodeState> host_states_{"nodes of the last level"};
  UploadBuffer<NodeSplit> node_splits_{"split orders"};
};

GrownTree DeviceBuilder::Grow(GrowParam const& param, GradientView gradients,
                              std::uint8_t const* row_included, FeaturePolicy* features) {
  ProfilerRange const range{"gpu_exact: tree"};
  SyncOnExit wait;  // another thread's stream may use the builder next
  auto const begin = std::chrono::steady_clock::now();
  Tree tree = this->Start(param, gradients, row_included, features);
  stats_.start_ms = MillisecondsSince(begin);
  while (tree.grower.MaySplit()) {
    NodeIdx first_node = tree.grower.FirstOpen();
    std::vector<LevelResult> results = this->FindSplits(tree);
    std::vector<NodeSplit> node_splits = tree.grower.Expand(results);
    if (tree.grower.NumOpen() == 0) {
      break;
    }
    this->MoveRows(tree, first_node, node_splits, results);
  }
  if (tree.grower.NumOpen() != 0) {
    NodeState* const host = host_states_.Reserve(tree.grower.NumOpen());
    CopyPinned(host, states_[0].Data(), tree.grower.NumOpen());
    Synchronize();
    tree.grower.Close({host, host + tree.grower.NumOpen()});
  }
  stats_.levels_ms = MillisecondsSince(begin) - stats_.start_ms;
  this->Finish(*tree.grower.Nodes());
  this->WaitForAnswers();
  this->ReadCategories(tree.grower.Nodes());
  this->RefineLeaves(tree, tree.grower.Nodes());
  stats_.refined_share = strategy_->RefinedShare();
  stats_.peak_bytes = PeakDeviceBytes();
  FinishedTree finished = tree.grower.Finish();
  final_ids_ = std::move(finished.final_ids);
  return std::move(finished.tree);
}

void DeviceBuilder::WaitForAnswers() {
  Synchronize();
  if (share_ != nullptr) {
    share_->Workers()->Check();
  }
}

DeviceBuilder::Tree DeviceBuilder::Start(GrowParam const& param, GradientView gradients,
                                         std::uint8_t const* row_included,
                                         FeaturePolicy* features) {
  if (param.interleaved_levels > kMaxInterleavedLevels) {
    throw std::invalid_argument{"gpu_exact_interleaved_levels is " +
                                std::to_string(param.interleaved_levels) + ", set it to at most " +
                                std::to_string(kMaxInterleavedLevels) +
                                ", or to -1 for the default."};
  }
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

  ColumnsRef columns = strategy_->Columns();
  auto monotone = param.monotone_constraints;
  bool const has_monotone = param.HasMonotone();
  if (has_monotone) {
    monotone.resize(share_ != nullptr ? share_->Whole().n_features : columns.n_features, 0);
    CopyFromHost(monotone_.Reserve(monotone.size()), monotone.data(), monotone.size());
  }
  Tree tree{param,
            features,
            quantiser,
            TreeGrower{param, quantiser},
            has_monotone ? monotone_.Data() : nullptr,
            rows,
            rounding};
  MakeRules(param, columns, tree.monotone, rules_.Reserve(columns.n_features),
            share_ != nullptr ? share_->Features() : nullptr);
  NodeState* root = states_[0].Reserve(1);
  scan_.Sum(rows, quantiser, &root->sum);
  CompleteRoot(GainParam{param}, quantiser, root, this->ReserveZeros(tree, &states_[1]));
  strategy_->Begin({param, rows, summary.n_left_out, quantiser, exchange_.get()});
  return tree;
}

TrainingRows DeviceBuilder::Gather(GradientView gradients, std::uint8_t const* row_included) {
  given_ = gradients.are_all ? RowsOfWorker{0, n_rows_} : own_;
  TrainingRows rows{gradients.data, nullptr, n_rows_};
  if (gradients.memory == Memory::kHost) {
    copier_.CopyToDevice(gradients_.Reserve(n_rows_) + given_.first, gradients.data, given_.n);
    rows.gpair = gradients_.Data();
  } else if (share_ != nullptr) {
    CopyAsync(gradients_.Data() + given_.first, gradients.data, given_.n);
    rows.gpair = gradients_.Data();
  }
  if (row_included != nullptr) {
    copier_.CopyToDevice(row_included_.Reserve(given_.n), row_included, given_.n);
    rows.included = row_included_.Data();
  }
  if (share_ != nullptr && !gradients.are_all) {
    if (row_included != nullptr) {
      LaunchN("Delete", DeleteKernel, given_.n, rows.included, given_.n,
              gradients_.Data() + given_.first);
      rows.included = nullptr;
    }
    share_->Workers()->AllGatherWords(reinterpret_cast<std::uint32_t*>(gradients_.Data()),
                                      {share_->RowBegins(), sizeof(GradientPair)});
    this->WaitForAnswers();
  }
  return rows;
}

LevelZeros DeviceBuilder::ReserveZeros(Tree const& tree, DeviceBuffer<NodeState>* children) {
  std::size_t const n_nodes = tree.grower.NumOpen();
  if (!tree.grower.MaySplit()) {
    return {nullptr, nullptr, 0};
  }
  return {best_.Reserve(n_nodes), children->Reserve(2 * n_nodes),
          CandidateKey::GainToBeat(tree.grower.LeastLossChange())};
}

LevelRef DeviceBuilder::MakeLevel(Tree const& tree) {
  auto n_nodes = static_cast<LevelNode>(tree.grower.NumOpen());
  LevelRef level{};
  level.columns = strategy_->Candidates();
  level.rules = rules_.Data();
  level.nodes = states_[0].Data();
  level.best = best_.Data();  // as ReserveZeros() left it
  level.gain = GainParam{tree.param};
  level.quantiser = tree.quantiser;
  level.bound = GainBound::Make(level.gain, level.quantiser);
  level.n_nodes = n_nodes;
  level.max_cat_threshold = static_cast<std::uint32_t>(tree.param.max_cat_threshold);
  FeatureMask mask;
  if (tree.features != nullptr &&
      tree.features->Select(tree.grower.Depth(), tree.grower.OpenNodes(), &mask)) {
    CopyFromHost(mask_.Reserve(mask.bits.size()), mask.bits.data(), mask.bits.size());
    level.mask = mask_.Data();
    level.mask_words = mask.n_words;
    level.mask_per_node = mask.bits.size() > mask.n_words;
    if (exchange_ != nullptr) {
      std::size_t const n_masks = level.mask_per_node ? n_nodes : 1;
      level.mask_words = SplitExchange::MaskWords(level.columns.n_features);
      level.mask = own_mask_.Reserve(n_masks * level.mask_words);
      exchange_->SelectOwn(mask_.Data(), mask.n_words, n_masks, own_mask_.Data());
    }
  }
  return level;
}

std::vector<LevelResult> DeviceBuilder::FindSplits(Tree const& tree) {
  ProfilerRange const range{"gpu_exact: find splits"};
  LevelRef level = this->MakeLevel(tree);
  bool last_level = tree.grower.Depth() + 1 == tree.param.max_depth;
  LevelResult* host = host_results_.Reserve(level.n_nodes);
  if (exchange_ == nullptr && level.n_nodes <= kWrittenToHost) {
    strategy_->FindSplits(level, last_level, host);
    strategy_->AwaitSplits();
  } else {
    LevelResult* results = results_.Reserve(level.n_nodes);
    strategy_->FindSplits(level, last_level, results);
    CopyPinned(host, results, level.n_nodes);
    this->WaitForAnswers();
  }
  return {host, host + level.n_nodes};
}

void DeviceBuilder::MoveRows(Tree const& tree, NodeIdx first_node,
                             std::vector<NodeSplit> const& node_splits,
                             std::vector<LevelResult> const& results) {
  ProfilerRange const range{"gpu_exact: move rows"};
  node_splits_.Upload(node_splits);
  NodeIdx first_child = tree.grower.FirstOpen();
  auto n_children = static_cast<LevelNode>(tree.grower.NumOpen());
  NodeState* children = states_[1].Data();  // as ReserveZeros() left it, a level before
  strategy_->MoveRows({node_splits, results, node_splits_.Data(), first_node, first_child,
                       n_children, !tree.grower.MaySplit()},
                      children);
  CompleteChildren(GainParam{tree.param}, tree.quantiser, tree.monotone, node_splits_.Data(),
                   states_[0].Data(), static_cast<LevelNode>(node_splits.size()), first_child,
                   children, this->ReserveZeros(tree, &states_[2]));
  std::rotate(std::begin(states_), std::begin(states_) + 1, std::end(states_));
}

void DeviceBuilder::Finish(GrownTree const& tree) {
  std::vector<NodeSplit> node_splits;
  for (TreeNode const& n : tree) {
    node_splits.push_back({n.feature, n.left, 0, n.threshold, n.default_left});
  }
  strategy_->Finish(node_splits);
}

void DeviceBuilder::ReadCategories(GrownTree* tree) const {
  for (std::size_t nidx = 0; nidx < tree->size(); ++nidx) {
    (*tree)[nidx].categories = strategy_->Categories(static_cast<NodeIdx>(nidx));
  }
}

void DeviceBuilder::RefineLeaves(Tree const& tree, GrownTree* grown) {
  bool const refine = std::any_of(grown->cbegin(), grown->cend(), [&](TreeNode const& node) {
    return tree.quantiser.MayChangeNode(tree.rounding, {node.sum_grad, node.sum_hess});
  });
  if (refine) {
    NodeIdx const* const positions = strategy_->Positions().Data();
    SetSums(tree.param, SumLeaves(tree.rows, positions, grown->size()), grown);
  }
}
}  // namespace

Strategy ChooseStrategy(Strategy strategy, CsrView const& table, std::uint32_t max_bins) {
  std::string why_not = WhyNotHistogram(table);
  if (NumCategorical(table) != 0) {
    if (strategy == Strategy::kSort) {
      throw std::invalid_argument{
          "gpu_exact_strategy=sort takes no categorical features; set it to auto or histogram."};
    }
    strategy = Strategy::kHistogram;
  }
  if (strategy == Strategy::kHistogram && !why_not.empty()) {
    throw std::invalid_argument{"gpu_exact_strategy=histogram takes " + why_not +
                                "; set it to auto or sort."};
  }
  if (strategy == Strategy::kAuto) {
    // To look up where a row's bins are takes about as long as to sort a sixth of an entry.
    bool const histogram = why_not.empty() && table.n_entries >= kLongColumn * table.n_features &&
                           NumRowOffsets(table.n_entries, table.n_rows, table.n_features, {false},
                                         max_bins) <= 6 * table.n_entries + kSmallTable;
    return histogram ? Strategy::kHistogram : Strategy::kSort;
  }
  return strategy;
}

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int ordinal, CsrView const& rows,
                                               TableOptions const& options, Communicator* comm) {
  DeviceGuard guard{ordinal};
  TreeStats stats;
  if (comm != nullptr && comm->Size() != 1 && NumCategorical(rows) != 0) {
    throw UnfitTable{
        "Trees with categorical features grow on one GPU of one worker; set gpu_exact_devices to one "
        "device and train with one worker, or use `tree_method=\"hist\"`."};
  }
  if (comm == nullptr || comm->Size() == 1) {
    Strategy const strategy = ChooseStrategy(options.strategy, rows, BinMatrix::MaxBins());
    auto columns = MakeStrategy(rows, strategy, options, nullptr, &stats);
    return MakeDeviceBuilder(ordinal, rows.n_rows, std::move(columns), stats);
  }
  auto share = std::make_unique<ColumnPartition>(comm, rows);
  // The device is not asked: workers with GPUs of several kinds choose the same.
  Strategy const strategy = ChooseStrategy(options.strategy, share->Whole(), kMaxGroupBins);
  std::unique_ptr<TreeBuilder> builder;
  AllOrNone(comm, [&] {
    auto columns = MakeStrategy(share->OwnTable(), strategy, options, share.get(), &stats);
    RowIdx const n_rows = share->Whole().n_rows;
    builder = MakeDeviceBuilder(ordinal, n_rows, std::move(columns), stats, std::move(share));
  });
  return builder;
}

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int ordinal, RowIdx n_rows,
                                               std::unique_ptr<SplitStrategy> strategy,
                                               TreeStats const& stats,
                                               std::unique_ptr<ColumnPartition> share) {
  DeviceGuard guard{ordinal};
  auto builder = std::make_unique<DeviceBuilder>(ordinal, n_rows, std::move(strategy), stats,
                                                 std::move(share));
  Synchronize();  // another thread's stream may build the first tree
  return builder;
}
}  // namespace gpu_exact
