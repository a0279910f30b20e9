/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Which context counts device memory, and who shares CUB's storage.
 */
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>

#include "device/runtime/device_context.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using DeviceContextTest = DeviceTest;

DeviceBuffer<std::uint32_t> MakeBuffer(std::size_t n) {
  DeviceBuffer<std::uint32_t> buffer{"test data"};
  buffer.Reserve(n);
  return buffer;
}

/** @brief Whoever frees it, and wherever. */
TEST_F(DeviceContextTest, CountsWhatIsAllocatedInItsScope) {
  DeviceContext outer{-1};
  DeviceContext inner{-1};
  DeviceContext::Scope const scope{outer};
  DeviceBuffer<std::uint32_t> of_outer = MakeBuffer(10);
  DeviceBuffer<std::uint32_t> of_inner{"test data"};
  {
    DeviceContext::Scope const inner_scope{inner};
    ASSERT_EQ(&DeviceContext::Current(), &inner);
    of_inner = MakeBuffer(100);
    of_outer.Release();
    EXPECT_EQ(outer.Bytes(), 0u);
    EXPECT_EQ(inner.Bytes(), 400u);
    of_inner.Reserve(50);
    EXPECT_EQ(inner.Bytes(), 400u) << "it has room";
  }
  ASSERT_EQ(&DeviceContext::Current(), &outer);
  std::swap(of_outer, of_inner);
  of_outer.Reserve(1000);  // what it had goes
  EXPECT_EQ(inner.Bytes(), 0u);
  EXPECT_EQ(outer.Bytes(), 4000u);
  of_outer.Release();
  of_outer.Release();
  EXPECT_EQ(outer.Bytes(), 0u);
  EXPECT_EQ(outer.Memory()->Peak(), 4000u);
  EXPECT_EQ(inner.Memory()->Peak(), 400u);
}

/** @brief Memory may outlive the context that it was allocated for. */
TEST_F(DeviceContextTest, IsOutlivedByMemory) {
  DeviceBuffer<std::uint32_t> buffer{"test data"};
  {
    DeviceContext context{-1};
    DeviceContext::Scope const scope{context};
    buffer = MakeBuffer(10);
  }
  buffer.Release();
}

TEST_F(DeviceContextTest, EachThreadHasItsOwn) {
  DeviceContext context{-1};
  DeviceContext::Scope const scope{context};
  DeviceContext* of_thread{nullptr};
  std::thread{[&] {
    of_thread = &DeviceContext::Current();
    static_cast<void>(MakeBuffer(10));
  }}.join();
  EXPECT_NE(of_thread, &context);
  EXPECT_EQ(context.Bytes(), 0u);
}

TEST_F(DeviceContextTest, KeepsStorageForCub) {
  DeviceContext context{-1};
  DeviceContext::Scope const scope{context};
  void* storage{nullptr};
  auto const call = [&](std::size_t n_bytes) {
    CallCub([&](void* given, std::size_t& bytes) {
      bytes = n_bytes;
      storage = given;
      return cudaSuccess;
    });
    return std::exchange(storage, nullptr);
  };
  void* const first = call(1000);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(call(1000), first);
  EXPECT_EQ(call(10), first);
  EXPECT_NE(call(0), nullptr) << "CUB would take nothing for a question";
  EXPECT_EQ(context.Bytes(), 1000u);
  context.ReleaseScratch();
  EXPECT_EQ(context.Bytes(), 0u);
}
}  // namespace
}  // namespace gpu_exact
