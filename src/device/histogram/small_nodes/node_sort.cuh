/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Sorts the entries of a node of few rows by a column's values: by a block or by a warp.
 *
 * A block puts entries at the positions of their bins, of which it counts them; those of a bin of
 * several values, few as a rule, are then ordered among themselves. That takes two steps through
 * the shared memory, however many bins there are; a radix sort takes one for each four bits.
 */
#pragma once

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_merge_sort.cuh>

#include "core/quantise.h"
#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/build/searched_node.cuh"
#include "device/runtime/warp.cuh"
#include "device/table/value_key.cuh"

namespace gpu_exact {
/** @brief Packs an entry into one word, so that those of kMaxSortedRows rows fit Turing's shared
 *         memory. */
class SortedEntry {
 public:
  SortedEntry() = default;
  /** @param row Its number in the node, from 0. @param bin Its number in the column, in the finest resolution. */
  __device__ SortedEntry(std::uint32_t row, std::uint32_t bin) : word_{bin << kBits | row} {}
  /** @brief Set whether it is the first one of its value. */
  [[nodiscard]] __device__ SortedEntry Beginning(bool begins) const {
    SortedEntry entry{*this};
    entry.word_ |= begins ? kBegins : 0u;
    return entry;
  }

  [[nodiscard]] __device__ std::uint32_t Row() const { return word_ & kMask; }
  [[nodiscard]] __device__ std::uint32_t Bin() const { return word_ >> kBits & kMask; }
  /** @brief Tell whether it is the first one of its value. */
  [[nodiscard]] __device__ bool Begins() const { return (word_ & kBegins) != 0; }

 private:
  static constexpr int kBits = 14;
  static constexpr std::uint32_t kMask = (1u << kBits) - 1;
  static constexpr std::uint32_t kBegins = 1u << 31;
  static_assert(kMaxSortedRows <= kMask + 1 && kMaxGroupBins <= kMask + 1);

  std::uint32_t word_;
};

/** @brief Names a column of a node, and what its entries are sorted by: bins where they tell the
 *         values. */
struct NodeColumn {
  BinnedTableRef const& table;
  RowsRef const& rows;
  SearchedNode const& node;
  FeatureIdx f;
  std::uint32_t n_bins;
  bool by_bin;

  __device__ NodeColumn(BinnedTableRef const& t, RowsRef const& r, SearchedNode const& n,
                        BinColumn const& column)
      : table{t},
        rows{r},
        node{n},
        f{column.feature},
        n_bins{column.n_bins},
        by_bin{!t.values.Keeps(column.feature)} {}

  [[nodiscard]] __device__ std::uint32_t NumRows() const { return node.rows.Size(); }
  /** @brief Give the key of missing values, greater than all others. */
  [[nodiscard]] __device__ std::uint32_t MissingKey() const {
    return by_bin ? n_bins : 0xffffffffu;
  }
  [[nodiscard]] __device__ bool IsPresent(std::uint32_t key) const {
    return key != this->MissingKey();
  }
  [[nodiscard]] __device__ float Value(SortedEntry const& entry) const {
    CutsRef const& bins = table.finest.bins;
    return by_bin ? bins.lowest[bins.offsets[f] + entry.Bin()]
                  : table.values.Find(this->Row(entry.Row()), f);
  }
  [[nodiscard]] __device__ FixedSum Sum(SortedEntry const& entry) const {
    return rows.units[node.rows.begin + entry.Row()].Fixed();
  }

  /** @brief Load every stride-th entry of the node from the first on, and what they are sorted
   *         by. */
  template <int kItems>
  __device__ void Load(std::uint32_t first, std::uint32_t stride, std::uint32_t (&keys)[kItems],
                       SortedEntry (&entries)[kItems]) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      std::uint32_t const i = k * stride + first;
      RowIdx const row = i < this->NumRows() ? this->Row(i) : 0;
      int const bin = i < this->NumRows() ? table.finest.BinOf(row, f) : -1;
      entries[k] = {i, bin < 0 ? 0u : static_cast<std::uint32_t>(bin)};
      keys[k] = bin < 0  ? this->MissingKey()
                : by_bin ? static_cast<std::uint32_t>(bin)
                         : RadixKey(table.values.Find(row, f));
    }
  }

 private:
  [[nodiscard]] __device__ RowIdx Row(std::uint32_t i) const {
    return rows.rows[node.rows.begin + i];
  }
};

