/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Deals the elements of up to 32 rows out to the lanes of a warp.
 */
#pragma once

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
/**
 * @brief Walks along the elements of a warp's rows, one after another, 32 at a time: every lane has
 *        an element, whatever the lengths of the rows.
 */
class SparseBinReader {
 public:
  static constexpr int kWindows = 2;  // of 32 elements that are loaded together

  /** @brief Holds the lane's element in each window. */
  struct Windows {
    int source[kWindows];         // the lane whose row it is of
    std::uint32_t bin[kWindows];  // of no meaning after the last element
  };

  /** @param row The lane's; rows with elements come first. */
  __device__ SparseBinReader(GroupBin const* elements, RowElements row) : elements_{elements} {
    EXACT_DEVICE_CHECK((__ballot_sync(kAllLanes, row.Size() != 0) & LaneMaskLt()) == LaneMaskLt() ||
                       row.Size() == 0);
    std::uint32_t const ends = WarpInclusiveSum(row.Size());
    n_ = __shfl_sync(kAllLanes, ends, 31);
    std::uint32_t const start = ends - row.Size();
    shift_ = row.begin - start;
    head_ = row.Size() != 0 ? start / 32 : 0xffffffffu;
    head_bit_ = 1u << start % 32;
  }

  /** @brief Count the elements of all rows. */
  [[nodiscard]] __device__ std::uint32_t Size() const { return n_; }

  /** @brief Load the next windows; waits for nothing. May go on for three windows past the end. */
  __device__ void LoadNext(Windows* out) {
    static_assert(4 * 32 <= FeatureGroup::kBeyond);
#pragma unroll
    for (int u = 0; u < kWindows; ++u) {
      unsigned heads = WarpOr(head_ == window_ ? head_bit_ : 0);
      out->source[u] = row_ + __popc(heads & (0xffffffffu >> (31 - Lane())));
      row_ += __popc(heads);
      std::uint32_t at = 32 * window_ + Lane() + __shfl_sync(kAllLanes, shift_, out->source[u]);
      out->bin[u] = LoadBin(elements_ + at);
      ++window_;
    }
  }

 private:
  [[nodiscard]] __device__ static std::uint32_t Lane() { return threadIdx.x % 32; }

  /** @brief Load into a full register: half ones are moved around, which waits for the load. */
  [[nodiscard]] __device__ static std::uint32_t LoadBin(GroupBin const* from) {
    std::uint32_t bin;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=r"(bin) : "l"(from));
    return bin;
  }

  GroupBin const* elements_;
  std::uint32_t n_;
  std::uint32_t shift_;     // from counting elements here to where the row's lie
  std::uint32_t head_;      // the window in which the row begins
  std::uint32_t head_bit_;  // and where
  std::uint32_t window_{0};
  int row_{-1};  // the last one that begins before the window
};
}  // namespace gpu_exact
