/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Finds splits of shallow levels: entries stay in the order of their feature, nodes mixed.
 * @see   Mitchell and Frank, PeerJ CS 3:e127, "interleaved" multireduce and multiscan
 *
 * Candidates of a node lie between neighbouring values of its entries, which lie apart in a column:
 * entries of one column and node are a segment, over which sums are scanned.
 * - Columns of up to 32 entries: the lanes of a warp have whole ones, an entry each; those of one
 *   segment are linked, and sum up along the links.
 * - Up to 1,024: a block has whole columns and sorts them by node in shared memory; a segment's
 *   entries are neighbours then.
 * - Longer columns have several tiles and take two passes. The multireduce sums each tile by node;
 *   those sums are scanned over the tiles of the column; the multiscan begins with them. In both
 *   a warp links 32 entries at a time, and has the sums of its nodes in shared memory.
 * Work: entries, whatever the number of nodes and of columns. Extra memory: 48 B a tile of a long
 * column and node, 144 B a tile of a block, 16 B one of a warp.
 */
#pragma once

#include <vector>

#include "device/level/level_ref.cuh"
#include "device/sort/entries.cuh"
#include "device/sort/row_router.cuh"

namespace gpu_exact {
/** @brief Limits the open nodes of an interleaved level. */
inline constexpr LevelNode kMaxInterleavedNodes = LevelNode{1} << (kMaxInterleavedLevels - 1);
static_assert(2 * kMaxInterleavedNodes <= kMaxKeyedNodes);  // their children have keys

/** @brief Bounds a part of a long column, of up to kSize entries, for a block. Ascending. */
struct LongTile {
  static constexpr int kSize = 2048;
  static constexpr unsigned kThreads = 512;
  static constexpr unsigned kWarps = kThreads / 32;
  static constexpr int kRuns = kSize / kThreads;  // of 32 entries, a warp

  EntryRange entries;
  FeatureIdx feature;
  std::uint32_t first;  // tile of the column
  std::uint32_t last;   // the same, inclusive
};

/** @brief Bounds one or several columns of up to kSize entries in all, for a warp. */
struct ShortTile {
  static constexpr int kSize = 32;

  EntryIdx begin;
  std::uint32_t n;
  std::uint32_t heads;  // bit i: a column begins with the i-th entry
};

/** @brief Bounds one or several columns of up to kSize entries in all, for a block. */
struct SharedTile {
  static constexpr int kItems = 4;
  static constexpr int kSize = kSharedColumn;
  static_assert(kSize == 256 * kItems);

  EntryRange entries;
  std::uint32_t heads[kSize / 32];  // bit i: a column begins with the i-th entry
};

/** @brief Sums what the tiles of one column up to this one hold of one node. */
struct TileSum {
  FixedSum sum;
  std::uint32_t occupied;  // 0: no entry of the node so far
  ValueId last_value;

  /** @brief Add a later part. */
  GPU_EXACT_HD friend TileSum operator+(TileSum const& a, TileSum const& b) {
    return {a.sum + b.sum, a.occupied | b.occupied, b.occupied != 0 ? b.last_value : a.last_value};
  }
};

/** @brief Lends entries in column order to kernels of interleaved levels. */
struct InterleavedRef {
  EntriesRef entries;  // shape: (n_entries)
  EntryIdx n_entries;
  std::uint8_t const* row_keys;    // LevelNode of each row, or kNoKey
  LongTile const* long_tiles;      // shape: (n_long)
  SharedTile const* shared_tiles;  // shape: (n_shared)
  ShortTile const* short_tiles;    // shape: (n_short)
  std::uint32_t n_long;
  std::uint32_t n_shared;
  std::uint32_t n_short;
  TileSum const* sums;  // of long tiles, shape: (n_nodes, n_long), inclusive within a column

  __device__ TileSum const& Sum(LevelNode level_node, std::uint32_t tile) const {
    return sums[std::uint64_t{level_node} * n_long + tile];
  }
};

class InterleavedFinder {
 public:
  /**
   * @brief Divide the columns into tiles, at the first call: a finder has one table. Does not wait.
   * @param entry_offsets Of the features, shape: (n_features + 1).
   */
  void BuildTiles(std::vector<EntryIdx> const& entry_offsets);

  /** @brief Offer every candidate of the level. Comes after BuildTiles(). Does not wait. */
  void Find(LevelRef const& level, EntriesRef const& entries, std::uint8_t const* row_keys);

  /** @brief Give what the last Find() left, to look winners up. */
  [[nodiscard]] InterleavedRef const& Ref() const { return ref_; }

 private:
  bool has_tiles_{false};
  DeviceBuffer<LongTile> long_tiles_{"tiles of long columns"};
  DeviceBuffer<SharedTile> shared_tiles_{"tiles of several columns"};
  DeviceBuffer<ShortTile> short_tiles_{"tiles of short columns"};
  DeviceBuffer<TileSum> partial_{"sums of tiles by node"};
  DeviceBuffer<TileSum> sums_{"scanned sums of tiles by node"};
  InterleavedRef ref_{};
};
}  // namespace gpu_exact
