/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements category_finder.cuh.
 */
#include <iterator>

#include "device/histogram/build/category_finder.cuh"
#include "device/histogram/build/category_search.cuh"

namespace gpu_exact {
namespace {
/** @brief Lends what the kernels of a call share. */
struct CategoryWork {
  SearchedHistograms histograms;
  CategoryTile const* tiles;
  std::uint32_t n_tiles;
  std::uint32_t n_words;
  std::uint32_t* words;  // shape: (searches, node and larger sibling, n_words)

  [[nodiscard]] __host__ __device__ std::uint32_t NumOfSearch() const {
    return histograms.has_larger ? 2 : 1;
  }
};

/** @brief Names the node that a block works on. */
struct BlockNode {
  HistogramSearch search;
  bool is_larger;  // of two siblings
  std::uint32_t* words;

  /** @param i Among all searches' nodes. */
  __device__ BlockNode(CategoryWork const& work, std::uint32_t i)
      : search{work.histograms.searches[i / work.NumOfSearch()]},
        is_larger{i % work.NumOfSearch() != 0},
        words{work.words + std::uint64_t{i} * work.n_words} {}

  [[nodiscard]] __device__ bool Is() const {
    return !is_larger || search.larger != HistogramSearch::kNone;
  }
  [[nodiscard]] __device__ SearchedNode const& Node(CategoryWork const& work) const {
    return work.histograms.nodes[is_larger ? search.larger : search.node];
  }
};

__device__ FixedSum LoadSum(FixedSum const* sums, std::uint64_t i) {
  longlong2 const sum = reinterpret_cast<longlong2 const*>(sums)[i];
  return {sum.x, sum.y};
}

// grid: columns, one block for each node of the searches
template <int kThreads, int kMost>
__global__ __launch_bounds__(kThreads) void SearchCategoriesKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ CategoryWork const work,
    std::uint32_t const* tiles) {
  WaitForPreviousKernel();
  using Agent = CategorySearchAgent<kThreads, kMost>;
  extern __shared__ __align__(16) unsigned char memory[];
  std::uint32_t const n_nodes = work.histograms.n * work.NumOfSearch();
  CategoryTile const tile = work.tiles[tiles[blockIdx.x / n_nodes]];
  BlockNode const at{work, blockIdx.x % n_nodes};
  if (!at.Is()) {
    return;
  }
  SearchedNode const node = at.Node(work);
  SearchedNode const& sibling = work.histograms.nodes[at.search.node];
  FixedSum* const own = work.histograms.sums + node.histogram + tile.first_bin;
  FixedSum const* const smaller = work.histograms.sums + sibling.histogram + tile.first_bin;
  Agent agent{reinterpret_cast<typename Agent::Storage*>(memory), level, tile.column,
              node.level_node};
  agent.Gather([&](std::uint32_t code) {
    FixedSum sum = LoadSum(own, code);
    if (at.is_larger) {
      sum = sum - LoadSum(smaller, code);
      *reinterpret_cast<longlong2*>(own + code) = {sum.grad, sum.hess};
    }
    return sum;
  });
  if (level.Allowed(node.level_node, tile.column.feature) &&
      agent.Offer(level.max_cat_threshold,
                  [&](std::uint32_t, std::uint32_t code) { return LoadSum(own, code); })) {
    agent.WriteSet(at.words + tile.first_word);
  }
}

// one block a node of the searches; result: the set of its best split, where that is by categories
__global__ void KeepSetsKernel(__grid_constant__ LevelRef const level,
                               __grid_constant__ CategoryWork const work, LevelSetsRef out) {
  WaitForPreviousKernel();
  BlockNode const at{work, blockIdx.x};
  if (!at.Is()) {
    return;
  }
  LevelNode const b = at.Node(work).level_node;
  std::uint64_t const key = level.best[b];
  if (!CandidateKey::IsLocal(key)) {
    return;
  }
  FeatureIdx const f = level.columns.FeatureOf(CandidateKey::AnyValueOf(CandidateKey::RankOf(key)));
  if (!level.rules[f].categorical) {
    return;
  }
  auto const* tiles = work.tiles;
  CategoryTile const tile =
      tiles[PartitionPoint(0u, work.n_tiles, [=](std::uint32_t t) {
        return tiles[t].column.feature >= f;
      })];
  for (std::uint32_t w = threadIdx.x; w < tile.column.NumWords(); w += blockDim.x) {
    out.Of(b)[w] = at.words[tile.first_word + w];
  }
}
}  // namespace

struct CategoryFinder::SizeClass {
  std::uint32_t most;  // categories
  int n_threads;
  std::size_t bytes;  // of shared memory
  void (*kernel)(LevelRef, CategoryWork, std::uint32_t const*);

  template <int kThreads, int kMost>
  static constexpr SizeClass Make() {
    return {kMost, kThreads, sizeof(typename CategorySearchAgent<kThreads, kMost>::Storage),
            SearchCategoriesKernel<kThreads, kMost>};
  }
};

constexpr CategoryFinder::SizeClass CategoryFinder::kClasses[] = {
    SizeClass::Make<256, 1024>(), SizeClass::Make<1024, 4096>(), SizeClass::Make<1024, 10240>()};

CategoryFinder::CategoryFinder(BinMatrix const& columns,
                               std::vector<CategoricalFeature> const& features)
    : n_tiles_{static_cast<std::uint32_t>(features.size())} {
  std::vector<CategoryTile> tiles;
  auto column = columns.Columns().cbegin();
  for (CategoricalFeature const& f : features) {
    while (column->feature != f.feature) {
      ++column;
    }
    tiles.push_back(
        {f, n_words_, columns.Groups()[column->group].first_bin + column->first_bin});
    n_words_ += f.NumWords();
  }
  std::vector<std::uint32_t> order;
  std::uint32_t least{0};
  for (SizeClass const& c : kClasses) {
    std::size_t const n_before = order.size();
    for (std::uint32_t t = 0; t < n_tiles_; ++t) {
      if (features[t].n_categories > least && features[t].n_categories <= c.most) {
        order.push_back(t);
      }
    }
    n_of_class_.push_back(static_cast<std::uint32_t>(order.size() - n_before));
    least = c.most;
    if (n_of_class_.back() != 0) {
      EXACT_CUDA(cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(c.bytes)));
    }
  }
  CopyFromHost(tiles_.Reserve(tiles.size()), tiles.data(), tiles.size());
  CopyFromHost(order_.Reserve(order.size()), order.data(), order.size());
}

void CategoryFinder::Find(LevelRef const& level, SearchedHistograms const& histograms,
                          LevelSetsRef const& out) {
  if (n_tiles_ == 0) {
    return;
  }
  CategoryWork work{histograms, tiles_.Data(), n_tiles_, n_words_, nullptr};
  std::uint64_t const n_nodes = std::uint64_t{histograms.n} * work.NumOfSearch();
  work.words = words_.Reserve(n_nodes * n_words_);
  std::uint32_t const* order = order_.Data() + n_tiles_;
  for (std::size_t c = n_of_class_.size(); c-- > 0;) {  // the longest first
    order -= n_of_class_[c];
    Launch("SearchCategories", kClasses[c].kernel, n_nodes * n_of_class_[c],
           {static_cast<unsigned>(kClasses[c].n_threads), kClasses[c].bytes}, level, work, order);
  }
  constexpr unsigned kKeepThreads = 128;
  Launch("KeepSets", KeepSetsKernel, n_nodes, kKeepThreads, level, work, out);
}
}  // namespace gpu_exact
