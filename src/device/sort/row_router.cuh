/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Follows which node each row is in, and sums the nodes' gradients.
 */
#pragma once

#include <vector>

#include "device/level/level.cuh"
#include "device/level/row_positions.cuh"
#include "device/level/training_rows.cuh"
#include "device/runtime/uploader.cuh"
#include "device/sort/row_nodes.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Bounds entries that decide where their rows go: of one feature of the whole table. */
struct RouteRange {
  EntryRange entries;
  FeatureIdx feature;
};

class RowRouter {
 public:
  /** @param max_blocks Limits grids that stride over rows, enough for any GPU; changes no result. */
  explicit RowRouter(RowIdx n_rows, std::uint64_t max_blocks = 132 * 16);

  /** @brief Put every row into the root; rows left out are marked as such. Does not wait. */
  void Reset(TrainingRows const& rows, Quantiser const& quantiser);

  /**
   * @brief Move the rows whose entries lie in the ranges to the children of their nodes. Does not wait.
   * @param node_splits Those of the nodes, device memory.
   * @param first_right The first value id that goes right, of each node.
   */
  void Route(ColumnEntry const* entries, std::vector<RouteRange> const& ranges,
             LevelNodes const& nodes, NodeSplit const* node_splits,
             std::uint64_t const* first_right);
  /**
   * @brief Move the rest of the split nodes' rows to the default child.
   * @param exchange nullptr: all columns are here. Else rows of nodes whose split is another
   *                 worker's go as that worker says. Collective.
   */
  void RouteMissing(LevelNodes const& nodes, NodeSplit const* node_splits,
                    LevelNodes const& children, SplitExchange* exchange = nullptr);

  /**
   * @brief Sum the gradients of some nodes.
   * @param out_states By node; their sums are 0, and are added to.
   */
  void SumNodes(LevelNodes const& nodes, NodeState* out_states);

  [[nodiscard]] RowPositions& Positions() { return positions_; }
  /** @brief Lend the rows to a search of some nodes. */
  [[nodiscard]] RowNodesRef Ref(LevelNodes const& nodes) const;

 private:
  [[nodiscard]] std::uint64_t StridedGrid() const;

  RowIdx n_rows_;
  std::uint64_t max_blocks_;
  RowPositions positions_;
  DeviceBuffer<GradientUnits> units_{"gradients of rows"};
  DeviceBuffer<std::uint32_t> goes_left_{"rows that go left"};  // where there are several workers
  Uploader uploader_{"routed entries"};
};
}  // namespace gpu_exact
