/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The first of a range that fulfils a condition, wherever it lies.
 */
#include <gtest/gtest.h>

#include <cstdint>

#include "core/platform.h"

namespace gpu_exact {
namespace {
TEST(PartitionPoint, EveryPlaceOfEveryRange) {
  for (std::uint32_t begin : {0u, 5u}) {
    for (std::uint32_t n = 0; n < 20; ++n) {
      for (std::uint32_t first = begin; first <= begin + n; ++first) {
        EXPECT_EQ(PartitionPoint(begin, begin + n,
                                 [&](std::uint32_t i) {
                                   EXPECT_TRUE(i >= begin && i < begin + n) << i;
                                   return i >= first;
                                 }),
                  first);
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
