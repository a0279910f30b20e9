/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lays out the bins of a table: which columns form a group, where each group's bins lie, and
 *        how many bytes all of it takes. The builder allocates what is said here, memory_plan
 *        counts it.
 *
 * Neighbouring columns form groups whose bins fit the shared memory of a block. Within a group the
 * bins of a row lie side by side, ascending by column: where most values are present in a cell for
 * each column, otherwise as many as there are values. They take two bytes each, or one in a cell of
 * a group whose columns have few, if that is asked for.
 *
 * Coarser bins need not be stored: each is as many of the finer ones of its column as a power of two,
 * so a shift tells it. Columns of few values have another one than others: then each column of a group
 * has a shift of its own. A coarser resolution has more columns in a group, since fewer bins each fit; so
 * what is stored lies in the groups of the coarsest one that reads it, and of a finer one several
 * groups read parts of the same rows:
 *
 *     stored      a0 b0 c0 d0 | a1 b1 c1 d1 | ...     finest bins of columns a, b, c, d by row
 *     coarsest    |  one group |                      bin = stored one, shifted
 *     finest      |a| |b| |c| |d|                     bin = stored one, less those of columns
 *     before
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/platform.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Limits the bins of a block's histogram, so that 2, 4, 8, ... columns of as many fit. */
inline constexpr std::uint32_t kMaxGroupBins = 10240;
// Bytes of the shared memory of a block that adds up a histogram: of a bin, of rows on their way, of its kernel.
inline constexpr std::size_t kSharedBinBytes = 20;
inline constexpr std::size_t kSharedStagingBytes = 32 * 32 * 12;
inline constexpr std::size_t kSharedStaticBytes = 128;
/** @brief Counts the bins that fit the shared memory of a block. */
[[nodiscard]] constexpr std::uint32_t BinsOfBlock(std::size_t shared_bytes) {
  return static_cast<std::uint32_t>(
      (shared_bytes - kSharedStagingBytes - kSharedStaticBytes) / kSharedBinBytes - 3);
}
/** @brief Limits them by shared memory of a block: 227 KiB (compute capability 9.0, 10.0), 163 KiB (8.0,
 *         8.7), 99 KiB (8.6, 8.9, 12.0), 64 KiB (7.5). */
inline constexpr std::uint32_t kMaxGroupBinsOf[] = {kMaxGroupBins, BinsOfBlock(163 << 10),
                                                    BinsOfBlock(99 << 10), BinsOfBlock(64 << 10)};
static_assert(BinsOfBlock(227 << 10) >= kMaxGroupBins);
/**
 * @brief Limits the stored bins of a group. Coarser resolutions merge up to four of them into one
 *        bin, and the merged ones must fit kMaxGroupBins.
 */
inline constexpr std::uint32_t kMaxStoredBins = 4 * kMaxGroupBins;
/** @brief Limits the rows of a node that a block sorts. */
inline constexpr RowIdx kMaxSortedRows = 1024 * 12;

/**
 * @brief Tells small tables from others: one of fewer entries and fewer rows gives no block enough
 *        to do, and has more groups of columns than it needs, to fill the device.
 */
inline constexpr std::uint64_t kManyEntries = std::uint64_t{1} << 22;
/** @brief Chooses the groups of a small table: about two row offsets an entry where they are
 *         few. */
[[nodiscard]] constexpr std::uint64_t FillingGroups(EntryIdx n_entries, RowIdx n_rows) {
  std::uint64_t const rows = std::max(n_rows, RowIdx{1});
  return std::max<std::uint64_t>((2 * n_entries + rows - 1) / rows, 1);
}

/** @brief Limits the cells, rows times columns, of a group: its elements are numbered in 32
 *         bits. */
inline constexpr std::uint64_t kMaxGroupCells = std::uint64_t{1} << 30;
/**
 * @brief Tells where a row's elements are, in a group most of whose values are missing. Blocks of
 *        32 B, as memory is read, hold where those of the first row begin, and where each row's
 *        end, counted from there: of 28 rows a byte each, or of 14 rows two.
 */
struct RowOffsetBlock {
  static constexpr std::uint32_t kBytes = 32;
  static constexpr std::uint32_t kWords = kBytes / sizeof(std::uint32_t);
  static constexpr std::uint32_t kNarrowRows = 28;
  static constexpr std::uint32_t kWideRows = 14;
  /** @brief Limits the columns of a group of which a byte holds the end of each row. */
  static constexpr std::uint32_t kNarrowColumns = 255 / kNarrowRows;
  /** @brief Limits the columns of any group. */
  static constexpr std::uint32_t kMaxColumns = 65535 / kWideRows;

