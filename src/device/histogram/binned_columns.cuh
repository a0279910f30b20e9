/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The bins of all entries, row by row.
 *
 * Neighbouring columns form groups whose bins fit the shared memory of a block. Within a group the
 * bins of a row lie side by side, ascending by column: where most values are present in a place for
 * each column, otherwise as many as there are values. They take two bytes each, or one in a place of
 * a group whose columns have few, if that is asked for.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "src/device/histogram/rank_bins.cuh"
#include "src/histogram_plan.h"

namespace gpu_exact {
using GroupBin = std::uint16_t;  // counts from the first bin of the group
using ColumnBin = std::uint8_t;  // counts from the first bin of the column

/** @brief A feature and its bins, ascending by value. */
struct BinColumn {
  FeatureIdx feature;
  std::uint32_t group;
  std::uint32_t first_bin;  // in the group
  std::uint32_t n_bins;
};

/** @brief Columns that one block adds up together. */
struct BinGroup {
  static constexpr std::uint32_t kBeyond = 256;     // elements that may be read after the last one
  static constexpr std::uint32_t kNoBin = 0xffffu;  // in a place without a value
  static constexpr std::uint32_t kNoColumnBin = 0xffu;
  static constexpr std::uint32_t kMaxBins = kMaxGroupBins;

  GroupBin const* elements;          // row after row; or ColumnBin, where there are first_bins
  std::uint32_t const* row_offsets;  // shape: (n_rows + 1); nullptr: every row has `stride`
  std::uint64_t first_bin;           // among the bins of all groups
  std::uint32_t first_column;
  std::uint32_t n_columns;
  std::uint32_t n_bins;
  std::uint32_t n_elements;
  std::uint32_t stride;        // elements of a row, a place for each column and some more; or 0
  std::uint32_t has_ranges;    // 0 or 1: whether any bin holds several values
  std::uint32_t has_missing;   // 0 or 1: whether any row has no value of a column
  GroupBin const* first_bins;  // of the column in each place, where bins take one byte; or nullptr

  [[nodiscard]] __host__ __device__ bool Strided() const { return stride != 0; }
  /** @brief Bins of one byte, where there are first_bins. */
  [[nodiscard]] __device__ ColumnBin const* Bytes() const {
    return reinterpret_cast<ColumnBin const*>(elements);
  }
};

/** @brief Elements of one row in one group. */
struct RowElements {
  std::uint32_t begin;
  std::uint32_t end;

  [[nodiscard]] __device__ std::uint32_t Size() const { return end - begin; }
};

/** @brief Binned columns, borrowed by kernels. */
struct BinnedRef {
  static constexpr std::uint32_t kNotBinned = 0xffffffffu;

  BinGroup const* groups;          // shape: (n_groups)
  BinColumn const* columns;        // shape: (n_columns), ascending by feature
  std::uint32_t const* column_of;  // shape: (n_features), kNotBinned
  BinsRef bins;                    // by feature, which is the order of the groups
  std::uint64_t n_bins;            // of all groups
  std::uint32_t n_groups;
  std::uint32_t n_columns;

  /** @brief The column that owns a bin of a group. */
  [[nodiscard]] __device__ std::uint32_t ColumnOf(BinGroup const& group, std::uint32_t bin) const {
    auto const* c = columns;
    return FirstIndex(group.first_column + 1, group.first_column + group.n_columns,
                      [=](std::uint32_t k) { return c[k].first_bin > bin; }) -
           1;
  }

  [[nodiscard]] __device__ static RowElements Row(BinGroup const& group, RowIdx row) {
    if (group.Strided()) {
      return {row * group.stride, row * group.stride + group.n_columns};
    }
    return {group.row_offsets[row], group.row_offsets[row + 1]};
  }

