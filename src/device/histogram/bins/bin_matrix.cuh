/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the bins of all entries, row by row.
 *
 * bin_layout.h says which columns form a group, and where its bins lie; here they are written and read.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "device/histogram/bins/quantile_cuts.cuh"
#include "plan/bin_layout.h"
#include "plan/search_cost.h"

namespace gpu_exact {
/** @brief Names columns that one block adds up together. */
struct FeatureGroup {
  static constexpr std::uint32_t kBeyond = kElementsBeyond;
  static constexpr std::uint32_t kNoBin = CellMap::kNoBin;
  static constexpr std::uint32_t kNoColumnBin = 0xffu;
  static constexpr std::uint32_t kMaxBins = kMaxGroupBins;

  GroupBin const* elements;          // row after row; or ColumnBin, where they are InBytes()
  std::uint32_t const* row_offsets;  // RowOffsetBlock's; nullptr: every row has `stride`
  std::uint64_t first_bin;           // among the bins of all groups
  BinnedColumn first_column;
  std::uint32_t n_columns;
  std::uint32_t n_bins;
  std::uint32_t n_elements;   // that a walk along all rows meets
  std::uint32_t stride;       // from a row's elements to the next one's; 0: as row_offsets tell
  std::uint32_t chunk;        // elements of a row that are loaded at once; of strided ones
  std::uint32_t has_ranges;   // 0 or 1: whether any bin holds several values
  std::uint32_t has_missing;  // 0 or 1: whether any row has no value of a column
  // Of the column in each place, where bins take one byte; first stored bins of columns with
  // cell_maps; or nullptr.
  GroupBin const* first_bins;
  std::uint32_t longest;    // bins of the column that has most, where they take one byte; or 0
  std::uint32_t is_narrow;  // 0 or 1: whether row_offsets have a byte a row
  // Elements are bins as they are stored, of which the group has [first_stored, + n_stored).
  CellMap const* cell_maps;  // by place, filled up to whole chunks; nullptr: as `shift` tells
  std::uint32_t first_stored;
  std::uint32_t n_stored;
  std::uint32_t shift;       // a bin is as many stored ones as a power of two
  std::uint32_t reads_part;  // 0 or 1: whether rows have elements of other groups, too

  [[nodiscard]] __host__ __device__ bool Strided() const { return stride != 0; }
  /** @brief Tell whether bins take one byte each. */
  [[nodiscard]] __host__ __device__ bool InBytes() const { return longest != 0; }
  /** @brief Give the bins, where they are InBytes(). */
  [[nodiscard]] __device__ ColumnBin const* Bytes() const {
    return reinterpret_cast<ColumnBin const*>(elements);
  }
  /** @brief Give the bin that a stored one is in, of whichever place; kNoBin where it has none: of
   *         another group, or missing. */
  [[nodiscard]] __device__ std::uint32_t BinOf(std::uint32_t stored) const {
    static_assert(kMaxStoredBins <= kNoBin);
    std::uint32_t const bin = stored - first_stored;
    if (bin >= n_stored) {
      return kNoBin;
    }
    if (cell_maps == nullptr) {
      return bin >> shift;
    }
    auto const* first = first_bins;
    std::uint32_t const column =
        PartitionPoint(1u, n_columns, [=](std::uint32_t k) { return first[k] > stored; }) - 1;
    return cell_maps[column].BinOf(stored);
  }
};

static_assert(sizeof(FeatureGroup) == BinBytes::kGroup &&
              sizeof(CellMap) + sizeof(GroupBin) == BinBytes::kCell &&
              sizeof(CellMap) * kAlignedElements == BinBytes::kCells);

using RowElements = Range<std::uint32_t>;  // of one row in one group

/** @brief Finds a row among the blocks of a group. */
struct RowOffsetPosition {
  std::uint64_t word;  // where the block begins
  std::uint32_t row;   // in the block

  __host__ __device__ RowOffsetPosition(RowIdx r, bool is_narrow) {
    constexpr std::uint32_t kRows = RowOffsetBlock::kWideRows;
    static_assert(RowOffsetBlock::kNarrowRows == 2 * kRows);
    std::uint32_t const block = r / kRows >> (is_narrow ? 1 : 0);
    row = r - block * (is_narrow ? 2 * kRows : kRows);
    word = std::uint64_t{block} * RowOffsetBlock::kWords;
  }
};

/** @brief Tells where the elements of a block's rows end, counted from where its first one's
 *         begin. */
template <typename WordT>  // std::uint32_t, or const
struct RowEnds {
  WordT* block;
  bool is_narrow;

  [[nodiscard]] __host__ __device__ std::uint32_t Get(std::uint32_t row) const {
    return is_narrow ? reinterpret_cast<std::uint8_t const*>(block + 1)[row]
                     : reinterpret_cast<std::uint16_t const*>(block + 1)[row];
  }
  __device__ void Set(std::uint32_t row, std::uint32_t end) const {
    if (is_narrow) {
      reinterpret_cast<std::uint8_t*>(block + 1)[row] = static_cast<std::uint8_t>(end);
    } else {
      reinterpret_cast<std::uint16_t*>(block + 1)[row] = static_cast<std::uint16_t>(end);
    }
  }
};

/** @brief Lends the bins of all columns to kernels. */
struct BinMatrixRef {
  static constexpr BinnedColumn kNotBinned = 0xffffffffu;

  FeatureGroup const* groups;     // shape: (n_groups)
  BinColumn const* columns;       // shape: (n_columns), ascending by feature
  BinnedColumn const* column_of;  // shape: (n_features), kNotBinned
  CutsRef bins;                   // by feature, which is the order of the groups
  std::uint64_t n_bins;           // of all groups
  std::uint32_t n_groups;
  std::uint32_t n_columns;

