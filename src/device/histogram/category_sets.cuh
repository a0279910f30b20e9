/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Keeps which categories go right, one bit each, of nodes whose best split is by categories: of a
 *        level while it is searched, of a tree until the host has it.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "device/level/level.cuh"
#include "device/runtime/uploader.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Names a categorical feature and its categories: 0 to the greatest code of the table. */
struct CategoricalFeature {
  FeatureIdx feature;
  std::uint32_t n_categories;

  /** @brief Count the words of a set. */
  [[nodiscard]] __host__ __device__ std::uint32_t NumWords() const {
    return (n_categories + 31) / 32;
  }
};

/** @brief Find a feature among categorical ones, ascending; nullptr: it is none of them. */
[[nodiscard]] inline CategoricalFeature const* FindCategorical(
    std::vector<CategoricalFeature> const& features, FeatureIdx f) {
  auto const at =
      std::lower_bound(features.cbegin(), features.cend(), f,
                       [](CategoricalFeature const& a, FeatureIdx b) { return a.feature < b; });
  return at != features.cend() && at->feature == f ? &*at : nullptr;
}

/** @brief Tell whether a set has a category. @param value The category, as tables have it. */
[[nodiscard]] __device__ inline bool HasCategory(std::uint32_t const* set, float value) {
  auto const code = static_cast<std::uint32_t>(value);
  return (set[code / 32] >> code % 32 & 1u) != 0;
}

/** @brief Lends the sets of a level to kernels; those of nodes split otherwise are of no meaning. */
struct LevelSetsRef {
  std::uint32_t* words;  // shape: (n_nodes, stride); nullptr: no feature is categorical
  std::uint32_t stride;

  [[nodiscard]] __device__ std::uint32_t* Of(LevelNode b) const {
    return words + std::uint64_t{b} * stride;
  }
};

/** @brief Names the set of a node among those of its level, and where it goes among those of its tree. */
struct GatheredSet {
  std::uint32_t const* from;  // nullptr: another worker has it
  std::uint64_t to;
  std::uint32_t n_words;
  NodeIdx node;
};

class CategorySets {
 public:
  /** @param features Ascending. */
  explicit CategorySets(std::vector<CategoricalFeature> const& features);

  /** @brief Tell whether any feature of the table is categorical. */
  [[nodiscard]] bool Any() const { return !features_.empty(); }
  /** @brief Hear of the features of other workers, before the first tree. Collective. */
  void Share(SplitExchange const& exchange);
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
  std::vector<CategoricalFeature> features_;  // of the whole table
  std::uint32_t stride_;                      // words of the longest set of an own column
  std::vector<NodeIdx> firsts_;               // first node of each level
  std::vector<DeviceBuffer<std::uint32_t>> levels_;
  std::vector<GatheredSet> gathered_;  // ascending by node
  Uploader d_gathered_{"sets of categories to gather"};
  DeviceBuffer<std::uint32_t> words_{"sets of categories"};
  PinnedBuffer<std::uint32_t> host_words_{"sets of categories"};
};
}  // namespace gpu_exact
