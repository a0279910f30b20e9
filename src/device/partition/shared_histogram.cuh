/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The histogram of one group of columns in the shared memory of a block.
 */
#pragma once

#include "src/device/partition/binned_columns.cuh"
#include "src/device/rows_ref.cuh"
#include "src/quantise.h"

namespace gpu_exact {
/**
 * @brief Sums by bin, in four arrays of words: there is no 64-bit atomic addition in shared memory,
 *        and words side by side spread over all banks.
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
  static constexpr std::size_t kBinBytes = 4 * sizeof(std::uint32_t);
  static constexpr std::uint32_t kSpareBins = 32;  // where lanes without an element add

  /** @brief Bins that fit into so many bytes of shared memory. */
  static constexpr std::size_t MaxBins(std::size_t bytes) {
    constexpr std::size_t kStatic = 64;  // of the kernels
    return (bytes - kStagingBytes - kStatic) / kBinBytes - kSpareBins;
  }
  static constexpr std::size_t Bytes(std::size_t n_bins) {
    return kStagingBytes + (n_bins + kSpareBins) * kBinBytes;
  }

  /** @param memory Of Bytes(n_bins), aligned to 16. Its start is for staging, see Staging(). */
  __device__ SharedHistogram(unsigned char* memory, std::uint32_t n_bins)
      : staging_{memory},
        words_{reinterpret_cast<std::uint32_t*>(memory + kStagingBytes)},
        n_bins_{n_bins},
        stride_{n_bins + kSpareBins} {}

  /** @brief kStagingBytes that are free while no rows are added. */
  [[nodiscard]] __device__ unsigned char* Staging() const { return staging_; }
  [[nodiscard]] __device__ std::uint32_t NumBins() const { return n_bins_; }

  __device__ void Zero() const {
    for (std::uint32_t i = threadIdx.x; i < stride_; i += kThreads) {
      reinterpret_cast<uint4*>(words_)[i] = {0, 0, 0, 0};
    }
  }

  [[nodiscard]] __device__ FixedSum Get(std::uint32_t bin) const {
    auto word = words_ + bin;
    return {Join(word[0], word[stride_]), Join(word[2 * stride_], word[3 * stride_])};
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
    RowIdx const stride = kWarps * n_tile;
    RowTile tile{begin + threadIdx.x / 32 * n_tile + lane, end, lane < n_tile};
    RowElements e = tile.Elements(group, tile.Row(rows));
    RowIdx row = tile.Next(stride).Row(rows);
    Adder adder{*this, group.elements, rows.gpair, quantiser};
    for (RowIdx first = tile.place - lane; first < end; first += stride) {
      RowElements next = tile.Next(stride).Elements(group, row);
      row = tile.Next(2 * stride).Row(rows);
      if (group.Dense()) {
        adder.Add(e, tile.place);
      } else {
        adder.Enqueue(e, tile.place);
      }
      e = next;
      tile = tile.Next(stride);
    }
    adder.Finish();
  }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;

  /** @brief A lane's row of the tiles that its warp goes along. */
  struct RowTile {
    RowIdx place;
    RowIdx end;
    bool active;

    [[nodiscard]] __device__ RowTile Next(RowIdx stride) const {
      return {place + stride, end, active};
    }
    [[nodiscard]] __device__ bool Valid() const { return active && place < end; }
    [[nodiscard]] __device__ RowIdx Row(RowsRef const& rows) const {
      return this->Valid() ? rows.rows[place] : 0;
    }
    [[nodiscard]] __device__ RowElements Elements(BinGroup const& group, RowIdx row) const {
      return this->Valid() ? BinnedRef::Row(group, row) : RowElements{0, 0};
    }
  };

  /** @brief A warp's additions. */
  struct Adder {
    SharedHistogram const& histogram;
    GroupBin const* elements;  // of the group
    GradientPair const* gpair;
    Quantiser const& quantiser;
    int n_queued{0};

    __device__ Adder(SharedHistogram const& h, GroupBin const* elements, GradientPair const* gpair,
                     Quantiser const& quantiser)
        : histogram{h}, elements{elements}, gpair{gpair}, quantiser{quantiser} {}

