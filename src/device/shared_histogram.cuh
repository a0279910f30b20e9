/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The histogram of one group of columns in the shared memory of a block.
 */
#pragma once

#include "src/device/binned_columns.cuh"
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

  /** @brief Bins that fit into so many bytes of shared memory. */
  static constexpr std::size_t MaxBins(std::size_t bytes) {
    constexpr std::size_t kStatic = 512;  // of the kernels
    return (bytes - kStagingBytes - kStatic) / kBinBytes;
  }
  static constexpr std::size_t Bytes(std::size_t n_bins) {
    return kStagingBytes + n_bins * kBinBytes;
  }

  /** @param memory Of Bytes(n_bins), aligned to 16. Its start is for staging, see Staging(). */
  __device__ SharedHistogram(unsigned char* memory, std::uint32_t n_bins)
      : staging_{memory},
        words_{reinterpret_cast<std::uint32_t*>(memory + kStagingBytes)},
        n_bins_{n_bins} {}

  /** @brief kStagingBytes that are free while no rows are added. */
  [[nodiscard]] __device__ unsigned char* Staging() const { return staging_; }
  [[nodiscard]] __device__ std::uint32_t NumBins() const { return n_bins_; }

  __device__ void Zero() const {
    for (std::uint32_t i = threadIdx.x; i < 4 * n_bins_; i += kThreads) {
      words_[i] = 0;
    }
  }

  [[nodiscard]] __device__ FixedSum Get(std::uint32_t bin) const {
    auto word = words_ + bin;
    return {Join(word[0], word[n_bins_]), Join(word[2 * n_bins_], word[3 * n_bins_])};
  }

  /** @brief Add the rows at places [begin, end). All threads of the block, no barrier. */
  __device__ void AddRows(BinnedRef const& binned, BinGroup const& group, RowsRef const& rows,
                          Quantiser const& quantiser, RowIdx begin, RowIdx end) const {
    auto elements = binned.elements + group.first_element;
    auto lane = static_cast<int>(threadIdx.x % 32);
    RowIdx warp = threadIdx.x / 32;
    auto& queue = reinterpret_cast<Queue*>(staging_)[warp];
    // Few rows are spread over all warps.
    RowIdx n_tile = max(1u, min(32u, static_cast<RowIdx>(CeilDiv(end - begin, kWarps))));
    auto fixed = [&](bool valid, RowIdx place) {
      return valid ? quantiser.Fixed(rows.gpair[place]) : FixedSum{0, 0};
    };
    int n_queued{0};
    auto add_queued = [&] {
      __syncwarp();
      bool valid = lane < n_queued;
      RowElements e = valid ? queue.elements[lane] : RowElements{0, 0};
      FixedSum g = fixed(valid, valid ? queue.place[lane] : 0);
      __syncwarp();
      this->AddElements(elements, e, g);
    };
    for (RowIdx first = begin + warp * n_tile; first < end; first += kWarps * n_tile) {
      RowIdx place = first + lane;
      bool valid = lane < n_tile && place < end;
      RowElements e = valid ? binned.Row(group, rows.rows[place]) : RowElements{0, 0};
      if (group.dense != 0) {
        this->AddElements(elements, e, fixed(valid, place));
        continue;
      }
      unsigned filled = __ballot_sync(kAllLanes, e.n != 0);
      if (n_queued + __popc(filled) > 32) {
        add_queued();
        n_queued = 0;
      }
      if (e.n != 0) {
        int at = n_queued + __popc(filled & ((1u << lane) - 1));
        queue.elements[at] = e;
        queue.place[at] = place;
      }
      n_queued += __popc(filled);
    }
    add_queued();
  }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;

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

  __device__ void AddWord(std::uint32_t* word, std::uint32_t low, std::uint32_t high) const {
    std::uint32_t before = atomicAdd(word, low);
    high += before > ~low ? 1 : 0;  // the carry
    if (high != 0) {
      atomicAdd(word + n_bins_, high);
    }
  }

  /**
   * @brief Add up to 32 rows, one a lane; those with elements come first.
   *
   * Lanes take one element each, 32 at a time, whatever the lengths of the rows.
   */
  __device__ void AddElements(GroupBin const* elements, RowElements e, FixedSum const& g) const {
    constexpr int kUnroll = 4;
    auto lane = threadIdx.x % 32;
    std::uint32_t ends = e.n;
    for (int i = 1; i < 32; i *= 2) {
      std::uint32_t below = __shfl_up_sync(kAllLanes, ends, i);
      ends += lane >= static_cast<unsigned>(i) ? below : 0;
    }
    std::uint32_t n = __shfl_sync(kAllLanes, ends, 31);
    std::uint32_t start = e.n != 0 ? ends - e.n : n;
    std::uint32_t shift = e.begin - start;  // from counting elements here to where they lie
    auto g_low = static_cast<std::uint32_t>(g.grad);
    auto g_high = static_cast<std::uint32_t>(g.grad >> 32);
    auto h_low = static_cast<std::uint32_t>(g.hess);
    auto h_high = static_cast<std::uint32_t>(g.hess >> 32);
    int row{-1};
    for (std::uint32_t first = 0; first < n; first += 32 * kUnroll) {
      int source[kUnroll];
      std::uint32_t bin[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        std::uint32_t from = first + 32 * u;
        unsigned heads = OrLanes(start - from < 32 ? 1u << (start - from) : 0);
        source[u] = row + __popc(heads & (0xffffffffu >> (31 - lane)));
        row += __popc(heads);
        std::uint32_t at = from + lane + __shfl_sync(kAllLanes, shift, source[u]);
        bin[u] = from + lane < n ? __ldg(elements + at) : 0;
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        std::uint32_t gl = __shfl_sync(kAllLanes, g_low, source[u]);
        std::uint32_t gh = __shfl_sync(kAllLanes, g_high, source[u]);
        std::uint32_t hl = __shfl_sync(kAllLanes, h_low, source[u]);
        std::uint32_t hh = __shfl_sync(kAllLanes, h_high, source[u]);
        if (first + 32 * u + lane < n) {
          this->AddWord(words_ + bin[u], gl, gh);
          this->AddWord(words_ + 2 * n_bins_ + bin[u], hl, hh);
        }
      }
    }
  }

  unsigned char* staging_;
  std::uint32_t* words_;
  std::uint32_t n_bins_;
};
}  // namespace gpu_exact
