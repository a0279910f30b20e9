/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the rows of every column that has ranges in any resolution, ascending by value: a
 *        range's entries lie side by side.
 *
 * Entries lie in blocks of 32. The number of a row is in two parts, so that it takes three bytes
 * where those are enough: in a block the low halves come first, then what is above them, then a bit
 * for each entry that tells whether a value begins there. Four entries are read at once.
 */
#pragma once

#include <algorithm>
#include <vector>

#include "device/runtime/placed_buffer.cuh"
#include "gpu_exact/types.h"
#include "plan/bin_layout.h"

namespace gpu_exact {
/** @brief Tells where the parts of a block begin. @tparam ByteT unsigned char, maybe const. */
template <typename ByteT>
struct SortedColumnsBlock {
  static constexpr std::uint32_t kEntries = kSortedColumnsBlock;

  ByteT* low;
  ByteT* high;
  ByteT* begins;

  __device__ SortedColumnsBlock(ByteT* column, std::uint64_t block, std::uint32_t n_high)
      : low{column + block * SortedColumnBlockBytes(n_high)},
        high{low + 2 * kEntries},
        begins{high + n_high * kEntries} {}
};

/** @brief Lends them to kernels. */
struct SortedColumnsRef {
  static constexpr int kAtOnce = 4;  // entries

  struct Entries {
    RowIdx row[kAtOnce];
    std::uint32_t begins;  // bit k: whether entry k is the first of its value
  };

  unsigned char* const* columns;  // by feature, nullptr where a feature has no ranges; or nullptr
  std::uint32_t n_high;           // bytes of a row above the low half: 1 or 2

  /** @brief Load entries [at, at + kAtOnce), of which those past the end are anything. @param at
   *         Multiple of as many. */
  [[nodiscard]] __device__ Entries Load(unsigned char const* column, std::uint32_t at) const {
    SortedColumnsBlock<unsigned char const> const block{column, at / kSortedColumnsBlock, n_high};
    std::uint32_t const i = at % kSortedColumnsBlock;
    auto const low = *reinterpret_cast<ushort4 const*>(block.low + 2 * i);
    Entries e{{low.x, low.y, low.z, low.w},
              *reinterpret_cast<std::uint32_t const*>(block.begins) >> i};
    if (n_high == 1) {
      Add(&e, *reinterpret_cast<uchar4 const*>(block.high + i));
    } else {
      Add(&e, *reinterpret_cast<ushort4 const*>(block.high + 2 * i));
    }
    return e;
  }
  /** @brief Load the row of one entry. */
  [[nodiscard]] __device__ RowIdx Row(unsigned char const* column, std::uint32_t at) const {
    SortedColumnsBlock<unsigned char const> const block{column, at / kSortedColumnsBlock, n_high};
    std::uint32_t const i = at % kSortedColumnsBlock;
    std::uint32_t const high =
        n_high == 1 ? block.high[i] : reinterpret_cast<std::uint16_t const*>(block.high)[i];
    return high << 16 | reinterpret_cast<std::uint16_t const*>(block.low)[i];
  }

 private:
  template <typename HighT>
  __device__ static void Add(Entries* e, HighT const& high) {
    e->row[0] |= std::uint32_t{high.x} << 16;
    e->row[1] |= std::uint32_t{high.y} << 16;
    e->row[2] |= std::uint32_t{high.z} << 16;
    e->row[3] |= std::uint32_t{high.w} << 16;
  }
};

/** @brief Owns the rows. About 3 or 4 B an entry of the columns that are kept, 8 B a feature. */
class SortedColumns {
 public:
  /** @param n_rows How many rows the table has. @param at Where they lie. */
  SortedColumns(RowIdx n_rows, Memory at) : n_high_{SortedColumnHighBytes(n_rows)}, at_{at} {}

  /** @brief Give SortedColumnsRef::n_high. */
  [[nodiscard]] std::uint32_t NumHigh() const { return n_high_; }
  /** @brief Make room for n bytes of the next columns, which come in the order of the features. */
  unsigned char* AddRoom(std::uint64_t n) {
    parts_.emplace_back("sorted rows of columns", at_);
    return parts_.back().Reserve(n);
  }
  /** @brief Add the next feature's. @param bytes Where they are, in the room; nullptr: none are kept. */
  void AddColumn(unsigned char* bytes) { h_columns_.push_back(bytes); }
  /** @brief Upload: all features have been added. Waits. */
  void Upload() {
    CopyFromHost(columns_.Reserve(h_columns_.size()), h_columns_.data(), h_columns_.size());
    Synchronize();
  }

  /** @brief Tell whether any column is kept. */
  [[nodiscard]] bool Any() const {
    return std::any_of(parts_.cbegin(), parts_.cend(),
                       [](auto const& p) { return p.Bytes() != 0; });
  }
  [[nodiscard]] SortedColumnsRef Ref() const { return {columns_.Data(), n_high_}; }

 private:
  std::uint32_t n_high_;
  Memory at_;
  std::vector<PlacedBuffer<unsigned char>> parts_;
  std::vector<unsigned char*> h_columns_;
  DeviceBuffer<unsigned char*> columns_{"sorted rows by column"};
};
}  // namespace gpu_exact
