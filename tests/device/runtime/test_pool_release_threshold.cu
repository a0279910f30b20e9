/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What the pool of a device keeps, and that it is given back.
 */
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "device/runtime/pool_release_threshold.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
cudaMemPool_t Pool() {
  cudaMemPool_t pool{nullptr};
  EXACT_CUDA(cudaDeviceGetMemPool(&pool, 0));
  return pool;
}

std::uint64_t Attribute(cudaMemPoolAttr attribute) {
  std::uint64_t value{0};
  EXACT_CUDA(cudaMemPoolGetAttribute(Pool(), attribute, &value));
  return value;
}

std::uint64_t Threshold() { return Attribute(cudaMemPoolAttrReleaseThreshold); }

class PoolReleaseThresholdTest : public DeviceTest {
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && DeviceAttribute(cudaDevAttrMemoryPoolsSupported) == 0) {
      GTEST_SKIP() << "this device has no pool";
    }
  }
};

TEST_F(PoolReleaseThresholdTest, KeepsWhatIsGivenBackWhileItLives) {
  std::uint64_t const before = Threshold();
  {
    PoolReleaseThreshold const pool{kPoolStep};
    ASSERT_TRUE(pool.Keeps());
    void* p{nullptr};
    EXACT_CUDA(cudaMallocAsync(&p, 1000, Stream()));
    EXACT_CUDA(cudaFreeAsync(p, Stream()));
    Synchronize();
    EXPECT_EQ(Attribute(cudaMemPoolAttrUsedMemCurrent), 0);
    EXPECT_GE(Attribute(cudaMemPoolAttrReservedMemCurrent), 1000);
    EXPECT_LE(Attribute(cudaMemPoolAttrReservedMemCurrent), kPoolStep);
  }
  EXPECT_EQ(Threshold(), before);
  EXPECT_EQ(Attribute(cudaMemPoolAttrReservedMemCurrent), 0);
}

TEST_F(PoolReleaseThresholdTest, SeveralAddUp) {
  std::uint64_t const before = Threshold();
  auto first = std::make_unique<PoolReleaseThreshold>(kPoolStep);
  auto second = std::make_unique<PoolReleaseThreshold>(2 * kPoolStep);
  EXPECT_EQ(Threshold(), before + 3 * kPoolStep);
  first.reset();
  EXPECT_EQ(Threshold(), before + 2 * kPoolStep);
  second.reset();
  EXPECT_EQ(Threshold(), before);
}

TEST_F(PoolReleaseThresholdTest, NothingIsAsked) {
  std::uint64_t const before = Threshold();
  PoolReleaseThreshold const pool{0};
  EXPECT_FALSE(pool.Keeps());
  EXPECT_EQ(Threshold(), before);
}

TEST_F(PoolReleaseThresholdTest, OthersKeepAll) {
  std::uint64_t const before = Threshold();
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  EXACT_CUDA(cudaMemPoolSetAttribute(Pool(), cudaMemPoolAttrReleaseThreshold, &all));
  {
    PoolReleaseThreshold const pool{kPoolStep};
    EXPECT_TRUE(pool.Keeps());
  }
  EXPECT_EQ(Threshold(), all);
  std::uint64_t again{before};
  EXACT_CUDA(cudaMemPoolSetAttribute(Pool(), cudaMemPoolAttrReleaseThreshold, &again));
}
}  // namespace
}  // namespace gpu_exact
