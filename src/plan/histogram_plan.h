/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What the histogram strategy does to which node, by cost: how many bins columns have, which
 *        resolution serves a node, which histograms are kept, how the work is cut into slices.
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/level.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief The most bins of a block's histogram, so that 2, 4, 8, ... columns of as many fit. */
inline constexpr std::uint32_t kMaxGroupBins = 10240;
/** @brief The same by shared memory of a block: 227 KiB (compute capability 9.0, 10.0), 163 KiB (8.0,
 *         8.7), 99 KiB (8.6, 8.9, 12.0), 64 KiB (7.5). */
inline constexpr std::uint32_t kMaxGroupBinsOf[] = {kMaxGroupBins, 7209, 3932, 2140};
/**
 * @brief The most stored bins of a group, which others may read as coarser ones: as many as finest
 *        bins become the most bins of the coarsest of them.
 */
inline constexpr std::uint32_t kMaxStoredBins = 4 * kMaxGroupBins;
/** @brief The most rows of a node that a block sorts. */
inline constexpr RowIdx kMaxSortedRows = 1024 * 12;

/**
 * @brief A table of fewer entries and fewer rows gives no block enough to do: it has more groups of
 *        columns than it needs, to fill the device.
 */
inline constexpr std::uint64_t kManyEntries = std::uint64_t{1} << 22;
/** @brief Groups of such a table, so that it has about two row offsets an entry where they are few. */
[[nodiscard]] constexpr std::uint64_t FillingGroups(EntryIdx n_entries, RowIdx n_rows) {
  std::uint64_t const rows = std::max(n_rows, RowIdx{1});
  return std::max<std::uint64_t>((2 * n_entries + rows - 1) / rows, 1);
}

/** @brief The most places, rows times columns, of a group: its elements are numbered in 32 bits. */
inline constexpr std::uint64_t kMaxGroupCells = std::uint64_t{1} << 30;
/**
 * @brief Where a row's elements are, in a group most of whose values are missing, is told in blocks of
 *        32 B, as memory is read: where those of the first row begin, and where each row's end,
 *        counted from there: of 28 rows a byte each, or of 14 rows two.
 */
struct RowOffsetBlock {
  static constexpr std::uint32_t kBytes = 32;
  static constexpr std::uint32_t kWords = kBytes / sizeof(std::uint32_t);
  static constexpr std::uint32_t kNarrowRows = 28;
  static constexpr std::uint32_t kWideRows = 14;
  /** @brief The most columns of a group of which a byte holds the end of each row. */
  static constexpr std::uint32_t kNarrowColumns = 255 / kNarrowRows;
  /** @brief The most columns of any group. */
  static constexpr std::uint32_t kMaxColumns = 65535 / kWideRows;

  [[nodiscard]] static constexpr bool IsNarrow(std::uint64_t n_columns) {
    return n_columns <= kNarrowColumns;
  }
  /** @brief Bytes of a group's blocks. */
  [[nodiscard]] static constexpr std::uint64_t Bytes(RowIdx n_rows, bool is_narrow) {
    std::uint64_t const rows = is_narrow ? kNarrowRows : kWideRows;
    return (n_rows + rows - 1) / rows * kBytes;
  }
};

/** @brief Of so many columns that a block has room for, those that a group of so many rows can have. */
[[nodiscard]] constexpr std::uint32_t LimitGroupColumns(std::uint32_t n_columns, RowIdx n_rows) {
  std::uint64_t const most = kMaxGroupCells / std::max(n_rows, RowIdx{1});
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(n_columns, 1, std::max<std::uint64_t>(most, 1)));
}

/**
 * @brief What the histogram strategy keeps, and where: all of it on the device, or less where memory
 *        is short. The trees are the same.
 */
struct HistogramMemory {
  bool sorts_columns{true};         // whether sorted columns are kept, which trees grow faster with
  Memory rows_at{Memory::kDevice};  // sorted columns; of the host: page-locked, read from there
  Memory values_at{Memory::kDevice};
  Memory bins_at{Memory::kDevice};  // of the entries
  bool shares_bins{false};          // coarser ones are looked up where they are not just shifted
  bool is_lean{false};              // little room for what is in work
  // Quarters of the room that they take where there is much.
  std::uint32_t histograms{kAllHistograms};

