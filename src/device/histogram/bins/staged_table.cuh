/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Brings a table to the device for its bins to be made: by column where most values are
 *        present, by row otherwise.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/histogram/bins/column_values.cuh"
#include "device/table/row_table.cuh"
#include "plan/histogram_memory.h"

namespace gpu_exact {
struct StagedTable {
  /**
   * @brief Reads the table; waits until it has been read.
   * @param table   Outlives this, unless it has been WholeRead().
   * @param memory  Where values lie that are kept.
   * @param at_once Entries of the host's table that are read at once, unless a row has more; 0: as
   *                memory tells.
   */
  StagedTable(CsrView const& table, HistogramMemory const& memory, EntryIdx at_once = 0);

  /** @brief Tells whether the table is not read any more. */
  [[nodiscard]] bool WholeRead() const { return columns != nullptr; }
  [[nodiscard]] TableSource Source() const {
    return columns != nullptr ? columns->Source() : TableSource{rows->View()};
  }
  /** @brief Counts the entries of each feature. */
  [[nodiscard]] std::vector<std::uint32_t> CountEntries() const {
    return columns != nullptr ? columns->CountEntries() : rows->CountEntries();
  }
  /** @brief Frees rows on the device that can be read again: a long table of the host makes room for its
   *         bins. */
  void MakeRoom();
  /** @brief Returns the rows to read once more, of a table by row. */
  [[nodiscard]] CsrView const& Rows() const { return is_read_again ? table : rows->View(); }

  CsrView table;
  EntryIdx n_at_once;
  std::unique_ptr<ColumnValues> columns;  // of a table by column
  std::unique_ptr<RowTable> rows;         // of one by row
  bool is_read_again;                     // from the host's memory, some rows at a time
};
}  // namespace gpu_exact
