/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the values of some columns, column by column: 4 B a row and column, NaN where
 *        missing.
 *
 * A table most of whose values are present lies like that while its bins are made, in half the room
 * of its compressed rows, and the values of columns that have ranges stay.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "device/runtime/placed_buffer.cuh"
#include "device/table/row_table.cuh"

namespace gpu_exact {
/** @brief Lends a table on the device while bins are made of it: by row, or by column. */
struct TableSource {
  TableSource(CsrView const& table)  // NOLINT: a table by row is one
      : rows{table}, n_rows{table.n_rows}, n_features{table.n_features} {}
  TableSource(float const* const* values, RowIdx rows, FeatureIdx features)
      : columns{values}, n_rows{rows}, n_features{features} {}

  CsrView rows;  // features ascend within a row; empty where it is by column
  float const* const* columns{nullptr};  // shape: (n_features, n_rows); nullptr: it is by row
  RowIdx n_rows;
  FeatureIdx n_features;
};

class ColumnValues {
 public:
  /**
   * @brief Choose the values of one allocation: a quarter of them, within 16 and 256 MiB.
   *
   * What is freed at the end is freed part by part, and the last part that stays is copied to be
   * shorter; each part takes whole pages of 2 MiB.
   */
  [[nodiscard]] static std::uint64_t PartOf(std::uint64_t n_values) {
    return std::clamp(n_values / 4, std::uint64_t{1} << 22, std::uint64_t{1} << 26);
  }

  /**
   * @brief Reads the table, some rows at a time where it is the host's. Waits for the device.
   *
   * Memory: 4 B a row and kept column; meanwhile 8 B for each entry that is read at once.
   *
   * @param kept    Which columns, shape: (n_features).
   * @param at      Where the values lie.
   * @param at_once Entries, unless a row has more.
   * @param part    Values of one allocation, unless a column has more; 0: PartOf() all of them.
   * @throw std::invalid_argument where a row has two values of a feature.
   */
  ColumnValues(CsrView const& table, std::vector<bool> const& kept, Memory at = Memory::kDevice,
               EntryIdx at_once = EntryIdx{1} << 25, std::uint64_t part = 0);

  /** @brief Give the entries of each kept column. */
  [[nodiscard]] std::vector<std::uint32_t> const& CountEntries() const { return n_entries_; }
  /** @brief Free all columns but these, which are some of those that are kept. Waits. */
  void Keep(std::vector<bool> const& kept);

  /** @brief Give the columns of all features; nullptr for a column that is not kept. */
  [[nodiscard]] TableSource Source() const { return {columns_.Data(), n_rows_, n_features_}; }
  /** @brief Tell whether any lie in the memory of the host. */
  [[nodiscard]] bool AtHost() const { return at_ == Memory::kHost && this->ValueBytes() != 0; }
  /** @brief Count the bytes of the values, wherever they lie. */
  [[nodiscard]] std::uint64_t ValueBytes() const;

 private:
  /** @brief Set the pointers of columns: kept ones follow each other in the parts. */
  void Place(std::vector<bool> const& kept);
  [[nodiscard]] float* KeptColumn(std::uint64_t i) const {
    return parts_[i / of_part_].Data() + i % of_part_ * n_rows_;
  }

  Memory at_;
  RowIdx n_rows_;
  FeatureIdx n_features_;
  std::uint64_t of_part_;                   // columns that one allocation holds
  std::vector<PlacedBuffer<float>> parts_;  // so that some can be freed
  std::vector<float*> h_columns_;           // shape: (n_features)
  std::vector<std::uint32_t> n_entries_;    // shape: (n_features)
  DeviceBuffer<float*> columns_{"values by column"};
};
}  // namespace gpu_exact