/** @brief Counts the entries of each bin, then tells where they begin: two bins a word. */
class BinCounts {
 public:
  static constexpr std::uint32_t kWords = kMaxGroupBins / 2 + 1;

  __device__ explicit BinCounts(std::uint32_t* words) : words_{words} {}

  /**
   * @brief Counts an entry. All lanes of a warp.
   * @param counts Whether there is one.
   * @return       Entries of its bin before it.
   */
  __device__ std::uint32_t Add(bool counts, std::uint32_t bin) {
    // Lanes of the same bin as the first one make one addition: often many are, and additions to one
    // word wait for each other.
    bin = counts ? bin : kNone;
    std::uint32_t const first = __shfl_sync(kAllLanes, bin, 0);
    unsigned const alike = __ballot_sync(kAllLanes, bin == first);
    std::uint32_t before{0};
    if (counts && (bin != first || threadIdx.x % 32 == 0)) {
      std::uint32_t const n = bin == first ? __popc(alike) : 1;
      before = atomicAdd(words_ + bin / 2, n << Shift(bin)) >> Shift(bin) & kMask;
    }
    std::uint32_t const of_first = __shfl_sync(kAllLanes, before, 0);
    return bin == first ? of_first + __popc(alike & LaneMaskLt()) : before;
  }
  [[nodiscard]] __device__ std::uint32_t Of(std::uint32_t bin) const {
    return words_[bin / 2] >> Shift(bin) & kMask;
  }
  /** @brief Turn counts into begins. @param before Entries before the word's. @return The most of a
   *         bin. */
  __device__ std::uint32_t Begin(std::uint32_t word, std::uint32_t* before) {
    std::uint32_t const first = words_[word] & kMask;
    std::uint32_t const second = words_[word] >> kBits;
    words_[word] = *before | (*before + first) << kBits;
    *before += first + second;
    return max(first, second);
  }
  [[nodiscard]] __device__ std::uint32_t OfWord(std::uint32_t word) const {
    return (words_[word] & kMask) + (words_[word] >> kBits);
  }

 private:
  static constexpr int kBits = 16;
  static constexpr std::uint32_t kMask = (1u << kBits) - 1;
  static constexpr std::uint32_t kNone = 0xffffffffu;

  [[nodiscard]] __device__ static std::uint32_t Shift(std::uint32_t bin) { return bin % 2 * kBits; }

  std::uint32_t* words_;
};

/** @brief Shares memory among a block or a warp: each member after the one before it. */
template <typename TempT, int kRows>
union SortStorage {
  TempT temp;
  std::uint32_t keys[kRows];
  SortedEntry entries[kRows];
};

/** @brief Give the key before the k-th of a thread. @param below The last one of the thread
 *         before. */
template <int kItems>
__device__ std::uint32_t KeyBefore(std::uint32_t const (&keys)[kItems], int k,
                                   std::uint32_t below) {
  return k == 0 ? below : keys[k == 0 ? 0 : k - 1];  // in range also where k is known to be 0
}

/** @brief Packs where a block puts an entry into one word, as registers are few. */
struct SortedPosition {
  static constexpr std::uint32_t kCrowd = 32;  // per bin: more are not ordered among themselves
  static_assert(kMaxSortedRows <= 1u << 14);

  SortedPosition() = default;
  /**
   * @param begin  Where the bin's entries begin.
   * @param number Numbers the entry among these.
   * @param size   How many there are; of more than kCrowd, number and size are not kept.
   */
  __device__ SortedPosition(std::uint32_t begin, std::uint32_t number, std::uint32_t size)
      : word_{(begin + number) | number << 14 | (size - 1) << 19} {}

