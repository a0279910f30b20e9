/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The rows of every column that has ranges in any resolution, ascending by value: a range's
 *        entries lie side by side.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "gpu_exact/types.h"
#include "src/device/placed_buffer.cuh"

namespace gpu_exact {
/** @brief Borrowed by kernels. */
struct SortedRowsRef {
  static constexpr RowIdx kBeginsValue = RowIdx{1} << 31;  // with the row: the first of its value

  RowIdx const* const* columns;  // by feature, nullptr where a feature has no ranges; or nullptr
};

/** @brief Owns the rows. 4 B an entry of the columns that are kept, 8 B a feature. */
class SortedRows {
 public:
  /**
   * @param max_bins Of a coarser resolution: columns of more bins have ranges there.
   * @param at       Of the rows.
   */
  SortedRows(std::uint32_t max_bins, Memory at) : max_bins_{max_bins}, at_{at} {}

  [[nodiscard]] bool Keeps(bool has_ranges, std::uint64_t n_bins) const {
    return has_ranges || n_bins > max_bins_;
  }
  /** @brief Room for n rows of the next columns, which come in the order of the features. */
  RowIdx* AddRoom(std::uint64_t n) {
    parts_.emplace_back("sorted rows of columns", at_);
    return parts_.back().Reserve(n);
  }
  /** @param rows Of the next feature, within a room; nullptr: none are kept. */
  void AddColumn(RowIdx const* rows) { h_columns_.push_back(rows); }
  /** @brief All features have been added. Waits. */
  void Upload() {
    CopyAsync(columns_.Reserve(h_columns_.size()), h_columns_.data(), h_columns_.size());
    Synchronize();
  }

  /** @brief Whether any column is kept. */
  [[nodiscard]] bool Any() const {
    return std::any_of(parts_.cbegin(), parts_.cend(),
                       [](auto const& p) { return p.Bytes() != 0; });
  }
  [[nodiscard]] SortedRowsRef Ref() const { return {columns_.Data()}; }
  /** @brief Device memory held. */
  [[nodiscard]] std::uint64_t Bytes() const {
    std::uint64_t bytes = columns_.Bytes();
    for (auto const& part : parts_) {
      bytes += part.DeviceBytes();
    }
    return bytes;
  }

 private:
  std::uint32_t max_bins_;
  Memory at_;
  std::vector<PlacedBuffer<RowIdx>> parts_;
  std::vector<RowIdx const*> h_columns_;
  DeviceBuffer<RowIdx const*> columns_{"sorted rows by column"};
};
}  // namespace gpu_exact