  [[nodiscard]] static constexpr bool IsNarrow(std::uint64_t n_columns) {
    return n_columns <= kNarrowColumns;
  }
  /** @brief Counts the bytes of a group's blocks. */
  [[nodiscard]] static constexpr std::uint64_t Bytes(RowIdx n_rows, bool is_narrow) {
    std::uint64_t const rows = is_narrow ? kNarrowRows : kWideRows;
    return (n_rows + rows - 1) / rows * kBytes;
  }
};

/** @brief Limits a group's columns so that rows times columns are kMaxGroupCells at most. */
[[nodiscard]] constexpr std::uint32_t LimitGroupColumns(std::uint32_t n_columns, RowIdx n_rows) {
  std::uint64_t const most = kMaxGroupCells / std::max(n_rows, RowIdx{1});
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(n_columns, 1, std::max<std::uint64_t>(most, 1)));
}

/** @brief Counts the bytes of a row's number above its two low ones, in sorted columns. */
[[nodiscard]] constexpr std::uint32_t SortedColumnHighBytes(RowIdx n_rows) {
  return n_rows <= std::uint64_t{1} << 24 ? 1 : 2;
}
/** @brief Counts the entries of a block of sorted columns. */
inline constexpr std::uint32_t kSortedColumnsBlock = 32;
/** @brief Counts the bytes of a block, a multiple of 8. */
[[nodiscard]] GPU_EXACT_HD constexpr std::uint32_t SortedColumnBlockBytes(std::uint32_t n_high) {
  return (2 + n_high) * kSortedColumnsBlock + 8;
}
/** @brief Counts the bytes of a sorted column. */
[[nodiscard]] constexpr std::uint64_t SortedColumnBytes(std::uint64_t n_entries,
                                                        std::uint32_t n_high) {
  return (n_entries + kSortedColumnsBlock - 1) / kSortedColumnsBlock *
         SortedColumnBlockBytes(n_high);
}

/** @brief Limits the columns whose numbers fit two bytes. */
inline constexpr FeatureIdx kShortColumns = FeatureIdx{1} << 16;
/** @brief Counts the bytes of a value that is kept by row with the number of its column. */
[[nodiscard]] constexpr std::uint64_t SparseValueBytes(FeatureIdx n_columns) {
  return n_columns <= kShortColumns ? 6 : 8;
}

/** @brief Tells whether most values are present: columns with a cell for each row then take less
 *         room. */
[[nodiscard]] constexpr bool IsDense(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features) {
  return std::uint64_t{n_rows} * n_features <= 2 * n_entries;
}

/**
 * @brief Counts the cells of a row in a group, most of whose columns have a value: a multiple of
 *        what a walk loads at once, where few cells stay without a column.
 */
[[nodiscard]] constexpr std::uint32_t NumCells(std::uint32_t n_columns) {
  for (std::uint32_t at_once : {8u, 4u, 2u}) {
    std::uint32_t const n = (n_columns + at_once - 1) / at_once * at_once;
    if (8 * (n - n_columns) <= n_columns) {
      return n;
    }
  }
  return n_columns;
}
/** @brief Counts them where bins take one byte each; 0: of so few columns they would take no
 *         less. */
[[nodiscard]] constexpr std::uint32_t NumByteCells(std::uint32_t n_columns) {
  std::uint32_t const n = (n_columns + 7) / 8 * 8;
  return n < 2 * n_columns ? n : 0;
}
/** @brief Limits the bins of a column of which a byte holds one, or that there is none. */
inline constexpr std::uint32_t kMaxByteBins = 255;
/** @brief Limits the columns of a group whose bins take a byte: each has a bank of shared
 *         memory. */
inline constexpr std::uint32_t kMaxByteColumns = 32;
/**
 * @brief Tells whether the last of several resolutions has bins of its own in bytes: they fit, and
 *        take less. All others may read the finest one's.
 * @param max_bins How many bins a column has in each resolution, the finest first.
 */
[[nodiscard]] inline bool LastTakesBytes(FeatureIdx n_features,
                                         std::vector<std::uint32_t> const& max_bins) {
  return max_bins.size() > 1 && max_bins.back() <= kMaxByteBins &&
         NumByteCells(std::min(n_features, kMaxByteColumns)) != 0;
}

/**
 * @brief Counts the bins that a resolution stores: a cell for each row and column of a dense table.
 */
