/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Finds the best splits by categories in histograms: a block searches a column of a node.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/histogram/build/histogram_work.cuh"
#include "device/histogram/category_sets.cuh"
#include "device/level/level_ref.cuh"

namespace gpu_exact {
/** @brief Names the histogram of a categorical column, and its words among those of a node. */
struct CategoryTile {
  CategoricalFeature column;
  std::uint32_t first_word;
  std::uint64_t first_bin;  // among the bins of all groups
};

/** @brief Lends histograms that are searched at a time. */
struct SearchedHistograms {
  SearchedNode const* nodes;
  FixedSum* sums;                   // of the pool
  HistogramSearch const* searches;  // shape: (n)
  std::uint32_t n;
  bool has_larger;  // whether any has a larger sibling
};

class CategoryFinder {
 public:
  /** @param columns Whose histograms are searched. @param features Of them, ascending. */
  CategoryFinder(BinMatrix const& columns, std::vector<CategoricalFeature> const& features);

  /**
   * @brief Offer the best split of each node by each feature, and write the sets of those that are the
   *        best of their nodes. Does not wait, but where memory grows.
   *
   * Before, a larger sibling's place has its parent's sums; afterwards it has its own.
   */
  void Find(LevelRef const& level, SearchedHistograms const& histograms, LevelSetsRef const& out);
  [[nodiscard]] std::uint64_t Bytes() const {
    return tiles_.Bytes() + order_.Bytes() + words_.Bytes();
  }

 private:
  struct SizeClass;  // columns of about as many categories, which kernels of one size search
  static SizeClass const kClasses[];

  std::uint32_t n_tiles_;
  std::uint32_t n_words_{0};           // of all columns of a node
  std::vector<std::uint32_t> n_of_class_;
  DeviceBuffer<CategoryTile> tiles_{"categorical columns"};              // ascending by feature
  DeviceBuffer<std::uint32_t> order_{"categorical columns by length"};   // tiles by class
  DeviceBuffer<std::uint32_t> words_{"sets of categories by column"};
};
}  // namespace gpu_exact
