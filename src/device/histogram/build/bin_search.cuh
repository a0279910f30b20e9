/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches the histograms of a few columns for splits by a block: a segmented scan over
 *        their bins, then the gain before every bin, and the bound of what is inside of ranges. A
 *        long column may have a cluster of blocks, which take kTileBins of its bins each in turns:
 *
 *            bins    | block 0 | block 1 | ... | block 7 | block 0 | ...
 */
#pragma once

#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/histogram/build/bin_sums.cuh"
#include "device/histogram/build/open_ranges.cuh"
#include "device/level/best_bound_first.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/block_cluster.cuh"

namespace gpu_exact {
inline constexpr std::uint32_t kTileBins = 1024;
inline constexpr std::uint32_t kTileColumns = 256;

/** @brief Names whole columns of one group that a block, or a cluster, searches: few, or one long
 *         one. */
struct BinTile {
  std::uint32_t group;
  BinnedColumn first_column;
  std::uint32_t n_columns;  // up to kTileColumns
  std::uint32_t first_bin;  // in the group
  std::uint32_t n_bins;     // up to kTileBins, or those of one column
};

/** @brief Sums since the last head of a column, and knows the last bin that is not empty. */
struct BinRun {
  FixedSum sum;
  std::uint32_t head;  // 0 or 1
  std::uint32_t end;   // one past the last bin of the tile with a sum other than zero; 0: none

  /** @brief Combine neighbouring runs. Associative, not commutative. */
  __device__ friend BinRun operator+(BinRun const& a, BinRun const& b) {
    return b.head != 0 ? b : BinRun{a.sum + b.sum, a.head, max(a.end, b.end)};
  }
};

/** @brief Follows one node through a tile. */
struct NodeSearch {
  LevelNode level_node;
  SearchedIdx node;
  BinRun before{{0, 0}, 0, 0};  // of the bins so far, by all blocks of the cluster
  FixedSum present{0, 0};       // of all columns of the tile, unless they have their own
};

/** @brief Tells which candidates at one bin of a column are worth their exact gain. */
struct BinOffer {
  bool boundary;         // the candidate before the bin
  bool present_forward;  // between present and missing values: past the last bin that is not empty,
  bool present_backward;  // before the first one
  std::uint32_t below;    // one past the last bin below it that is not empty
  std::uint32_t bin;
  std::uint32_t end;  // one past the last bin up to it that is not empty
};

/**
 * @brief Make the CandidateKey of the best candidate at a bin.
 *
 * An empty bin, of zero sum, may be of rows without weight: among candidates of equal sums each
 * scan takes the one that it meets first. So a forward scan's candidate lies right after the last
 * bin that is not empty, a backward scan's right before one.
 * Not inlined: it is rarely called, and takes many registers.
 */
__device__ __noinline__ inline std::uint64_t KeyAtBin(LevelRef const& lv, LevelNode level_node,
                                                      FeatureIdx f, BinOffer const& offer,
                                                      FixedSum const& before,
                                                      FixedSum const& present) {
  if (!lv.Allowed(level_node, f)) {
    return 0;
  }
  NodeState const& node = lv.nodes[level_node];
  ValueId const first = lv.columns.value_offsets[f];
  std::uint64_t key{0};
  if (offer.boundary) {
    key = max(
        lv.ScanBoundaryKey(node, f, ScanDirection::kForward, first + offer.below, before, present),
        lv.ScanBoundaryKey(node, f, ScanDirection::kBackward, first + offer.bin, before, present));
  }
  if (offer.present_forward) {
    key = max(key, lv.ScanPresentKey(node, f, ScanDirection::kForward,
                                     std::uint64_t{first} + offer.end, present));
  }
  if (offer.present_backward) {
    key =
        max(key, lv.ScanPresentKey(node, f, ScanDirection::kBackward, first + offer.bin, present));
  }
  return key;
}

/** @brief Bound the gains of the candidates at a bin from above where weights are limited. */
__device__ __noinline__ inline float BoundWithin(LevelRef const& lv, LevelNode level_node,
                                                 FeatureIdx f, BinOffer const& offer,
                                                 FixedSum const& before, FixedSum const& present) {
  FixedSum const missing = lv.nodes[level_node].sum - present;
  float bound = -INFINITY;
  if (offer.boundary) {
    FixedSum const with_missing = before + missing;
    bound = fmaxf(lv.BoundWithin(level_node, f, {before, before}),
                  lv.BoundWithin(level_node, f, {with_missing, with_missing}));
  }
  if (offer.present_forward) {
    bound = fmaxf(bound, lv.BoundWithin(level_node, f, {present, present}));
  }
  if (offer.present_backward) {
    bound = fmaxf(bound, lv.BoundWithin(level_node, f, {missing, missing}));
  }
  return bound;
}

/** @tparam kLimited Whether weights may be limited, as GainBound::limited. */
template <int kThreads, bool kLimited>
class BinSearchAgent {
  static constexpr int kItems = static_cast<int>(kTileBins) / kThreads;
  using BlockScan = cub::BlockScan<BinRun, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

