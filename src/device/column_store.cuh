/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The table's columns on the device: sorted once, read by every tree.
 */
#pragma once

#include <vector>

#include "gpu_exact/types.h"
#include "src/device/runtime.cuh"
#include "src/split.h"

namespace gpu_exact {
/** @brief One present value of a column. */
struct alignas(8) ColumnEntry {
  RowIdx row;
  ValueId value;  // number of the (feature, value) pair, ascending by feature, then value
};

/** @brief Columns, borrowed by kernels. */
struct ColumnsRef {
  ColumnEntry const* entries;     // shape: (n_entries), by feature, value, row
  float const* values;            // shape: (n_values), by value id
  EntryIdx const* entry_offsets;  // shape: (n_features + 1)
  ValueId const* value_offsets;   // shape: (n_features + 1)
  EntryIdx n_entries;
  std::uint64_t n_values;
  RowIdx n_rows;
  FeatureIdx n_features;
  // The feature of every kHintValues-th value id, and of the last one; nullptr: not known.
  FeatureIdx const* feature_hints{nullptr};

  static constexpr int kHintValues = 16;

  __device__ ValueRange Values(FeatureIdx f) const {
    return {value_offsets[f], value_offsets[f + 1]};
  }
  /** @brief The feature that owns a value id. */
  __device__ FeatureIdx FeatureOf(std::uint64_t value) const {
    auto offsets = value_offsets;
    FeatureIdx first{0};
    FeatureIdx last{n_features};
    if (feature_hints != nullptr) {
      first = feature_hints[value / kHintValues];
      last = feature_hints[value / kHintValues + 1];
    }
    return FirstIndex(first, last, [=](FeatureIdx f) { return offsets[f + 1] > value; });
  }
};

/**
 * @brief Owns the columns. Work: one radix sort of (feature, value) keys over all entries.
 *
 * Memory kept: 8 B an entry, 4 B a distinct value, 12 B a feature; 24 B an entry at most while it
 * sorts.
 */
class ColumnStore {
 public:
  /** @brief Copies and sorts the table. Waits for the device. */
  explicit ColumnStore(CsrView const& table);

  [[nodiscard]] ColumnsRef Ref() const;
  /** @brief Host copy of entry_offsets, shape: (n_features + 1). */
  [[nodiscard]] std::vector<EntryIdx> const& EntryOffsets() const { return h_entry_offsets_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  DeviceBuffer<ColumnEntry> entries_{"column entries"};
  DeviceBuffer<float> values_{"distinct values"};
  DeviceBuffer<EntryIdx> entry_offsets_{"column offsets"};
  DeviceBuffer<ValueId> value_offsets_{"value offsets"};
  std::vector<EntryIdx> h_entry_offsets_;
  EntryIdx n_entries_;
  ValueId n_values_{0};
  RowIdx n_rows_;
  FeatureIdx n_features_;
};
}  // namespace gpu_exact
