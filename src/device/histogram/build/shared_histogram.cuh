/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps the histogram of one group of columns in the shared memory of a block.
 */
#pragma once

#include <type_traits>

#include "core/gain_bound.h"
#include "core/quantise.h"
#include "device/histogram/bins/bin_matrix.cuh"
#include "device/histogram/build/bin_reader.cuh"
#include "device/histogram/build/bin_sums.cuh"

namespace gpu_exact {
/**
 * @brief Sums by bin, five words each: there is no 64-bit atomic addition in shared memory.
 *        Magnitudes are added up of ranges only.
 *
 * The words of a bin lie side by side. Five is odd, so that the same word of different bins spreads
 * over all banks, and the address of one is known from the bin alone. Of bins that take one byte a
 * word has a row of its own with a place, and so a bank, for each column of the group, or each copy
 * of its few columns:
 *
 *     word 5 b + w of bin b     | column 0 | column 1 | ... | column 31 |
 *
 * Lanes that add for different columns then never wait for each other (BankedChunk).
 */
class SharedHistogram {
 public:
  static constexpr int kThreads = 1024;  // per block
  static constexpr int kWarps = kThreads / 32;

  static constexpr int kWords = 5;  // per bin
  static constexpr std::size_t kBinBytes = kWords * sizeof(std::uint32_t);
  static constexpr std::uint32_t kBanks = 32;
  static_assert(kBanks == kMaxByteColumns);
  static constexpr std::size_t kAligned = kBanks * sizeof(std::uint32_t);
  static constexpr std::size_t kStagingBytes = kWarps * sizeof(BinReader::Queue);
  static_assert(kStagingBytes % kAligned == 0);
  static_assert(kBinBytes == kSharedBinBytes && kStagingBytes == kSharedStagingBytes &&
                kAligned == kSharedStaticBytes);  // as bins are laid out
  static std::size_t Bytes(FeatureGroup const& group) {
    return kStagingBytes + WholeBins(group) * kBinBytes;
  }

  /**
   * @param memory      Bytes(group), aligned to kAligned. Its start is for staging.
   * @param group       Outlives this.
   * @param hess_of_row See LevelRef: where all are alike, rows are counted.
   */
  __device__ SharedHistogram(unsigned char* memory, FeatureGroup const& group,
                             std::int64_t hess_of_row)
      : staging_{memory},
        words_{reinterpret_cast<std::uint32_t*>(memory + kStagingBytes)},
        group_{group},
        hess_of_row_{hess_of_row} {
    EXACT_DEVICE_CHECK(__cvta_generic_to_shared(memory) % kAligned == 0 && blockDim.x == kThreads);
  }

  /** @brief Clear, before rows are added. All threads of the block, no barrier. */
  __device__ void Begin() const {
    auto const n = static_cast<std::uint32_t>(WholeBins(group_) * kBinBytes / sizeof(uint4));
    for (std::uint32_t i = threadIdx.x; i < n; i += kThreads) {
      reinterpret_cast<uint4*>(words_)[i] = {0, 0, 0, 0};
    }
  }

  /**
   * @brief Call fn(bin, BinSum) for each bin of the group. All threads of the block, no barrier.
   * @param columns The columns of all groups.
   */
  template <typename FnT>
  __device__ void ForBins(BinColumn const* columns, FnT&& fn) const {
    if (!group_.InBytes()) {
      for (std::uint32_t i = threadIdx.x; i < group_.n_bins; i += kThreads) {
        fn(i, this->Get<1>(words_ + kWords * i));
      }
      return;
    }
    // A warp has four bins of eight columns at a time: of more columns neighbouring threads would
    // write to more places, of fewer they would read from fewer banks.
    constexpr std::uint32_t kColumns = BankedChunk::kSize;
    constexpr std::uint32_t kBins = 32 / kColumns;
    std::uint32_t const n_chunks = group_.stride / kColumns;
    std::uint32_t const n_tiles = n_chunks * ((group_.longest + kBins - 1) / kBins);
    for (std::uint32_t tile = threadIdx.x / 32; tile < n_tiles; tile += kWarps) {
      std::uint32_t const place = tile % n_chunks * kColumns + threadIdx.x % 32 / kBins;
      std::uint32_t const bin = tile / n_chunks * kBins + threadIdx.x % kBins;
      if (place >= group_.n_columns) {
        continue;
      }
      BinColumn const column = columns[group_.first_column + place];
      if (bin < column.n_bins) {
        BinSum sum{};
        for (std::uint32_t bank = place; bank < kBanks; bank += group_.stride) {
          BinSum const copy = this->Get<kBanks>(words_ + kBanks * kWords * bin + bank);
          sum = {sum.sum + copy.sum, sum.magnitude + copy.magnitude};
        }
        fn(column.first_bin + bin, sum);
      }
    }
  }

