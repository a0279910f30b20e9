/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Holds the table on the device, row by row, while columns are made of it.
 */
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/runtime/host_copy.cuh"
#include "gpu_exact/types.h"

namespace gpu_exact {
/**
 * @brief Owns rows whose features ascend. Memory: 8 B an entry, 8 B a row; nothing where the table
 *        lies on the device already with its rows in order.
 */
class RowTable {
 public:
  static constexpr EntryIdx kSortedAtOnce = EntryIdx{1} << 27;

  /**
   * @brief Copies a table of the host, sorts rows where need be. Waits for the device.
   *
   * @param sorted_at_once Entries, as far as rows can be divided.
   * @throw std::invalid_argument where a row has two values of a feature.
   */
  explicit RowTable(CsrView const& table, EntryIdx sorted_at_once = kSortedAtOnce) {
    this->Load(table, 0, sorted_at_once);
  }
  RowTable() = default;
  /**
   * @brief Load a table in the place of the one that was there.
   * @param first_row What messages count the rows from.
   */
  void Load(CsrView const& table, RowIdx first_row = 0, EntryIdx sorted_at_once = kSortedAtOnce);

  /** @brief Give the table, in device memory. */
  [[nodiscard]] CsrView const& View() const { return view_; }
  /** @brief Count the entries of each feature. Waits. */
  [[nodiscard]] std::vector<std::uint32_t> CountEntries() const;
  /** @brief Free the table; nothing may read the view after that. */
  void Release();

 private:
  /** @brief Copy offsets and entries of the host, for which there is room. */
  void Upload(CsrView const& table);
  void SortRows(EntryIdx const* h_offsets, EntryIdx sorted_at_once);

  CsrView view_;
  std::unique_ptr<HostCopier> copier_;
  DeviceBuffer<EntryIdx> row_offsets_{"row offsets"};
  DeviceBuffer<CsrEntry> entries_{"table by row"};
};

/**
 * @brief Calls fn(rows, number of the first one in the table) for all rows of a table, which lie on
 *        the device as RowTable has them while it runs: some at a time where the table is the
 *        host's, else all. Waits.
 *
 * @param at_once   Entries, unless a row has more; rows that are not in order are sorted an eighth of
 *                  them at a time.
 * @param first_row What messages count the rows from.
 */
void ForEachPart(CsrView const& table, EntryIdx at_once,
                 std::function<void(CsrView const&, RowIdx)> const& fn, RowIdx first_row = 0);

/** @brief Add to the counts of features, device memory, the entries of a table on the device. */
void AddEntries(CsrView const& table, std::uint32_t* counts);

/** @brief Launch one warp a row, see WarpRow(). */
template <typename... ParamsT, typename... ArgsT>
void LaunchRows(char const* name, void (*kernel)(ParamsT...), RowIdx n_rows, ArgsT&&... args) {
  LaunchN(name, kernel, std::uint64_t{n_rows} * 32, std::forward<ArgsT>(args)...);
}

/** @brief Give the row of this warp; may be past the last one. */
__device__ inline std::uint64_t WarpRow() { return GlobalIdx() / 32; }

/** @brief Walk along a row by a warp: call fn(i, has) by all lanes together, each for its own entry; past the
 *         end there is none. */
template <typename FnT>
__device__ void WalkRow(CsrView const& table, std::uint64_t row, FnT&& fn) {
  EntryIdx const end = table.offsets[row + 1];
  for (EntryIdx first = table.offsets[row]; first < end; first += 32) {
    EntryIdx const i = first + threadIdx.x % 32;
    fn(i, i < end);
  }
}
/** @brief Call fn(i) for the entries of a row by a warp, each lane for its own. */
template <typename FnT>
__device__ void ForEachEntry(CsrView const& table, std::uint64_t row, FnT&& fn) {
  WalkRow(table, row, [&](EntryIdx i, bool has) {
    if (has) {
      fn(i);
    }
  });
}
}  // namespace gpu_exact
