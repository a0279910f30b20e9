/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Plans the device memory of a builder from the size of its table: one formula for the check
 *        before anything is allocated, for the error text and for the README.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "plan/bin_bound.h"
#include "plan/bin_layout.h"
#include "plan/histogram_memory.h"

namespace gpu_exact {
/**
 * @brief Limits for kSort the distinct values that stay in page-locked host memory, 64 MiB, as
 *        a level reads few of them for each node. More go to the device, as locking the pages
 *        takes time: about 0.3 ms a MiB, once for a table.
 */
inline constexpr std::uint64_t kHostValues = std::uint64_t{1} << 24;
/** @brief Sets for kSort of how many values one has its feature kept, to bisect between two. */
inline constexpr std::uint64_t kHintValues = 32;

/** @brief Limits for kSort the entries of columns that a block searches as a whole. */
inline constexpr EntryIdx kBlockColumn = 1024;

/** @brief Count the categorical features of a table. */
[[nodiscard]] FeatureIdx NumCategorical(CsrView const& table);

/** @brief Names one kind of array and what it takes. */
struct MemoryItem {
  char const* what;
  std::uint64_t bytes;
};

/** @brief Lists what a builder holds while it reads the table, sorts it, and grows trees. */
struct MemoryPlan {
  std::vector<MemoryItem> reading;
  std::vector<MemoryItem> sorting;
  std::vector<MemoryItem> growing;
  std::vector<MemoryItem> of_host;  // page-locked memory of the host, in place of the device's

  /**
   * @brief Bound memory from above by the table, as if all values were distinct. Nodes come on top,
   *        about 300 B for each live one and 16 B for each of its columns.
   * @param strategy    Not kAuto.
   * @param memory      What kHistogram keeps where.
   * @param max_bins    What a block of the device has room for.
   * @param categorical The columns that are searched by category; only kHistogram takes any.
   */
  static MemoryPlan Make(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                         Strategy strategy, HistogramMemory const& memory = {},
                         std::uint32_t max_bins = kMaxGroupBins,
                         CategoricalColumns const& categorical = {});

  /**
   * @brief Add what follows the live nodes of a tree to the plan, as a further array.
   * @param max_depth 0: no limit; nodes are at most as many as rows.
   * @param memory, categorical What the plan was made with.
   */
  [[nodiscard]] MemoryPlan WithNodes(RowIdx n_rows, FeatureIdx n_features, Strategy strategy,
                                     std::int32_t max_depth, HistogramMemory const& memory = {},
                                     CategoricalColumns const& categorical = {}) const;

  /**
   * @brief Count for kSort the entries of whole columns that are sorted by value at once. Half of
   *        the table, so that sorting takes no more than reading; a small one as a whole.
   */
  static EntryIdx SortedAtOnce(EntryIdx n_entries);

  /** @brief Give the greatest of the sums of device memory, bytes. */
  [[nodiscard]] std::uint64_t Peak() const;
  /** @brief Sum the page-locked memory of the host, bytes. */
  [[nodiscard]] std::uint64_t HostBytes() const;
  /** @brief Describe the lists in MiB, for people. */
  [[nodiscard]] std::string Describe() const;
};

/** @brief Holds a device's memory in bytes, the limit that MakeDeviceBuilder() is given, and the
 *         device. */
struct MemoryRoom {
  std::uint64_t free;
  std::uint64_t total;
  double limit{0.0};
  std::uint32_t max_bins{kMaxGroupBins};  // that a block of the device has room for
  // Of the rows that the table is made of, where these are the builder's own: a part of what is free.
  std::uint64_t rows_bytes{0};

  /** @brief Give what a table may take. */
  [[nodiscard]] std::uint64_t Most() const;
};

/** @brief Holds what of a table is kept where, and the plan of it. */
struct ChosenMemory {
  HistogramMemory memory;  // of kHistogram
  MemoryPlan plan;
};

/**
 * @brief Find the fastest choice that fits, with as much room for histograms as it leaves.
 * @param strategy    Not kAuto.
 * @param categorical The table's categorical columns.
 * @throw OutOfDeviceMemory where none does, with the plan of the one that takes least.
 */
[[nodiscard]] ChosenMemory ChooseMemory(CsrView const& table, Strategy strategy,
                                        MemoryRoom const& room,
                                        CategoricalColumns const& categorical = {});
}  // namespace gpu_exact
