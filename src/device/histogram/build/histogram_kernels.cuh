/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds the kernels of the histogram finder, which alone includes this.
 */
#pragma once

#include "device/histogram/build/bin_search.cuh"
#include "device/histogram/build/histogram_work.cuh"
#include "device/histogram/build/shared_histogram.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
inline constexpr int kSearchThreads = 256;
inline constexpr int kSearchBlocks = 2;  // on a multiprocessor

/** @brief Lends kernels all that building and searching needs. */
struct FinderRef {
  BinMatrixRef binned;
  SearchedNode const* nodes;
  WorkRef work;
  BinSums histograms;  // of the pool
  BinTile const* tiles;
  OpenRangesRef open;
  std::int64_t hess_of_row;  // as LevelRef's

  /** @brief Give a searched node's histogram, from a bin on. */
  [[nodiscard]] __device__ BinSums Of(SearchedIdx node, std::uint64_t bin) const {
    return histograms.At(nodes[node].histogram + bin);
  }
  /** @brief Give the bins of a segment. */
  [[nodiscard]] __device__ BinSums Segment(WorkOffset const& point) const {
    return this->Of(work.nodes[point.built].node, binned.groups[point.group].first_bin);
  }
};

// grid: slices, some blocks each; result: zeros where several blocks will add, and counts, or nullptr
__global__ void ClearSharedSegmentsKernel(FinderRef f, std::uint32_t n_blocks, OpenCounts* counts) {
  WaitForPreviousKernel();
  if (GlobalIdx() == 0 && counts != nullptr) {
    *counts = {};
  }
  std::uint32_t const slice = blockIdx.x / n_blocks;
  if (!f.work.Clears(slice)) {
    return;
  }
  WorkOffset const point = f.work.slices[slice];
  BinSums const out = f.Segment(point);
  std::uint32_t n_bins = f.binned.groups[point.group].n_bins;
  for (std::uint32_t i = blockIdx.x % n_blocks * blockDim.x + threadIdx.x; i < n_bins;
       i += n_blocks * blockDim.x) {
    out.Store(i, {{0, 0}, 0});
  }
}

// grid: one block a slice; result: histograms of the nodes
__global__ __launch_bounds__(SharedHistogram::kThreads) void BuildKernel(
    RowsRef rows, __grid_constant__ FinderRef const f) {
  WaitForPreviousKernel();
  extern __shared__ __align__(SharedHistogram::kAligned) unsigned char memory[];
  WorkOffset point = f.work.slices[blockIdx.x];
  WorkOffset const end = f.work.slices[blockIdx.x + 1];
  while (point < end) {
    FeatureGroup const group = f.binned.groups[point.group];
    BuiltNode const node = f.work.nodes[point.built];
    bool ends_inside = point.SameSegment(end);
    RowIdx last = ends_inside ? end.row : f.work.NumRows(point.built);
    bool whole = point.row == 0 && !ends_inside && node.part == NodePart::kWhole;
    SharedHistogram const histogram{memory, group, f.hess_of_row};
    histogram.Begin();
    __syncthreads();
    histogram.AddRows(rows, node.begin + point.row, node.begin + last);
    __syncthreads();
    BinSums const out = f.Segment(point);
    histogram.ForBins(f.binned.columns, [&](std::uint32_t bin, BinSum const& sum) {
      if (whole) {
        out.Store(bin, sum);
      } else {
        out.Add(bin, sum);  // as other blocks do
      }
    });
    __syncthreads();  // the histogram is cleared next
    point = f.work.Next(point);
  }
}

/**
 * @brief Search. grid: tiles, histograms, blocks of a cluster; result: the larger siblings'
 *        histograms too.
 *
 * Before, the parent's is in the place of a larger sibling's.
 *
 * @tparam kLimited See BinSearchAgent. Where it is false, fewer registers are taken.
 */
template <bool kLimited>
__global__ __launch_bounds__(kSearchThreads,
                             kSearchBlocks) void SearchKernel(__grid_constant__ LevelRef const lv,
                                                              __grid_constant__ FinderRef const f,
                                                              HistogramSearch const* searches,
                                                              std::uint32_t n_searches) {
  WaitForPreviousKernel();
  __shared__ typename BinSearchAgent<kSearchThreads, kLimited>::TempStorage temp;
  unsigned const cluster = blockIdx.x / BlockCluster::Size();
  HistogramSearch const search =
      searches[cluster % n_searches];  // every node soon has a gain to beat
  BinTile tile = f.tiles[cluster / n_searches];
  std::uint64_t first = f.binned.groups[tile.group].first_bin + tile.first_bin;
  bool const has_sibling = search.larger != HistogramSearch::kNone;
  SearchedIdx const second = has_sibling ? search.larger : search.node;
  BinSums const own = f.Of(search.node, first);
  BinSums const larger = f.Of(second, first);
  BinSearchAgent<kSearchThreads, kLimited> in_tile{&temp, lv, f.binned, f.open, tile};
#pragma unroll 1  // one copy of the search
  for (bool is_larger : {false, true}) {
    if (is_larger && !has_sibling) {
      break;
    }
    SearchedIdx const node = is_larger ? second : search.node;
    in_tile.Search(
        {f.nodes[node].level_node, node},
        [&](std::uint32_t bin) {
          BinSum const smaller = own.Load(bin);
          if (!is_larger) {
            return smaller;
          }
          BinSum const parent = larger.Load(bin);
          return BinSum{parent.sum - smaller.sum, parent.magnitude - smaller.magnitude};
        },
        [&](std::uint32_t bin, BinSum const& sum) {
          if (is_larger) {
            larger.Store(bin, sum);
          }
        });
  }
}
}  // namespace gpu_exact
