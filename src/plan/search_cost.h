/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Says what it costs to search a node by histograms or by sorting, and chooses by that: how
 *        many bins columns have, and how each node of a level is searched. The trees do not depend
 *        on it.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/level.h"
#include "gpu_exact/types.h"
#include "plan/bin_layout.h"
#include "plan/histogram_memory.h"

namespace gpu_exact {
/**
 * @brief Lists the constants of the cost model.
 *
 * The unit is a picosecond of the whole device (one NVIDIA H200), unless a line says otherwise.
 * Behind each constant stands how it was found:
 * - timed: by the time of a kernel, divided by what it did;
 * - tried: by the times of whole trees, with this value and with others (ms a tree, in brackets);
 * - size: by the size of what is read, or of a cache;
 * - guessed: no measurement of it by itself is on record.
 */
struct CostTable {
  // Histograms.
  static constexpr double kBin = 75.0;        // clear, write and search a bin; tried: 30 (epsilon
                                              // 9.7 for 8.8, others alike)
  static constexpr double kByte = 0.35;       // read a byte of bins or rows; tried: 0.14 and 1.3 an
                                              // entry (year 2.8 for 2.3, epsilon 10.6 for 8.8)
  static constexpr double kSector = 32.0;     // bytes that memory reads at once; size
  static constexpr double kRowBytes = 12.0;   // bytes of a row's number and gradients; size
  static constexpr double kPlaceBytes = 1.2;  // bytes that tell where a row's bins are; size
  static constexpr double kLookUpBytes = 10.0;  // to look there takes as long as so many; guessed

  // Open ranges: the entries of a node that must be looked at one by one.
  static constexpr double kOpenShare = 0.08;  // see OpenShare(); timed: shares of boosted and of
                                              // random labels, 10^5 to 10^7 rows
  static constexpr float kOpenPower =
      0.85f;  // see OpenShare(); tried: 1 (higgs 17.6) and 0.75 (29.5)
  static constexpr double kOpenEntry = 100.0;   // gather and sort an entry; tried: 300 where few
                                                // values are present (4.3 for 3.2)
  static constexpr double kWalkedEntry = 3.0;   // look for it among a node's; timed: 2.7 to 3.6 of
                                                // 10 million rows
  static constexpr double kScannedEntry = 8.0;  // read an entry of a sorted column; timed: 3 of
                                                // 400,000 rows, 7 of 10 million, 13 of 50 million;
                                                // tried: 5 (criteo 11.2 for 12.8, random labels
                                                // 13.2 for 9.2)
  static constexpr double kScannedSparseEntry = 32.0;  // of short columns; tried: 8 (2M x 200, 7
                                                       // values a row, 3.0 for 2.05)
  static constexpr double kFoundEntry = 20.0;  // read its gradients, where it is the node's; timed:
                                               // 29 with the scan's 8
  static constexpr double kCachedRows = 8e6;   // rows whose gradients do not fit the cache; size
  static constexpr double kOpenHostEntry = 1300.0;   // as kOpenEntry, over the bus; guessed: 64 B
  static constexpr double kScannedHostEntry = 80.0;  // as kScannedEntry, over the bus; guessed: 4 B

  // Nodes whose rows are sorted.
  static constexpr double kSortedEntry = 30.0;  // tried: 60 (10,000 x 28 0.98 for 0.67, with other
                                                // changes of the day)
  static constexpr double kSortedColumn = 500.0;  // of a node, however few its rows; guessed

  // Kernels of a level, whatever is in it. Tried: half of the next two and double the last one (all
  // within 5%); five times the scan and three times the gathering (higgs 33 for 27).
  static constexpr double kSortLevel = 2e7;      // guessed
  static constexpr double kSearchLevel = 4e7;    // of a resolution
  static constexpr double kScanLevel = 6e7;      // that look into its ranges by scanning
  static constexpr double kGatherLevel = 1.2e8;  // or by gathering

  static constexpr std::size_t kFewFamilies = 256;  // of more, what a level costs hardly counts;
                                                    // guessed

