/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief From the best candidate of each node to its split: the values beside it, the threshold,
 *        and of a sorted column which entries go right.
 */
#pragma once

#include "src/device/level_ref.cuh"
#include "src/device/partition/feature_table.cuh"
#include "src/device/rows_ref.cuh"

namespace gpu_exact {
/** @brief Where sorted entries of the level lie, to read values beside a candidate. */
struct SortedEntriesRef {
  std::uint32_t const* places;  // PlaceWord; nullptr: no column is sorted
  RowRange const* segments;     // of sparse columns, by (bucket, sparse column)
};

/** @brief A split node's entries of the sorted column that it is split on. */
struct WinnerSegment {
  EntryIdx begin;  // of SortedEntriesRef::places
  EntryIdx first_right;
  EntryIdx end;  // begin: the winner is binned, or there is none
};

/** @brief The winners that are sorted columns, to route rows. */
struct SortedWinnersRef {
  std::uint32_t const* places;    // PlaceWord; nullptr: no column is sorted
  WinnerSegment const* segments;  // by bucket
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
  /** @brief Of the last level, until its entries move. */
  [[nodiscard]] SortedWinnersRef SortedWinners() const { return {places_, winners_.Data()}; }
  [[nodiscard]] std::uint64_t Bytes() const { return neighbours_.Bytes() + winners_.Bytes(); }

 private:
  std::uint32_t const* places_{nullptr};
  DeviceBuffer<WinnerSegment> winners_{"entries of winners"};
  DeviceBuffer<NeighbourBins> neighbours_{"bins beside winners"};
};
}  // namespace gpu_exact
