/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Connects XGBoost's side (plugin/) and the kernels' side (src/): columns in,
 *        gradients in, tree out. Plain C++17: no CUDA and no XGBoost header.
 */
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_exact/communicator.h"
#include "gpu_exact/host_team.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Names where rows without a value of the split feature may go. */
enum class DefaultDirection : std::uint8_t { kLearn, kLeft, kRight };

/** @brief Names how XGBoost computes weights and gains, which changed once: see src/core/gain.h. */
enum class GainRules : std::uint8_t {
  kNew,  // from release 3.4 on
  kOld   // before
};

/** @brief Names how the best splits are found: a matter of speed and memory, the trees are the
 *         same. */
enum class Strategy : std::uint8_t {
  kAuto,      // chosen for the table
  kSort,      // entries stay sorted by column and value, and are all searched on each level
  kHistogram  // histograms bound the gain, entries are searched where the best split may lie
};

/** @brief Names which node is split next. */
enum class GrowPolicy : std::uint8_t {
  kDepthWise,  // level by level, in the order of ids
  kLossGuide   // the one whose split gains most, among equals the one of the lower id
};

/** @brief Holds how trees are grown. Names and meaning are XGBoost's training parameters. */
struct GrowParam {
  std::int32_t max_depth{6};   // levels of splits; 0: no limit
  std::int32_t max_leaves{0};  // 0: no limit
  GrowPolicy grow_policy{GrowPolicy::kDepthWise};
  float min_split_loss{0.0f};  // splits that gain less are not made
  float min_child_weight{1.0f};
  float reg_lambda{1.0f};
  float reg_alpha{0.0f};
  float max_delta_step{0.0f};  // 0: no limit
  float opt_dense_col{1.0f};   // columns of at least this density are searched backward only
  DefaultDirection default_direction{DefaultDirection::kLearn};
  GainRules gain_rules{GainRules::kNew};
  std::vector<std::int32_t> monotone_constraints;  // shape: (up to n_features), rest is 0
  // A feature of fewer categories is split into one of them and the others; of more, into two sets.
  std::uint32_t max_cat_to_onehot{4};
  std::int32_t max_cat_threshold{64};  // one of the two has fewer categories than this
  HostTeam team;

  /** @brief Tell whether any feature has a monotone constraint. */
  [[nodiscard]] bool HasMonotone() const {
    return std::any_of(monotone_constraints.cbegin(), monotone_constraints.cend(),
                       [](std::int32_t constraint) { return constraint != 0; });
  }
  /** @brief Give the constraint of a feature: -1, 0 or 1. */
  [[nodiscard]] std::int32_t Monotone(FeatureIdx feature) const {
    return feature < monotone_constraints.size() ? monotone_constraints[feature] : 0;
  }
};

/** @brief Holds a node of a grown tree with what XGBoost stores of it. */
struct TreeNode {
  NodeIdx parent{kNoNode};
  NodeIdx left{kNoNode};  // kNoNode: a leaf
  NodeIdx right{kNoNode};
  FeatureIdx feature{0};  // from here to default_left: of a split node
  float threshold{0.0f};  // value < threshold goes left
  // Of a split by categories, which has no threshold: bit c % 32 of word c / 32 is set where category c
  // goes right; others, also those beyond the words, go left. Empty: the split has a threshold.
  std::vector<std::uint32_t> categories;
  bool default_left{false};
  float loss_change{0.0f};  // of the best split found, taken or not; leaf-wise: of splits taken
  float weight{0.0f};       // before the learning rate
  double sum_grad{0.0};
  double sum_hess{0.0};

  [[nodiscard]] bool IsLeaf() const { return left == kNoNode; }
};

/**
 * @brief Holds a tree before learning rate and pruning; nodes in the order of their ids, root
 *        first. A split gives its children the next two ids, left and right.
 */
using GrownTree = std::vector<TreeNode>;

/** @brief Measure the time since begin, by the host's clock. */
[[nodiscard]] inline double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  auto const passed = std::chrono::steady_clock::now() - begin;
  return std::chrono::duration<double, std::milli>{passed}.count();
}

/** @brief Tells people what a builder knows of its last tree. Times are of the host's clock. */
struct TreeStats {
  Strategy strategy{Strategy::kAuto};   // that grew it; kAuto: there is but one
  std::uint64_t planned_bytes{0};       // device memory at most, without what follows live nodes
  std::uint64_t planned_host_bytes{0};  // page-locked memory that stands in for the device's
  double start_ms{0.0};                 // gradients to the device, their range, the root
  double levels_ms{0.0};                // best splits, rows to children; waits for the device
  double refined_share{-1.0};           // see SplitStrategy::RefinedShare(); -1: no ranges
  std::uint64_t peak_bytes{0};          // device memory of the process, at most so far
  bool through_host{false};             // workers' devices reach each other by the host alone
};

/** @brief Has a bit for each (node of a level, feature): may the node split on the feature. */
struct FeatureMask {
  std::size_t n_words{0};           // 32-bit words a node: (n_features + 31) / 32
  std::vector<std::uint32_t> bits;  // shape: (n_nodes or 1, n_words); one row serves every node
};

/** @brief Names a node about to be searched for a split. */
struct LiveNode {
  NodeIdx nidx{kRoot};
  NodeIdx parent{kNoNode};
  FeatureIdx parent_feature{0};  // the feature that the parent was split on
};

