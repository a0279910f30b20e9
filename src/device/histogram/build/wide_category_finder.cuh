/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Searches categorical columns of more categories than fit a block. Bins do not tell these, but the
 *        values of rows do. The categories that rows of a node have are listed with their sums: the rows
 *        of many nodes are sorted by node and category; those of a node of very many rows are added to a sum
 *        of each category. What is listed is sorted by weight, and a block tries the cuts of a node.
 */
#pragma once

#include <memory>
#include <vector>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/bins/categories.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/uploader.cuh"

namespace gpu_exact {
/** @brief Names some rows of a node. */
struct RowSlice {
  RowRange rows;        // slots
  std::uint32_t node;   // among those that are searched at a time
  std::uint32_t first;  // rows of these before it
};

class WideCategoryFinder {
 public:
  /**
   * @param table    Outlives the finder.
   * @param max_rows The most rows that are sorted at once. A node of more rows is added up.
   */
  WideCategoryFinder(BinnedTable const& table, RowIdx max_rows);

  [[nodiscard]] bool Any() const { return !features_.empty(); }
  /** @brief Begin a level: the host has waited since the last one. */
  void BeginLevel() { n_uploads_ = 0; }
  /**
   * @brief Offer the best split of each node by each feature, and write the sets of those that are the
   *        best of their nodes. Does not wait, but where memory grows.
   * @param lv Its columns are those of the nodes' resolution.
   */
  void Find(LevelRef const& lv, RowsRef const& rows, std::vector<SearchedNode> const& nodes,
            LevelSetsRef const& out);

 private:
  /** @brief Names nodes that are searched at a time. */
  struct Batch {
    std::uint32_t first_node;
    std::uint32_t n_nodes;
    std::size_t first_slice;
    std::size_t n_slices;
    RowIdx n_rows;
  };

  [[nodiscard]] std::vector<Batch> Divide(std::vector<SearchedNode> const& nodes,
                                          std::vector<RowSlice>* slices) const;
  void FindAtOnce(LevelRef const& lv, RowsRef const& rows, CategoricalFeature const& column,
                  Batch const& batch, SearchedNode const* nodes, RowSlice const* slices,
                  LevelSetsRef const& out);

  BinnedTable const& table_;
  RowIdx max_rows_;
  std::vector<CategoricalFeature> features_;
  std::vector<std::unique_ptr<Uploader>> uploaders_;  // of the calls of a level
  std::size_t n_uploads_{0};
  DeviceBuffer<FixedSum> sums_{"sums of categories"};  // of those listed, or of all by code
  // Of all nodes that are searched at a time, one after another; numbers count what is listed.
  DeviceBuffer<std::uint64_t> places_{"categories with a sum"};  // by number: node and code
  DeviceBuffer<std::uint64_t> n_places_{"number of categories with a sum"};
  // Rows by node and category, then categories by weight.
  DeviceBuffer<std::uint64_t> keys_[2]{DeviceBuffer<std::uint64_t>{"keys of categories"},
                                       DeviceBuffer<std::uint64_t>{"keys, second half"}};
  DeviceBuffer<std::uint32_t> numbers_[2]{DeviceBuffer<std::uint32_t>{"categories by weight"},
                                          DeviceBuffer<std::uint32_t>{"categories, second half"}};
};
}  // namespace gpu_exact
