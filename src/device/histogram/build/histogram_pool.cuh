/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Owns the device memory of histograms. All resolutions use one pool, as a level is searched in
 *        few of them.
 *
 *     bins  | kept of resolution 0 | kept of 1 | free |         passing         |
 *           0                                         KeptEnd()                 NumBins()
 *
 * Histograms that children subtract from are kept until then. The others pass: they are built, searched
 * and overwritten, as many at a time as there is room for behind all that are kept. The last quarter is
 * never kept, and has room for one histogram at least. Where room was short, the next tree has twice as
 * much, up to the most: deep trees want more than others.
 */
#pragma once

#include <cstdint>
#include <map>

#include "device/histogram/build/bin_sums.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "device/runtime/runtime.cuh"
#include "plan/histogram_memory.h"

namespace gpu_exact {
class HistogramPool {
 public:
  /** @brief Sets the device memory of a bin. */
  static constexpr std::uint64_t kBinBytes = HistogramMemory::kBinBytes;
  static_assert(kBinBytes == sizeof(FixedSum) + sizeof(std::uint32_t));

  /**
   * @param first_bytes Memory of the histograms at first, unless one takes more.
   * @param most_bytes  Their memory once a tree was short of room.
   * @param largest     The most bins of a histogram.
   */
  HistogramPool(std::uint64_t first_bytes, std::uint64_t most_bytes, std::uint64_t largest);

  /** @brief Begin a tree: nothing is kept. Waits for the device where there is more room now. */
  void Reset();

  /**
   * @brief Keep histograms, side by side.
   * @param n_bins How many bins each has.
   * @param n      How many histograms.
   * @param from   Bins before it are taken; beyond the histograms afterwards.
   * @return The first bin of the first one, or SearchedNode::kNoHistogram: there is no room for all.
   */
  [[nodiscard]] std::uint32_t Allocate(std::uint64_t n_bins, std::uint32_t n, std::uint64_t* from);
  /** @param first What Allocate() gave; with kNoHistogram there is nothing to release. */
  void Release(std::uint32_t first) { kept_.erase(first); }

  /** @brief Tell where the last kept histogram ends. */
  [[nodiscard]] std::uint64_t KeptEnd() const { return kept_.empty() ? 0 : kept_.rbegin()->second; }
  /**
   * @brief Count the passing histograms that there is room for at a time, behind KeptEnd().
   * @param n_wanted All that are to pass.
   */
  [[nodiscard]] std::uint64_t RoomToPass(std::uint64_t n_bins, std::uint64_t n_wanted);
  [[nodiscard]] std::uint64_t NumBins() const { return n_bins_; }
  /** @param has_ranges Whether magnitudes are of use. */
  [[nodiscard]] BinSums Sums(bool has_ranges) const {
    return {sums_.Data(), has_ranges ? magnitudes_.Data() : nullptr};
  }

 private:
  void Reserve(std::uint64_t n_bins);
  void ReleaseAll();
  [[nodiscard]] std::uint64_t MostKept() const;

  std::uint64_t most_bins_;
  std::uint64_t largest_;
  std::uint64_t n_bins_{0};
  bool was_short_{false};
  std::map<std::uint64_t, std::uint64_t> kept_;  // begin and end of each
  DeviceBuffer<FixedSum> sums_{"histograms"};
  DeviceBuffer<std::uint32_t> magnitudes_{"magnitudes of histograms"};
};
}  // namespace gpu_exact
