/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The kernels of the histogram finder, which alone includes this.
 */
#pragma once

#include "src/device/fixed_sum.cuh"
#include "src/device/partition/histogram_finder.cuh"
#include "src/device/partition/shared_histogram.cuh"

namespace gpu_exact {
inline constexpr int kSearchThreads = 256;
inline constexpr int kSearchBlocks = 2;  // on a multiprocessor

/** @brief Kept histograms: one of all bins a slot. */
struct KeptRef {
  FixedSum* sums;
  PairSlots const* pairs;  // by built node
  std::uint64_t n_bins;

  [[nodiscard]] __device__ FixedSum* Slot(std::uint32_t slot) const { return sums + slot * n_bins; }
};

/** @brief Histograms of the segments that are cut, by the first slice that begins in them. */
struct CutRef {
  FixedSum* sums;
  std::uint32_t stride;

  [[nodiscard]] __device__ FixedSum* Of(std::uint32_t slice) const {
    return sums + std::uint64_t{slice} * stride;
  }
};

/** @brief Tiles of bins, borrowed by kernels. */
struct TilesRef {
  BinTile const* tiles;
  std::uint32_t const* of_group;  // shape: (n_groups + 1)
};

/** @brief Where the bins of a cut segment are added up. @param slice One that begins within it. */
__device__ inline FixedSum* CutTarget(WorkRef const& work, BinnedRef const& binned,
                                      KeptRef const& kept, CutRef const& cut, std::uint32_t slice) {
  if (kept.sums == nullptr) {
    return cut.Of(work.FirstCut(slice));
  }
  WorkPoint point = work.slices[slice];
  return kept.Slot(kept.pairs[point.node].right) + binned.groups[point.group].first_bin;
}

/** @brief In one access of 16 B; histograms are aligned to that. */
__device__ inline FixedSum LoadSum(FixedSum const* from) {
  longlong2 sum = *reinterpret_cast<longlong2 const*>(from);
  return {sum.x, sum.y};
}

/** @brief The same for writing. */
__device__ inline void StoreSum(FixedSum* to, FixedSum const& sum) {
  *reinterpret_cast<longlong2*>(to) = {sum.grad, sum.hess};
}

// grid: one block a slice; result: zeros where several blocks will add
__global__ void ClearCutsKernel(BinnedRef binned, WorkRef work, KeptRef kept, CutRef cut) {
  if (!work.Cuts(blockIdx.x)) {
    return;
  }
  FixedSum* out = CutTarget(work, binned, kept, cut, blockIdx.x);
  std::uint32_t n_bins = binned.groups[work.slices[blockIdx.x].group].n_bins;
  for (std::uint32_t i = threadIdx.x; i < n_bins; i += blockDim.x) {
    StoreSum(out + i, {0, 0});
  }
}

/** @brief Write a segment's bins, or add them where other blocks do so too. */
__device__ inline void WriteBins(SharedHistogram const& histogram, bool whole, FixedSum* out) {
  for (std::uint32_t i = threadIdx.x; i < histogram.NumBins(); i += SharedHistogram::kThreads) {
    FixedSum sum = histogram.Get(i);
    if (whole) {
      StoreSum(out + i, sum);
    } else {
      AtomicAdd(out + i, sum);
    }
  }
}

/** @brief Search a histogram that lies in shared memory. Ends with a barrier. */
__device__ inline void SearchShared(LevelRef const& level, BinnedRef const& binned,
                                    TilesRef const& tiles, SharedHistogram const& histogram,
                                    std::uint32_t group, Bucket bucket) {
  using Search = BinSearch<SharedHistogram::kThreads>;
  static_assert(sizeof(typename Search::TempStorage) <= SharedHistogram::kStagingBytes);
  auto* temp = reinterpret_cast<typename Search::TempStorage*>(histogram.Staging());
  for (auto t = tiles.of_group[group]; t < tiles.of_group[group + 1]; ++t) {
    BinTile tile = tiles.tiles[t];
    NodeSearch nodes[1]{{bucket}};
    Search{temp, level, binned, tile}.Search(
        nodes,
        [&](std::uint32_t bin, FixedSum(&sums)[1]) {
          sums[0] = histogram.Get(tile.first_bin + bin);
        },
        [](std::uint32_t, FixedSum const(&)[1]) {});
  }
}

/**
 * @brief grid: one block a slice.
 * @tparam kDirect Search segments that are not cut at once, and keep none of them.
 */
template <bool kDirect>
__global__ __launch_bounds__(SharedHistogram::kThreads) void BuildKernel(
    __grid_constant__ LevelRef const level, RowsRef rows, BinnedRef binned, WorkRef work,
    KeptRef kept, CutRef cut, TilesRef tiles) {
  extern __shared__ __align__(16) unsigned char memory[];
  WorkPoint point = work.slices[blockIdx.x];
  WorkPoint const end = work.slices[blockIdx.x + 1];
  while (point < end) {
    BinGroup const group = binned.groups[point.group];
    BuiltNode const node = work.nodes[point.node];
    bool ends_cut = point.SameSegment(end);
    RowIdx last = ends_cut ? end.row : work.NumRows(point.node);
    bool whole = point.row == 0 && !ends_cut;
    SharedHistogram histogram{memory, group.n_bins};
    histogram.Zero();
    __syncthreads();
    histogram.AddRows(group, rows, level.quantiser, node.begin + point.row, node.begin + last);
    __syncthreads();
    if (!whole) {
      std::uint32_t slice = blockIdx.x + (point.row == 0 ? 1 : 0);
      WriteBins(histogram, false, CutTarget(work, binned, kept, cut, slice));
    } else if constexpr (kDirect) {
      SearchShared(level, binned, tiles, histogram, point.group, node.bucket);
    } else {
      WriteBins(histogram, true, kept.Slot(kept.pairs[point.node].right) + group.first_bin);
    }
    __syncthreads();  // the histogram is cleared next
    point = work.Next(point);
  }
}

/** @brief Search one node's histogram in global memory. */
__device__ inline void SearchGlobal(BinSearch<kSearchThreads> search, FixedSum const* sums,
                                    Bucket bucket) {
  NodeSearch nodes[1]{{bucket}};
  search.Search(
      nodes, [&](std::uint32_t bin, FixedSum(&out)[1]) { out[0] = LoadSum(sums + bin); },
      [](std::uint32_t, FixedSum const(&)[1]) {});
}

/** @brief grid: tiles. */
__global__ __launch_bounds__(kSearchThreads, kSearchBlocks) void SearchRootKernel(
    __grid_constant__ LevelRef const level, BinnedRef binned, KeptRef kept, BinTile const* tiles) {
  __shared__ typename BinSearch<kSearchThreads>::TempStorage temp;
  BinTile tile = tiles[blockIdx.x];
  SearchGlobal(
      {&temp, level, binned, tile},
      kept.Slot(kept.pairs[0].right) + binned.groups[tile.group].first_bin + tile.first_bin, 0);
}

/**
 * @brief grid: tiles, pairs of children; result: both histograms of each pair too.
 *
 * Before, the left slot holds the parent and the right one the smaller child.
 */
__global__ __launch_bounds__(kSearchThreads, kSearchBlocks) void SearchPairsKernel(
    __grid_constant__ LevelRef const level, BinnedRef binned, WorkRef work, KeptRef kept,
    BinTile const* tiles) {
  __shared__ typename BinSearch<kSearchThreads>::TempStorage temp;
  std::uint32_t pair = blockIdx.x % work.n_nodes;  // every pair soon has a bar to reach
  BinTile tile = tiles[blockIdx.x / work.n_nodes];
  std::uint64_t first = binned.groups[tile.group].first_bin + tile.first_bin;
  FixedSum* left = kept.Slot(kept.pairs[pair].left) + first;
  FixedSum* right = kept.Slot(kept.pairs[pair].right) + first;
  bool left_is_small = work.nodes[pair].bucket % 2 == 0;
  NodeSearch nodes[2]{{2 * pair}, {2 * pair + 1}};
  BinSearch<kSearchThreads>{&temp, level, binned, tile}.Search(
      nodes,
      [&](std::uint32_t bin, FixedSum(&sums)[2]) {
        FixedSum parent = LoadSum(left + bin);
        FixedSum small = LoadSum(right + bin);
        sums[0] = left_is_small ? small : parent - small;
        sums[1] = left_is_small ? parent - small : small;
      },
      [&](std::uint32_t bin, FixedSum const(&sums)[2]) {
        StoreSum(left + bin, sums[0]);
        if (left_is_small) {
          StoreSum(right + bin, sums[1]);
        }
      });
}

/** @brief grid: slices, tiles of a group; segments that several blocks have built. */
__global__ __launch_bounds__(kSearchThreads, kSearchBlocks) void SearchCutsKernel(
    __grid_constant__ LevelRef const level, BinnedRef binned, WorkRef work, CutRef cut,
    TilesRef tiles, std::uint32_t n_tiles) {
  __shared__ typename BinSearch<kSearchThreads>::TempStorage temp;
  std::uint32_t slice = blockIdx.x / n_tiles;
  if (!work.Cuts(slice) || work.FirstCut(slice) != slice) {
    return;
  }
  WorkPoint point = work.slices[slice];
  std::uint32_t t = tiles.of_group[point.group] + blockIdx.x % n_tiles;
  if (t < tiles.of_group[point.group + 1]) {
    BinTile tile = tiles.tiles[t];
    SearchGlobal({&temp, level, binned, tile}, cut.Of(slice) + tile.first_bin,
                 work.nodes[point.node].bucket);
  }
}
}  // namespace gpu_exact
