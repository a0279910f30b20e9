/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Sorts the entries of a tree in progress: in column order at first, then by node.
 *
 * While nodes have a key each, all entries are sorted from column order, in one pass for the whole
 * level; later those of each split node are sorted by child. Every sort is stable, so that the
 * entries of a node stay ascending by feature and value.
 * Memory: the entries once by node, 8 B each; a second time where they were sorted by child; and 2 B
 * keys. Entries in column order alone take nothing, but for 8 B a row.
 */
#pragma once

#include <vector>

#include "device/runtime/uploader.cuh"
#include "device/sort/entries.cuh"
#include "device/sort/segmented_finder.cuh"

namespace gpu_exact {
class EntrySorter {
 public:
  static constexpr EntryIdx kLongSegment = EntryIdx{1} << 18;

  /**
   * @param columns      They stay as they are and outlive the sorter.
   * @param long_segment A child sort's segment of this many entries is sorted alone, by all blocks:
   *                     CUB gives shorter ones a block each. Changes no result.
   */
  explicit EntrySorter(ColumnsRef const& columns, EntryIdx long_segment = kLongSegment)
      : columns_{columns}, long_segment_{long_segment} {}

  /** @brief Begin a tree: column order, every entry in one node. Does not wait. */
  void Reset(GradientPair const* gpair, Quantiser const& quantiser);

  /**
   * @brief Sort all entries, from column order, by the node of their row; those of other rows go.
   *        Does not wait.
   * @param row_keys LevelNodes, kNoKey where the row is in no open node.
   * @param max_open Upper bound of the entries of open nodes.
   */
  void SortByNode(std::uint8_t const* row_keys, LevelNode n_nodes, EntryIdx max_open);

  /**
   * @brief Sort the entries of each split node by child; those of other nodes go. Does not wait.
   *        Comes after SortByNode only.
   * @param split_nodes Where the entries of these nodes lie, by node.
   * @param row_keys    The last bit is the child: 0 left, 1 right.
   */
  void SortByChild(std::vector<EntryRange> const& split_nodes, std::uint8_t const* row_keys);

  [[nodiscard]] EntriesRef Entries() const { return {entries_, units_.Data()}; }
  [[nodiscard]] NodeRangesRef const& Ranges() const { return ref_; }

 private:
  [[nodiscard]] std::uint8_t* SortedKeys() const { return keys_.Data() + columns_.n_entries; }
  void SortRange(EntryRange const& range);
  /** @brief Sort each segment, and upload them. @return Their number in uploader_. */
  std::size_t SortSegments(std::vector<EntryRange> const& segments);
  /** @brief Calls a sort of CUB's by one bit, from the current half into the other one. */
  template <typename FnT>
  void OnePass(EntryIdx base, FnT&& sort);

  ColumnsRef columns_;
  EntryIdx long_segment_;
  // of the tree in progress
  ColumnEntry const* entries_{nullptr};
  int current_{0};  // half that the entries lie in, once they are sorted
  NodeRangesRef ref_{};

  DeviceBuffer<GradientUnits> units_{"gradients of rows"};
  DeviceBuffer<ColumnEntry> halves_[2]{DeviceBuffer<ColumnEntry>{"entries"},
                                       DeviceBuffer<ColumnEntry>{"entries, second half"}};
  DeviceBuffer<std::uint8_t> keys_{"sort keys"};  // by entry; then those of sorted entries
  DeviceBuffer<EntryRange> ranges_{"entry ranges of nodes"};
  DeviceBuffer<EntryIdx> open_ends_{"ends of open entries"};
  Uploader uploader_{"entry ranges of split nodes"};
};
}  // namespace gpu_exact
