/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The kernels of the histogram finder, which alone includes this.
 */
#pragma once

#include "src/device/fixed_sum.cuh"
#include "src/device/histogram/bin_search.cuh"
#include "src/device/histogram/histogram_finder.cuh"
#include "src/device/histogram/shared_histogram.cuh"

namespace gpu_exact {
inline constexpr int kSearchThreads = 256;
inline constexpr int kSearchBlocks = 2;  // on a multiprocessor

/** @brief Tiles of bins, borrowed by kernels. */
struct TilesRef {
  BinTile const* tiles;
  std::uint32_t const* of_group;  // shape: (n_groups + 1)
};

/** @brief All that building and searching needs. */
struct FinderRef {
  BinnedRef binned;
  SearchedNode const* nodes;
  WorkRef work;
  BinSums kept;  // a histogram of all bins a slot
  BinSums cut;   // histograms of segments that are cut, by the first slice that begins in them
  std::uint32_t cut_stride;
  TilesRef tiles;
  OpenRangesRef open;

  [[nodiscard]] __device__ BinSums Slot(std::uint32_t slot) const {
    return kept.At(slot * binned.n_bins);
  }
  [[nodiscard]] __device__ BinSums Cut(std::uint32_t slice) const {
    return cut.At(std::uint64_t{slice} * cut_stride);
  }
  [[nodiscard]] __device__ SearchedNode const& Built(std::uint32_t node) const {
    return nodes[work.nodes[node].node];
  }
  /** @brief Where the bins of a segment are kept. */
  [[nodiscard]] __device__ BinSums Kept(WorkPoint const& point) const {
    return this->Slot(this->Built(point.node).slot).At(binned.groups[point.group].first_bin);
  }
};

/** @brief Where the bins of a cut segment are added up. @param slice One that begins within it. */
template <bool kDirect>
__device__ BinSums CutTarget(FinderRef const& f, std::uint32_t slice) {
  return kDirect ? f.Cut(f.work.FirstCut(slice)) : f.Kept(f.work.slices[slice]);
}

// grid: one block a slice; result: zeros where several blocks will add
template <bool kDirect>
__global__ void ClearCutsKernel(FinderRef f) {
  if (!f.work.Cuts(blockIdx.x)) {
    return;
  }
  BinSums out = CutTarget<kDirect>(f, blockIdx.x);
  std::uint32_t n_bins = f.binned.groups[f.work.slices[blockIdx.x].group].n_bins;
  for (std::uint32_t i = threadIdx.x; i < n_bins; i += blockDim.x) {
    out.Store(i, {{0, 0}, 0});
  }
}

/** @brief Write a segment's bins, or add them where other blocks do so too. */
__device__ inline void WriteBins(SharedHistogram const& histogram, bool whole, BinSums out) {
  for (std::uint32_t i = threadIdx.x; i < histogram.NumBins(); i += SharedHistogram::kThreads) {
    BinSum sum = histogram.Get(i);
    if (whole) {
      out.Store(i, sum);
    } else {
      out.Add(i, sum);
    }
  }
}

/** @brief Search a histogram that lies in shared memory. Ends with a barrier. */
__device__ inline void SearchShared(LevelRef const& level, FinderRef const& f,
                                    SharedHistogram const& histogram, WorkPoint const& point) {
  using Search = BinSearch<SharedHistogram::kThreads>;
  static_assert(sizeof(typename Search::TempStorage) <= SharedHistogram::kStagingBytes);
  auto* temp = reinterpret_cast<typename Search::TempStorage*>(histogram.Staging());
  for (auto t = f.tiles.of_group[point.group]; t < f.tiles.of_group[point.group + 1]; ++t) {
    BinTile tile = f.tiles.tiles[t];
    NodeSearch nodes[1]{{f.Built(point.node).bucket, f.work.nodes[point.node].node}};
    Search{temp, level, f.binned, f.open, tile}.Search(
        nodes, 1,
        [&](std::uint32_t bin, BinSum(&sums)[1]) { sums[0] = histogram.Get(tile.first_bin + bin); },
        [](std::uint32_t, BinSum const(&)[1]) {});
  }
}

/**
 * @brief grid: one block a slice.
 * @tparam kDirect Search segments that are not cut at once, and keep none of them.
 */
template <bool kDirect>
__global__ __launch_bounds__(SharedHistogram::kThreads) void BuildKernel(
    __grid_constant__ LevelRef const level, RowsRef rows, __grid_constant__ FinderRef const f) {
  extern __shared__ __align__(16) unsigned char memory[];
  WorkPoint point = f.work.slices[blockIdx.x];
  WorkPoint const end = f.work.slices[blockIdx.x + 1];
  while (point < end) {
    BinGroup const group = f.binned.groups[point.group];
    RowIdx const begin = f.work.nodes[point.node].begin;
    bool ends_cut = point.SameSegment(end);
    RowIdx last = ends_cut ? end.row : f.work.NumRows(point.node);
    bool whole = point.row == 0 && !ends_cut;
    SharedHistogram histogram{memory, group};
    histogram.Zero();
    __syncthreads();
    histogram.AddRows(group, rows, level.quantiser, begin + point.row, begin + last);
    __syncthreads();
    if (!whole) {
      std::uint32_t slice = blockIdx.x + (point.row == 0 ? 1 : 0);
      WriteBins(histogram, false, CutTarget<kDirect>(f, slice));
    } else if constexpr (kDirect) {
      SearchShared(level, f, histogram, point);
    } else {
      WriteBins(histogram, true, f.Kept(point));
    }
    __syncthreads();  // the histogram is cleared next
    point = f.work.Next(point);
  }
}

/**
 * @brief grid: tiles, kept histograms; result: the larger siblings' histograms too.
 *
 * Before, the slot of a larger sibling holds the parent.
 */
__global__ __launch_bounds__(kSearchThreads, kSearchBlocks) void SearchKeptKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ FinderRef const f,
    KeptSearch const* searches, std::uint32_t n_searches) {
  __shared__ typename BinSearch<kSearchThreads>::TempStorage temp;
  KeptSearch const search = searches[blockIdx.x % n_searches];  // every node soon has a bar
  BinTile tile = f.tiles.tiles[blockIdx.x / n_searches];
  std::uint64_t first = f.binned.groups[tile.group].first_bin + tile.first_bin;
  bool const has_sibling = search.larger != KeptSearch::kNone;
  std::uint32_t const second = has_sibling ? search.larger : search.node;
  BinSums const own = f.Slot(f.nodes[search.node].slot).At(first);
  BinSums const larger = f.Slot(f.nodes[second].slot).At(first);
  NodeSearch nodes[2]{{f.nodes[search.node].bucket, search.node},
                      {f.nodes[second].bucket, second}};
  BinSearch<kSearchThreads>{&temp, level, f.binned, f.open, tile}.Search(
      nodes, has_sibling ? 2 : 1,
      [&](std::uint32_t bin, BinSum(&sums)[2]) {
        sums[0] = own.Load(bin);
        sums[1] = sums[0];
        if (has_sibling) {
          BinSum const parent = larger.Load(bin);
          sums[1] = {parent.sum - sums[0].sum, parent.magnitude - sums[0].magnitude};
        }
      },
      [&](std::uint32_t bin, BinSum const(&sums)[2]) {
        if (has_sibling) {
          larger.Store(bin, sums[1]);
        }
      });
}