  // What was open in earlier trees, to what was expected (OpenShareHistory).
  static constexpr double kLeastFactor = 0.01;  // tried: 0.5 (criteo 10.0 for 8.9)
  static constexpr double kMostFactor =
      1000.0;                              // so that it ages within some hundred trees; guessed
  static constexpr double kFallsTo = 0.8;  // at once, as one tree may be unlike the next; guessed
  static constexpr float kAgePower =
      0.965f;  // a tree, of a factor that was not seen again; guessed
  // Scans begin unasked where they cost less than a level of gathering with so much more open;
  // guessed.
  static constexpr double kMoreOpen = 4.0;

  // Bins of a column.
  static constexpr std::uint32_t kEntriesPerBin = 64;  // at the root a bin costs less; size
  static constexpr std::uint32_t kLeastBins = 32;      // of any resolution; guessed
  static constexpr std::uint32_t kLeastFinest = 160;   // of the finest, where rows are looked up;
                                                       // tried: 80 to 640, see LooksUp()
  // Part of the values that are present below which rows are looked up; tried: a quarter (bosch 2.9
  // for 3.3, 1M x 100 of which a fifth is present 2.9 for 2.0).
  static constexpr double kLookedUp = 0.1;
};

/** @brief Describes a resolution as costs see it: averages over its columns and groups. */
struct ResolutionShape {
  double n_bins;               // of a column
  double n_group_columns;      // that a block adds up together
  bool has_ranges;             // whether any bin holds several values
  bool scans{false};           // whether its ranges can be looked up in sorted columns
  bool rows_of_host{false};    // whether sorted columns are read over the bus
  bool values_of_host{false};  // whether values are
  double open_factor{1.0};     // entries in open ranges, as seen at this depth, to those expected
  bool in_bytes{false};        // whether bins take one byte each
  double present{1.0};         // part of the rows with a value in a column, where looked up; or 1
};

/**
 * @brief Tells whether most rows have no value in most groups. Then to look rows up costs most, and
 *        what is open follows a column's entries, not the table's rows.
 * @param present Part of the values that are present.
 */
[[nodiscard]] constexpr bool LooksUp(double present) { return present < CostTable::kLookedUp; }

/** @brief Describes what is laid out. @param scans Whether ranges can be looked up in sorted
 *         columns. */
[[nodiscard]] ResolutionShape ShapeOf(BinLayout const& layout, bool scans);

/**
 * @brief Computes the time of one column of one node, in picoseconds of the whole device.
 *
 * A bin costs time to clear, to write and to search; an entry to be read and added: memory comes in
 * sectors, which few columns of scattered rows do not fill. Entries of ranges that may hold
 * the best split cost much more, as they are gathered and sorted by value; or else all entries that
 * the table has in those ranges are scanned in sorted columns, and the gradients of the node's are
 * read.
 *
 * The share of such ranges falls with nearly the square of the number of bins: a range of n / k
 * entries leaves the gain open by about n / k gradients, where the best candidate of a node without
 * anything to find gains about sqrt(n) of them (of a strong signal the power is less). Late trees
 * find less and leave more open. Nodes deep down may leave far more open, as those of a strong
 * signal do, whose gradients are all alike: what was seen at a depth counts there in the next trees
 * (OpenShareHistory).
 */
struct HistogramCost {
  /** @brief Estimates the part of n entries in open ranges of k bins: kOpenShare (n /
   *         k^2)^kOpenPower. */
  [[nodiscard]] static double OpenShare(double n_entries, double n_bins);
  /** @brief Estimates the entries of a node and column in open ranges. */
  [[nodiscard]] static double ExpectedOpen(double n_rows, ResolutionShape const& shape);
  /** @brief Prices an entry of an open range that is gathered and sorted. */
  [[nodiscard]] static double OpenEntry(ResolutionShape const& shape) {
    return shape.values_of_host ? CostTable::kOpenHostEntry : CostTable::kOpenEntry;
  }
  /** @brief Prices an entry of the table in an open range that is scanned. */
  [[nodiscard]] static double ScannedEntry(ResolutionShape const& shape) {
    return shape.rows_of_host    ? CostTable::kScannedHostEntry
           : shape.present < 1.0 ? CostTable::kScannedSparseEntry
                                 : CostTable::kScannedEntry;
  }
  /** @brief Prices the gradients of a scanned entry; of few rows they are in the cache. */
  [[nodiscard]] static double FoundEntry(double n_table_rows);
  /** @brief Prices the bins of a node's rows. @param density Part of the table's rows it has. */
  [[nodiscard]] static double Read(double n_rows, double density, ResolutionShape const& shape);
  /** @brief Prices a walk along a node's rows that gathers what is in open ranges of a column. */
  [[nodiscard]] static double Walk(double n_rows, double density, ResolutionShape const& shape);
  /**
   * @brief Prices a column of a node.
   * @param density Part of the table's rows that it has.
   */
  [[nodiscard]] static double Node(double n_rows, double density, ResolutionShape const& shape);
};

/**
 * @brief Remembers how many entries were in open ranges beside what was expected, by depth and
 *        resolution: a resolution that was tried and left far more open than another is not tried
 *        again soon.
 */
class OpenShareHistory {
 public:
  explicit OpenShareHistory(std::size_t n_resolutions) : n_resolutions_{n_resolutions} {}

