/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows in the order of the open nodes: each node's rows lie side by side, ascending by row.
 */
#pragma once

#include <vector>

#include "src/device/partition/feature_table.cuh"
#include "src/device/partition/sides.cuh"
#include "src/device/partition/winner_resolver.cuh"
#include "src/device/split_strategy.cuh"

namespace gpu_exact {
class RowOrder {
 public:
  explicit RowOrder(RowIdx n_rows);

  /** @brief Begin a tree: trained rows are in the root. Does not wait. */
  void Reset(TrainingRows const& rows, RowIdx n_left_out);

  /** @brief Sides of the last split; after Reset of trained rows, which go left, by row. */
  [[nodiscard]] SidesRef Sides() const { return sides_; }
  [[nodiscard]] RowsRef Rows() const { return {rows_[current_].Data(), gpair_, Nodes()}; }
  /** @brief Places of the open nodes, by bucket. */
  [[nodiscard]] RowRange const* Nodes() const { return nodes_[current_].Data(); }
  [[nodiscard]] RowIdx NumTrained() const { return n_trained_; }

  /**
   * @brief Move rows to the children; those of leaves have their position. See SplitStrategy.
   * @param winners Of the level's sorted columns; their entries have not moved yet.
   */
  void Split(FeatureTableRef const& table, SortedWinnersRef const& winners,
             Quantiser const& quantiser, LevelSplits const& splits, NodeState* out_children);

  /** @brief End a tree: rows of open nodes have their position, and so have rows left out. */
  void Finish(FeatureTableRef const& table, std::vector<SplitOrder> const& tree);

  [[nodiscard]] RowPositions& Positions() { return positions_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void CountSides(RowIdx n_places);

  RowIdx n_rows_;
  RowIdx n_trained_{0};
  int current_{0};
  NodeIdx first_node_{kRoot};  // of the open ones
  Bucket n_nodes_{0};
  GradientPair const* gpair_{nullptr};
  SidesRef sides_{};
  RowPositions positions_;
  DeviceBuffer<RowIdx> rows_[2]{DeviceBuffer<RowIdx>{"rows by node"},
                                DeviceBuffer<RowIdx>{"rows by node, next level"}};
  DeviceBuffer<GradientPair> gpairs_[2]{DeviceBuffer<GradientPair>{"gradients by node"},
                                        DeviceBuffer<GradientPair>{"gradients by node, next"}};
  DeviceBuffer<RowRange> nodes_[2]{DeviceBuffer<RowRange>{"rows of nodes"},
                                   DeviceBuffer<RowRange>{"rows of nodes, next level"}};
  DeviceBuffer<SideWord> words_{"sides of rows"};
  DeviceBuffer<SplitOrder> tree_{"the tree, for rows left out"};
  CubScratch scratch_;
};
}  // namespace gpu_exact
