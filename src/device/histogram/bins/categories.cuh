/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Says what categories are: those of a feature, which are counted, as entries of columns are, before
 *        memory is planned; and sets of them that go right.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "core/level.h"
#include "gpu_exact/types.h"
#include "plan/bin_bound.h"
#include "plan/bin_layout.h"
#include "plan/histogram_memory.h"

namespace gpu_exact {
/** @brief Names a categorical feature and its categories: 0 to the greatest code of the table, also those
 *         that no row has. */
struct CategoricalFeature {
  FeatureIdx feature;
  std::uint32_t n_categories;

  /** @brief Count the words that have a bit for each category. */
  [[nodiscard]] __host__ __device__ std::uint32_t NumWords() const {
    return (n_categories + 31) / 32;
  }
};

/**
 * @brief Lends the set of a node: a word that tells its form, then a bit for each category, set where it
 *        goes right; or, of very many categories, a list of those that go to one side, ascending.
 *
 * One side has fewer than max_cat_threshold categories. So the list is short, however long the column is.
 */
class CategorySet {
 public:
  static constexpr std::uint32_t kBits = 0;          // the first word of a set of bits
  static constexpr std::uint32_t kRight = 1u << 30;  // of a list, beside its length: these go right
  static constexpr std::uint32_t kLeft = 2u << 30;
  static constexpr std::uint32_t kMaxListed = 1024;  // a block sorts a list

  explicit __host__ __device__ CategorySet(std::uint32_t const* words) : words_{words} {}

  /** @brief Tell whether the sets of a column are lists, on all devices. */
  [[nodiscard]] static __host__ __device__ bool IsListed(CategoricalFeature const& column,
                                                         std::uint32_t max_cat_threshold) {
    return column.n_categories > kMaxGroupBins && max_cat_threshold <= kMaxListed + 1;
  }
  /** @brief Count the words of a set of a column, at most. */
  [[nodiscard]] static __host__ __device__ std::uint32_t NumWords(CategoricalFeature const& column,
                                                                  std::uint32_t max_cat_threshold) {
    bool const listed = IsListed(column, max_cat_threshold);
    return 1 + (!listed ? column.NumWords() : max_cat_threshold < 2 ? 1 : max_cat_threshold - 1);
  }

  /** @brief Count the words that are written. @param n_words The words of a set of bits. */
  [[nodiscard]] __host__ __device__ std::uint32_t NumWritten(std::uint32_t n_words) const {
    return words_[0] == kBits ? n_words : 1 + this->NumListed();
  }
  /** @brief Tell whether a category goes right. */
  [[nodiscard]] __host__ __device__ bool SendsRight(std::uint32_t code) const {
    std::uint32_t const form = words_[0];
    if (form == kBits) {
      return (words_[1 + code / 32] >> code % 32 & 1u) != 0;
    }
    auto const* codes = words_ + 1;
    std::uint32_t const n = this->NumListed();
    std::uint32_t const at =
        PartitionPoint(0u, n, [=](std::uint32_t k) { return codes[k] >= code; });
    return (at != n && codes[at] == code) == ((form & kRight) != 0);
  }

 private:
  [[nodiscard]] __host__ __device__ std::uint32_t NumListed() const {
    return words_[0] & (kRight - 1);
  }

  std::uint32_t const* words_;
};

/** @brief Find a feature among categorical ones, ascending; nullptr: it is none of them. */
[[nodiscard]] inline CategoricalFeature const* FindCategorical(
    std::vector<CategoricalFeature> const& features, FeatureIdx f) {
  auto const at =
      std::lower_bound(features.cbegin(), features.cend(), f,
                       [](CategoricalFeature const& a, FeatureIdx b) { return a.feature < b; });
  return at != features.cend() && at->feature == f ? &*at : nullptr;
}

/** @brief Tell whether a category goes right. @param value The category, as tables have it. */
[[nodiscard]] __device__ inline bool HasCategory(std::uint32_t const* set, float value) {
  return CategorySet{set}.SendsRight(static_cast<std::uint32_t>(value));
}

/** @brief Lends the sets of a level to kernels; those of nodes split otherwise are of no meaning. */
struct LevelSetsRef {
  std::uint32_t* words;  // shape: (n_nodes, stride); nullptr: no feature is categorical
  std::uint32_t stride;

  [[nodiscard]] __device__ std::uint32_t* Of(LevelNode b) const {
    return words + std::uint64_t{b} * stride;
  }
};

/** @brief Holds the categories of a table. */
struct TableCategories {
  std::vector<std::uint32_t> of_feature;  // 0 where it is numerical, or has no entries
  CategoricalColumns columns;             // what the memory plan is told
};

/**
 * @brief Count the categories of a table, whose rows are read once for it if any feature is categorical.
 *        Waits.
 * @param at_once The entries of the host's table on the device at a time, unless a row has more: as few as
 *                every memory plan has room for.
 * @throw InvalidCategory for the first value, by row and feature, that is none.
 */
[[nodiscard]] TableCategories CountCategories(
    CsrView const& table, EntryIdx at_once = HistogramMemory::All().back().ReadAtOnce(0));
}  // namespace gpu_exact