/**
 * @brief Selects which features a level's nodes may use: column sampling and interaction
 *        constraints.
 *
 * Asked on the caller's thread, once for each node searched, parents before their children: depth-wise
 * for the nodes of a level, leaf-wise for those of a level or for two siblings. Leaf-wise some of them
 * may be left out of the tree in the end: an answer then depends on the way to the node alone.
 */
class FeaturePolicy {
 public:
  virtual ~FeaturePolicy() = default;
  /**
   * @param depth    The level of the nodes; the root has 0.
   * @param nodes    Ascending by id.
   * @param out_mask Filled when the answer is true.
   * @return Whether there is any restriction; false allows every node every feature.
   */
  virtual bool Select(std::int32_t depth, std::vector<LiveNode> const& nodes,
                      FeatureMask* out_mask) = 0;
};

/**
 * @brief Grows exact greedy trees over one table. Not thread safe; one table, one device.
 *
 * Errors: DeviceError, OutOfDeviceMemory, NonFiniteGradient, GradientRange (gpu_exact/device.h),
 * std::invalid_argument for a parameter outside its range.
 */
class TreeBuilder {
 public:
  virtual ~TreeBuilder() = default;

  /**
   * @brief Grow one tree. Waits for the device.
   *
   * @param param        How to grow it.
   * @param gradients    One pair a row; device memory must be written on cudaStreamPerThread. A worker
   *                     that has those of all rows knows every sampled row, and their positions.
   * @param row_included Host memory, shape (n_rows): 0 for a row left out by sampling; nullptr
   *                     takes all. Rows with a negative hessian are always left out.
   * @param features     nullptr opens every feature to every node.
   */
  virtual GrownTree Build(GrowParam const& param, GradientView gradients,
                          std::uint8_t const* row_included, FeaturePolicy* features) = 0;

  /**
   * @brief Write the leaf of every row in the tree built last, encoded as by EncodePosition.
   *
   * @param remap         Node id to node id, for leaves that pruning removed; empty: no change.
   * @param memory        Where out_positions lies. Host memory is written when the call returns,
   *                      device memory in the order of cudaStreamPerThread.
   * @param out_positions shape: (n_rows).
   */
  virtual void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                              NodeIdx* out_positions) = 0;

  /**
   * @brief Tell whether memory for the positions of the tree built last should come from the pool
   *        of the builder's device, which then keeps it for the next tree's.
   */
  [[nodiscard]] virtual bool KeepsPool() const { return false; }

  /**
   * @brief Tell whether any row has a negative hessian: such rows take no random number. Waits.
   * @param gradients Device memory, written on cudaStreamPerThread; shape: (n_rows).
   */
  [[nodiscard]] virtual bool AnyDeletedRow(GradientPair const* gradients) = 0;

  /** @brief Count the device memory held, bytes. */
  [[nodiscard]] virtual std::uint64_t DeviceBytes() const = 0;

  /** @brief Give what is known of the tree built last. Makes no CUDA call. */
  [[nodiscard]] virtual TreeStats Stats() const { return {}; }
};

/** @brief Sets how a table lies on its devices: a matter of speed and memory, the trees are the
 *         same. */
struct TableOptions {
  Strategy strategy{Strategy::kAuto};  // for every tree of the builder
  // Device memory that the table may take: bytes, or up to 1 the share of what is free; 0: what is
  // free less a margin. Where it is short, trees grow slower.
  double memory_limit{0.0};
  // Throw OutOfDeviceMemory where a part of the table would lie in the host's memory.
  bool device_only{false};

  TableOptions(Strategy s = Strategy::kAuto, double limit = 0.0)  // NOLINT: a strategy will do
      : strategy{s}, memory_limit{limit} {}
  [[nodiscard]] bool operator==(TableOptions const& that) const {
    return strategy == that.strategy && memory_limit == that.memory_limit &&
           device_only == that.device_only;
  }
};

/**
 * @brief Make a builder on a GPU. Copies and sorts the table; keeps no reference to it.
 *
 * With a communicator the table is that of all workers, rows in the order of ranks. This call and
 * Build() are then collective, with equal arguments but for the rows. Gradients, rows left out and
 * positions are those of the own rows; the tree is the same on every worker, bit for bit that of
 * one worker with all rows. An error that only one worker meets is a WorkerError on each.
 *
 * @param ordinal The CUDA device, or -1 for the first visible one.
 * @param rows    The worker's rows, maybe none; n_features is that of all workers.
 * @param comm    Borrowed for the builder's life; nullptr, or a group of one: all rows are here.
 * @throw OutOfDeviceMemory where the least that a table takes does not fit.
 * @throw UnfitTable for a table that the builder cannot train on.
 */
[[nodiscard]] std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int ordinal, CsrView const& rows,
                                                             TableOptions const& options,
                                                             Communicator* comm = nullptr);

/**
 * @brief Make a builder on several GPUs of this process, each of which searches some of the
 *        columns. The trees are those of one GPU.
 *
 * @param ordinals CUDA devices; device memory that the builder is given is that of the first. One
 *                 alone is a builder on that GPU.
 */
[[nodiscard]] std::unique_ptr<TreeBuilder> MakeDeviceBuilder(std::vector<int> const& ordinals,
                                                             CsrView const& table,
                                                             TableOptions const& options);
}  // namespace gpu_exact
