/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds one worker's part of a table: some rows when it comes, some columns of all rows
 *        while trees grow.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/table/column_ids.cuh"
#include "device/workers/device_communicator.cuh"
#include "gpu_exact/types.h"

namespace gpu_exact {
/**
 * @brief Exchanges rows for columns once. Memory meanwhile: 16 B an own entry, before or after,
 *        and 12 B an own row for each worker, or 12 B a row of the whole table (ExchangeBytes); then that
 *        of the slice, until it is released.
 */
class ColumnPartition {
 public:
  /**
   * @brief Collective. Waits for the device.
   * @param comm  Borrowed.
   * @param rows  The own ones.
   * @throw std::invalid_argument on every worker where all rows are too many; WorkerError where one
   *        worker cannot take part, which throws what it has met.
   */
  ColumnPartition(Communicator* comm, CsrView const& rows, Transport transport = Transport::kAuto);

  /** @brief Give all rows of the own columns; device memory. A worker without a column has one
   *         that is empty. */
  [[nodiscard]] CsrView const& OwnTable() const { return own_table_; }
  void ReleaseOwnTable();
  /** @brief Count the device memory of the own table, and the most that was taken to get it. */
  [[nodiscard]] std::uint64_t OwnTableBytes() const { return offsets_.Bytes() + entries_.Bytes(); }
  [[nodiscard]] std::uint64_t ExchangeBytes() const { return exchange_bytes_; }

  /** @brief Give the sizes of the whole table, without arrays. */
  [[nodiscard]] CsrView const& Whole() const { return whole_; }
  /** @brief Give the rows of each worker. */
  [[nodiscard]] std::vector<std::uint64_t> const& RowBegins() const { return row_begins_; }
  /** @brief Give the features of the own columns. */
  [[nodiscard]] ColumnFeatures Features() const { return {features_.Data()}; }
  /** @brief Give the feature of an own column. */
  [[nodiscard]] FeatureIdx FeatureOf(ColumnIdx column) const {
    return h_features_[InOwnTable(column)];
  }
  /** @brief Find the own column of a feature, or kRemoteColumn. */
  [[nodiscard]] ColumnIdx ColumnOf(FeatureIdx feature) const { return column_of_[feature]; }
  [[nodiscard]] DeviceCommunicator* Workers() const { return workers_.get(); }

 private:
  /** @brief Counts the entries that each worker sends to each, shape: (n_workers, n_workers). */
  using Traffic = std::vector<std::uint64_t>;

  void SumSizes(CsrView const& rows);
  /** @brief Choose the own columns. @param n_entries How many the own rows have, by feature. */
  Traffic ShareOut(std::vector<std::uint32_t> const& n_entries,
                   std::vector<std::int32_t>* out_worker_of);

  std::unique_ptr<DeviceCommunicator> workers_;
  CsrView whole_{};
  CsrView own_table_{};
  std::vector<std::uint64_t> row_begins_;  // shape: (n_workers + 1)
  std::vector<ColumnIdx> column_of_;       // shape: (n_features)
  std::vector<FeatureIdx> h_features_;     // of the own columns
  std::vector<FeatureType> types_;         // shape: (n_features); none: all are numerical
  std::vector<FeatureType> own_types_;     // of the own columns, which OwnTable() lends
  std::uint64_t exchange_bytes_{0};
  DeviceBuffer<FeatureIdx> features_{"own features"};
  DeviceBuffer<EntryIdx> offsets_{"rows of the own columns"};
  DeviceBuffer<CsrEntry> entries_{"own columns by row"};
};
}  // namespace gpu_exact