    [[nodiscard]] __device__ Queue& WarpQueue() const {
      return reinterpret_cast<Queue*>(histogram.staging_)[threadIdx.x / 32];
    }
    /** @brief Add a row, if it has elements, together with others. */
    __device__ void Enqueue(RowElements e, RowIdx place) {
      unsigned filled = __ballot_sync(kAllLanes, e.Size() != 0);
      if (n_queued + __popc(filled) > 32) {
        this->Finish();
      }
      if (e.Size() != 0) {
        int at = n_queued + __popc(filled & ((1u << threadIdx.x % 32) - 1));
        this->WarpQueue().elements[at] = e;
        this->WarpQueue().place[at] = place;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(elements + e.begin));
      }
      n_queued += __popc(filled);
    }
    /** @brief Add what is queued. */
    __device__ void Finish() {
      if (n_queued == 0) {
        return;
      }
      auto lane = static_cast<int>(threadIdx.x % 32);
      __syncwarp();
      RowElements e = lane < n_queued ? this->WarpQueue().elements[lane] : RowElements{0, 0};
      RowIdx place = lane < n_queued ? this->WarpQueue().place[lane] : 0;
      __syncwarp();
      this->Add(e, place);
      n_queued = 0;
    }
    /** @brief Add a row of each lane; the lanes whose rows have elements come first. */
    __device__ void Add(RowElements e, RowIdx place) const {
      GradientPair g = e.Size() != 0 ? gpair[place] : GradientPair{0.0f, 0.0f};
      histogram.AddElements(elements, e, [&] { return quantiser.Fixed(g); });
    }
  };

  [[nodiscard]] __device__ static std::int64_t Join(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(high) << 32 | low);
  }

  /** @brief Or of all lanes' bits. */
  [[nodiscard]] __device__ static unsigned OrLanes(unsigned bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(kAllLanes, bits);
#else
    for (int i = 1; i < 32; i *= 2) {
      bits |= __shfl_xor_sync(kAllLanes, bits, i);
    }
    return bits;
#endif
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

  /** @brief Elements of a warp's rows, one after another: 32 at a time, one a lane. */
  struct Window {
    int source;         // the lane whose row the element is of
    std::uint32_t bin;  // of no meaning after the last element
  };

  /**
   * @brief Add up to 32 rows, one a lane; those with elements come first.
   *
   * Lanes take one element each, whatever the lengths of the rows.
   *
   * @param fixed fixed(): the gradients of the lane's row.
   */
  template <typename FixedFn>
  __device__ void AddElements(GroupBin const* elements, RowElements e, FixedFn&& fixed) const {
    constexpr int kUnroll = 2;
    static_assert(3 * kUnroll * 32 <= BinGroup::kBeyond);  // windows are loaded ahead
    std::uint32_t const lane = threadIdx.x % 32;
    std::uint32_t ends = e.Size();
    for (int i = 1; i < 32; i *= 2) {
      std::uint32_t below = __shfl_up_sync(kAllLanes, ends, i);
      ends += lane >= static_cast<unsigned>(i) ? below : 0;
    }
    std::uint32_t const n = __shfl_sync(kAllLanes, ends, 31);
    std::uint32_t const start = ends - e.Size();
    std::uint32_t const shift = e.begin - start;  // from counting elements here to where they lie
    std::uint32_t const head =
        e.Size() != 0 ? start / 32 : 0xffffffffu;  // window of the first element
    std::uint32_t const head_bit = 1u << start % 32;
    std::uint32_t const up_to_lane = 0xffffffffu >> (31 - lane);
    int row{-1};
    auto load = [&](std::uint32_t w) {
      unsigned heads = OrLanes(head == w ? head_bit : 0);
      int source = row + __popc(heads & up_to_lane);
      row += __popc(heads);
      std::uint32_t at = 32 * w + lane + __shfl_sync(kAllLanes, shift, source);
      return Window{source, __ldg(elements + at)};  // waits for nothing yet
    };
    Window even[kUnroll];
    Window odd[kUnroll];
    auto load_all = [&](std::uint32_t w, Window(&out)[kUnroll]) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        out[u] = load(w + u);
      }
    };
    load_all(0, even);
    FixedSum const g = fixed();
    auto g_low = static_cast<std::uint32_t>(g.grad);
    auto g_high = static_cast<std::uint32_t>(g.grad >> 32);
    auto h_low = static_cast<std::uint32_t>(g.hess);
    auto h_high = static_cast<std::uint32_t>(g.hess >> 32);
    std::uint32_t base;  // kept in a register by the detour
    asm volatile("mov.u32 %0, %1;"
                 : "=r"(base)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(words_))));
    auto add_all = [&](std::uint32_t w, Window const(&windows)[kUnroll]) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        int source = windows[u].source;
        std::uint32_t gl = __shfl_sync(kAllLanes, g_low, source);
        std::uint32_t gh = __shfl_sync(kAllLanes, g_high, source);
        std::uint32_t hl = __shfl_sync(kAllLanes, h_low, source);
        std::uint32_t hh = __shfl_sync(kAllLanes, h_high, source);
        std::uint32_t bin = 32 * (w + u) + lane < n ? windows[u].bin : n_bins_ + lane;
        std::uint32_t word = base + 4 * bin;
        std::uint32_t g_before = AddLow(word, gl);
        std::uint32_t h_before = AddLow(word + 8 * stride_, hl);
        AddHigh(word + 4 * stride_, gh, g_before, gl);
        AddHigh(word + 12 * stride_, hh, h_before, hl);
      }
    };
    // The next windows are on their way while the present ones are added.
    for (std::uint32_t w = 0; 32 * w < n; w += 2 * kUnroll) {
      load_all(w + kUnroll, odd);
      add_all(w, even);
      if (32 * (w + kUnroll) >= n) {
        break;
      }
      load_all(w + 2 * kUnroll, even);
      add_all(w + kUnroll, odd);
    }
  }

  unsigned char* staging_;
  std::uint32_t* words_;
  std::uint32_t n_bins_;
  std::uint32_t stride_;  // of the word arrays
};
}  // namespace gpu_exact
