/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests what is kept where, and the room of it.
 */
#include <gtest/gtest.h>

#include "plan/histogram_memory.h"

namespace gpu_exact {
namespace {
TEST(HistogramMemory, RoomForHistogramsAndOpenRanges) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  HistogramMemory memory;
  EXPECT_EQ(memory.HistogramBytes(16 * kMiB), 20 * kMiB);
  EXPECT_EQ(memory.HistogramBytes(1024 * kMiB), 528 * kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(0), kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(kMiB / 4), 3 * kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(16 * kMiB), 10 * kMiB);
  EXPECT_EQ(memory.FirstHistogramBytes(1024 * kMiB), 264 * kMiB);
  EXPECT_EQ(memory.OpenEntries(1000), 1000u);
  EXPECT_EQ(memory.OpenEntries(64 * kMiB), 1u << 19);
  EXPECT_EQ(memory.OpenEntries(256 * kMiB), 1u << 21);
  EXPECT_EQ(memory.CertainRanges(), 1u << 16);
  EXPECT_EQ(memory.ReadAtOnce(0), 1u << 22);
  EXPECT_EQ(memory.ReadAtOnce(EntryIdx{1} << 27), 1u << 23);
  EXPECT_EQ(memory.ReadAtOnce(EntryIdx{1} << 40), 1u << 25);
  memory.is_lean = true;
  memory.histograms = 1;
  EXPECT_EQ(memory.HistogramBytes(1024 * kMiB), 132 * kMiB);
  EXPECT_EQ(memory.OpenEntries(kMiB), 1u << 18);
  EXPECT_EQ(memory.CertainRanges(), HistogramMemory::kFirstRanges)
      << "a list takes as much at once";
  EXPECT_EQ(memory.ReadAtOnce(EntryIdx{1} << 40), 1u << 22);
}

TEST(HistogramMemory, EntriesAtOnceAreNumberedIn32Bits) {
  for (HistogramMemory const& memory : HistogramMemory::All()) {
    for (EntryIdx n = 1; n < EntryIdx{1} << 56; n *= 16) {
      EXPECT_LT(memory.BinnedAtOnce(n, true), EntryIdx{1} << 32) << n;
      EXPECT_LE(memory.BinnedAtOnce(n, false), memory.BinnedAtOnce(n, true)) << n;
    }
  }
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(1, true), EntryIdx{1} << 21);
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(1, false), EntryIdx{1} << 20);
  EXPECT_EQ(HistogramMemory::All().back().BinnedAtOnce(1, true), EntryIdx{1} << 19);
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(EntryIdx{1} << 33, true), EntryIdx{1} << 29);
  EXPECT_EQ(HistogramMemory{}.BinnedAtOnce(EntryIdx{1} << 33, false), EntryIdx{1} << 27);
}
}  // namespace
}  // namespace gpu_exact
