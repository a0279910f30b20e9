/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Exact search of open ranges in sorted columns: the rows of a range lie side by side there,
 *        ascending by value, and those of the node are picked out on the way.
 *
 *     sorted rows of the range   9 4 4' 7 2 8 3 5      ' a row begins no value, it shares the last
 *     in the node                . 4 .  7 . . 3 .      by RowsRef::node_of
 *     candidates                     |    |            between two values of the node, at its ends too
 *
 * Nothing is gathered, sorted or stored, but all rows of the table that have a value in the range
 * are looked at, whatever the size of the node.
 */
#pragma once

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/open_ranges.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "device/level/level_ref.cuh"

namespace gpu_exact {
/** @brief Holds the best candidate of a range so far, and the entry of the table that it lies beside. */
struct BestInRange {
  std::uint64_t key;          // CandidateKey; 0: there is none
  std::uint32_t entry_order;  // as the scan meets it: the entry, complemented in a backward scan

  [[nodiscard]] __device__ std::uint32_t Order() const { return entry_order; }
};

class RangeScanner {
 public:
  /**
   * @brief Count entries of listed ranges, by the best candidates that there are now. Does not wait.
   * @param out_counts Page-locked memory of the host.
   */
  void Measure(LevelRef const& lv, BinMatrixRef const& binned, SearchedNode const* nodes,
               OpenRangesRef const& listed, OpenCounts* out_counts);
  /**
   * @brief Offer every candidate inside of the listed ranges that may be the best. Does not wait.
   *
   * @param lv         Its columns are the candidates of this resolution.
   * @param matrix     The bins of this resolution.
   * @param table      Has sorted columns.
   * @param rows       Those of the level; it is known which nodes they are in.
   * @param listed     Has room for all ranges that were listed; none is taken.
   * @param out_found  RefinedCandidates::found by node.
   * @param out_counts Page-locked memory of the host: the counts in the end.
   */
  void Scan(LevelRef const& lv, BinMatrix const& matrix, BinnedTableRef const& table,
            RowsRef const& rows, SearchedNode const* nodes, std::uint32_t n_nodes,
            OpenRangesRef const& listed, FoundCandidate* out_found, OpenCounts* out_counts);

 private:
  DeviceBuffer<BestInRange> found_{"best candidates of open ranges"};
};
}  // namespace gpu_exact
