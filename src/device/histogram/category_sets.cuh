/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps which categories go right, of nodes whose best split is by categories: of a level while it
 *        is searched, of a tree until the host has it.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/categories.cuh"
#include "device/level/level.cuh"
#include "device/runtime/uploader.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Names the set of a node among those of its level, and where it goes among those of its tree. */
struct GatheredSet {
  std::uint32_t const* from;  // nullptr: another worker has it
  std::uint64_t to;
  std::uint32_t n_words;  // at most
  NodeIdx node;
  CategoricalFeature column;
};

class CategorySets {
 public:
  /** @param features Ascending. */
  explicit CategorySets(std::vector<CategoricalFeature> const& features);

  /** @brief Tell whether any feature of the table is categorical. */
  [[nodiscard]] bool Any() const { return !features_.empty(); }
  /** @brief Learn of the categorical features of other workers, before the first tree. Collective. */
  void AddRemoteFeatures(SplitExchange const& exchange);
  /**
   * @brief Begin a tree.
   * @param spare Bytes that sets may take which the memory plan does not know.
   * @throw OutOfDeviceMemory where they may take more.
   */
  void BeginTree(GrowParam const& param, RowIdx n_rows, std::uint64_t spare);
  /** @brief Give room for the sets of a level; those of the levels before stay. May wait. */
  [[nodiscard]] LevelSetsRef BeginLevel(Level const& level);

  /**
   * @brief Lay the sets of a tree's splits side by side, and tell these where theirs begins. Does not
   *        wait. With workers collective.
   * @param tree     By the ids of the nodes while it grew.
   * @param exchange With workers that have the other columns, or nullptr.
   */
  void Gather(std::vector<NodeSplit>* tree, SplitExchange* exchange);
  /** @brief Give them, as Gather() has laid them, in device memory. */
  [[nodiscard]] std::uint32_t const* Words() const { return words_.Data(); }
  /** @brief Give the set of a node, after the stream was waited for; empty: it has none. */
  [[nodiscard]] std::vector<std::uint32_t> Of(NodeIdx nidx) const;

 private:
  std::vector<CategoricalFeature> own_;
  std::vector<CategoricalFeature> features_;  // of the whole table
  // of the tree in progress
  std::uint32_t max_cat_threshold_{0};
  std::uint32_t stride_{0};      // words of the longest set of an own column
  std::vector<NodeIdx> firsts_;  // first node of each level
  std::vector<DeviceBuffer<std::uint32_t>> levels_;
  std::vector<GatheredSet> gathered_;  // ascending by node
  Uploader d_gathered_{"sets of categories to gather"};
  DeviceBuffer<std::uint32_t> words_{"sets of categories"};
  PinnedBuffer<std::uint32_t> host_words_{"sets of categories"};
};
}  // namespace gpu_exact