[[nodiscard]] constexpr std::uint64_t NumStoredBins(EntryIdx n_entries, RowIdx n_rows,
                                                    FeatureIdx n_features) {
  return IsDense(n_entries, n_rows, n_features) ? std::uint64_t{n_rows} * n_features : n_entries;
}

/**
 * @brief Tells whether a coarser resolution reads the finest one's bins, where memory leaves the
 *        choice.
 *
 * Bins that the cache holds are read sooner where they lie side by side: the finest ones of the
 * rows of a small table are not next to each other for a group of few columns.
 *
 * @param n_stored NumStoredBins().
 * @param is_alike Whether most values are present, so that rows are read whole, or else all columns of
 *                 each group have one shift: otherwise the column of each bin is to be found first.
 */
[[nodiscard]] bool ReadsFinest(std::uint64_t n_stored, bool is_alike);

using GroupBin = std::uint16_t;  // counts from the first bin of the group
using ColumnBin = std::uint8_t;  // counts from the first bin of the column

/** @brief Numbers a column among those of a resolution that are binned, which ascend by feature. */
using BinnedColumn = std::uint32_t;

/** @brief Says which bins of a group a column has. */
struct BinColumn {
  FeatureIdx feature;
  std::uint32_t group;
  std::uint32_t first_bin;  // in the group
  std::uint32_t n_bins;
};

/** @brief Lists the bytes of what describes bins on the device; there each type is held to its
 *         line. */
struct BinBytes {
  static constexpr std::uint64_t kBin = 9;     // its least value, its rank, whether it is a range
  static constexpr std::uint64_t kOffset = 8;  // of a column's bins; one more than columns
  static constexpr std::uint64_t kCandidates = 4;  // of a column: its first bin among all of them
  static constexpr std::uint64_t kColumn = sizeof(BinColumn) + sizeof(std::uint32_t);  // by feature
  static constexpr std::uint64_t kGroup = 96;
  static constexpr std::uint64_t kCell = 6;    // of a column: its CellMap, its first stored bin
  static constexpr std::uint64_t kCells = 32;  // of a group: what fills its CellMaps up
};

/** @brief Counts the words of 32 bits that hold n bits and one more. */
[[nodiscard]] constexpr std::uint64_t NumRankWords(std::uint64_t n) { return n / 32 + 1; }

/** @brief Counts the elements that may be read after the last one of an array. */
inline constexpr std::uint32_t kElementsBeyond = 256;
/** @brief Aligns the begin of a group, in elements: a walk loads so many at once. */
inline constexpr std::uint64_t kAlignedElements = 8;

/**
 * @brief Turns the stored bins of one column, as they are numbered in their group, into those of the
 *        group that reads them.
 */
struct CellMap {
  static constexpr std::uint32_t kNoBin = 0xffffu;  // in a place without a value

  std::uint32_t word;  // from below: 16 bits to add at last, a shift of 5, 11 to add before it

  /** @brief Has no bin: of a place without a column. */
  [[nodiscard]] static constexpr CellMap None() { return {16u << 16 | kNoBin}; }
  /** @param first_bin The first one of the column. @param first_stored Its first stored one. */
  [[nodiscard]] static constexpr CellMap Make(std::uint32_t shift, std::uint32_t first_bin,
                                              std::uint32_t first_stored) {
    std::uint32_t const before = (0u - first_stored) & ((1u << shift) - 1);
    std::uint32_t const at_last = (first_bin - ((first_stored + before) >> shift)) & 0xffffu;
    return {before << 21 | shift << 16 | at_last};
  }
  [[nodiscard]] GPU_EXACT_HD std::uint32_t BinOf(std::uint32_t stored) const {
    std::uint32_t const shifted = (stored + (word >> 21)) >> (word >> 16 & 31u);
    return stored == kNoBin ? kNoBin : (shifted + word) & 0xffffu;
  }
};

/** @brief Counts the bins of a column in one resolution. */
struct ColumnBins {
  std::uint32_t n_bins;        // 0: the column has no entries
  bool has_ranges{false};      // whether any of them holds several values
  std::uint32_t shift{0};      // a bin is as many of the finest ones as a power of two
  bool is_categorical{false};  // a bin for each category, in every resolution
};

/** @brief Limits the groups of columns. */
struct GroupLimits {
  std::uint32_t max_bins;           // that a block of the device has room for
  std::uint32_t n_blocks;           // that the device runs side by side: its multiprocessors
  std::uint32_t max_group_bins{0};  // of a group of several columns; 0: chosen by the table
};