 public:
  struct TempStorage {
    FixedSum present[kTileColumns];
    typename BlockScan::TempStorage scan;
    BinRun of_block[2];  // for the cluster: one is written while blocks behind read the other
    BinRun of_blocks[BlockCluster::kMost];
  };

  __device__ BinSearchAgent(TempStorage* temp, LevelRef const& lv, BinMatrixRef const& binned,
                            OpenRangesRef const& open, BinTile const& tile)
      : temp_{*temp},
        lv_{lv},
        binned_{binned},
        open_{open},
        tile_{tile},
        first_bin_{binned.groups[tile.group].first_bin + tile.first_bin},
        dense_{binned.groups[tile.group].has_missing == 0},
        has_ranges_{binned.groups[tile.group].has_ranges != 0} {}

  /**
   * @brief Offer the candidates of a node. All threads of the cluster; ends with a barrier.
   *
   * @param node Its level_node is set.
   * @param load load(bin): the node's sums of a bin of the tile. May be called twice.
   * @param keep keep(bin, sum): once for each bin, after the last load of it, by the same block.
   */
  template <typename LoadFn, typename KeepFn>
  __device__ void Search(NodeSearch node, LoadFn&& load, KeepFn&& keep) {
    if (dense_) {
      node.present = lv_.nodes[node.level_node].sum;
    } else if (tile_.n_bins > kTileBins) {
      node.present = this->SumPresent(load);
    }
    for (std::uint32_t turn = 0; turn < tile_.n_bins; turn += kTileBins * BlockCluster::Size()) {
      Items items{*this, turn + kTileBins * BlockCluster::Rank()};
      BinSum sums[kItems]{};
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (k < items.n) {
          sums[k] = load(items.begin + k);
        }
      }
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (k < items.n) {
          keep(items.begin + k, sums[k]);
        }
      }
      this->SearchItems(items, sums, &node);
    }
    BlockCluster::Sync();  // others may read this block's memory still
  }

 private:
  /** @brief Tell whether each column has a present sum of its own. */
  [[nodiscard]] __device__ bool OwnPresent() const { return !dense_ && tile_.n_bins <= kTileBins; }

  /** @brief Holds the thread's bins, counted in the tile, and the columns that they belong to. */
  struct Items {
    std::uint32_t begin;
    int n;
    BinnedColumn first_column{0};
    std::uint32_t heads{0};  // bit k: the first bin of its column
    std::uint32_t tails{0};  // bit k: the last one

    __device__ Items(BinSearchAgent const& s, std::uint32_t first)
        : begin{first + threadIdx.x * kItems},
          n{max(0, min(kItems, static_cast<int>(s.tile_.n_bins) - static_cast<int>(begin)))} {
      if (n == 0) {
        return;
      }
      auto columns = s.binned_.columns;
      std::uint32_t bin = s.tile_.first_bin + begin;
      std::uint32_t last = s.tile_.first_column + s.tile_.n_columns;
      first_column = PartitionPoint(s.tile_.first_column + 1, last,
                                    [=](std::uint32_t i) { return columns[i].first_bin > bin; }) -
                     1;
      std::uint32_t end{columns[first_column].first_bin};
      for (BinnedColumn c = first_column; end < bin + n; ++c) {
        BinColumn column = columns[c];
        end = column.first_bin + column.n_bins;
        if (column.first_bin >= bin) {
          heads |= 1u << (column.first_bin - bin);
        }
        if (end <= bin + n) {
          tails |= 1u << (end - 1 - bin);
        }
      }
    }
    /** @brief Give the column of item k. */
    [[nodiscard]] __device__ BinnedColumn Column(int k) const {
      return first_column + __popc(heads & ((2u << k) - 2));
    }
    [[nodiscard]] __device__ bool IsHead(int k) const { return (heads >> k & 1u) != 0; }
    [[nodiscard]] __device__ BinRun Run(int k, BinSum const& bin) const {
      bool mass = bin.sum.grad != 0 || bin.sum.hess != 0;
      return {bin.sum, heads >> k & 1u, mass ? begin + k + 1 : 0};
    }
  };

  /**
   * @brief Combine what all blocks of the cluster have passed. All threads of the cluster.
   * @param own         What this block has passed, the same for all its threads.
   * @param out_before  What the blocks have passed whose bins lie before this one's.
   */
  __device__ BinRun OfCluster(BinRun const& own, BinRun* out_before) {
    BinRun all{{0, 0}, 0, 0};
    *out_before = all;
    if (BlockCluster::Size() == 1) {
      return own;
    }
    BinRun* const of_block = temp_.of_block + n_turns_++ % 2;
    if (threadIdx.x == 0) {
      *of_block = own;
    }
    BlockCluster::Sync();
    if (threadIdx.x < BlockCluster::Size()) {
      temp_.of_blocks[threadIdx.x] = *BlockCluster::Of(threadIdx.x, of_block);
    }
    __syncthreads();
    for (unsigned rank = 0; rank < BlockCluster::Size(); ++rank) {
      if (rank == BlockCluster::Rank()) {
        *out_before = all;
      }
      all = all + temp_.of_blocks[rank];
    }
    return all;
  }

  /** @brief Sum all bins of a tile that is one column. */
  template <typename LoadFn>
  __device__ FixedSum SumPresent(LoadFn&& load) {
    FixedSum total{0, 0};
    std::uint32_t const step = kThreads * BlockCluster::Size();
    for (std::uint32_t bin = kThreads * BlockCluster::Rank() + threadIdx.x; bin < tile_.n_bins;
         bin += step) {
      total = total + load(bin).sum;
    }
    BinRun unused, all;
    BlockScan{temp_.scan}.ExclusiveScan({total, 0, 0}, unused, BinRun{{0, 0}, 0, 0},
                                        cuda::std::plus<>{}, all);
    all = this->OfCluster(all, &unused);
    __syncthreads();  // temp is used again
    return all.sum;
  }

  __device__ void SearchItems(Items const& items, BinSum const (&sums)[kItems], NodeSearch* node) {
    BinRun run{{0, 0}, 0, 0};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k < items.n) {
        run = run + items.Run(k, sums[k]);
      }
    }
    BinRun before, all;
    BlockScan{temp_.scan}.ExclusiveScan(run, before, BinRun{{0, 0}, 0, 0}, cuda::std::plus<>{},
                                        all);
    BinRun before_block;
    all = this->OfCluster(all, &before_block);
    before = node->before + before_block + before;
    node->before = node->before + all;
    if (this->OwnPresent()) {
      run = before;
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        run = run + items.Run(k, sums[k]);
        if ((items.tails >> k & 1u) != 0) {
          temp_.present[items.Column(k) - tile_.first_column] = run.sum;
        }
      }
    }
    __syncthreads();  // present sums are written, and temp is used again
    this->Offer(items, sums, before, *node);
    if (has_ranges_) {
      this->OpenRanges(items, sums, before, *node);
    }
    __syncthreads();  // present sums are read
  }

  /** @brief Give the present sum of all columns of the tile, or of the item's own. */
  [[nodiscard]] __device__ FixedSum Present(Items const& items, int k,
                                            NodeSearch const& search) const {
    return this->OwnPresent() ? temp_.present[items.Column(k) - tile_.first_column]
                              : search.present;
  }

  /** @brief List the ranges that may hold a better split than the best one so far. */
  __device__ void OpenRanges(Items const& items, BinSum const (&sums)[kItems], BinRun run,
                             NodeSearch const& search) const {
    FixedSum const total = lv_.nodes[search.level_node].sum;
    float const to_beat = lv_.GainToBeat(search.level_node);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= items.n) {
        break;
      }
      FixedSum const before = items.IsHead(k) ? FixedSum{0, 0} : run.sum;
      run = run + items.Run(k, sums[k]);
      bool const empty = sums[k].magnitude == 0 && sums[k].sum.hess == 0;
      if (empty || binned_.bins.is_range[first_bin_ + items.begin + k] == 0) {
        continue;
      }
      SumBox const box = BoxInside(before, sums[k].sum, sums[k].magnitude);
      FixedSum const present = this->Present(items, k, search);
      float bound = lv_.bound.Largest(total, box);
      if (!(present == total)) {
        FixedSum const missing = total - present;
        bound = fmaxf(bound, lv_.bound.Largest(total, box + missing));
      }
      BinnedColumn const column = items.Column(k);
      FeatureIdx const f = binned_.columns[column].feature;
      if (!GainBound::Reaches(bound, to_beat) || !lv_.Allowed(search.level_node, f)) {
        continue;
      }
      if constexpr (kLimited) {
        float within = lv_.BoundWithin(search.level_node, f, box);
        if (!(present == total)) {
          within = fmaxf(within, lv_.BoundWithin(search.level_node, f, box + (total - present)));
        }
        bound = fminf(bound, within);
      }
      if (GainBound::Reaches(bound, to_beat)) {
        auto const bin = static_cast<std::uint32_t>(first_bin_ + items.begin + k);
        open_.Append({search.node, bin, column, bound, before, present});
      }
    }
  }

  /** @brief Call fn(k, offer, before, present) for each of the thread's bins that has a
   *         candidate. */
  template <typename FnT>
  __device__ void ForCandidates(Items const& items, BinSum const (&sums)[kItems], BinRun run,
                                NodeSearch const& search, FixedSum const& total, FnT&& fn) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= items.n) {
        break;
      }
      BinRun const here = items.Run(k, sums[k]);
      std::uint32_t const below = here.head != 0 ? 0 : run.end;
      FixedSum const before = run.sum;
      run = run + here;
      bool const last = (items.tails >> k & 1u) != 0 && run.end != 0;
      bool const filled = here.end != 0;
      if (!filled && !last) {
        continue;
      }
      FixedSum const present = this->Present(items, k, search);
      bool const missing = !(present == total);
      fn(k,
         BinOffer{filled && below != 0, missing && last, missing && filled && below == 0, below,
                  items.begin + k, run.end},
         before, present);
    }
  }

  /** @brief Bound the gains of a bin's candidates from above. */
  [[nodiscard]] __device__ float Bound(BinOffer const& offer, FixedSum const& total,
                                       FixedSum const& before, FixedSum const& present) const {
    float bound = -INFINITY;
    if (offer.boundary) {
      bound = lv_.Bound(total, before, present, !(present == total));
    }
    if (offer.present_forward || offer.present_backward) {
      bound = fmaxf(bound, lv_.bound.OfAllowed(present, total - present));
    }
    return bound;
  }

  /** @brief Offer the candidates that may be the best. All lanes of a warp. */
  __device__ void Offer(Items const& items, BinSum const (&sums)[kItems], BinRun const& run,
                        NodeSearch const& search) const {
    FixedSum const total = lv_.nodes[search.level_node].sum;
    BestBoundFirst<kItems> bounds;
    this->ForCandidates(
        items, sums, run, search, total,
        [&](int k, BinOffer const& offer, FixedSum const& before, FixedSum const& present) {
          FeatureIdx const f = binned_.columns[items.Column(k)].feature;
          if (lv_.Allowed(search.level_node, f)) {
            float bound = this->Bound(offer, total, before, present);
            if constexpr (kLimited) {
              if (GainBound::Reaches(bound, lv_.GainToBeat(search.level_node))) {
                bound =
                    fminf(bound, BoundWithin(lv_, search.level_node, f, offer, before, present));
              }
            }
            bounds.Set(k, bound);
          }
        });
    bounds.Offer(lv_, search.level_node, [&](std::uint32_t wanted) {
      std::uint64_t key{0};
      this->ForCandidates(
          items, sums, run, search, total,
          [&](int k, BinOffer offer, FixedSum const& before, FixedSum const& present) {
            if ((wanted >> k & 1u) != 0) {
              BinColumn const column = binned_.columns[items.Column(k)];
              std::uint32_t const first = column.first_bin - tile_.first_bin;
              offer.below -= first;
              offer.bin -= first;
              offer.end -= first;
              key = max(key,
                        KeyAtBin(lv_, search.level_node, column.feature, offer, before, present));
            }
          });
      return key;
    });
  }

  TempStorage& temp_;
  LevelRef const& lv_;
  BinMatrixRef const& binned_;
  OpenRangesRef const& open_;
  BinTile const& tile_;
  std::uint64_t first_bin_;  // of the tile, in the resolution
  bool dense_;               // no row misses a value: what is present is the node
  bool has_ranges_;
  unsigned n_turns_{0};  // in which blocks have told each other what they passed
};
}  // namespace gpu_exact
