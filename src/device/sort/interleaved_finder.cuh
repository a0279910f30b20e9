/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Splits of shallow levels: entries stay in the order of their feature, nodes mixed.
 * @see   Mitchell and Frank, PeerJ CS 3:e127, "interleaved" multireduce and multiscan
 *
 * Two passes over the entries. The multireduce sums each tile by node; those sums are scanned over
 * the tiles of a feature. The multiscan then sorts each tile by node in shared memory, where a
 * segmented scan gives the sums before every entry, and a neighbour of another value, the sign that
 * an entry is the first of its value in its node, is the entry beside it.
 * Work: entries, whatever the number of nodes. Extra memory: 48 B a tile of 2,048 entries and node.
 */
#pragma once

#include <vector>

#include "src/device/level_ref.cuh"
#include "src/device/sort/entries.cuh"
#include "src/device/sort/row_partition.cuh"

namespace gpu_exact {
static_assert((Bucket{1} << kMaxInterleavedLevels) <= kMaxKeyedNodes);

inline constexpr int kInterleavedItems = 8;  // entries a thread
inline constexpr int kInterleavedTile = 256 * kInterleavedItems;

/** @brief What the tiles of one feature up to this one hold of one node. */
struct TileSum {
  FixedSum sum;
  std::uint32_t occupied;  // 0: no entry of the node so far
  ValueId last_value;
};

/** @brief The tiles of the columns; none holds two features. */
struct ColumnTiles {
  FeatureIdx const* feature;        // shape: (n_tiles)
  std::uint32_t const* of_feature;  // first tile of a feature, shape: (n_features + 1)
  EntryIdx const* begins;           // first entry of a tile, shape: (n_tiles + 1)
  std::uint32_t n_tiles;
};

/** @brief Entries in column order, for kernels of interleaved levels. */
template <typename EntryT>
struct InterleavedRef {
  EntriesRef<EntryT> entries;    // shape: (n_entries)
  std::uint8_t const* row_keys;  // bucket of each row, or kNoKey
  ColumnTiles tiles;
  TileSum const* sums;  // shape: (n_nodes, n_tiles), inclusive within a feature

  __device__ EntryRange OfTile(std::uint32_t tile) const {
    return {tiles.begins[tile], tiles.begins[tile + 1]};
  }
  __device__ EntryRange OfFeature(FeatureIdx f) const {
    return {tiles.begins[tiles.of_feature[f]], tiles.begins[tiles.of_feature[f + 1]]};
  }
  __device__ TileSum const& Sum(Bucket bucket, std::uint32_t tile) const {
    return sums[std::uint64_t{bucket} * tiles.n_tiles + tile];
  }
};

/** @tparam EntryT CarriedEntry or ColumnEntry. */
template <typename EntryT>
class InterleavedFinder {
 public:
  /**
   * @brief Divide the columns into tiles, at the first call: a finder has one table. Does not wait.
   * @param entry_offsets Of the features, shape: (n_features + 1).
   */
  void Lay(std::vector<EntryIdx> const& entry_offsets);

  /** @brief Offer every candidate of the level. Comes after Lay. Does not wait. */
  void Find(LevelRef const& level, EntriesRef<EntryT> const& entries, std::uint8_t const* row_keys);

  /** @brief What the last Find left, to look winners up. */
  [[nodiscard]] InterleavedRef<EntryT> const& Ref() const { return ref_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  DeviceBuffer<FeatureIdx> tile_feature_{"tiles"};
  DeviceBuffer<std::uint32_t> feature_tile_{"first tiles"};
  DeviceBuffer<EntryIdx> tile_begin_{"first entries of tiles"};
  DeviceBuffer<TileSum> partial_{"sums of tiles by node"};
  DeviceBuffer<TileSum> sums_{"scanned sums of tiles by node"};
  CubScratch scratch_;
  InterleavedRef<EntryT> ref_{};
};
}  // namespace gpu_exact
