/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements histogram_pool.cuh.
 */
#include <algorithm>
#include <iterator>

#include "device/histogram/build/histogram_pool.cuh"

namespace gpu_exact {
namespace {
/** @brief Count the bins of a pool; they are numbered in 32 bits. */
std::uint64_t BinsOf(std::uint64_t n_bytes, std::uint64_t largest) {
  return std::max(
      {std::uint64_t{1}, largest,
       std::min<std::uint64_t>(n_bytes / HistogramPool::kBinBytes, SearchedNode::kNoHistogram)});
}
}  // namespace

HistogramPool::HistogramPool(std::uint64_t first_bytes, std::uint64_t most_bytes,
                             std::uint64_t largest)
    : most_bins_{BinsOf(most_bytes, largest)}, largest_{largest} {
  this->Reserve(std::min(BinsOf(first_bytes, largest), most_bins_));
}

void HistogramPool::Reserve(std::uint64_t n_bins) {
  sums_.Reserve(n_bins);
  magnitudes_.Reserve(n_bins);
  n_bins_ = n_bins;
}

void HistogramPool::ReleaseAll() {
  n_bins_ = 0;
  sums_.Release();
  magnitudes_.Release();
}

void HistogramPool::Reset() {
  kept_.clear();
  if (was_short_ && n_bins_ < most_bins_) {
    std::uint64_t const n_before = n_bins_;
    std::uint64_t const n_more = n_before == 0 ? most_bins_ : std::min(2 * n_before, most_bins_);
    this->ReleaseAll();
    try {
      this->Reserve(n_more);
    } catch (OutOfDeviceMemory const&) {  // others have taken it meanwhile
      this->ReleaseAll();
      most_bins_ = std::max(n_before, largest_);
      this->Reserve(most_bins_);
    }
  }
  was_short_ = false;
}

std::uint64_t HistogramPool::MostKept() const {
  return n_bins_ - std::min(n_bins_, std::max(largest_, n_bins_ / 4));
}

std::uint32_t HistogramPool::Allocate(std::uint64_t n_bins, std::uint32_t n, std::uint64_t* from) {
  auto next = kept_.lower_bound(*from);
  if (next != kept_.begin()) {
    *from = std::max(*from, std::prev(next)->second);
  }
  for (; next != kept_.end() && next->first < *from + n * n_bins; ++next) {
    *from = next->second;
  }
  if (*from + n * n_bins > this->MostKept()) {
    was_short_ = true;
    return SearchedNode::kNoHistogram;
  }
  std::uint64_t const first = *from;
  for (std::uint32_t i = 0; i < n; ++i, *from += n_bins) {
    kept_.emplace_hint(next, *from, *from + n_bins);
  }
  return static_cast<std::uint32_t>(first);
}

std::uint64_t HistogramPool::RoomToPass(std::uint64_t n_bins, std::uint64_t n_wanted) {
  std::uint64_t const n_room = (n_bins_ - this->KeptEnd()) / std::max<std::uint64_t>(n_bins, 1);
  was_short_ = was_short_ || n_room < n_wanted;
  return n_room;
}
}  // namespace gpu_exact
