/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include <gtest/gtest.h>

#include "host/build_advice.h"

namespace gpu_exact {
namespace {
TEST(BuildAdvice, KernelsOlderThanHopperOnHopperAndLater) {
  EXPECT_EQ(
      AdviseBuild("NVIDIA H200", 90, 75),
      "NVIDIA H200 runs kernels that were compiled for compute capability 7.5, slower than its "
      "own would be; build with -DCMAKE_CUDA_ARCHITECTURES=native where it is visible.");
  EXPECT_NE(AdviseBuild("a GPU", 120, 80), "");
}

TEST(BuildAdvice, NoneWhereNothingIsLost) {
  EXPECT_EQ(AdviseBuild("a GPU", 90, 90), "");
  EXPECT_EQ(AdviseBuild("a GPU", 130, 120), "");  // PTX of the newest that there was
  EXPECT_EQ(AdviseBuild("a GPU", 86, 75), "");
  EXPECT_EQ(AdviseBuild("a GPU", 75, 75), "");
}
}  // namespace
}  // namespace gpu_exact