  static constexpr std::uint32_t kAllHistograms = 4;
  /** @brief Of a bin in a histogram. */
  static constexpr std::uint64_t kBinBytes = 20;
  /** @brief Of an entry of an open range that is sorted. */
  static constexpr std::uint64_t kOpenEntryBytes = 28;

  /** @brief All that there is to choose from, the fastest first; the last one takes least. */
  [[nodiscard]] static std::vector<HistogramMemory> All();

  /** @brief Histograms of all resolutions take up to so much, bytes; one fits always. */
  [[nodiscard]] std::uint64_t HistogramBytes(EntryIdx n_entries) const;
  /** @brief The same at first: most trees do not need all of it. */
  [[nodiscard]] std::uint64_t FirstHistogramBytes(EntryIdx n_entries) const;
  /** @brief Whether nodes are sorted, for which all their values are read, or bins: not over the bus. */
  [[nodiscard]] bool SortsNodes() const {
    return values_at == Memory::kDevice && bins_at == Memory::kDevice;
  }
  /** @brief A list has room for so many ranges at first. */
  static constexpr std::uint64_t kFirstRanges = std::uint64_t{1} << 14;
  /** @brief A list with room for so many ranges, all that there are, is scanned without asking: as many as
   *         at first, or more. */
  [[nodiscard]] std::uint64_t CertainRanges() const;
  /** @brief Entries of open ranges that are sorted at once, of so many in the table, or all of them. */
  [[nodiscard]] std::uint64_t OpenEntries(EntryIdx n_entries) const;
  /**
   * @brief Entries of whole columns whose values are sorted at once, to make bins.
   * @param is_dense Of a table that is not there are fewer, as it is on the device meanwhile.
   */
  [[nodiscard]] EntryIdx BinnedAtOnce(EntryIdx n_entries, bool is_dense) const;
  /** @brief Entries of the host's table that are read at once, while bins are written. */
  [[nodiscard]] EntryIdx ReadAtOnce(EntryIdx n_entries) const;
};

/** @brief Sorted rows: bytes of a row's number above its two low ones. */
[[nodiscard]] constexpr std::uint32_t SortedColumnHighBytes(RowIdx n_rows) {
  return n_rows <= std::uint64_t{1} << 24 ? 1 : 2;
}
/** @brief Entries of a block of sorted columns. */
inline constexpr std::uint32_t kSortedColumnsBlock = 32;
/** @brief Bytes of a block, a multiple of 8. */
[[nodiscard]] GPU_EXACT_HD constexpr std::uint32_t SortedColumnBlockBytes(std::uint32_t n_high) {
  return (2 + n_high) * kSortedColumnsBlock + 8;
}
/** @brief Bytes of a column's entries. */
[[nodiscard]] constexpr std::uint64_t SortedColumnBytes(std::uint64_t n_entries,
                                                        std::uint32_t n_high) {
  return (n_entries + kSortedColumnsBlock - 1) / kSortedColumnsBlock *
         SortedColumnBlockBytes(n_high);
}

/** @brief Of so many columns two bytes tell one. */
inline constexpr FeatureIdx kShortColumns = FeatureIdx{1} << 16;
/** @brief Bytes of a value that is kept by row with its column, one of so many. */
[[nodiscard]] constexpr std::uint64_t SparseValueBytes(FeatureIdx n_columns) {
  return n_columns <= kShortColumns ? 6 : 8;
}

/** @brief Whether most values are present: columns of a place for each row then take less room. */
[[nodiscard]] constexpr bool IsDense(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features) {
  return std::uint64_t{n_rows} * n_features <= 2 * n_entries;
}

/**
 * @brief Part of the values that are present, below which a row has none in most groups: then to look
 *        rows up costs most, and what is open follows a column's entries, not the table's rows.
 */
inline constexpr double kLookedUp = 0.1;

/** @brief A resolution as costs see it: averages over its columns and groups. */
struct ResolutionShape {
  double n_bins;               // of a column
  double n_group_columns;      // that a block adds up together
  bool has_ranges;             // whether any bin holds several values
  bool scans{false};           // whether its ranges can be looked up in sorted columns
  bool rows_of_host{false};    // whether sorted columns are read over the bus
  bool values_of_host{false};  // whether values are
  double open_factor{1.0};     // entries in open ranges, as seen at this depth, to those expected
  bool in_bytes{false};        // whether bins take one byte each
  double present{1.0};         // part of the rows with a value in a column, below kLookedUp; or 1
};

