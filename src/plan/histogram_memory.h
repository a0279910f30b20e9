/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Chooses what the histogram strategy keeps, and where; sizes all that is not fixed by the
 *        table.
 */
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_exact/types.h"

namespace gpu_exact {
/**
 * @brief Says what the histogram strategy keeps, and where: all of it on the device, or less where
 *        memory is short. The trees are the same.
 */
struct HistogramMemory {
  bool sorts_columns{true};         // whether sorted columns are kept, which trees grow faster with
  Memory rows_at{Memory::kDevice};  // sorted columns; of the host: page-locked, read from there
  Memory values_at{Memory::kDevice};
  Memory bins_at{Memory::kDevice};  // of the entries
  bool reads_finest{false};  // coarser resolutions read the finest bins, however long that takes
  bool is_lean{false};       // little room for what is in work
  // In quarters of what histograms take where memory is plenty.
  std::uint32_t histograms{kAllHistograms};
  std::uint64_t spare{~std::uint64_t{0}};  // bytes of the device that the plan leaves
  // Of nodes that are sorted at once by the categories of a column, of which more than fit a block.
  RowIdx rows_by_category{RowIdx{1} << 22};

  static constexpr std::uint32_t kAllHistograms = 4;
  // Bytes of what is in work; where its type is of the device, it is held to these.
  static constexpr std::uint64_t kBinBytes = 20;          // of a bin in a histogram
  static constexpr std::uint64_t kOpenEntryBytes = 28;    // of an entry of an open range, sorted
  static constexpr std::uint64_t kListedRangeBytes = 48;  // of a range in the list of a resolution
  static constexpr std::uint64_t kOpenRangeBytes = 64;  // of one that is searched, with its counts
  static constexpr std::uint64_t kSortedEntryBytes = 25;  // of a value that is sorted to make bins
  // Words of sets that are found at a time where the rows of nodes are sorted, unless a node has more.
  static constexpr std::uint64_t kSetWordsAtOnce = std::uint64_t{1} << 21;
  // Of a category of a node that is listed, of a column of more categories than fit a block.
  static constexpr std::uint64_t kListedCategoryBytes = 48;

  /** @brief Lists all that there is to choose from, the fastest first; the last one takes least. */
  [[nodiscard]] static std::vector<HistogramMemory> All();

  /** @brief Limits the bytes of histograms of all resolutions; one fits always. */
  [[nodiscard]] std::uint64_t HistogramBytes(EntryIdx n_entries) const;
  /** @brief Limits them at first: most trees do not need all of it. */
  [[nodiscard]] std::uint64_t FirstHistogramBytes(EntryIdx n_entries) const;
  /** @brief Tells whether nodes are sorted, for which all their values or bins are read: not over the
   *         bus. */
  [[nodiscard]] bool SortsNodes() const {
    return values_at == Memory::kDevice && bins_at == Memory::kDevice;
  }
  /** @brief Sizes a list of open ranges at first. */
  static constexpr std::uint64_t kFirstRanges = std::uint64_t{1} << 14;
  /** @brief Sizes a list that has room for all ranges of a level, so that the device is not asked how
   *         many are open; a level of more ranges asks. */
  [[nodiscard]] std::uint64_t CertainRanges() const;
  /** @brief Limits the entries of open ranges that are sorted at once. @param n_entries How many
   *         the table has. */
  [[nodiscard]] std::uint64_t OpenEntries(EntryIdx n_entries) const;
  /**
   * @brief Limits the entries of whole columns whose values are sorted at once, to make bins.
   * @param is_dense Otherwise there are fewer, as the table is on the device meanwhile.
   */
  [[nodiscard]] EntryIdx BinnedAtOnce(EntryIdx n_entries, bool is_dense) const;
  /** @brief Limits the entries of the host's table that are read at once, while bins are
   *         written. */
  [[nodiscard]] EntryIdx ReadAtOnce(EntryIdx n_entries) const;
};
}  // namespace gpu_exact
