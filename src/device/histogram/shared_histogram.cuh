/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The histogram of one group of columns in the shared memory of a block.
 */
#pragma once

#include "src/device/histogram/bin_sums.cuh"
#include "src/device/histogram/binned_columns.cuh"
#include "src/device/histogram/warp_bin_reader.cuh"
#include "src/device/histogram/rows_ref.cuh"
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

  /** @brief Rows that have elements in the group, gathered so that all lanes have work. */
  struct Queue {
    RowElements elements[32];
    RowIdx place[32];
  };
  static constexpr std::size_t kStagingBytes = kWarps * sizeof(Queue);
  static constexpr std::size_t kBinBytes = 5 * sizeof(std::uint32_t);
  static constexpr std::uint32_t kSpareBins = 32;  // where lanes without an element add

  /** @brief Bins that fit into so many bytes of shared memory. */
  static constexpr std::size_t MaxBins(std::size_t bytes) {
    constexpr std::size_t kStatic = 64;  // of the kernels
    return (bytes - kStagingBytes - kStatic) / kBinBytes - kSpareBins - 3;
  }
  static constexpr std::size_t Bytes(std::size_t n_bins) {
    return kStagingBytes + Stride(n_bins) * kBinBytes;
  }

  /** @param memory Of Bytes(n_bins), aligned to 16. Its start is for staging, see Staging(). */
  __device__ SharedHistogram(unsigned char* memory, BinGroup const& group)
      : staging_{memory},
        words_{reinterpret_cast<std::uint32_t*>(memory + kStagingBytes)},
        n_bins_{group.n_bins},
        stride_{static_cast<std::uint32_t>(Stride(group.n_bins))},
        has_ranges_{group.has_ranges != 0} {}

  /** @brief kStagingBytes that are free while no rows are added. */
  [[nodiscard]] __device__ unsigned char* Staging() const { return staging_; }
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

  /**
   * @brief Add the rows at places [begin, end). All threads of the block, no barrier.
   *
   * What the next rows need is loaded before the present ones are added.
   */
  __device__ void AddRows(BinGroup const& group, RowsRef const& rows, Quantiser const& quantiser,
                          RowIdx begin, RowIdx end) const {
    RowIdx const lane = threadIdx.x % 32;
    // Few rows are spread over all warps.
    RowIdx n_tile = max(1u, min(32u, static_cast<RowIdx>(CeilDiv(end - begin, kWarps))));
    RowTiles tiles{rows, begin + threadIdx.x / 32 * n_tile + lane, end, kWarps * n_tile,
                   lane < n_tile};
    if (group.Dense()) {
      this->AddDense(group, tiles, quantiser);
    } else {
      this->AddSparse(group, tiles, quantiser);
    }
  }

 private:
  [[nodiscard]] __host__ __device__ static constexpr std::size_t Stride(std::size_t n_bins) {
    return (n_bins + kSpareBins + 3) / 4 * 4;
  }

  /** @brief The rows that a warp goes along, one a lane and tile. */
  struct RowTiles {
    RowsRef const& rows;
    RowIdx place;
    RowIdx end;
    RowIdx stride;
    bool active;

    /** @brief Whether the warp has a tile here; of all lanes, since the first is always active. */
    [[nodiscard]] __device__ bool Any() const { return place - threadIdx.x % 32 < end; }
    [[nodiscard]] __device__ bool Valid(RowIdx tile) const {
      return active && place + tile * stride < end;
    }
    /** @brief The lane's row, so many tiles ahead. */
    [[nodiscard]] __device__ RowIdx Row(RowIdx tile) const {
      return this->Valid(tile) ? rows.rows[place + tile * stride] : 0;
    }
    [[nodiscard]] __device__ GradientPair Gradients(RowIdx tile) const {
      return this->Valid(tile) ? rows.gpair[place + tile * stride] : GradientPair{0.0f, 0.0f};
    }
  };

  __device__ void AddDense(BinGroup const& group, RowTiles tiles,
                           Quantiser const& quantiser) const {
    RowIdx row = tiles.Row(0);
    GradientPair g = tiles.Gradients(0);
    for (; tiles.Any(); tiles.place += tiles.stride) {
      RowElements e = tiles.Valid(0) ? BinnedRef::Row(group, row) : RowElements{0, 0};
      GradientPair present = g;
      row = tiles.Row(1);
      g = tiles.Gradients(1);
      this->AddElements(group.elements, e, [&] { return quantiser.Units(present); });
    }
  }

  /** @brief Many rows may have no element in the group; the others queue. */
  __device__ void AddSparse(BinGroup const& group, RowTiles tiles,
                            Quantiser const& quantiser) const {
    auto const lane = static_cast<int>(threadIdx.x % 32);
    auto& queue = reinterpret_cast<Queue*>(staging_)[threadIdx.x / 32];
    int n_queued{0};
    auto add_queued = [&] {
      __syncwarp();
      bool valid = lane < n_queued;
      RowElements e = valid ? queue.elements[lane] : RowElements{0, 0};
      GradientPair g = valid ? tiles.rows.gpair[queue.place[lane]] : GradientPair{0.0f, 0.0f};
      __syncwarp();
      this->AddElements(group.elements, e, [&] { return quantiser.Units(g); });
      n_queued = 0;
    };
    auto elements_of = [&](RowIdx tile, RowIdx row) {
      return tiles.Valid(tile) ? BinnedRef::Row(group, row) : RowElements{0, 0};
    };
    RowElements e = elements_of(0, tiles.Row(0));
    RowIdx row = tiles.Row(1);
    for (; tiles.Any(); tiles.place += tiles.stride) {
      RowElements next = elements_of(1, row);
      row = tiles.Row(2);
      bool filled = e.Size() != 0;
      unsigned all_filled = __ballot_sync(kAllLanes, filled);
      if (n_queued + __popc(all_filled) > 32) {
        add_queued();
      }
      if (filled) {
        int at = n_queued + __popc(all_filled & ((1u << lane) - 1));
        queue.elements[at] = e;
        queue.place[at] = tiles.place;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(group.elements + e.begin));
      }
      n_queued += __popc(all_filled);
      e = next;
    }
    add_queued();
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

  /**
   * @brief Add up to 32 rows, one a lane; those with elements come first.
   * @param units units(): the gradients of the lane's row, see Quantiser::Units().
   */
  template <typename UnitsFn>
  __device__ void AddElements(GroupBin const* elements, RowElements e, UnitsFn&& units) const {
    WarpBinReader all{elements, e};
    if (all.Size() == 0) {
      return;
    }
    WarpBinReader::Windows even;
    WarpBinReader::Windows odd;
    all.LoadNext(&even);
    GradientPair const g = units();
    std::uint32_t base;  // kept in a register by the detour
    asm volatile("mov.u32 %0, %1;"
                 : "=r"(base)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(words_))));
    auto add = [&](std::uint32_t first, WarpBinReader::Windows const& windows) {
#pragma unroll
      for (int u = 0; u < WarpBinReader::kWindows; ++u) {
        std::uint32_t i = first + 32 * u + threadIdx.x % 32;
        std::uint32_t bin = i < all.Size() ? windows.bin[u] : n_bins_ + threadIdx.x % 32;
        this->Add(base + 4 * bin, g, windows.source[u]);
      }
    };
    // The next windows are on their way while the present ones are added.
    constexpr std::uint32_t kStep = 32 * WarpBinReader::kWindows;
    for (std::uint32_t first = 0; first < all.Size(); first += 2 * kStep) {
      all.LoadNext(&odd);
      add(first, even);
      if (first + kStep >= all.Size()) {
        break;
      }
      all.LoadNext(&even);
      add(first + kStep, odd);
    }
  }

  /**
   * @brief Add the gradients of another lane.
   * @param address Of the bin's first word.
   * @param units   The lane's own: half as wide as fixed point on their way between lanes.
   */
  __device__ void Add(std::uint32_t address, GradientPair const& units, int source) const {
    FixedSum const g = Quantiser::FromUnits(
        {__shfl_sync(kAllLanes, units.grad, source), __shfl_sync(kAllLanes, units.hess, source)});
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
