/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Arrays of all workers, of a length that differs from one to another.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gpu_exact/communicator.h"

namespace gpu_exact::reference {
/**
 * @brief Everybody's array to everybody. Collective.
 *
 * @param comm      nullptr: this worker is alone.
 * @param own       shape: (n)
 * @param out_begin Where the own array begins; may be nullptr.
 * @return One after the other, in the order of ranks.
 */
template <typename T>
std::vector<T> Gather(Communicator* comm, T const* own, std::size_t n,
                      std::size_t* out_begin = nullptr) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!comm) {
    return std::vector<T>(own, own + n);
  }
  auto const rank = static_cast<std::size_t>(comm->Rank());
  std::vector<std::uint64_t> sizes(comm->Size());
  sizes[rank] = n;
  comm->AllGather(sizes.data(), sizeof(sizes[0]));
  auto const longest = *std::max_element(sizes.cbegin(), sizes.cend());
  std::vector<T> padded(longest * sizes.size());
  std::copy_n(own, n, padded.begin() + rank * longest);
  comm->AllGather(padded.data(), longest * sizeof(T));
  std::vector<T> all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == rank && out_begin) {
      *out_begin = all.size();
    }
    auto const begin = padded.cbegin() + i * longest;
    all.insert(all.end(), begin, begin + sizes[i]);
  }
  return all;
}
}  // namespace gpu_exact::reference