  /**
   * @brief Estimates ResolutionShape::open_factor. Not seen yet: that of the resolution next to it
   *        that was seen at this depth; deeper than was seen: that of the deepest level seen.
   */
  [[nodiscard]] double Factor(std::size_t depth, std::size_t resolution) const;
  /** @brief Records what a level had. @param expected By HistogramCost::ExpectedOpen; more than
   *         0. */
  void Record(std::size_t depth, std::size_t resolution, double n_open, double expected);
  /**
   * @brief Begins a tree: moves factors that the last one did not see a little toward that of the
   *        nearest resolution that it used, or toward 1, so that they are tried again.
   */
  void Decay();

 private:
  static constexpr double kNotSeen = 0.0;

  struct Seen {
    double factor{kNotSeen};
    bool used{false};  // by the last tree
  };
  /** @brief Finds what a depth has seen of a resolution, or else of the one next to it; or
   *         nullptr. */
  [[nodiscard]] Seen const* Nearest(std::size_t depth, std::size_t resolution, bool used) const;

  std::size_t n_resolutions_;
  std::vector<Seen> seen_;  // shape: (depths, n_resolutions)
};

/** @brief Chooses whether open ranges are scanned in sorted columns, or their entries are
 *         gathered. */
struct RefineCost {
  double n_nodes;  // that are searched
  double n_rows;   // of these nodes
  double n_table_rows;
  double n_columns;
  ResolutionShape shape;
  double at_once{std::numeric_limits<double>::infinity()};  // gathered entries there is room for

