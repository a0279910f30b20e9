/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Finds the best candidates inside of ranges: exact search of the entries of open ranges
 *        alone.
 *
 * It is the paper's algorithm, confined to where the best split can be. Where nodes are few and
 * large, open ranges are looked up in sorted columns (range_scanner). Where they are many, or the
 * table has no sorted columns, the entries of open ranges are gathered from the rows of their nodes,
 * sorted by range and value, scanned by range, and every candidate between two values is offered.
 */
#pragma once

#include <optional>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/histogram_finder.cuh"
#include "device/histogram/ranges/range_scanner.cuh"
#include "device/histogram/ranges/rank_bit_vector.cuh"
#include "device/level/level_ref.cuh"
#include "device/runtime/stream_event.cuh"

namespace gpu_exact {
/**
 * @brief Owns the memory of entries of open ranges: keys and slots of their rows twice, to be sorted from
 *        one place to the other, and back. Where they are not in the end, sums up to each are
 *        written, which take the room between the two as well.
 *
 *     | keys, slots | 4 B | keys, slots |      12, 4 and 12 bytes an entry
 */
class OpenEntriesRoom {
 public:
  static constexpr std::uint64_t kEntryBytes = HistogramMemory::kOpenEntryBytes;

  /** @brief Make room for at least n entries; content is lost where it grows. */
  void Reserve(std::uint64_t n) { bytes_.Reserve(CeilDiv(n, kAligned) * kAligned * kEntryBytes); }
  /** @brief Count the entries there is room for. */
  [[nodiscard]] std::uint64_t Size() const { return bytes_.Bytes() / kEntryBytes; }
  [[nodiscard]] std::uint64_t* Keys(int place) const {
    return this->At<std::uint64_t>(place == 0 ? 0 : 16);
  }
  [[nodiscard]] RowIdx* Slots(int place) const { return this->At<RowIdx>(place == 0 ? 8 : 24); }
  /** @param place Where the sorted entries are. */
  [[nodiscard]] FixedSum* Sums(int place) const { return this->At<FixedSum>(place == 0 ? 12 : 0); }

 private:
  static constexpr std::uint64_t kAligned = 4;  // entries: sums are aligned to 16 B then

  template <typename T>
  [[nodiscard]] T* At(std::uint64_t of_entry) const {
    return reinterpret_cast<T*>(bytes_.Data() + of_entry * this->Size());
  }

  DeviceBuffer<unsigned char> bytes_{"entries of open ranges"};
};

/** @brief Lends memory for the ranges and entries in work to refiners that do not work at the same
 *         time. */
struct RefineRoom {
  RangeScanner scanner;
  DeviceBuffer<OpenRange> open{"open ranges"};
  RankBitVector is_open{"open bins"};
  OpenEntriesRoom entries;
};

class RangeRefiner {
 public:
  enum class Refined : std::uint8_t {
    kDone,
    kListAgain  // the list had no room for all ranges; now it has: list them again
  };

  /**
   * @param matrix      Outlives the refiner.
   * @param room        Outlives the refiner, too.
   * @param max_entries How many entries are sorted at once.
   * @param max_certain Up to so many ranges the host does not wait to learn how many are open.
   */
  RangeRefiner(BinMatrix const& matrix, RefineRoom* room, std::uint64_t max_entries,
               std::uint64_t max_certain);

  /** @brief Give the finder a list, which it clears. Does not wait, but where memory grows. */
  [[nodiscard]] OpenRangesRef List(std::size_t n_nodes);
  /**
   * @brief Offer every candidate inside of the listed ranges that may be the best. Waits for the
   *        finder, unless it is sure to scan them.
   *
   * A tree is much like the one before: where that one scanned at this depth, the scan begins while
   * the host still waits for the counts that tell whether to.
   *
   * @param lv     Its columns are the candidates of this resolution.
   * @param finder Has listed the ranges.
   * @param shape  What costs depend on.
   * @param depth  The depth of the level.
   */
  [[nodiscard]] Refined Refine(LevelRef const& lv, BinnedTableRef const& table, RowsRef const& rows,
                               HistogramFinder* finder, ResolutionShape shape, std::size_t depth);
  /** @brief Estimate the entries that the last call looked at. The level's results have been waited
   *         for. */
  [[nodiscard]] std::uint64_t NumOpenEntries() const {
    return n_gathered_.value_or(host_counts_.Data()[kScanned].n_entries);
  }

  /** @brief Give RefinedCandidates::found, by node of the last call. */
  [[nodiscard]] FoundCandidate const* Found() const { return found_.Data(); }

 private:
  struct Pass;
  // The host has the counts twice: as they were when it asked, and after a scan.
  static constexpr std::size_t kAsked = 0;
  static constexpr std::size_t kScanned = 1;

  [[nodiscard]] OpenRangesRef Listed();
  /** @brief Make room in the list for all ranges, if it had none. @return Whether it had. */
  [[nodiscard]] bool HadRoom(OpenCounts const& counts);
  /** @brief Refine() by gathering. */
  [[nodiscard]] Refined Gather(Pass const& pass);
  [[nodiscard]] OpenCounts ReadCounts();
  /** @brief Wait for counts that were sent to the host before asked_. */
  [[nodiscard]] OpenCounts AwaitCounts() const;
  void Emit(Pass const& pass, std::uint32_t first, std::uint32_t end);
  void Search(Pass const& pass, std::uint64_t n_entries, std::uint32_t first, std::uint32_t n_open);
  void SearchInParts(Pass const& pass, std::uint32_t first, std::uint32_t end,
                     std::uint64_t n_entries);

  BinMatrix const& matrix_;
  RefineRoom& room_;
  std::uint64_t max_entries_;
  std::uint64_t max_certain_;
  std::optional<std::uint64_t> n_gathered_;  // none: ranges were scanned
  DeviceBuffer<OpenRange> list_{"ranges that may be open"};
  DeviceBuffer<OpenCounts> counts_{"numbers of open ranges"};
  PinnedBuffer<OpenCounts> host_counts_{"numbers of open ranges"};  // shape: (2)
  StreamEvent asked_;                                               // the counts are there
  std::vector<bool> scanned_;                                       // by depth, the last tree
  DeviceBuffer<FoundCandidate> found_{"best candidates inside of ranges"};
};
}  // namespace gpu_exact
