/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Follows which node each row is in, and sums the nodes' gradients.
 */
#pragma once

#include <vector>

#include "device/level/level.cuh"
#include "device/level/row_positions.cuh"
#include "device/level/training_rows.cuh"
#include "device/runtime/uploader.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Marks a row that is in no open node. */
inline constexpr std::uint8_t kNoKey = 255;
/** @brief Limits the open nodes with which a row's key is its LevelNode; beyond, it is that one's
 *         last bit. */
inline constexpr LevelNode kMaxKeyedNodes = 128;

/** @brief Bounds entries that decide where their rows go: of one feature of the whole table. */
struct RouteRange {
  EntryRange entries;
  FeatureIdx feature;
};

class RowRouter {
 public:
  /** @param max_blocks Of grids that stride over rows, enough for any GPU; changes no result. */
  explicit RowRouter(RowIdx n_rows, std::uint64_t max_blocks = 132 * 16);

  /** @brief Put every row into the root; rows left out are marked as such. Does not wait. */
  void Reset(TrainingRows const& rows);

  /**
   * @brief Move the rows of a level whose entries lie in the ranges to their child. Does not wait.
   * @param node_splits Of the level, device memory.
   */
  void Route(ColumnEntry const* entries, std::vector<RouteRange> const& ranges,
             LevelNodes const& level, NodeSplit const* node_splits);
  /**
   * @brief Move the rest of the split nodes' rows to the default child; then write row keys.
   * @param exchange nullptr: all columns are here. Else rows of nodes whose split is another
   *                 worker's go as that worker says. Collective.
   */
  void RouteMissing(LevelNodes const& level, NodeSplit const* node_splits,
                    LevelNodes const& children, SplitExchange* exchange = nullptr);

  /**
   * @brief Sum the gradients of a level's nodes.
   * @param out_states By node; their sums are 0, and are added to.
   */
  void SumNodes(GradientPair const* gpair, Quantiser const& quantiser, LevelNodes const& level,
                NodeState* out_states);

  [[nodiscard]] RowPositions& Positions() { return positions_; }
  /** @brief Give the LevelNode (or its last bit) of each row, kNoKey where it is in no open
   *         node. */
  [[nodiscard]] std::uint8_t const* RowKeys() const { return row_keys_.Data(); }

 private:
  [[nodiscard]] std::uint64_t StridedGrid() const;

  RowIdx n_rows_;
  std::uint64_t max_blocks_;
  RowPositions positions_;
  DeviceBuffer<std::uint8_t> row_keys_{"row keys"};
  RankBitVector goes_left_{"rows that go left"};  // where there are several workers
  Uploader uploader_{"routed entries"};
};
}  // namespace gpu_exact
