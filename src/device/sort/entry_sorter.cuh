/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The entries of a tree in progress: in column order at first, then sorted by node.
 *
 * Every sort is stable, so the entries of a node stay ascending by feature and value.
 * Memory: 34 B an entry, two halves of 16 B entries and 1 B keys.
 */
#pragma once

#include <vector>

#include "src/device/sort/sorted_finder.cuh"

namespace gpu_exact {
class EntrySorter {
 public:
  explicit EntrySorter(ColumnsRef const& columns);

  /** @brief Begin a tree: column order, every entry in one node. Does not wait. */
  void Reset(ColumnsRef const& columns, GradientPair const* gpair);

  /**
   * @brief Sort all entries by the bucket of their row; those of other rows go. Waits.
   *        Comes once a tree, after Reset: until then every entry is open.
   * @param row_keys Buckets, kNoKey where the row is in no open node.
   */
  void SortByNode(std::uint8_t const* row_keys, Bucket n_nodes);

  /**
   * @brief Sort the entries of each split node by child; those of other nodes go. Does not wait.
   * @param nodes    Where the entries of the level's nodes lie, by bucket.
   * @param is_split By bucket.
   * @param row_keys The last bit is the child: 0 left, 1 right.
   */
  void SortByChild(std::vector<EntryRange> const& nodes, std::vector<bool> const& is_split,
                   std::uint8_t const* row_keys);

  [[nodiscard]] Entry const* Entries() const { return halves_[current_].Data(); }
  [[nodiscard]] NodeRangesRef const& Ranges() const { return ref_; }
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  void WriteKeys(std::uint8_t const* row_keys);
  /** @brief Calls a sort of CUB's from the current half into the other one. */
  template <typename FnT>
  void OnePass(EntryIdx base, FnT&& sort);
  void SortRange(EntryRange const& range, int n_bits);
  void SortSegments(std::vector<EntryRange> const& segments);
  void UseRanges(Bucket n_nodes);

  EntryIdx n_entries_;
  int current_{0};
  DeviceBuffer<Entry> halves_[2]{DeviceBuffer<Entry>{"entries"},
                                 DeviceBuffer<Entry>{"entries, second half"}};
  DeviceBuffer<std::uint8_t> keys_{"sort keys"};
  DeviceBuffer<std::uint8_t> sorted_keys_{"sorted keys"};
  DeviceBuffer<EntryRange> ranges_{"entry ranges of nodes"};
  DeviceBuffer<EntryRange> split_ranges_{"entry ranges of split nodes"};
  DeviceBuffer<EntryIdx> open_ends_{"ends of open entries"};
  DeviceBuffer<int> segment_begins_{"segment begins"};
  DeviceBuffer<int> segment_ends_{"segment ends"};
  CubScratch scratch_;
  NodeRangesRef ref_{};
};
}  // namespace gpu_exact