  [[nodiscard]] __device__ std::uint32_t Position() const { return word_ & 0x3fffu; }
  [[nodiscard]] __device__ std::uint32_t Begin() const {
    return this->Position() - (word_ >> 14 & 31u);
  }
  /** @brief Give the last position of the bin's entries. */
  [[nodiscard]] __device__ std::uint32_t Last() const {
    return this->Begin() + (word_ >> 19 & 31u);
  }

 private:
  std::uint32_t word_;
};

/** @brief Sorts nodes of up to kRows rows by a block. */
template <int kThreads, int kItems>
class BlockSortAgent {
 public:
  static constexpr std::uint32_t kRows = kThreads * kItems;

 private:
  using Radix = cub::BlockRadixSort<std::uint32_t, kThreads, kItems, SortedEntry>;
  using Scan = cub::BlockScan<std::uint32_t, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  union Temp {
    typename Radix::TempStorage radix;
    struct {
      std::uint32_t words[BinCounts::kWords];
      typename Scan::TempStorage scan;
    } counts;
  };

 public:
  using Storage = SortStorage<Temp, kRows>;

  __device__ explicit BlockSortAgent(Storage* storage) : storage_{*storage} {}

  /** @brief Sort the entries with a value, to Storage::entries. @return Their number. */
  __device__ std::uint32_t Sort(NodeColumn const& column) {
    constexpr std::uint32_t kFewBins = 255;  // keys of 8 bits, two steps of a radix sort
    std::uint32_t keys[kItems];
    SortedEntry entries[kItems];
    column.Load(threadIdx.x, kThreads, keys, entries);
    if (column.by_bin && column.n_bins <= kFewBins) {
      return this->ByRadix(column, keys, entries);
    }
    SortedPosition positions[kItems];
    std::uint32_t n{0};
    bool const crowded = this->Count(column, keys, entries, positions, &n);
    if (column.by_bin) {
      this->Write(column, keys, entries, positions);
    } else if (crowded) {
      return this->ByRadix(column, keys, entries);
    } else {
      this->WriteByKey(column, keys, entries, positions);
    }
    return n;
  }