  /** @brief Find the column that owns a bin of a group. */
  [[nodiscard]] __device__ BinnedColumn ColumnOf(FeatureGroup const& group,
                                                 std::uint32_t bin) const {
    auto const* c = columns;
    return PartitionPoint(group.first_column + 1, group.first_column + group.n_columns,
                          [=](std::uint32_t k) { return c[k].first_bin > bin; }) -
           1;
  }

  [[nodiscard]] __host__ __device__ static RowElements Row(FeatureGroup const& group, RowIdx row) {
    if (group.Strided()) {
      return {row * group.stride, row * group.stride + group.n_columns};
    }
    RowOffsetPosition const at{row, group.is_narrow != 0};
    RowEnds<std::uint32_t const> const ends{group.row_offsets + at.word, group.is_narrow != 0};
    std::uint32_t const first = *ends.block;
    return {first + (at.row == 0 ? 0 : ends.Get(at.row - 1)), first + ends.Get(at.row)};
  }

  /** @brief Find the row's bin of a feature that is binned, -1 where its value is missing. */
  [[nodiscard]] __device__ int BinOf(RowIdx row, FeatureIdx f) const {
    BinnedColumn const c = column_of[f];
    EXACT_DEVICE_CHECK(c != kNotBinned);
    BinColumn column = columns[c];
    FeatureGroup const& group = groups[column.group];
    RowElements e = Row(group, row);
    if (group.InBytes()) {
      ColumnBin const bin = group.Bytes()[e.begin + c - group.first_column];
      return bin == FeatureGroup::kNoColumnBin ? -1 : bin;
    }
    auto first = group.elements + e.begin;
    std::uint32_t bin{FeatureGroup::kNoBin};
    if (group.Strided()) {
      std::uint32_t const cell = c - group.first_column;
      bin = group.cell_maps != nullptr ? group.cell_maps[cell].BinOf(first[cell])
                                       : group.BinOf(first[cell]);
    } else {
      auto const i = PartitionPoint(std::uint32_t{0}, e.Size(), [&](std::uint32_t k) {
        return first[k] >= group.first_stored && group.BinOf(first[k]) >= column.first_bin;
      });
      bin = i == e.Size() ? FeatureGroup::kNoBin : group.BinOf(first[i]);
    }
    return bin - column.first_bin < column.n_bins ? static_cast<int>(bin - column.first_bin) : -1;
  }
};

/**
 * @brief Owns the bins of all entries, or reads those of another one, as they are laid out. Work: one
 *        pass over the table, or two.
 */
class BinMatrix {
 public:
  /** @brief Limit the bins of a column: they fit the shared memory of a block, and a GroupBin. */
  [[nodiscard]] static std::uint32_t MaxBins();
  /** @brief Give what the current device lays groups out by. @param max_group_bins See
   *         GroupLimits. */
  [[nodiscard]] static GroupLimits Limits(std::uint32_t max_group_bins = 0);

  /**
   * @brief Has room for bins, which are to be written. May wait.
   * @param bins   At most MaxBins() for each feature that has entries; outlives this.
   * @param layout What LayStored() gave.
   * @param at     Where the bins lie.
   */
  BinMatrix(QuantileCuts const& bins, BinLayout&& layout, Memory at = Memory::kDevice);
  /**
   * @brief Reads stored bins, which may be written later. May wait.
   * @param stored Outlives this. Not in bytes.
   * @param bins   The stored ones, or coarser ones that were made of them; outlive this.
   * @param layout What LayRead() gave.
   */
  BinMatrix(BinMatrix const& stored, QuantileCuts const& bins, BinLayout&& layout);

  /**
   * @brief Writes the bins of some rows: of all of them once, in their order. Waits for the device.
   * @param rows      Device memory; features ascend within a row.
   * @param first_row Number of the first one in the table.
   */
  void WriteRows(CsrView const& rows, RowIdx first_row);
  /** @brief Writes the bins of a table by column, see TableSource. Waits for the device. */
  void WriteColumns(float const* const* columns);

  [[nodiscard]] BinMatrixRef Ref() const;
  [[nodiscard]] BinLayout const& Layout() const { return layout_; }
  [[nodiscard]] std::vector<FeatureGroup> const& Groups() const { return h_groups_; }
  [[nodiscard]] std::vector<BinColumn> const& Columns() const { return layout_.columns; }
  [[nodiscard]] RowIdx NumRows() const { return layout_.n_rows; }
  /** @brief Count the entries of all groups. */
  [[nodiscard]] std::uint64_t NumEntries() const { return layout_.n_entries; }
  /** @brief Tell whether any bin holds several values. */
  [[nodiscard]] bool HasRanges() const { return layout_.has_ranges; }

 private:
  /** @brief Give the groups at their addresses. @param stored Whose elements they have. */
  void PlaceGroups(BinMatrix const& stored);
  /** @brief Upload the groups, the columns, and these by feature. */
  void Upload();
  /** @brief Turn counts of elements by row into offsets, which follow those of the rows before. */
  void SumRowOffsets(RowIdx first_row, RowIdx n_rows);

  QuantileCuts const& bins_;
  BinLayout layout_;
  std::vector<FeatureGroup> h_groups_;
  DeviceBuffer<FeatureGroup> groups_{"groups of binned columns"};
  DeviceBuffer<BinColumn> columns_{"binned columns"};
  DeviceBuffer<BinnedColumn> column_of_{"binned columns by feature"};
  PlacedBuffer<GroupBin> elements_;
  DeviceBuffer<std::uint32_t> row_offsets_{"rows of binned columns"};
  DeviceBuffer<GroupBin> first_bins_{"first bins of columns"};
  DeviceBuffer<CellMap> cell_maps_{"maps of stored bins"};
};
}  // namespace gpu_exact
