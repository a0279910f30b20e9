/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Finds candidates at the ends of bins, by histograms of one resolution.
 *
 * Of two siblings whose parent's histogram is kept only the smaller one is built from its rows: the
 * other one is what the parent has left, exactly, as sums are integers. Histograms of nodes of few
 * rows are not worth keeping: as many as there is room for are built and searched at a time.
 */
#pragma once

#include <utility>
#include <vector>

#include "device/histogram/build/bin_search.cuh"
#include "device/histogram/build/category_finder.cuh"
#include "device/histogram/build/histogram_pool.cuh"
#include "device/histogram/build/histogram_work.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "plan/search_cost.h"

namespace gpu_exact {
/** @brief Lists nodes to search in one resolution. */
struct NodesToSearch {
  std::vector<Family> families;
  std::vector<RowRange> const& rows;  // of all nodes of the level, by node
  bool is_last_level;                 // histograms serve no later level

  [[nodiscard]] std::vector<SearchedNode> List() const {
    std::vector<SearchedNode> nodes;
    for (Family const& family : families) {
      for (LevelNode b = family.first; b < family.first + family.n; ++b) {
        nodes.push_back({rows[b], b, SearchedNode::kNoHistogram});
      }
    }
    return nodes;
  }
  [[nodiscard]] std::size_t NumNodes() const {
    std::size_t n{0};
    for (Family const& family : families) {
      n += family.n;
    }
    return n;
  }
};

class HistogramFinder {
 public:
  /**
   * @param matrix      Outlives the finder.
   * @param pool        Outlives the finder, too.
   * @param limits      Not the device's own in tests.
   * @param categorical Features, ascending.
   */
  HistogramFinder(BinMatrix const& matrix, HistogramPool* pool, BuildLimits const& limits = {},
                  std::vector<CategoricalFeature> const& categorical = {});

  /** @brief Forget all histograms, at the beginning of a tree. HistogramPool::Reset() frees them. */
  void Reset() {
    kept_.clear();
    parents_.clear();
  }
  /**
   * @brief Begin a level: histograms that none of its nodes subtracts from are given back. All
   *        finders of a pool hear of it before the first one searches.
   */
  void Begin(NodesToSearch const& nodes);

  /**
   * @brief Offer every candidate between bins, list the ranges that may hold a better one. Does
   *        not wait, but where memory grows.
   * @param nodes Those of Begin().
   * @param open  Is cleared first, if there is a node.
   * @param sets  Are written of nodes whose best split is by categories.
   *
   * A bin whose sum is zero counts as empty. Every level of a tree is searched, also where no node
   * is of this resolution.
   */
  void Find(LevelRef const& lv, RowsRef const& rows, NodesToSearch const& nodes,
            OpenRangesRef const& open, LevelSetsRef const& sets = {});
  /** @brief List the open ranges of the same nodes again, by the best candidates there are now. */
  void FindAgain(LevelRef const& lv, RowsRef const& rows, OpenRangesRef const& open);

  /** @brief Tell whether the last call has kept the histogram of a node. */
  [[nodiscard]] bool HasKept(LevelNode node) const {
    return node < kept_.size() && kept_[node] != SearchedNode::kNoHistogram;
  }
  /** @brief Count the nodes that the last call searched. */
  [[nodiscard]] std::uint32_t NumNodes() const {
    return static_cast<std::uint32_t>(h_nodes_.size());
  }
  /** @brief Count the rows of those nodes. */
  [[nodiscard]] std::uint64_t NumSearchedRows() const { return n_rows_; }
  /** @brief Give those nodes, device memory, shape: (NumNodes()). */
  [[nodiscard]] SearchedNode const* Nodes() const { return uploader_.Data<SearchedNode>(d_nodes_); }
  /** @brief Give the work on all their rows. The device must have been waited for before it is
   *         asked again. */
  [[nodiscard]] WorkRef AllRows();

 private:
  void MakeTiles();
  /** @brief Tell whether a family's histograms are worth keeping. */
  [[nodiscard]] bool IsLarge(NodesToSearch const& nodes, Family const& family) const;
  /** @brief Place the histograms that are kept. */
  void Place(NodesToSearch const& nodes);
  /** @brief Give histograms that are not kept a place behind the kept ones, in batches where there is
   *         no room for all. */
  void PlacePassing();
  void PlanWork();
  /** @param sets nullptr: splits by categories are not searched. */
  void SearchBatches(LevelRef const& lv, RowsRef const& rows, OpenRangesRef const& open,
                     LevelSetsRef const* sets);
  /** @brief Count the blocks that share a tile: more than one where tiles are so few that
   *         multiprocessors are idle. */
  [[nodiscard]] unsigned ClusterSize(std::uint64_t n_clusters) const;

  BinMatrix const& matrix_;
  HistogramPool& pool_;
  BuildLimits limits_;
  CategoryFinder categories_;
  std::uint32_t n_tiles_{0};                                      // of numerical columns
  std::uint32_t longest_tile_{0};                                 // bins
  std::vector<std::pair<unsigned, std::uint64_t>> max_clusters_;  // by size: that search at a time
  std::size_t shared_bytes_{0};                                   // of a block that builds
  double keep_rows_;                                              // least rows of a node whose
                                                                  // histogram is kept
  std::uint64_t n_rows_{0};                                       // of the searched nodes
  // First bins in the pool, or SearchedNode::kNoHistogram:
  std::vector<std::uint32_t> kept_;     // of the level's nodes, by node
  std::vector<std::uint32_t> parents_;  // that a family of the level subtracts from, by family
  std::vector<std::uint32_t> passing_;  // searched nodes whose histograms are not kept
  std::vector<SearchedNode> h_nodes_;
  PlannedWork of_kept_;  // of the histograms that are kept alone
  std::vector<PlannedWork>
      batches_;  // that are built and searched at a time; those are in the first one
  LoadBalancer slicer_;
  Uploader uploader_{"nodes and slices of histograms"};
  Uploader all_rows_{"slices of the rows of nodes"};
  std::size_t d_nodes_{0};  // their number in the upload
  DeviceBuffer<BinTile> tiles_{"tiles of bins"};
};
}  // namespace gpu_exact