/** @brief grid: slices, tiles of a group; segments that several blocks have built. */
__global__ __launch_bounds__(kSearchThreads, kSearchBlocks) void SearchCutsKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ FinderRef const f,
    std::uint32_t n_tiles) {
  __shared__ typename BinSearch<kSearchThreads>::TempStorage temp;
  std::uint32_t slice = blockIdx.x / n_tiles;
  if (!f.work.Cuts(slice) || f.work.FirstCut(slice) != slice) {
    return;
  }
  WorkPoint point = f.work.slices[slice];
  std::uint32_t t = f.tiles.of_group[point.group] + blockIdx.x % n_tiles;
  if (t < f.tiles.of_group[point.group + 1]) {
    BinTile tile = f.tiles.tiles[t];
    BinSums const sums_of = f.Cut(slice).At(tile.first_bin);
    NodeSearch nodes[1]{{f.Built(point.node).bucket, f.work.nodes[point.node].node}};
    BinSearch<kSearchThreads>{&temp, level, f.binned, f.open, tile}.Search(
        nodes, 1,
        [&](std::uint32_t bin, BinSum(&sums)[1]) { sums[0] = sums_of.Load(bin); },
        [](std::uint32_t, BinSum const(&)[1]) {});
  }
}
}  // namespace gpu_exact
