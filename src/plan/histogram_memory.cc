/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements histogram_memory.h.
 */
#include "plan/histogram_memory.h"

#include <algorithm>

namespace gpu_exact {
namespace {
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
}  // namespace

std::vector<HistogramMemory> HistogramMemory::All() {
  constexpr auto kHost = Memory::kHost;
  constexpr auto kDevice = Memory::kDevice;
  std::vector<HistogramMemory> all{{true, kDevice, kDevice, kDevice, false, false},
                                   {true, kDevice, kDevice, kDevice, true, false},
                                   {true, kDevice, kDevice, kDevice, true, true, 1},
                                   {true, kHost, kDevice, kDevice, true, true, 1},
                                   {true, kHost, kHost, kDevice, true, true, 1},
                                   {true, kHost, kHost, kHost, true, true, 1}};
  for (HistogramMemory& memory : all) {
    memory.rows_by_category >>= memory.is_lean ? 2 : 0;
  }
  return all;
}

std::uint64_t HistogramMemory::HistogramBytes(EntryIdx n_entries) const {
  std::uint64_t const room =
      n_entries / 2 + std::min<std::uint64_t>(16 * kMiB, n_entries / 4 + 8 * kMiB);
  return room / kAllHistograms * histograms;
}

std::uint64_t HistogramMemory::FirstHistogramBytes(EntryIdx n_entries) const {
  return std::min(this->HistogramBytes(n_entries) / 2, 8 * n_entries + kMiB);
}

std::uint64_t HistogramMemory::CertainRanges() const { return (is_lean ? 1 : 4) * kFirstRanges; }

std::uint64_t HistogramMemory::OpenEntries(EntryIdx n_entries) const {
  return std::min(n_entries, std::max(EntryIdx{1} << 19, n_entries / 128) / (is_lean ? 2 : 1));
}

EntryIdx HistogramMemory::BinnedAtOnce(EntryIdx n_entries, bool is_dense) const {
  EntryIdx const least = EntryIdx{1} << (is_dense && !is_lean ? 21 : 22);
  constexpr EntryIdx kMost = EntryIdx{1} << 31;  // they are numbered in 32 bits
  return std::clamp(n_entries / 16, least, kMost) / (is_lean ? 8 : is_dense ? 1 : 4);
}

EntryIdx HistogramMemory::ReadAtOnce(EntryIdx n_entries) const {
  constexpr EntryIdx kLeast = EntryIdx{1} << 22;
  constexpr EntryIdx kMost = EntryIdx{1} << 25;
  return is_lean ? kLeast : std::clamp(n_entries / 16, kLeast, kMost);
}
}  // namespace gpu_exact
