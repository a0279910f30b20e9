/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the table's columns on the device: sorted once, read by every tree.
 */
#pragma once

#include <vector>

#include "core/split.h"
#include "device/runtime/runtime.cuh"
#include "gpu_exact/types.h"
#include "plan/memory_plan.h"

namespace gpu_exact {
/** @brief Holds one present value of a column. */
struct alignas(8) ColumnEntry {
  RowIdx row;
  ValueId value;  // number of the (feature, value) pair, ascending by feature, then value
};

/** @brief Lends columns to kernels. */
struct ColumnsRef {
  ColumnEntry const* entries;      // shape: (n_entries), by feature, value, row
  float const* values;             // shape: (n_values), by value id; perhaps of the host
  std::uint32_t const* n_present;  // entries of each feature, shape: (n_features)
  ValueId const* value_offsets;    // shape: (n_features + 1)
  EntryIdx n_entries;
  std::uint64_t n_values;
  RowIdx n_rows;
  FeatureIdx n_features;
  // The feature of every kHintValues-th value id, and of the last one; nullptr: not known.
  FeatureIdx const* feature_hints{nullptr};
  // Of each feature, 0: numerical; nullptr: all are.
  std::uint32_t const* n_categories{nullptr};

  __device__ ValueRange Values(FeatureIdx f) const {
    return {value_offsets[f], value_offsets[f + 1]};
  }
  /** @brief Find the feature that owns a value id. */
  __device__ FeatureIdx FeatureOf(std::uint64_t value) const {
    auto offsets = value_offsets;
    FeatureIdx first{0};
    FeatureIdx last{n_features};
    if (feature_hints != nullptr) {
      first = feature_hints[value / kHintValues];
      last = feature_hints[value / kHintValues + 1];
    }
    return PartitionPoint(first, last, [=](FeatureIdx f) { return offsets[f + 1] > value; });
  }
};

/**
 * @brief Owns the columns. Work: a radix sort of (feature, value) keys over all entries.
 *
 * Memory kept: 8 B an entry, 8 B a feature, 4 B a distinct value and an eighth of one; up to kHostValues of these are
 * host memory. While it sorts: 20 B an entry, up to 24 B where one column has most of them.
 */
class ColumnStore {
 public:
  /** @brief Copies and sorts the table. Waits for the device. */
  explicit ColumnStore(CsrView const& table)
      : ColumnStore{table, MemoryPlan::SortedAtOnce(table.n_entries), kHostValues} {}
  /**
   * @param sorted_at_once Entries, as far as columns can be divided.
   * @param host_values    Up to this many distinct values stay in host memory.
   */
  ColumnStore(CsrView const& table, EntryIdx sorted_at_once, std::uint64_t host_values);

  [[nodiscard]] ColumnsRef Ref() const;
  /** @brief Tell where the entries of each feature begin, shape: (n_features + 1). */
  [[nodiscard]] std::vector<EntryIdx> const& EntryOffsets() const { return h_entry_offsets_; }

 private:
  DeviceBuffer<ColumnEntry> entries_{"column entries"};
  DeviceBuffer<float> values_{"distinct values"};
  PinnedBuffer<float> host_values_{"distinct values"};  // in place of values_
  float* values_at_{nullptr};
  DeviceBuffer<std::uint32_t> n_present_{"entries of columns"};
  DeviceBuffer<ValueId> value_offsets_{"value offsets"};
  DeviceBuffer<FeatureIdx> hints_{"feature hints"};  // none of few features
  std::vector<EntryIdx> h_entry_offsets_;
  EntryIdx n_entries_;
  ValueId n_values_{0};
  RowIdx n_rows_;
  FeatureIdx n_features_;
};
}  // namespace gpu_exact