/**
 * @brief Time of one column of one node, in picoseconds of the whole device (one H200).
 *
 * A bin costs time to clear, to write and to search; an entry to be read and added: memory comes in
 * sectors of 32 B, which few columns of scattered rows do not fill. Entries of ranges that may hold
 * the best split cost much more, as they are gathered and sorted by value; or else all entries that
 * the table has in those ranges are scanned in sorted columns, and the gradients of the node's are
 * read.
 *
 * The share of such ranges falls with nearly the square of the number of bins: a range of n / k
 * entries leaves the gain open by about n / k gradients, where the best candidate of a node without
 * anything to find gains about sqrt(n) of them (measured on boosted and on random labels, 10^5 to
 * 10^7 rows; of a strong signal the power is less). Late trees find less and leave more open. Nodes
 * deep down may leave far more open, as those of a strong signal do, whose gradients are all alike:
 * what was seen at a depth counts there in the next trees (OpenShareHistory).
 */
struct HistogramCost {
  static constexpr double kBin = 75.0;
  static constexpr double kByte = 0.35;
  static constexpr double kOpenEntry = 100.0;   // gathered
  static constexpr double kScannedEntry = 8.0;  // of the table, in the range
  static constexpr double kFoundEntry = 20.0;   // of these, of the node: FoundEntry() of many rows
  static constexpr double kScannedSparseEntry = 32.0;  // where rows are looked up: of short columns
  static constexpr double kOpenShare = 0.08;           // of n entries in k bins: see OpenShare()
  static constexpr float kOpenPower = 0.85f;
  // The same over the bus.
  static constexpr double kOpenHostEntry = 1300.0;
  static constexpr double kScannedHostEntry = 80.0;
  static constexpr double kSortedEntry = 30.0;
  static constexpr double kSortedColumn = 500.0;  // of a node, however few its rows
  // Of a level, whatever is in it, in picoseconds: the kernels that sort, those of a resolution, and
  // those that look into ranges, by scanning or by gathering.
  static constexpr double kSortLevel = 2e7;
  static constexpr double kSearchLevel = 4e7;
  static constexpr double kScanLevel = 6e7;
  static constexpr double kGatherLevel = 1.2e8;

  /** @brief Of so many entries, those in open ranges: kOpenShare (n / k^2)^kOpenPower. */
  [[nodiscard]] static double OpenShare(double n_entries, double n_bins);
  /** @brief Entries of a node and column in open ranges. */
  [[nodiscard]] static double ExpectedOpen(double n_rows, ResolutionShape const& shape);
  /** @brief To gather an entry of an open range and sort it. */
  [[nodiscard]] static double OpenEntry(ResolutionShape const& shape) {
    return shape.values_of_host ? kOpenHostEntry : kOpenEntry;
  }
  /** @brief To scan an entry of the table in an open range. */
  [[nodiscard]] static double ScannedEntry(ResolutionShape const& shape) {
    return shape.rows_of_host    ? kScannedHostEntry
           : shape.present < 1.0 ? kScannedSparseEntry
                                 : kScannedEntry;
  }
  /** @brief To gather the gradients of a scanned entry; of few rows they are in the cache. */
  [[nodiscard]] static double FoundEntry(double n_table_rows);
  /** @brief To read the bins of a node's rows. @param density Part of the table's rows it has. */
  [[nodiscard]] static double Read(double n_rows, double density, ResolutionShape const& shape);
  /**
   * @brief Of a node of so many rows.
   * @param density Part of the table's rows that it has.
   */
  [[nodiscard]] static double Node(double n_rows, double density, ResolutionShape const& shape);
};

/**
 * @brief How many entries were in open ranges, beside what was expected, by depth and resolution: a
 *        resolution that was tried and left far more open than another is not tried again soon.
 */
class OpenShareHistory {
 public:
  explicit OpenShareHistory(std::size_t n_resolutions) : n_resolutions_{n_resolutions} {}

