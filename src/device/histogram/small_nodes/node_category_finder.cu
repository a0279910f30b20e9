/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements node_category_finder.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>

#include "device/histogram/build/category_finder.cuh"
#include "device/histogram/build/category_search.cuh"
#include "device/histogram/small_nodes/node_category_finder.cuh"
#include "device/histogram/small_nodes/node_sort.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr int kItems = static_cast<int>(NodeCategoryFinder::kMaxRows) / kThreads;

/** @brief Sums sorted entries, and counts the categories that they begin. */
struct CategoryRun {
  FixedSum sum;
  std::uint32_t n_begun;

  __device__ friend CategoryRun operator+(CategoryRun const& a, CategoryRun const& b) {
    return {a.sum + b.sum, a.n_begun + b.n_begun};
  }
};

/** @brief Shares memory of a block. */
struct BlockStorage {
  using SortAgent = BlockSortAgent<kThreads, kItems>;
  using SearchAgent = CategorySearchAgent<kThreads, kThreads * kItems>;
  using Scan = cub::BlockScan<CategoryRun, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

  union {
    typename SortAgent::Storage sort;
    typename SearchAgent::Storage search;
  };
  typename Scan::TempStorage scan;
  FixedSum up_to[kThreads * kItems];       // of entries up to the end of a category, by its number
  std::uint16_t codes[kThreads * kItems];  // of a category, by its number
};
static_assert(sizeof(BlockStorage) <= 48 * 1024, "more is to be asked for");

// grid: nodes, a block for each tile
__global__ __launch_bounds__(kThreads, 1024 / kThreads) void SearchNodeCategoriesKernel(
    __grid_constant__ LevelRef const lv, __grid_constant__ BinnedTableRef const table, RowsRef rows,
    SearchedNode const* nodes, CategoryTilesRef tiles) {
  WaitForPreviousKernel();
  __shared__ BlockStorage temp;
  std::uint32_t const i = blockIdx.x / tiles.n_tiles;
  SearchedNode const node = nodes[i];
  CategoryTile const tile = tiles.tiles[blockIdx.x % tiles.n_tiles];
  if (!lv.Allowed(node.level_node, tile.column.feature)) {
    return;
  }
  NodeColumn const column{table, rows, node, table.finest.columns[tile.binned]};
  std::uint32_t const n = BlockStorage::SortAgent{&temp.sort}.Sort(column);
  SortedEntry const* const entries = temp.sort.entries;
  std::uint32_t const of_thread = (n + kThreads - 1) / kThreads | 1u;  // odd, as banks are many
  std::uint32_t const first = min(threadIdx.x * of_thread, n);
  std::uint32_t const end = min(first + of_thread, n);
  CategoryRun own{{0, 0}, 0};
  for (std::uint32_t k = first; k < end; ++k) {
    own = own + CategoryRun{column.Sum(entries[k]), entries[k].Begins() ? 1u : 0u};
  }
  CategoryRun run, all;
  BlockStorage::Scan{temp.scan}.ExclusiveScan(own, run, {{0, 0}, 0}, cuda::std::plus<>{}, all);
  for (std::uint32_t k = first; k < end; ++k) {
    if (entries[k].Begins()) {
      temp.codes[run.n_begun++] = static_cast<std::uint16_t>(entries[k].Bin());
    }
    run.sum = run.sum + column.Sum(entries[k]);
    if (k + 1 == n || entries[k + 1].Begins()) {
      temp.up_to[run.n_begun - 1] = run.sum;
    }
  }
  __syncthreads();
  auto const load = [&](std::uint32_t number, std::uint32_t) {
    return number == 0 ? temp.up_to[0] : temp.up_to[number] - temp.up_to[number - 1];
  };
  BlockStorage::SearchAgent agent{&temp.search, lv, tile.column, node.level_node};
  agent.Take(
      all.n_begun, [&](std::uint32_t number) { return temp.codes[number]; },
      [&](std::uint32_t number) { return load(number, 0); });
  agent.Search(load, tiles.Of(i, tile));
}

}  // namespace

NodeCategoryFinder::NodeCategoryFinder(BinnedTable const& table, std::uint64_t max_words)
    : table_{table},
      max_words_{max_words},
      tiles_{*table.Resolutions().front()->matrix, table.Categorical()} {}

void NodeCategoryFinder::Find(LevelRef const& lv, RowsRef const& rows, SearchedNode const* nodes,
                              std::uint32_t n_nodes, LevelSetsRef const& out) {
  if (tiles_.Tiles().empty()) {
    return;
  }
  auto const at_once = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::max<std::uint64_t>(max_words_ / tiles_.NumWords(), 1), n_nodes));
  CategoryTilesRef const tiles = tiles_.Ref(at_once);
  for (std::uint32_t first = 0; first < n_nodes; first += at_once) {
    std::uint32_t const n = std::min(at_once, n_nodes - first);
    Launch("SearchNodeCategories", SearchNodeCategoriesKernel, std::uint64_t{n} * tiles.n_tiles,
           kThreads, lv, table_.Ref(), rows, nodes + first, tiles);
    KeepSets(lv, {nodes + first, nullptr, nullptr, n, false}, tiles, out);
  }
}
}  // namespace gpu_exact
