/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Searches categorical columns of more categories than fit a block. Bins do not tell these, but the
 *        values of rows do. Sums of all categories lie in device memory, of some nodes at a time; those
 *        that have a sum are listed and sorted by the whole device, and a block tries the cuts of a node.
 */
#pragma once

#include <vector>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/category_sets.cuh"
#include "device/histogram/searched_node.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/uploader.cuh"

namespace gpu_exact {
/** @brief Names some rows of a node. */
struct RowSlice {
  RowRange rows;       // slots
  std::uint32_t node;  // among those that are searched at a time
};

class WideCategoryFinder {
 public:
  /**
   * @param table    Outlives the finder.
   * @param max_sums Categories of all nodes that are searched at a time, unless a node has more.
   */
  explicit WideCategoryFinder(BinnedTable const& table, std::uint64_t max_sums = kMaxSums);

  [[nodiscard]] bool Any() const { return !features_.empty(); }
  /**
   * @brief Offer the best split of each node by each feature, and write the sets of those that are the
   *        best of their nodes. Waits.
   * @param level Its columns are those of the nodes' resolution.
   */
  void Find(LevelRef const& level, RowsRef const& rows, std::vector<SearchedNode> const& nodes,
            LevelSetsRef const& out);

 private:
  static constexpr std::uint64_t kMaxSums = std::uint64_t{1} << 22;

  void FindAtOnce(LevelRef const& level, RowsRef const& rows, CategoricalFeature const& column,
                  std::vector<SearchedNode> const& nodes, LevelSetsRef const& out);

  BinnedTable const& table_;
  std::uint64_t max_sums_;
  std::vector<CategoricalFeature> features_;
  Uploader uploader_{"nodes searched by wide columns, and their rows"};
  DeviceBuffer<FixedSum> sums_{"sums of categories"};
  // Of all nodes that are searched at a time, one after another; numbers count the categories with a sum.
  DeviceBuffer<std::uint32_t> places_{"categories with a sum"};  // by number: place among the sums
  DeviceBuffer<std::uint64_t> n_places_{"number of categories with a sum"};
  DeviceBuffer<std::uint64_t> keys_[2]{DeviceBuffer<std::uint64_t>{"weights of categories"},
                                       DeviceBuffer<std::uint64_t>{"weights, second half"}};
  DeviceBuffer<std::uint32_t> numbers_[2]{DeviceBuffer<std::uint32_t>{"categories by weight"},
                                          DeviceBuffer<std::uint32_t>{"categories, second half"}};
};
}  // namespace gpu_exact