  /**
   * @brief For ResolutionShape::open_factor. Not seen yet: of the resolution next to it that was
   *        seen at this depth; deeper than was seen: of the deepest level seen.
   */
  [[nodiscard]] double Factor(std::size_t depth, std::size_t resolution) const;
  /** @brief What a level had. @param expected By HistogramCost::ExpectedOpen; more than 0. */
  void Record(std::size_t depth, std::size_t resolution, double n_open, double expected);
  /**
   * @brief A new tree: what was seen before the last one counts a little less. It becomes what the
   *        last one had in the resolution next to it, or as expected, so that it is tried again.
   */
  void Decay();

 private:
  static constexpr double kNotSeen = 0.0;

  struct Seen {
    double factor{kNotSeen};
    bool used{false};  // by the last tree
  };
  /** @brief Of a depth that was seen: of the resolution, or else of the one next to it; or nullptr. */
  [[nodiscard]] Seen const* Nearest(std::size_t depth, std::size_t resolution, bool used) const;

  std::size_t n_resolutions_;
  std::vector<Seen> seen_;  // shape: (depths, n_resolutions)
};

/** @brief Whether open ranges are scanned in sorted columns, or their entries are gathered. */
struct RefineCost {
  double n_nodes;  // that are searched
  double n_rows;   // of these nodes
  double n_table_rows;
  double n_columns;
  ResolutionShape shape;
  double at_once{std::numeric_limits<double>::infinity()};  // gathered entries there is room for

  /** @brief Scanning costs little even if many more ranges are open than usual: nobody asks. */
  [[nodiscard]] bool ScansAnyway() const;
  /**
   * @param n_scanned  Entries of the table in open ranges.
   * @param n_gathered Of these, entries of the nodes.
   */
  [[nodiscard]] bool Scans(double n_scanned, double n_gathered) const;
};

/**
 * @brief The most bins of a column in each resolution, the finest first.
 *
 * A small table, whose nodes are sorted, has one bin for each value, and a wider one of as few rows,
 * of which nodes can be sorted, has one resolution. Otherwise the finest resolution serves the root,
 * within what fits a block, and coarser ones the nodes below. Where most values are present, bins of
 * the last one take a byte each, and are as many as that holds. Where few are (kLookedUp), columns have
 * fewer entries to tell apart and groups of few columns cost most: the finest has at least 160 bins.
 *
 * @param max_bins   That a block has room for.
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
 * @brief The most distinct values of a column that has a bin for each: no range of it is ever open.
 * @param max_bins In the finest resolution.
 * @param most     That a block has room for.
 */
[[nodiscard]] std::uint32_t MaxValues(std::uint32_t n_entries, std::uint32_t max_bins,
                                      std::uint32_t most);

/**
 * @brief Upper bound of the row offsets of groups most of whose values are missing, bytes.
 *
 * Each such group has RowOffsetBlock's in each array of bins, also in a table that is dense on the whole.
 * A very sparse table has many groups of few entries, and is better sorted.
 *
 * @param max_bins That a block has room for.
 */
[[nodiscard]] std::uint64_t RowOffsetBytes(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                                           HistogramMemory const& memory = {},
                                           std::uint32_t max_bins = kMaxGroupBins);
/** @brief The same, counted in rows of groups: what a walk along all rows looks up once. */
[[nodiscard]] std::uint64_t NumRowOffsets(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                                          HistogramMemory const& memory = {},
                                          std::uint32_t max_bins = kMaxGroupBins);

/**
 * @brief Places of a row in a group of so many columns, most of which have a value: a multiple of
 *        what a walk loads at once, where few places stay without a column.
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
/** @brief The same where bins take one byte each; 0: of so few columns they would take no less. */
[[nodiscard]] constexpr std::uint32_t NumByteCells(std::uint32_t n_columns) {
  std::uint32_t const n = (n_columns + 7) / 8 * 8;
  return n < 2 * n_columns ? n : 0;
}
/** @brief The most bins of a column of which a byte holds one, or that there is none. */
inline constexpr std::uint32_t kMaxByteBins = 255;
/** @brief The most columns of a group whose bins take a byte: each has a bank of shared memory. */
inline constexpr std::uint32_t kMaxByteColumns = 32;
/** @brief Whether the last of several resolutions has bins of its own in bytes: they fit, and take
 *         less. @param n_bins Of a column in it. */
