/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the table for the histogram strategy: the bins of all entries by row, in one or
 *        several resolutions, the values that bins do not tell, and the rows of ranges.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/histogram/bins/categories.cuh"
#include "device/histogram/bins/row_values.cuh"
#include "device/histogram/bins/staged_table.cuh"
#include "device/level/level_ref.cuh"

namespace gpu_exact {
/** @brief Lends the table to kernels. */
struct BinnedTableRef {
  BinMatrixRef finest;
  RowValuesRef values;
  SortedColumnsRef sorted_columns;
  bool values_of_host{false};  // to be read over the bus, where bins do not tell as much

  /** @brief Find a row's value of a feature; NaN where it is missing. */
  [[nodiscard]] __device__ float ValueOf(RowIdx row, FeatureIdx f) const {
    if (values.Keeps(f)) {
      return values.Find(row, f);
    }
    int const bin = finest.BinOf(row, f);
    return bin < 0 ? NAN : finest.bins.lowest[finest.bins.offsets[f] + bin];
  }
  /** @brief Tell whether a row goes to the left child. */
  [[nodiscard]] __device__ bool GoesLeft(RowIdx row, FeatureIdx f, float threshold,
                                         bool default_left) const {
    float const value = this->ValueOf(row, f);
    return isnan(value) ? default_left : value < threshold;
  }
  /** @brief Tell it of a split by categories. @param set Those that go right. */
  [[nodiscard]] __device__ bool GoesLeft(RowIdx row, FeatureIdx f, std::uint32_t const* set,
                                         bool default_left) const {
    float const value = this->ValueOf(row, f);
    return isnan(value) ? default_left : !HasCategory(set, value);
  }
};

/** @brief Holds all entries in bins of one fineness. */
struct Resolution {
  explicit Resolution(QuantileCuts&& b) : bins{std::move(b)} {}

  QuantileCuts bins;
  std::unique_ptr<BinMatrix> matrix;
  DeviceBuffer<ValueId> offsets{"candidates of features"};
  ColumnsRef candidates{};  // columns without entries, whose values are the bins
  bool scans{false};        // whether all its ranges can be looked up in sorted columns
};

class BinnedTable {
 public:
  /**
   * @brief Makes bins of a table, in steps: bins of ranks, the finest first, and with them sorted
   *        columns; where all bins lie; room for them; then they are written. Waits.
   *
   * @param table          Is gone when this is made.
   * @param max_bins       How many bins a column has in each resolution, the finest first; empty:
   *                       chosen by the table.
   * @param memory         What is kept beside the bins, and where.
   * @param n_categories   How many each feature has, see CountCategories().
   * @param max_group_bins How many bins a group of several columns has; 0: chosen by the table.
   */
  BinnedTable(StagedTable table, std::vector<std::uint32_t> const& max_bins,
              HistogramMemory const& memory, std::vector<std::uint32_t> n_categories,
              std::uint32_t max_group_bins = 0);
  /** @brief Make it of a table that is not staged yet. @param read_at_once See StagedTable. */
  BinnedTable(CsrView const& table, std::vector<std::uint32_t> const& max_bins,
              HistogramMemory const& memory, std::uint32_t max_group_bins = 0,
              EntryIdx read_at_once = 0)
      : BinnedTable{StagedTable{table, memory, read_at_once}, max_bins, memory,
                    CountCategories(table).of_feature, max_group_bins} {}

  [[nodiscard]] BinnedTableRef Ref() const {
    return {resolutions_.front()->matrix->Ref(), values_->Ref(),
            sorted_columns_ != nullptr ? sorted_columns_->Ref() : SortedColumnsRef{nullptr, 0},
            values_->AtHost()};
  }
  [[nodiscard]] RowIdx NumRows() const { return stored_->NumRows(); }
  [[nodiscard]] bool HasSortedColumns() const { return sorted_columns_ != nullptr; }
  /** @brief Give the resolutions, the finest first. */
  [[nodiscard]] std::vector<std::unique_ptr<Resolution>> const& Resolutions() const {
    return resolutions_;
  }
  /** @brief Tell whether a feature has more categories than fit a block. Then all of them have one bin, and
   *         the values of rows are kept. */
  [[nodiscard]] static bool IsWide(CategoricalFeature const& f) {
    return f.n_categories > BinMatrix::MaxBins();
  }
  /** @brief Give the categorical features that have entries, ascending. */
  [[nodiscard]] std::vector<CategoricalFeature> const& Categorical() const { return categorical_; }

 private:
  void AddResolution(std::vector<std::uint32_t> const& n_entries, QuantileCuts&& bins,
                     RowIdx n_rows);
  /**
   * @brief Has room for the bins of all entries: of the finest resolution for all that read them;
   *        of others as they are laid out.
   * @return Those that are to be written.
   */
  [[nodiscard]] std::vector<BinMatrix*> Allocate(TableLayout&& layout, Memory bins_at);

  std::unique_ptr<BinMatrix> stored_;  // that resolutions read
  std::vector<std::unique_ptr<Resolution>> resolutions_;
  std::unique_ptr<RowValues> values_;
  std::unique_ptr<SortedColumns> sorted_columns_;  // nullptr: not kept
  DeviceBuffer<std::uint32_t> n_present_{"entries of columns"};
  std::vector<CategoricalFeature> categorical_;
  DeviceBuffer<std::uint32_t> n_categories_{"categories of features"};  // none: all are numerical
};
}  // namespace gpu_exact
