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
 * @brief Sums by bin, in five arrays of words: there is no 64-bit atomic addition in shared memory,
 *        and words side by side spread over all banks. Magnitudes are kept of ranges only.
 */
class SharedHistogram {
 public:
  static constexpr int kThreads = 1024;  // of a block
  static constexpr int kWarps = kThreads / 32;

  static constexpr std::size_t kStagingBytes = kWarps * sizeof(RowBinsWalk::Queue);
  static constexpr std::size_t kBinBytes = 5 * sizeof(std::uint32_t);
  /** @brief Bins that fit into so many bytes of shared memory. */
  static constexpr std::size_t MaxBins(std::size_t bytes) {
    constexpr std::size_t kStatic = 64;  // of the kernels
    return (bytes - kStagingBytes - kStatic) / kBinBytes - 3;
  }
  static constexpr std::size_t Bytes(std::size_t n_bins) {
    return kStagingBytes + Stride(n_bins) * kBinBytes;
  }

  /** @param memory Of Bytes(n_bins), aligned to 16. Its start is for staging. */
  __device__ SharedHistogram(unsigned char* memory, BinGroup const& group)
      : staging_{memory},
        words_{reinterpret_cast<std::uint32_t*>(memory + kStagingBytes)},
        n_bins_{group.n_bins},
        stride_{static_cast<std::uint32_t>(Stride(group.n_bins))},
        has_ranges_{group.has_ranges != 0} {}

  [[nodiscard]] __device__ std::uint32_t NumBins() const { return n_bins_; }

  __device__ void Zero() const {
    std::uint32_t const n = (has_ranges_ ? 5 : 4) * stride_ / 4;
    for (std::uint32_t i = threadIdx.x; i < n; i += kThreads) {
      reinterpret_cast<uint4*>(words_)[i] = {0, 0, 0, 0};
    }
  }

  [[nodiscard]] __device__ BinSum Get(std::uint32_t bin) const {
    auto word = words_ + bin;
    return {{Join(word[0], word[stride_]), Join(word[2 * stride_], word[3 * stride_])},
            has_ranges_ ? word[4 * stride_] : 0};
  }

  /** @brief Add the rows in slots [begin, end). All threads of the block, no barrier. */
  __device__ void AddRows(BinGroup const& group, RowsRef const& rows, Quantiser const& quantiser,
                          RowIdx begin, RowIdx end) const {
    auto* queues = reinterpret_cast<RowBinsWalk::Queue*>(staging_);
    std::uint32_t base;  // kept in a register by the detour
    asm volatile("mov.u32 %0, %1;"
                 : "=r"(base)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(words_))));
    RowBinsWalk{group, rows, queues + threadIdx.x / 32}.Walk<true>(
        begin, end, kWarps,
        [&](RowIdx, GradientPair const& gpair) { return quantiser.Units(gpair); },
        [&](auto const& chunk, GradientPair const& units) {
          FixedSum const sum = Quantiser::FromUnits(units);
#pragma unroll
          for (int i = 0; i < chunk.kSize; ++i) {
            std::uint32_t const bin = chunk.Bin(i);
            if (bin != BinGroup::kNoBin) {
              this->Add(base + 4 * bin, sum);
            }
          }
        });
  }

 private:
  [[nodiscard]] __host__ __device__ static constexpr std::size_t Stride(std::size_t n_bins) {
    return (n_bins + 3) / 4 * 4;
  }

  [[nodiscard]] __device__ static std::int64_t Join(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << 32 | low);
  }

  /** @brief Add to a word in shared memory, by its address there. @return What it was. */
  __device__ static std::uint32_t AddLow(std::uint32_t address, std::uint32_t x) {
    std::uint32_t before;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(address), "r"(x)
                 : "memory");
    return before;
  }
  /** @brief Add a high word, and the carry of the low one. */
  __device__ static void AddHigh(std::uint32_t address, std::uint32_t high, std::uint32_t before,
                                 std::uint32_t low) {
    asm volatile(
        "{\n"
        ".reg .u32 sum;\n"
        "add.cc.u32 sum, %2, %3;\n"
        "addc.u32 sum, %1, 0;\n"
        "red.shared.add.u32 [%0], sum;\n"
        "}" ::"r"(address),
        "r"(high), "r"(before), "r"(low)
        : "memory");
  }

  __device__ static void AddWord(std::uint32_t address, std::uint32_t x) {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
  }

  /** @brief Add gradients. @param address Of the bin's first word. */
  __device__ void Add(std::uint32_t address, FixedSum const& g) const {
    auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    auto high = [](std::int64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    std::uint32_t g_before = AddLow(address, low(g.grad));
    std::uint32_t h_before = AddLow(address + 8 * stride_, low(g.hess));
    AddHigh(address + 4 * stride_, high(g.grad), g_before, low(g.grad));
    AddHigh(address + 12 * stride_, high(g.hess), h_before, low(g.hess));
    if (has_ranges_) {
      AddWord(address + 16 * stride_, Magnitude::Of(g.grad));
    }
  }

  unsigned char* staging_;
  std::uint32_t* words_;
  std::uint32_t n_bins_;
  std::uint32_t stride_;  // of the word arrays
  bool has_ranges_;
};
}  // namespace gpu_exact
