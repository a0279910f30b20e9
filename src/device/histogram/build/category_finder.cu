/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements category_finder.cuh.
 */
#include <algorithm>
#include <iterator>

#include "device/histogram/build/category_finder.cuh"
#include "device/histogram/build/category_search.cuh"

namespace gpu_exact {
namespace {
__device__ FixedSum LoadSum(FixedSum const* sums, std::uint64_t i) {
  longlong2 const sum = reinterpret_cast<longlong2 const*>(sums)[i];
  return {sum.x, sum.y};
}

// grid: columns, a block for each of n_nodes; order: the tiles that are searched
template <int kThreads, int kMost>
__global__ __launch_bounds__(kThreads, 1024 / kThreads) void SearchCategoriesKernel(
    __grid_constant__ LevelRef const lv, SearchedHistograms histograms, CategoryTilesRef tiles,
    std::uint32_t const* order, std::uint32_t n_nodes) {
  WaitForPreviousKernel();
  using Agent = CategorySearchAgent<kThreads, kMost>;
  extern __shared__ __align__(16) unsigned char memory[];
  CategoryTile const tile = tiles.tiles[order[blockIdx.x / n_nodes]];
  std::uint32_t const i = blockIdx.x % n_nodes;
  bool const is_larger = histograms.IsLarger(i);
  HistogramSearch const search = histograms.SearchOf(i);
  if (is_larger && search.larger == HistogramSearch::kNone) {
    return;
  }
  SearchedNode const node = histograms.nodes[is_larger ? search.larger : search.node];
  FixedSum* const own = histograms.sums + node.histogram + tile.first_bin;
  FixedSum const* const smaller =
      histograms.sums + histograms.nodes[search.node].histogram + tile.first_bin;
  Agent agent{reinterpret_cast<typename Agent::Storage*>(memory), lv, tile.column, node.level_node};
  agent.Gather([&](std::uint32_t code) {
    FixedSum sum = LoadSum(own, code);
    if (is_larger) {
      sum = sum - LoadSum(smaller, code);
      *reinterpret_cast<longlong2*>(own + code) = {sum.grad, sum.hess};
    }
    return sum;
  });
  agent.Search([&](std::uint32_t, std::uint32_t code) { return LoadSum(own, code); },
               tiles.Of(i, tile));
}

// grid: one block a node; result: the sets of nodes whose best split is by a category
__global__ void KeepSetsKernel(__grid_constant__ LevelRef const lv, SearchedHistograms histograms,
                               CategoryTilesRef tiles, LevelSetsRef out) {
  WaitForPreviousKernel();
  HistogramSearch const search = histograms.SearchOf(blockIdx.x);
  SearchedIdx const node = histograms.IsLarger(blockIdx.x) ? search.larger : search.node;
  if (node != HistogramSearch::kNone) {
    tiles.Keep(lv, blockIdx.x, histograms.nodes[node].level_node, out);
  }
}

/** @brief Sets how columns of up to a number of categories are searched. */
struct SizeClass {
  std::uint32_t most;
  unsigned n_threads;
  std::size_t shared_bytes;
  void (*kernel)(LevelRef, SearchedHistograms, CategoryTilesRef, std::uint32_t const*,
                 std::uint32_t);

  template <int kThreads, int kMost>
  static constexpr SizeClass Make() {
    return {kMost, kThreads, sizeof(typename CategorySearchAgent<kThreads, kMost>::Storage),
            SearchCategoriesKernel<kThreads, kMost>};
  }
};

constexpr SizeClass kClasses[] = {SizeClass::Make<256, 1024>(), SizeClass::Make<1024, 4096>(),
                                  SizeClass::Make<1024, static_cast<int>(kMaxGroupBins)>()};
}  // namespace

void KeepSets(LevelRef const& lv, SearchedHistograms const& searched, CategoryTilesRef const& tiles,
              LevelSetsRef const& out) {
  constexpr unsigned kThreads = 128;
  Launch("KeepSets", KeepSetsKernel, searched.NumPlaces(), kThreads, lv, searched, tiles, out);
}

CategoryFinder::CategoryFinder(BinMatrix const& matrix,
                               std::vector<CategoricalFeature> const& features)
    : features_{features}, tiles_{matrix, features} {
  std::vector<std::uint32_t> order;
  std::uint32_t least{0};
  for (SizeClass const& c : kClasses) {
    std::size_t const n_before = order.size();
    for (std::uint32_t t = 0; t < tiles_.Tiles().size(); ++t) {
      std::uint32_t const n = tiles_.Tiles()[t].column.n_categories;
      if (n > least && n <= c.most) {
        order.push_back(t);
      }
    }
    least = c.most;
    n_of_class_.push_back(static_cast<std::uint32_t>(order.size() - n_before));
    if (n_of_class_.back() != 0) {
      EXACT_CUDA(cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(c.shared_bytes)));
    }
  }
  CopyFromHost(order_.Reserve(order.size()), order.data(), order.size());
}

bool CategoryFinder::Has(FeatureIdx f) const { return FindCategorical(features_, f) != nullptr; }

void CategoryFinder::Find(LevelRef const& lv, SearchedHistograms const& histograms,
                          LevelSetsRef const& out) {
  if (tiles_.Tiles().empty()) {
    return;
  }
  std::uint32_t const n_nodes = histograms.NumPlaces();
  CategoryTilesRef const tiles = tiles_.Ref(n_nodes);
  std::uint32_t const* order = order_.Data() + tiles.n_tiles;
  for (std::size_t c = n_of_class_.size(); c-- > 0;) {  // the longest first
    order -= n_of_class_[c];
    Launch("SearchCategories", kClasses[c].kernel, std::uint64_t{n_nodes} * n_of_class_[c],
           {kClasses[c].n_threads, kClasses[c].shared_bytes}, lv, histograms, tiles, order,
           n_nodes);
  }
  KeepSets(lv, histograms, tiles, out);
}
}  // namespace gpu_exact