[[nodiscard]] constexpr bool TakesBytes(FeatureIdx n_features, std::uint32_t n_bins) {
  return n_bins <= kMaxByteBins && NumByteCells(std::min(n_features, kMaxByteColumns)) != 0;
}

/** @brief Resolutions as they are stored: those that read the finest bins if they can, and the last
 *         one. */
struct StoredResolutions {
  std::vector<std::uint32_t> reading;  // bins of a column, the finest first
  std::uint32_t last;                  // that has its own in bytes; 0: none has

  /** @param bins Of all resolutions, the finest first. */
  StoredResolutions(FeatureIdx n_features, std::vector<std::uint32_t> const& bins);
  /**
   * @brief Columns of a group in each array of bins that there may be, the last one's last.
   * @param memory   Whether one array is read by all others.
   * @param max_bins That a block has room for.
   */
  [[nodiscard]] std::vector<std::uint32_t> GroupColumns(
      HistogramMemory const& memory, std::uint32_t max_bins = kMaxGroupBins) const;
};

/**
 * @brief Bins that a resolution stores: a place for each row and column of a dense table.
 */
[[nodiscard]] constexpr std::uint64_t NumStoredBins(EntryIdx n_entries, RowIdx n_rows,
                                                    FeatureIdx n_features) {
  return IsDense(n_entries, n_rows, n_features) ? std::uint64_t{n_rows} * n_features : n_entries;
}

/**
 * @brief Whether a coarser resolution reads the finest one's bins, where memory leaves the choice.
 *
 * Bins that the cache holds are read sooner where they lie side by side: the finest ones of the rows
 * of a small table are not next to each other for a group of few columns.
 *
 * @param n_stored        NumStoredBins().
 * @param is_dense        IsDense(): rows are read whole, and to look bins up takes little of the time
 *                        (criteo nothing, covtype a tenth), where a third of the memory is saved.
 * @param looked_up_share Of the entries, whose bins would be looked up instead of shifted. Where most
 *                        values are missing, that takes half as long again.
 */
[[nodiscard]] bool ReadsFinest(std::uint64_t n_stored, bool is_dense, double looked_up_share);

/**
 * @brief Bytes of a row's bins, where most values are present and all columns have as many bins.
 * @param of_group Columns of a group.
 * @param in_bytes Whether bins take one byte each.
 */
[[nodiscard]] std::uint64_t RowBytes(FeatureIdx n_features, std::uint32_t of_group, bool in_bytes);

/**
 * @brief The most bins of all columns in a resolution, or little more where columns differ in length.
 * @param max_bins Of a column in it.
 * @param finest   Whether it is the finest, in which short columns have a bin for each value.
 * @param most     That a block has room for.
 */
[[nodiscard]] std::uint64_t MostBins(EntryIdx n_entries, FeatureIdx n_features,
                                     std::uint32_t max_bins, bool finest,
                                     std::uint32_t most = kMaxGroupBins);

/** @brief Rows of a node, or of two siblings, which are searched in the same way. */
struct FamilyRows {
  static constexpr std::size_t kNone = ~std::size_t{0};

  RowIdx first;
  RowIdx second;                     // 0: there is none
  std::size_t parent_method{kNone};  // the resolution that has kept their parent's histogram
};

/** @brief A level's table and ways to search it. */
struct SearchMethods {
  RowIdx n_rows;                             // of the table
  double n_columns;                          // of the table
  std::vector<ResolutionShape> resolutions;  // the finest first
  RowIdx max_sorted;                         // the most rows of a node whose rows are sorted
};

/**
 * @brief The way that each family of a level is searched: by histograms of a resolution, or, one
 *        past the last resolution, by sorting its rows column by column.
 *
 * Costs are those of HistogramCost. A sorted entry costs more than one that is added up, but no bins
 * are cleared and searched. Few families are searched in few ways, as each has kernels of its own.
 */
[[nodiscard]] std::vector<std::size_t> ChooseSearchMethods(std::vector<FamilyRows> const& families,
                                                           SearchMethods const& ways);

/** @brief Whether all levels of a table are sorted, from the root on. */
[[nodiscard]] bool SortsTable(RowIdx n_rows, FeatureIdx n_features, RowIdx max_sorted);

