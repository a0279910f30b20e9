/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief From the best candidate of each node to its split: the values beside it and the threshold.
 */
#pragma once

#include "src/device/level_ref.cuh"
#include "src/device/partition/feature_table.cuh"
#include "src/device/rows_ref.cuh"

namespace gpu_exact {
/** @brief Where sorted entries of the level lie, to read values beside a candidate. */
struct SortedEntriesRef {
  std::uint32_t const* places;  // PlaceWord
  RowRange const* segments;     // of sparse columns, by (bucket, sparse column)
};

/** @brief Bins of a node beside its winner: the last present below it, the first from it on. */
struct NeighbourBins {
  FeatureIdx feature;  // of the winner, if it is binned
  std::uint32_t bin;   // of the winner
  std::int32_t below;
  std::int32_t above;
};

class WinnerResolver {
 public:
  /** @brief Write the level's results; entries are the places of the node. Does not wait. */
  void Resolve(LevelRef const& level, FeatureTableRef const& table, RowsRef const& rows,
               RowIdx n_places, SortedEntriesRef const& sorted, LevelResult* out);
  [[nodiscard]] std::uint64_t Bytes() const { return neighbours_.Bytes(); }

 private:
  DeviceBuffer<NeighbourBins> neighbours_{"bins beside winners"};
};
}  // namespace gpu_exact
