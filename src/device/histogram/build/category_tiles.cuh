/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lists the categorical columns that are binned, each searched by a block of its own, and has room
 *        for what these find: of the best split of each column which categories go right.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/histogram/bins/categories.cuh"
#include "device/level/level_ref.cuh"

namespace gpu_exact {
/** @brief Names a categorical column, and where its words lie among those of a node. */
struct CategoryTile {
  CategoricalFeature column;
  std::uint32_t first_word;
  BinnedColumn binned;
  std::uint64_t first_bin;  // among the bins of all groups
};

/** @brief Lends them to kernels, which search some nodes at a time. */
struct CategoryTilesRef {
  CategoryTile const* tiles;  // shape: (n_tiles), ascending by feature
  std::uint32_t n_tiles;
  std::uint32_t n_words;  // of a node
  std::uint32_t* words;   // shape: (nodes, n_words)

  /** @brief Give the words of a column. @param i A node's place among those that are searched. */
  [[nodiscard]] __device__ std::uint32_t* Of(std::uint64_t i, CategoryTile const& tile) const {
    return words + i * n_words + tile.first_word;
  }
  /** @brief Keep the set of a node's best split, where that is by one of the columns. All threads of a
   *         block. */
  __device__ void Keep(LevelRef const& lv, std::uint64_t i, LevelNode b,
                       LevelSetsRef const& out) const {
    std::uint64_t const key = lv.best[b];
    if (!CandidateKey::IsLocal(key)) {
      return;
    }
    FeatureIdx const f = lv.columns.FeatureOf(CandidateKey::AnyValueOf(CandidateKey::RankOf(key)));
    auto const* t = tiles;
    std::uint32_t const at =
        PartitionPoint(0u, n_tiles, [=](std::uint32_t k) { return t[k].column.feature >= f; });
    if (at == n_tiles || t[at].column.feature != f) {
      return;
    }
    std::uint32_t const* const from = this->Of(i, t[at]);
    std::uint32_t* const to = out.Of(b);
    if (threadIdx.x == 0) {
      to[0] = CategorySet::kBits;
    }
    for (std::uint32_t w = threadIdx.x; w < t[at].column.NumWords(); w += blockDim.x) {
      to[1 + w] = from[w];
    }
  }
};

class CategoryTiles {
 public:
  /** @param features Ascending; those that have no bin for each category are passed over. */
  CategoryTiles(BinMatrix const& matrix, std::vector<CategoricalFeature> const& features) {
    auto feature = features.cbegin();
    for (BinnedColumn c = 0; c < matrix.Columns().size(); ++c) {
      BinColumn const& column = matrix.Columns()[c];
      while (feature != features.cend() && feature->feature < column.feature) {
        ++feature;
      }
      if (feature != features.cend() && feature->feature == column.feature &&
          feature->n_categories == column.n_bins) {
        h_tiles_.push_back(
            {*feature, n_words_, c, matrix.Groups()[column.group].first_bin + column.first_bin});
        n_words_ += feature->NumWords();
      }
    }
    CopyFromHost(tiles_.Reserve(h_tiles_.size()), h_tiles_.data(), h_tiles_.size());
  }

  [[nodiscard]] std::vector<CategoryTile> const& Tiles() const { return h_tiles_; }
  /** @brief Count the words of a node. */
  [[nodiscard]] std::uint32_t NumWords() const { return n_words_; }
  /** @brief Lend the tiles, with room for so many nodes. May wait. */
  [[nodiscard]] CategoryTilesRef Ref(std::uint64_t n_nodes) {
    return {tiles_.Data(), static_cast<std::uint32_t>(h_tiles_.size()), n_words_,
            words_.Reserve(n_nodes * n_words_)};
  }

 private:
  std::uint32_t n_words_{0};
  std::vector<CategoryTile> h_tiles_;
  DeviceBuffer<CategoryTile> tiles_{"categorical columns"};
  DeviceBuffer<std::uint32_t> words_{"sets of categories by column"};
};
}  // namespace gpu_exact