  /** @brief Add the rows in slots [begin, end). All threads of the block, no barrier. */
  __device__ void AddRows(RowsRef const& rows, RowIdx begin, RowIdx end) const {
    auto* queues = reinterpret_cast<BinReader::Queue*>(staging_);
    std::uint32_t base;  // kept in a register by the detour
    asm volatile("mov.u32 %0, %1;"
                 : "=r"(base)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(words_))));
    BinReader{group_, rows, queues + threadIdx.x / 32}.Walk<true>(
        begin, end, kWarps, [](RowIdx, GradientUnits const& units) { return units; },
        [&](auto const& chunk, GradientUnits const& units) {
          using Chunk = std::decay_t<decltype(chunk)>;
          FixedSum const sum = units.Fixed();
          std::uint32_t const magnitude = Magnitude::Of(units.grad);
#pragma unroll
          for (int i = 0; i < Chunk::kSize; ++i) {
            std::uint32_t const bin = chunk.Bin(i);
            if (bin == Chunk::kNone) {
              continue;
            }
            if constexpr (std::is_same_v<Chunk, BankedChunk>) {
              EXACT_DEVICE_CHECK(bin < group_.longest && chunk.bank < kBanks);
              std::uint32_t const first = base + sizeof(std::uint32_t) * chunk.bank;
              this->Add<kBanks>((first + kBanks * kBinBytes * bin) ^ sizeof(std::uint32_t) * i, sum,
                                magnitude);
            } else {
              EXACT_DEVICE_CHECK(bin < group_.n_bins);
              this->Add<1>(base + kBinBytes * bin, sum, magnitude);
            }
          }
        });
  }

 private:
  // Words of a bin.
  static constexpr int kGradLow = 0;
  static constexpr int kGradHigh = 1;
  static constexpr int kHessLow = 2;  // or the number of rows
  static constexpr int kHessHigh = 3;
  static constexpr int kMagnitude = 4;

  /** @brief Count the bins there is room for: they are cleared 16 B at a time. */
  [[nodiscard]] __host__ __device__ static std::size_t WholeBins(FeatureGroup const& group) {
    return group.InBytes() ? kBanks * group.longest : (group.n_bins + 3) / 4 * 4;
  }

  [[nodiscard]] __device__ static std::int64_t Join(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << 32 | low);
  }

  /** @param words The first word of a bin. @tparam kStep Words from one of a bin to its next. */
  template <std::uint32_t kStep>
  [[nodiscard]] __device__ BinSum Get(std::uint32_t const* words) const {
    auto word = [&](int i) { return words[kStep * i]; };
    std::int64_t const hess =
        hess_of_row_ != 0 ? word(kHessLow) * hess_of_row_ : Join(word(kHessLow), word(kHessHigh));
    return {{Join(word(kGradLow), word(kGradHigh)), hess}, word(kMagnitude)};
  }

  /** @brief Add to a word of a bin in shared memory, by the bin's address there. @return What it
   *         was. */
  template <int kWord>
  __device__ static std::uint32_t AddLow(std::uint32_t address, std::uint32_t x) {
    std::uint32_t before;
    asm volatile("atom.shared.add.u32 %0, [%1 + %3], %2;"
                 : "=r"(before)
                 : "r"(address), "r"(x), "n"(4 * kWord)
                 : "memory");
    return before;
  }
  /** @brief Add a high word, and the carry of the low one. */
  template <int kWord>
  __device__ static void AddHigh(std::uint32_t address, std::uint32_t high, std::uint32_t before,
                                 std::uint32_t low) {
    asm volatile(
        "{\n"
        ".reg .u32 sum;\n"
        "add.cc.u32 sum, %2, %3;\n"
        "addc.u32 sum, %1, 0;\n"
        "red.shared.add.u32 [%0 + %4], sum;\n"
        "}" ::"r"(address),
        "r"(high), "r"(before), "r"(low), "n"(4 * kWord)
        : "memory");
  }
  template <int kWord>
  __device__ static void AddWord(std::uint32_t address, std::uint32_t x) {
    asm volatile("red.shared.add.u32 [%0 + %2], %1;" ::"r"(address), "r"(x), "n"(4 * kWord)
                 : "memory");
  }

  /** @brief Add gradients. @param address Where the bin is. @tparam kStep As Get() has it. */
  template <std::uint32_t kStep>
  __device__ void Add(std::uint32_t address, FixedSum const& g, std::uint32_t magnitude) const {
    auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    auto high = [](std::int64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    std::uint32_t const g_before = AddLow<kStep * kGradLow>(address, low(g.grad));
    if (hess_of_row_ != 0) {
      AddWord<kStep * kHessLow>(address, 1);
      AddHigh<kStep * kGradHigh>(address, high(g.grad), g_before, low(g.grad));
    } else {
      std::uint32_t const h_before = AddLow<kStep * kHessLow>(address, low(g.hess));
      AddHigh<kStep * kGradHigh>(address, high(g.grad), g_before, low(g.grad));
      AddHigh<kStep * kHessHigh>(address, high(g.hess), h_before, low(g.hess));
    }
    if (group_.has_ranges != 0) {
      AddWord<kStep * kMagnitude>(address, magnitude);
    }
  }

  unsigned char* staging_;
  std::uint32_t* words_;
  FeatureGroup const& group_;
  std::int64_t hess_of_row_;
};
}  // namespace gpu_exact
