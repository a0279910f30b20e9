/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The best candidates inside of ranges: exact search of the entries of open ranges alone.
 *
 * It is the paper's algorithm, confined to where the best split can be: the entries of open ranges
 * are gathered from the rows of their nodes, sorted by range and value, scanned by range, and every
 * candidate between two values is offered.
 */
#pragma once

#include "src/device/histogram/binned_table.cuh"
#include "src/device/histogram/histogram_finder.cuh"
#include "src/device/histogram/rank_bits.cuh"
#include "src/device/histogram/split_resolver.cuh"

namespace gpu_exact {
/** @brief What the host learns of a level's open ranges. */
struct RefinerCounts {
  std::uint64_t n_listed;   // ranges, by the best candidates while they were listed
  std::uint32_t n_open;     // of these, by the best ones between bins
  std::uint64_t n_entries;  // of open ranges
};

class RangeRefiner {
 public:
  /**
   * @param columns     Outlive the refiner.
   * @param max_entries That are sorted at once; 0: chosen by the size of the table.
   */
  explicit RangeRefiner(BinnedColumns const& columns, std::uint64_t max_entries = 0);

  /** @brief An empty list for the finder. Does not wait. */
  [[nodiscard]] OpenRangesRef List();
  /**
   * @brief Offer every candidate inside of the listed ranges that may be the best. Waits.
   *
   * @param level Its columns are the candidates of this resolution.
   * @param finder Has listed the ranges.
   * @return Whether the list had room for all ranges. It has more room now: list them again.
   */
  [[nodiscard]] bool Refine(LevelRef const& level, BinnedTableRef const& table, RowsRef const& rows,
                            HistogramFinder const& finder);

  /** @brief Of the best candidates inside of ranges, by node of the last call. */
  [[nodiscard]] RefinedValue const* Values() const { return values_.Data(); }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  struct Pass;
  [[nodiscard]] OpenRangesRef Listed();
  // Of two buffers the smaller one counts: memory may have ended between them.
  [[nodiscard]] std::uint32_t ListRoom() const;
  [[nodiscard]] std::uint64_t EntriesRoom() const;
  [[nodiscard]] RefinerCounts ReadCounts();
  void Emit(Pass const& pass, std::uint32_t first, std::uint32_t end);
  void Search(Pass const& pass, std::uint64_t n_entries, std::uint32_t first, std::uint32_t n_open);
  void SearchInParts(Pass const& pass, std::uint32_t first, std::uint32_t end,
                     std::uint64_t n_entries);

  BinnedColumns const& columns_;
  std::uint64_t max_entries_;
  CubScratch scratch_;
  DeviceBuffer<OpenRange> list_{"ranges that may be open"};
  DeviceBuffer<OpenRange> open_{"open ranges"};
  RankBits is_open_{"open bins"};
  DeviceBuffer<RefinerCounts> counts_{"numbers of open ranges"};
  PinnedBuffer<RefinerCounts> host_counts_{"numbers of open ranges"};
  DeviceBuffer<std::uint64_t> keys_[2]{DeviceBuffer<std::uint64_t>{"entries of open ranges"},
                                       DeviceBuffer<std::uint64_t>{"sorted entries"}};
  DeviceBuffer<RowIdx> slots_[2]{DeviceBuffer<RowIdx>{"rows of entries of open ranges"},
                                 DeviceBuffer<RowIdx>{"rows of sorted entries"}};
  DeviceBuffer<FixedSum> sums_{"sums in open ranges"};
  DeviceBuffer<RefinedValue> values_{"values beside the best candidates"};
};
}  // namespace gpu_exact
