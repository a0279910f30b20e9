/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Copies of small arrays, of every length at which another way is taken; events; checks.
 */
#include <algorithm>
#include <vector>

#include "device/runtime/placed_buffer.cuh"
#include "device/runtime/stream_event.cuh"
#include "tests/device/runtime/upload_problem.cuh"

namespace gpu_exact {
namespace {
using RuntimeTest = DeviceTest;

TEST_F(RuntimeTest, SendsLittleWithALaunch) {
  for (std::size_t n : kLengths) {
    DeviceBuffer<unsigned char> to{"what is sent"};
    ZeroAsync(to.Reserve(n + 4), n + 4);
    auto sent = Numbers(n, 1);
    bool const does = SendBytes(to.Data(), sent.data(), n);
    std::fill(sent.begin(), sent.end(), 0);  // it may go at once
    EXPECT_EQ(does, n <= 1024 && n % 4 == 0) << n;
    auto want = does ? Numbers(n, 1) : std::vector<unsigned char>(n, 0);
    want.resize(n + 4, 0);
    EXPECT_EQ(ToHost(to.Data(), n + 4), want) << n;
  }
}

TEST_F(RuntimeTest, CopiesFromEitherMemory) {
  for (std::size_t n : kLengths) {
    auto const sent = Numbers(n, 2);
    DeviceBuffer<unsigned char> to{"what is copied"};
    CopyFromHost(to.Reserve(n), sent.data(), n);
    EXPECT_EQ(ToHost(to.Data(), n), sent) << n;
    for (Memory at : {Memory::kDevice, Memory::kHost}) {
      PlacedBuffer<unsigned char> placed{"what is placed", at};
      CopyFromHost(placed.Reserve(n), sent.data(), n);
      EXPECT_EQ(ToHost(placed.Data(), n), sent) << n;
      EXPECT_EQ(placed.Bytes(), n);
      EXPECT_EQ(placed.DeviceBytes(), at == Memory::kDevice ? n : 0);
    }
    PinnedBuffer<unsigned char> back{"what comes back"};
    CopyPinned(back.Reserve(n), to.Data(), n);
    Synchronize();
    EXPECT_EQ(std::vector<unsigned char>(back.Data(), back.Data() + n), sent) << n;
  }
}

TEST_F(RuntimeTest, EventsTellHowFarTheStreamIs) {
  StreamEvent event;
  KeepBusy();
  event.Record();
  EXPECT_TRUE(!event.IsReached() || UnderSanitizer()) << "a sanitizer waits for kernels";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "asking leaves no error";
  event.Await();
  EXPECT_TRUE(event.IsReached());
}

#ifdef GPU_EXACT_CHECKS
__global__ void CheckKernel(int x) {
  WaitForPreviousKernel();
  EXACT_DEVICE_CHECK(x == 1);
}

using DeviceCheckDeathTest = RuntimeTest;

/** @brief In a process of its own, which can do nothing with the device afterwards. */
TEST_F(DeviceCheckDeathTest, EndsTheKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const check = [](int x) {
    Launch("Check", CheckKernel, 1, 1, x);
    try {
      Synchronize();
    } catch (DeviceError const&) {
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(check(1), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(check(2), ::testing::ExitedWithCode(7), "x == 1");
}
#endif
}  // namespace
}  // namespace gpu_exact