  /** @brief Tells whether scanning costs little even if many more ranges are open than usual: nobody asks
   *         how many are. */
  [[nodiscard]] bool ScansAnyway() const;
  /**
   * @param n_scanned  Entries of the table in open ranges.
   * @param n_gathered How many of these are the nodes' entries.
   */
  [[nodiscard]] bool Scans(double n_scanned, double n_gathered) const;
};

/**
 * @brief Chooses the most bins of a column in each resolution, the finest first.
 *
 * A small table, whose nodes are sorted, has one bin for each value, and a wider one of as few
 * rows, of which nodes can be sorted, has one resolution. Otherwise the finest resolution serves
 * the root, within what fits a block, and coarser ones the nodes below. Where most values are
 * present, bins of the last one take a byte each, and are as many as that holds. Where few are
 * (kLookedUp), columns have fewer entries to tell apart and groups of few columns cost most: the
 * finest has at least 160 bins.
 *
 * @param max_bins   How many bins a block has room for.
 * @param max_sorted Rows of a node that a block can sort.
 * @param memory     Whether the table has sorted columns, and where values and bins lie.
 * @param n_missing  Values of the table that are missing.
 */
[[nodiscard]] std::vector<std::uint32_t> ChooseResolutions(RowIdx n_rows, FeatureIdx n_features,
                                                           std::uint32_t max_bins,
                                                           RowIdx max_sorted,
                                                           HistogramMemory const& memory = {},
                                                           std::uint64_t n_missing = 0);

/**
 * @brief Limits the distinct values of a column that has a bin for each: no range of it is ever
 *        open.
 * @param max_bins In the finest resolution.
 * @param most     How many bins a block has room for.
 */
[[nodiscard]] std::uint32_t MaxValues(std::uint32_t n_entries, std::uint32_t max_bins,
                                      std::uint32_t most);

/**
 * @brief Says which columns keep their rows sorted by value, in which open ranges are looked up:
 *        those that have ranges in a resolution that looks them up.
 *
 * Where most values are missing, columns of few values may have ranges in the last resolution
 * alone, which serves the many small nodes. Few of their entries are open; gathering them takes no
 * longer. If no column of such a table has ranges of much more than one value, in all resolutions but
 * the last, none is kept: ranges are gathered nearly as soon, for a quarter less memory. (Of 801
 * values in 640 bins a tree takes 3.5 ms in place of 3.1; of 1,601 values 7.7 in place of 4.2.)
 */
class SortedColumnsRule {
 public:
  /** @param max_bins How many bins a column has in each resolution, the finest first. */
  SortedColumnsRule(std::vector<std::uint32_t> const& max_bins, bool is_dense);

  /** @brief Tells whether it depends on the columns that any is kept. */
  [[nodiscard]] bool MayKeepNoColumn() const { return max_bins_without_rows_ != 0; }
  /** @brief Tells whether any is kept because of this column. @param finest Its finest bins. */
  [[nodiscard]] bool NeedsRows(ColumnBins const& finest) const {
    return !finest.is_categorical && (finest.has_ranges || finest.n_bins > max_bins_without_rows_);
  }
  /** @brief Tells whether this column is kept, if any is. */
  [[nodiscard]] bool Keeps(ColumnBins const& finest) const {
    return !finest.is_categorical && (finest.has_ranges || finest.n_bins > least_scanned_);
  }
  /** @brief Tells whether all columns are kept that have ranges in a resolution of so many bins. */
  [[nodiscard]] bool KeepsEveryColumnAbove(std::vector<ColumnBins> const& finest,
                                           std::uint32_t n_bins) const;

 private:
  std::uint32_t least_scanned_;  // columns of more bins are kept
  std::uint32_t
      max_bins_without_rows_;  // while no column has more bins, none is kept; 0: all that are to be
};

/** @brief Describes one node, or two siblings, which are searched in the same way. */
struct Family {
  static constexpr std::size_t kNone = ~std::size_t{0};

  LevelNode first;                // the node, or the left sibling
  std::uint32_t n;                // 1 or 2
  LevelNode parent{0};            // in the level before
  RowIdx n_rows[2]{0, 0};         // of each
  std::size_t parent_way{kNone};  // the resolution that has kept their parent's histogram
};

/** @brief Describes a level's table and the ways to search it. */
struct SearchWays {
  RowIdx n_rows;                             // of the table
  double n_columns;                          // of the table
  std::vector<ResolutionShape> resolutions;  // the finest first
  RowIdx max_sorted;                         // the most rows of a node whose rows are sorted
};

/**
 * @brief Chooses the way that each family of a level is searched: by histograms of a resolution,
 *        or, one past the last resolution, by sorting its rows column by column.
 *
 * Costs are those of HistogramCost. A sorted entry costs more than one that is added up, but no
 * bins are cleared and searched. Few families are searched in few ways, as each has kernels of its
 * own.
 */
[[nodiscard]] std::vector<std::size_t> ChooseSearchWays(std::vector<Family> const& families,
                                                        SearchWays const& ways);

/** @brief Tells whether all levels of a table are sorted, from the root on. */
[[nodiscard]] bool SortsTable(RowIdx n_rows, FeatureIdx n_features, RowIdx max_sorted);
}  // namespace gpu_exact
