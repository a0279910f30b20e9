/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Splits on binned columns: exact histograms, of which only the smaller child of each pair
 *        is built from its rows; the other one is what the parent has left.
 *
 * Where the histograms of a level would take too much memory, none is kept: every node is built
 * from its rows and searched in shared memory, to the end of the tree.
 */
#pragma once

#include <vector>

#include "src/device/partition/bin_search.cuh"
#include "src/device/partition/histogram_work.cuh"

namespace gpu_exact {
/** @brief Where the histograms of a pair of children are kept. */
struct PairSlots {
  std::uint32_t left;   // was the parent's
  std::uint32_t right;  // the smaller child's, until both are known
};

class HistogramFinder {
 public:
  /**
   * @param columns    Outlive the finder.
   * @param max_bytes  Of the kept histograms, which are one at least; 0: 256 MiB, or 4 B an entry
   *                   where that is more. While they grow, old and new ones take less than twice
   *                   as much.
   * @param max_slices Blocks that add up rows at a time; 0: as many as run on the device.
   */
  explicit HistogramFinder(BinnedColumns const& columns, std::uint64_t max_bytes = 0,
                           std::uint32_t max_slices = 0);

  /**
   * @brief Offer every candidate of the level. Does not wait, but where memory grows.
   *
   * A bin whose sum is zero counts as empty. Every call but the root's follows that of the level
   * before, in the same tree.
   *
   * @param n_rows  Upper bound of the rows of all nodes.
   * @param parents Empty for the root; else parents[i] is the bucket, in the level before, of the
   *                node whose children are the buckets 2 i and 2 i + 1.
   */
  void Find(LevelRef const& level, RowsRef const& rows, RowIdx n_rows,
            std::vector<Bucket> const& parents);
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void MakeTiles();
  void AssignSlots(std::vector<Bucket> const& parents);
  /** @brief Room for n slots, of which the first n_before keep their content. */
  void ReserveSlots(std::size_t n, std::size_t n_before);
  void FindKept(LevelRef const& level, RowsRef const& rows, RowIdx n_rows, bool is_root);
  void FindDirectly(LevelRef const& level, RowsRef const& rows, RowIdx n_rows);

  BinnedColumns const& columns_;
  std::size_t max_slots_;
  std::uint32_t max_slices_;
  std::uint32_t n_tiles_{0};
  std::uint32_t max_group_bins_{0};
  std::uint32_t max_group_tiles_{0};
  bool direct_{false};                // the tree's level before kept no histograms
  std::vector<std::uint32_t> slots_;  // of the level before, by bucket
  HistogramWork work_;
  DeviceBuffer<BinTile> tiles_{"tiles of bins"};
  DeviceBuffer<std::uint32_t> group_tiles_{"first tiles of column groups"};
  DeviceBuffer<FixedSum> histograms_{"histograms"};
  DeviceBuffer<PairSlots> pairs_{"places of histograms"};
  DeviceBuffer<FixedSum> cut_sums_{"histograms that several blocks build"};
};
}  // namespace gpu_exact