 private:
  /**
   * @brief Counts entries by bin.
   *
   * @param entries Those of a column that is sorted by bin are told whether they begin one.
   * @param positions Where each entry goes among those of all bins, of one bin in any order.
   * @param n       How many entries have a value.
   * @return        Whether a bin has more entries than are ordered among themselves.
   */
  __device__ bool Count(NodeColumn const& column, std::uint32_t const (&keys)[kItems],
                        SortedEntry (&entries)[kItems], SortedPosition (&positions)[kItems],
                        std::uint32_t* n) {
    auto& temp = storage_.temp.counts;
    BinCounts counts{temp.words};
    std::uint32_t const n_words = column.n_bins / 2 + 1;  // with the end of the last bin
    for (std::uint32_t w = threadIdx.x; w < n_words; w += kThreads) {
      temp.words[w] = 0;
    }
    __syncthreads();
    std::uint32_t numbers[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      numbers[k] = counts.Add(column.IsPresent(keys[k]), entries[k].Bin());
    }
    __syncthreads();
    std::uint32_t const of_thread = (n_words + kThreads - 1) / kThreads;
    std::uint32_t const first = min(threadIdx.x * of_thread, n_words);
    std::uint32_t const end = min(first + of_thread, n_words);
    std::uint32_t own{0}, before{0}, most{0};
    for (std::uint32_t w = first; w < end; ++w) {
      own += counts.OfWord(w);
    }
    Scan{temp.scan}.ExclusiveSum(own, before, *n);
    for (std::uint32_t w = first; w < end; ++w) {
      most = max(most, counts.Begin(w, &before));
    }
    bool const crowded = __syncthreads_or(most > SortedPosition::kCrowd ? 1 : 0) != 0;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (column.IsPresent(keys[k])) {
        std::uint32_t const bin = entries[k].Bin();
        std::uint32_t const begin = counts.Of(bin);
        positions[k] = {begin, numbers[k], counts.Of(bin + 1) - begin};
        entries[k] = entries[k].Beginning(column.by_bin && numbers[k] == 0);
      }
    }
    __syncthreads();  // what follows takes the place of the counts
    return crowded;
  }

  __device__ void Write(NodeColumn const& column, std::uint32_t const (&keys)[kItems],
                        SortedEntry const (&entries)[kItems],
                        SortedPosition const (&positions)[kItems]) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (column.IsPresent(keys[k])) {
        storage_.entries[positions[k].Position()] = entries[k];
      }
    }
    __syncthreads();
  }

  /** @brief Write each entry after those of its bin that are less, or alike and before it. */
  __device__ void WriteByKey(NodeColumn const& column, std::uint32_t const (&keys)[kItems],
                             SortedEntry (&entries)[kItems], SortedPosition (&positions)[kItems]) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (column.IsPresent(keys[k])) {
        storage_.keys[positions[k].Position()] = keys[k];
      }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (!column.IsPresent(keys[k])) {
        continue;
      }
      std::uint32_t const begin = positions[k].Begin();
      std::uint32_t n_less{0};
      bool begins{true};
      for (std::uint32_t i = begin; i <= positions[k].Last(); ++i) {
        std::uint32_t const other = storage_.keys[i];
        bool const is_alike = other == keys[k] && i < positions[k].Position();
        n_less += other < keys[k] || is_alike ? 1 : 0;
        begins = begins && !is_alike;
      }
      positions[k] = {begin, n_less, 1};
      entries[k] = entries[k].Beginning(begins);
    }
    __syncthreads();
    this->Write(column, keys, entries, positions);
  }

  __device__ std::uint32_t ByRadix(NodeColumn const& column, std::uint32_t (&keys)[kItems],
                                   SortedEntry (&entries)[kItems]) {
    std::uint32_t const missing = column.MissingKey();
    Radix{storage_.temp.radix}.Sort(keys, entries, 0, 32 - __clz(static_cast<int>(missing)));
    std::uint32_t n{0};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      n += __syncthreads_count(column.IsPresent(keys[k]) ? 1 : 0);
    }
    storage_.keys[threadIdx.x] = keys[kItems - 1];
    __syncthreads();
    std::uint32_t const below = threadIdx.x == 0 ? missing : storage_.keys[threadIdx.x - 1];
    __syncthreads();
    SortedPosition positions[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      positions[k] = {threadIdx.x * kItems, static_cast<std::uint32_t>(k), 1};
      entries[k] = entries[k].Beginning(keys[k] != KeyBefore(keys, k, below));
    }
    this->Write(column, keys, entries, positions);
    return n;
  }

  Storage& storage_;
};

/** @brief Sorts nodes of up to kRows rows by a warp. */
template <int kItems>
class WarpSortAgent {
 public:
  static constexpr std::uint32_t kRows = 32 * kItems;

 private:
  using Merge = cub::WarpMergeSort<std::uint32_t, kItems, 32, SortedEntry>;

 public:
  using Storage = SortStorage<typename Merge::TempStorage, kRows>;

  __device__ explicit WarpSortAgent(Storage* storage) : storage_{*storage} {}

  __device__ std::uint32_t Sort(NodeColumn const& column) {
    unsigned const lane = threadIdx.x % 32;
    std::uint32_t keys[kItems];
    SortedEntry entries[kItems];
    column.Load(lane, 32, keys, entries);
    Merge{storage_.temp}.Sort(keys, entries,
                              [](std::uint32_t a, std::uint32_t b) { return a < b; });
    std::uint32_t const before = __shfl_up_sync(kAllLanes, keys[kItems - 1], 1);
    std::uint32_t const below = lane == 0 ? column.MissingKey() : before;
    std::uint32_t n{0};
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      bool const is_present = column.IsPresent(keys[k]);
      if (is_present) {
        storage_.entries[lane * kItems + k] =
            entries[k].Beginning(keys[k] != KeyBefore(keys, k, below));
      }
      n += __popc(__ballot_sync(kAllLanes, is_present));
    }
    __syncwarp();
    return n;
  }

 private:
  Storage& storage_;
};
}  // namespace gpu_exact
