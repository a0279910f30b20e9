/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The histogram of one group of columns in the shared memory of a block.
 */
#pragma once

#include "src/device/histogram/bin_sums.cuh"
#include "src/device/histogram/binned_columns.cuh"
#include "src/device/histogram/row_bins_walk.cuh"
#include "src/gain_bound.h"
#include "src/quantise.h"

namespace gpu_exact {
/**
 * @brief Sums by bin, five words side by side: there is no 64-bit atomic addition in shared memory.
 *        Five is odd, so that the same word of different bins spreads over all banks, and the
 *        address of one is known from the bin alone. Magnitudes are added up of ranges only.
 */
class SharedHistogram {
 public:
  static constexpr int kThreads = 1024;  // of a block
  static constexpr int kWarps = kThreads / 32;

  static constexpr std::size_t kStagingBytes = kWarps * sizeof(RowBinsWalk::Queue);
  static constexpr int kWords = 5;  // of a bin
  static constexpr std::size_t kBinBytes = kWords * sizeof(std::uint32_t);
  /** @brief Bins that fit into so many bytes of shared memory, beside the words of a group. */
  static constexpr std::size_t MaxBins(std::size_t bytes) {
    constexpr std::size_t kStatic = 64;  // of the kernels
    constexpr std::size_t kBegins = (kMaxStoredBins / 32 + 1) * sizeof(RankWord);
    return (bytes - kStagingBytes - kStatic - kBegins) / kBinBytes - 3;
  }
  /** @param n_words Of BinGroup::begins. */
  static constexpr std::size_t Bytes(std::size_t n_bins, std::size_t n_words) {
    return kStagingBytes + WholeBins(n_bins) * kBinBytes + n_words * sizeof(RankWord);
  }

  /** @param memory Of Bytes(n_bins, n_words), aligned to 16. Its start is for staging. */
  __device__ SharedHistogram(unsigned char* memory, BinGroup const& group)
      : staging_{memory},
        words_{reinterpret_cast<std::uint32_t*>(memory + kStagingBytes)},
        n_bins_{group.n_bins},
        has_ranges_{group.has_ranges != 0} {}

  [[nodiscard]] __device__ std::uint32_t NumBins() const { return n_bins_; }

  /** @brief Before rows are added. All threads of the block, no barrier. */
  __device__ void Begin(BinGroup const& group) const {
    auto const n = static_cast<std::uint32_t>(WholeBins(n_bins_) * kBinBytes / sizeof(uint4));
    for (std::uint32_t i = threadIdx.x; i < n; i += kThreads) {
      reinterpret_cast<uint4*>(words_)[i] = {0, 0, 0, 0};
    }
    RowBinsWalk::LoadBegins(group, this->Begins());
  }

  [[nodiscard]] __device__ BinSum Get(std::uint32_t bin) const {
    auto const word = words_ + kWords * bin;
    return {{Join(word[kGradLow], word[kGradHigh]), Join(word[kHessLow], word[kHessHigh])},
            word[kMagnitude]};
  }

  /** @brief Add the rows in slots [begin, end). All threads of the block, no barrier. */
  __device__ void AddRows(BinGroup const& group, RowsRef const& rows, RowIdx begin,
                          RowIdx end) const {
    auto* queues = reinterpret_cast<RowBinsWalk::Queue*>(staging_);
    std::uint32_t base;  // kept in a register by the detour
    asm volatile("mov.u32 %0, %1;"
                 : "=r"(base)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(words_))));
    RowBinsWalk{group, rows, queues + threadIdx.x / 32, this->Begins()}.Walk<true>(
        begin, end, kWarps, [](RowIdx, GradientUnits const& units) { return units; },
        [&](auto const& chunk, GradientUnits const& units) {
          FixedSum const sum = units.Fixed();
          std::uint32_t const magnitude = Magnitude::Of(units.grad);
#pragma unroll
          for (int i = 0; i < chunk.kSize; ++i) {
            std::uint32_t const bin = chunk.Bin(i);
            if (bin != BinGroup::kNoBin) {
              this->Add(base + kBinBytes * bin, sum, magnitude);
            }
          }
        });
  }

 private:
  // Words of a bin.
  static constexpr int kGradLow = 0;
  static constexpr int kGradHigh = 1;
  static constexpr int kHessLow = 2;
  static constexpr int kHessHigh = 3;
  static constexpr int kMagnitude = 4;

  /** @brief As many at least, so that what follows them is aligned to 16 B. */
  [[nodiscard]] __host__ __device__ static constexpr std::size_t WholeBins(std::size_t n_bins) {
    return (n_bins + 3) / 4 * 4;
  }
  /** @brief Words of the group's BinGroup::begins. */
  [[nodiscard]] __device__ RankWord* Begins() const {
    return reinterpret_cast<RankWord*>(words_ + kWords * WholeBins(n_bins_));
  }

  [[nodiscard]] __device__ static std::int64_t Join(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << 32 | low);
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

  /** @brief Add gradients. @param address Of the bin. */
  __device__ void Add(std::uint32_t address, FixedSum const& g, std::uint32_t magnitude) const {
    auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    auto high = [](std::int64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    std::uint32_t const g_before = AddLow<kGradLow>(address, low(g.grad));
    std::uint32_t const h_before = AddLow<kHessLow>(address, low(g.hess));
    AddHigh<kGradHigh>(address, high(g.grad), g_before, low(g.grad));
    AddHigh<kHessHigh>(address, high(g.hess), h_before, low(g.hess));
    if (has_ranges_) {
      AddWord<kMagnitude>(address, magnitude);
    }
  }

  unsigned char* staging_;
  std::uint32_t* words_;
  std::uint32_t n_bins_;
  bool has_ranges_;
};
}  // namespace gpu_exact