/** @brief What of a node's rows is worked on by itself. */
enum class NodePart : std::uint32_t { kWhole, kFirst, kLater };

/** @brief A node, or a part of one, whose rows are added up or looked through. */
struct BuiltNode {
  RowIdx begin;          // slot of its first row
  std::uint32_t node;    // index among the nodes that are searched
  std::uint64_t before;  // rows of the nodes before it
  NodePart part{NodePart::kWhole};
};

/** @brief What of a device decides how rows are dealt out to the blocks that add them up. */
struct BuildLimits {
  std::uint32_t n_blocks{0};  // that run at a time; 0: the device tells
  // The cache holds so many rows, with gradients and a group's bins: half of an H200's 50 MB.
  std::uint64_t cached_rows{std::uint64_t{1} << 20};
};

/** @brief What the groups before one take: for each row, and for each segment. */
struct GroupCost {
  std::uint64_t row;
  std::uint64_t segment;
};

/** @brief A point in the order of the work: by node, group, row. */
struct WorkOffset {
  std::uint32_t node;  // index among the built ones
  std::uint32_t group;
  RowIdx row;  // of the segment

  [[nodiscard]] GPU_EXACT_HD bool operator<(WorkOffset const& that) const {
    return node != that.node     ? node < that.node
           : group != that.group ? group < that.group
                                 : row < that.row;
  }
  [[nodiscard]] GPU_EXACT_HD bool SameSegment(WorkOffset const& that) const {
    return group == that.group && node == that.node;
  }
};

/**
 * @brief Cuts the work on some nodes into slices, one a block.
 *
 * A segment is the rows of one node in one group of columns. Segments are ordered by node, then
 * group, so that blocks that run together share the rows that they read. Of rows that the cache
 * holds, slices are of equal cost: they may begin and end within a segment. Of more rows, nodes are
 * cut into parts, and slices are segments: then blocks go along the same rows at the same time, each
 * for another group, and memory is read once for all of them.
 */
class LoadBalancer {
 public:
  /** @brief A block is started for at least so much: 2,048 elements. */
  static constexpr std::uint64_t kMinSlice = 16384;

  /** @brief Elements of a group for each of n_rows rows, and its bins. */
  void AddGroup(std::uint64_t n_elements, RowIdx n_rows, std::uint32_t n_bins);
  [[nodiscard]] std::vector<GroupCost> const& Costs() const { return costs_; }
  [[nodiscard]] std::uint32_t NumGroups() const {
    return static_cast<std::uint32_t>(costs_.size() - 1);
  }

  /**
   * @param nodes      As many as are worked on, and one more whose `before` is the rows of all.
   * @param max_slices At most so many.
   * @param min_slice  Of the work, at least.
   * @return Where each slice begins, and the end.
   */
  [[nodiscard]] std::vector<WorkOffset> Slices(std::vector<BuiltNode> const& nodes,
                                               std::uint32_t max_slices,
                                               std::uint64_t min_slice = kMinSlice) const;

  /**
   * @brief The nodes in parts, the largest node first: as many parts as keep all blocks busy for a
   *        few rounds.
   * @param nodes As above.
   * @return Likewise; nothing where no node needs to be cut.
   */
  [[nodiscard]] std::vector<BuiltNode> Parts(std::vector<BuiltNode> const& nodes,
                                             BuildLimits const& limits) const;
  /** @brief A slice for each segment of so many nodes: where each begins, and the end. */
  [[nodiscard]] std::vector<WorkOffset> Segments(std::uint32_t n_nodes) const;

 private:
  /** @brief How many parts, times groups, fill some rounds of blocks best: more rather than fewer,
   *         as nodes differ. */
  [[nodiscard]] std::uint64_t NumParts(std::uint64_t n_blocks) const;
  [[nodiscard]] std::uint64_t Before(std::vector<BuiltNode> const& nodes, std::size_t node,
                                     std::uint32_t group) const;
  /** @param first A node at or before the unit's. */
  [[nodiscard]] WorkOffset Locate(std::vector<BuiltNode> const& nodes, std::uint64_t unit,
                                  std::uint32_t first) const;

  std::vector<GroupCost> costs_{{0, 0}};
};
}  // namespace gpu_exact
