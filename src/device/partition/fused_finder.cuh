/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Columns of many values: one pass over the entries of the split nodes moves each to its
 *        child, stable, and searches both children for splits on the way.
 *
 * An entry is 12 B: the place of its row and its gradients, gathered at the root and carried along
 * from there. A tile of a node that fills several looks back at those before it; of columns with
 * missing values tiles are summed first. Work: entries of split nodes. Memory: 24 B an entry, two
 * halves; up to 224 B a column and tile of 2,048 rows; 16 B a node and sparse column.
 */
#pragma once

#include <vector>

#include "src/device/level_ref.cuh"
#include "src/device/partition/look_back.cuh"
#include "src/device/partition/sides.cuh"
#include "src/device/partition/sorted_columns.cuh"
#include "src/device/partition/split_tile.cuh"

namespace gpu_exact {
/** @brief A node whose entries move to its children, buckets 2 i and 2 i + 1 of the next level. */
struct SplitParent {
  RowRange rows;             // its places
  Bucket bucket;             // of the node, in its level
  Bucket index;              // i
  std::uint32_t first_tile;  // set by the finder
};

/** @brief A tile of a split node. */
struct TileRef {
  std::uint32_t parent;
  std::uint32_t tile;
};

/** @brief One level's move and search, borrowed by kernels. */
struct FusedRef {
  LevelRef level;
  SortedColumnsRef columns;
  SidesRef sides;
  RowRange const* children;         // places, by bucket of the level searched
  RowRange const* parent_segments;  // of sparse columns, by (bucket of the parent, sparse column)
  RowRange* child_segments;         // the same of the level searched
  SplitPrefix* prefixes;            // of sparse columns' tiles, of nodes that fill several
  SplitPrefix* totals;              // of the segments of those
  TileStatus* statuses;             // of dense columns' tiles of such nodes
  std::uint32_t n_long_tiles;       // tiles of such nodes; they come first
  std::uint32_t const* from;        // PlaceWord
  EntryGradient const* from_gpair;  // nullptr at the root
  GradientPair const* row_gpair;    // by row, at the root
  SplitEntriesRef to;
  bool moves;        // otherwise entries stay in place: the root, where no row is left out
  bool write_gpair;  // entries move again; otherwise only places are needed, of winners
};

class FusedFinder {
 public:
  explicit FusedFinder(SortedColumns const& columns);

  /**
   * @brief Begin a tree: entries of all rows, in one node, are offered to it. Does not wait.
   * @param sides Bits of trained rows by row; no words: all are.
   */
  void FindRoot(LevelRef const& level, GradientPair const* gpair, SidesRef const& sides,
                RowRange const* root, RowIdx n_rows, bool last_level);

  /**
   * @brief Move the entries of split nodes to the children and offer all candidates of those.
   * @param parents    Split nodes, ascending.
   * @param children   Places of the children, by bucket.
   * @param last_level No later call will move these entries.
   */
  void Find(LevelRef const& level, std::vector<SplitParent> const& parents, SidesRef const& sides,
            RowRange const* children, bool last_level);

  /** @brief Places of the entries that the last call searched: winners are looked up there. */
  [[nodiscard]] std::uint32_t const* Places() const { return places_; }
  [[nodiscard]] RowRange const* Segments() const { return segments_[0].Data(); }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  struct Half {
    DeviceBuffer<std::uint32_t> places{"places of entries"};
    DeviceBuffer<EntryGradient> gpair{"gradients of entries"};
    [[nodiscard]] SplitEntriesRef Ref() const { return {places.Data(), gpair.Data()}; }
  };
  /** @brief Split nodes in the order of their size: tiles of large ones, then small ones. */
  struct Tiles {
    std::uint32_t n_large;
    std::uint32_t n_small;
    std::uint32_t n_long;  // large ones of several tiles; they come first
    std::uint32_t n_tiles;
    std::uint32_t n_long_tiles;
  };
  /** @param small_rows Nodes of up to so many rows are small. */
  Tiles MakeTiles(std::vector<SplitParent> parents, RowIdx small_rows);
  [[nodiscard]] FusedRef MakeRef(LevelRef const& level, SidesRef const& sides,
                                 RowRange const* children, bool last_level);
  template <bool kRoot>
  void Run(FusedRef ref, Tiles const& tiles);

  SortedColumns const& columns_;
  Half halves_[2];  // entries of the last level searched, and those to be written
  // Of the last level's entries: the first half's, or where the root's stayed the columns'.
  std::uint32_t const* places_{nullptr};
  DeviceBuffer<RowRange> segments_[2]{DeviceBuffer<RowRange>{"segments of sparse columns"},
                                      DeviceBuffer<RowRange>{"segments, next level"}};
  DeviceBuffer<SplitParent> parents_{"split nodes"};
  DeviceBuffer<TileRef> tiles_{"tiles of split nodes"};
  DeviceBuffer<SplitPrefix> prefixes_{"sums before tiles"};
  DeviceBuffer<TileStatus> statuses_{"sums of tiles"};
  DeviceBuffer<SplitPrefix> totals_{"sums of segments"};
};
}  // namespace gpu_exact