  /** @brief The row's bin of a feature that is binned, -1 where its value is missing. */
  [[nodiscard]] __device__ int BinOf(RowIdx row, FeatureIdx f) const {
    std::uint32_t c = column_of[f];
    BinColumn column = columns[c];
    BinGroup const& group = groups[column.group];
    RowElements e = Row(group, row);
    if (group.first_bins != nullptr) {
      ColumnBin const bin = group.Bytes()[e.begin + c - group.first_column];
      return bin == BinGroup::kNoColumnBin ? -1 : bin;
    }
    auto first = group.elements + e.begin;
    auto i = group.Strided() ? c - group.first_column
                             : FirstIndex(std::uint32_t{0}, e.Size(), [=](std::uint32_t k) {
                                 return first[k] >= column.first_bin;
                               });
    if (i == e.Size() || first[i] >= column.first_bin + column.n_bins) {  // kNoBin is one such
      return -1;
    }
    return static_cast<int>(first[i] - column.first_bin);
  }
};

/**
 * @brief Owns the bins of all entries. Work: one pass over the table, or two.
 *
 * Memory kept: 2 B an entry, or 1; 4 B a row and group most of whose values are missing. Little else
 * meanwhile.
 */
class BinnedColumns {
 public:
  /** @brief The most bins of a column: they fit the shared memory of a block, and a GroupBin. */
  [[nodiscard]] static std::uint32_t MaxBins();

  /**
   * @brief Waits for the device.
   *
   * @param table          Device memory.
   * @param n_entries      Of each feature.
   * @param bins           Of each feature that has entries, at most MaxBins(); outlives this.
   * @param max_group_bins Bins that a group of several columns may have; 0: chosen by the size of
   *                       the table.
   * @param in_bytes       Bins take one byte each where they fit.
   */
  BinnedColumns(TableSource const& table, std::vector<std::uint32_t> const& n_entries,
                RankBins const& bins, std::uint32_t max_group_bins = 0, bool in_bytes = false);

  [[nodiscard]] BinnedRef Ref() const;
  [[nodiscard]] std::vector<BinGroup> const& Groups() const { return h_groups_; }
  [[nodiscard]] std::vector<BinColumn> const& Columns() const { return h_columns_; }
  [[nodiscard]] RowIdx NumRows() const { return n_rows_; }
  /** @brief Entries of all groups. */
  [[nodiscard]] std::uint64_t NumElements() const { return n_elements_; }
  /** @brief Of a column, at least 1. */
  [[nodiscard]] double MeanBins() const {
    return std::max(1.0, static_cast<double>(n_bins_) /
                             static_cast<double>(std::max<std::size_t>(1, h_columns_.size())));
  }
  /** @brief Whether any bin holds several values. */
  [[nodiscard]] bool HasRanges() const { return has_ranges_; }
  /** @brief What costs depend on. @param scans Whether the table has sorted rows. */
  [[nodiscard]] ResolutionShape Shape(bool scans) const {
    auto const at_least_one = [](std::size_t n) {
      return static_cast<double>(std::max<std::size_t>(1, n));
    };
    return {this->MeanBins(), at_least_one(h_columns_.size()) / at_least_one(h_groups_.size()),
            has_ranges_, scans};
  }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void MakeGroups(std::vector<std::uint32_t> const& n_entries, std::uint32_t max_group_bins);
  /** @brief Room for the elements. @param in_bytes As above. */
  void PlaceGroups(bool in_bytes);
  void FillByRow(CsrView const& table);
  void FillByColumn(float const* const* columns);
  /** @brief Counts of elements by row become offsets. */
  void SumRowOffsets(CubScratch* scratch);

  RankBins const& bins_;
  RowIdx n_rows_;
  std::uint64_t n_bins_{0};
  std::uint64_t n_elements_{0};
  bool has_ranges_{false};
  std::vector<BinGroup> h_groups_;
  std::vector<BinColumn> h_columns_;
  DeviceBuffer<BinGroup> groups_{"groups of binned columns"};
  DeviceBuffer<BinColumn> columns_{"binned columns"};
  DeviceBuffer<std::uint32_t> column_of_{"binned columns by feature"};
  DeviceBuffer<GroupBin> elements_{"bins of the entries"};
  DeviceBuffer<std::uint32_t> row_offsets_{"rows of binned columns"};
  DeviceBuffer<GroupBin> first_bins_{"first bins of columns"};
};
}  // namespace gpu_exact
