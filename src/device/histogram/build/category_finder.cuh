/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Finds the best splits by categories in histograms: a block searches a column of a node.
 */
#pragma once

#include <vector>

#include "device/histogram/build/category_tiles.cuh"
#include "device/histogram/build/histogram_work.cuh"

namespace gpu_exact {
/** @brief Lends nodes that are searched at a time, and their histograms. */
struct SearchedHistograms {
  SearchedNode const* nodes;
  FixedSum* sums;                   // of the pool
  HistogramSearch const* searches;  // shape: (n); nullptr: nodes have no histograms, and are n
  std::uint32_t n;
  bool has_larger;  // whether any has a larger sibling

  /** @brief Count the places for nodes: two for each search where any has a larger sibling. */
  [[nodiscard]] std::uint32_t NumPlaces() const { return has_larger ? 2 * n : n; }
  /** @brief Tell whether a place is that of a search's larger sibling, which there may not be. */
  [[nodiscard]] __device__ bool IsLarger(std::uint32_t place) const {
    return has_larger && place % 2 != 0;
  }
  [[nodiscard]] __device__ HistogramSearch SearchOf(std::uint32_t place) const {
    return searches == nullptr ? HistogramSearch{place, HistogramSearch::kNone}
                               : searches[has_larger ? place / 2 : place];
  }
};

/** @brief Keep the set of each node whose best split is by one of the tiles' columns. Does not wait. */
void KeepSets(LevelRef const& lv, SearchedHistograms const& searched, CategoryTilesRef const& tiles,
              LevelSetsRef const& out);

class CategoryFinder {
 public:
  /** @param matrix Whose histograms are searched. @param features Ascending. */
  CategoryFinder(BinMatrix const& matrix, std::vector<CategoricalFeature> const& features);

  /** @brief Tell whether a feature is categorical. */
  [[nodiscard]] bool Has(FeatureIdx f) const;
  /**
   * @brief Offer the best split of each node by each feature, and write the sets of those that are the
   *        best of their nodes. Does not wait, but where memory grows.
   *
   * Before, a larger sibling's place has its parent's sums; afterwards it has its own.
   */
  void Find(LevelRef const& lv, SearchedHistograms const& histograms, LevelSetsRef const& out);

 private:
  std::vector<CategoricalFeature> features_;
  CategoryTiles tiles_;
  std::vector<std::uint32_t> n_of_class_;  // columns of about one length
  DeviceBuffer<std::uint32_t> order_{"categorical columns by length"};  // tiles by class
};
}  // namespace gpu_exact
