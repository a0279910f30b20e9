/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Finds the splits of a level: entries stay in the order of their column, nodes mixed.
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
 *   a warp links 32 entries at a time, and has the sums of its nodes in shared memory: those of 64
 *   nodes, so levels of more nodes read long columns again for each 64.
 * Work: entries, whatever the number of columns; those of long columns for each 64 nodes. Memory:
 * 48 B a tile of a long column and node, of 64 nodes; 144 B a tile of a block, 16 B one of a warp.
 */
#pragma once

#include <vector>

#include "device/level/level_ref.cuh"
#include "device/sort/row_nodes.cuh"

namespace gpu_exact {
/** @brief Limits the nodes for which long columns are searched at a time. */
inline constexpr LevelNode kNodesAPass = 64;

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
struct WarpTile {
  static constexpr int kSize = 32;

  EntryIdx begin;
  std::uint32_t n;
  std::uint32_t heads;  // bit i: a column begins with the i-th entry
};

/** @brief Bounds one or several columns of up to kSize entries in all, for a block. */
struct BlockTile {
  static constexpr int kSize = kBlockColumn;

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

/** @brief Lends the tiles of all columns to kernels. */
struct TilesRef {
  ColumnEntry const* entries;  // shape: (n_entries)
  EntryIdx n_entries;
  LongTile const* long_tiles;    // shape: (n_long)
  BlockTile const* block_tiles;  // shape: (n_block)
  WarpTile const* warp_tiles;    // shape: (n_warp)
  std::uint32_t n_long;
  std::uint32_t n_block;
  std::uint32_t n_warp;
  TileSum const* sums;  // of long tiles, shape: (n_nodes, n_long), inclusive within a column

  __device__ TileSum const& Sum(LevelNode level_node, std::uint32_t tile) const {
    return sums[std::uint64_t{level_node} * n_long + tile];
  }
};

class ColumnFinder {
 public:
  /**
   * @brief Divide the columns into tiles.
   * @param entry_offsets Where each feature's entries begin, shape: (n_features + 1).
   */
  ColumnFinder(ColumnEntry const* entries, std::vector<EntryIdx> const& entry_offsets);

  /**
   * @brief Offer every candidate of the level, and write what the host wants to know of its nodes. Does
   *        not wait.
   * @param rows The nodes are the level's.
   * @param out  shape: (n_nodes), by node
   */
  void Find(LevelRef const& lv, RowNodesRef const& rows, LevelResult* out);

  /** @brief Tell for each node of the last Find() from which value id on rows go right, shape:
   *         (n_nodes). */
  [[nodiscard]] std::uint64_t const* FirstRight() const { return first_right_.Data(); }

 private:
  /** @brief Offer the candidates of long columns. @param lv Has up to kNodesAPass nodes. */
  void SearchLong(LevelRef const& lv, RowNodesRef const& rows);
  /** @brief Offer those of the other columns. @param lv Has fewer than kNoLevelNode nodes. */
  void SearchWhole(LevelRef const& lv, RowNodesRef const& rows);

  DeviceBuffer<LongTile> long_tiles_{"tiles of long columns"};
  DeviceBuffer<BlockTile> block_tiles_{"tiles of several columns"};
  DeviceBuffer<WarpTile> warp_tiles_{"tiles of short columns"};
  DeviceBuffer<TileSum> partial_{"sums of tiles by node"};
  DeviceBuffer<TileSum> sums_{"scanned sums of tiles by node"};
  DeviceBuffer<std::uint64_t> first_right_{"first values to the right"};
  TilesRef tiles_{};
};
}  // namespace gpu_exact