/** @brief Lays out the columns that one block adds up together. */
struct GroupLayout {
  std::uint64_t first_bin{0};  // among the bins of all groups
  std::uint32_t first_column{0};
  std::uint32_t n_columns{0};
  std::uint32_t n_bins{0};
  std::uint64_t n_entries{0};  // values that are present
  bool has_ranges{false};      // whether any bin holds several values
  bool has_missing{false};     // whether any row has no value of a column

  // Elements: the bins of all rows.
  std::uint64_t n_elements{0};  // that a walk along all rows meets
  std::uint32_t stride{0};      // from a row's elements to the next one's; 0: row offsets tell
  std::uint32_t chunk{0};       // elements of a row that are loaded at once; of strided ones
  std::uint32_t longest{0};     // bins of the column that has most; 0: bins take two bytes, not one
  bool is_narrow{false};        // whether row offsets have a byte a row, see RowOffsetBlock
  // Where the group begins in each array, of its own layout or of the one that it reads.
  std::uint64_t elements{0};     // counted in GroupBin
  std::uint64_t row_offsets{0};  // words; of those without a stride
  std::uint64_t first_bins{0};   // of those in bytes, and those with CellMaps but without cells
  std::uint64_t cell_maps{0};    // of those whose columns differ

  // Stored bins, of which the group has [first_stored, + n_stored).
  std::uint32_t first_stored{0};
  std::uint32_t n_stored{0};
  std::uint32_t shift{0};  // a bin is as many stored ones as a power of two
  bool by_column{false};   // whether columns have CellMaps: they differ in their shift, or what is
                           // loaded at once is of other groups, too
  bool reads_part{false};  // whether rows have elements of other groups, too

  [[nodiscard]] bool Strided() const { return stride != 0; }
  [[nodiscard]] bool InBytes() const { return longest != 0; }
};

/** @brief Lays out the bins of a table in one resolution, its own or those of another layout. */
struct BinLayout {
  RowIdx n_rows{0};
  FeatureIdx n_features{0};
  std::vector<GroupLayout> groups;
  std::vector<BinColumn> columns;
  std::uint64_t n_bins{0};
  std::uint64_t n_entries{0};
  bool has_ranges{false};
  bool is_stored{true};  // whether it has elements of its own

  // Lengths of arrays, and the content of those that are known.
  std::uint64_t n_elements{0};  // kElementsBeyond included
  std::uint64_t n_row_offsets{0};
  // Of the column in each cell, where bins take one byte; or first stored bins of columns with maps.
  std::vector<GroupBin> first_bins;
  std::vector<CellMap> cell_maps;

  /** @brief Computes the bins of a column, at least 1. */
  [[nodiscard]] double MeanBins() const {
    return std::max(1.0, static_cast<double>(n_bins) /
                             static_cast<double>(std::max<std::size_t>(1, columns.size())));
  }
  /** @brief Counts what is on the device beside the elements. */
  [[nodiscard]] std::uint64_t DescriptionBytes() const;
  [[nodiscard]] std::uint64_t ElementBytes() const { return sizeof(GroupBin) * n_elements; }
};

/**
 * @brief Lays out bins that are stored.
 * @param n_entries Entries of each feature.
 * @param bins      What each feature has.
 * @param coarsest  By whose numbers of bins columns form groups: that others may read.
 * @param in_bytes  Whether bins take one byte each where they fit; nobody else can read them.
 */
[[nodiscard]] BinLayout LayStored(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                                  std::vector<ColumnBins> const& bins,
                                  std::vector<ColumnBins> const& coarsest,
                                  GroupLimits const& limits, bool in_bytes = false);
/**
 * @brief Lays out bins that are read from stored ones.
 * @param stored Not in bytes.
 * @param bins   The stored ones, or coarser ones that were made of them.
 */
[[nodiscard]] BinLayout LayRead(BinLayout const& stored,
                                std::vector<std::uint32_t> const& n_entries,
                                std::vector<ColumnBins> const& bins, GroupLimits const& limits);

/** @brief Lays out all bins of a table. */
struct TableLayout {
  BinLayout stored;                    // of the finest resolution, for all that read them
  std::vector<BinLayout> resolutions;  // the finest first; it reads the stored ones
};

/**
 * @brief Chooses which resolutions read the finest bins, and lays out all of them.
 * @param resolutions Bins of each feature in each resolution, the finest first.
 * @param in_bytes    Whether the last one has bins of its own in bytes.
 * @param reads_finest Whether all others that can read the finest bins, however long that takes.
 */
[[nodiscard]] TableLayout LayTable(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                                   std::vector<std::vector<ColumnBins>> const& resolutions,
                                   bool in_bytes, bool reads_finest, GroupLimits const& limits);
}  // namespace gpu_exact
