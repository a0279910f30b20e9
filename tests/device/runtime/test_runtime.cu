/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Ways of small arrays to the device, of every length at which another one is taken.
 */
#include <numeric>
#include <stdexcept>
#include <vector>

#include "device/runtime/placed_buffer.cuh"
#include "device/runtime/stream_event.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
/** @brief Lengths in bytes: with the parameters of a launch, by a kernel, by a copy. */
constexpr std::size_t kLengths[] = {0, 1, 4, 6, 1020, 1024, 1025, 1028, 65536, 65540, 300001};

std::vector<unsigned char> Numbers(std::size_t n, int first) {
  std::vector<unsigned char> numbers(n);
  std::iota(numbers.begin(), numbers.end(), static_cast<unsigned char>(first));
  return numbers;
}

// one thread; busy for some time
__global__ void SpinKernel(std::uint64_t n_cycles) {
  WaitForPreviousKernel();
  for (auto const begin = clock64(); clock64() - begin < static_cast<long long>(n_cycles);) {
  }
}

class RuntimeTest : public DeviceTest {
 protected:
  static constexpr std::uint64_t kLong = 200'000'000;  // cycles, about a tenth of a second
};

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

TEST_F(RuntimeTest, UploadsWhatIsNewEachTime) {
  UploadBuffer<unsigned char> buffer{"an upload"};
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t n : kLengths) {
      auto const sent = Numbers(n, turn);
      EXPECT_EQ(ToHost(buffer.Upload(sent), n), sent) << n;  // waits
    }
  }
}

TEST_F(RuntimeTest, UploadsSeveralArraysAtOnce) {
  UploadArena arena{"some uploads"};
  for (std::size_t n : kLengths) {
    for (int turn = 0; turn < 2; ++turn) {
      auto const bytes = Numbers(n, turn);
      std::vector<std::uint64_t> const words(n / 8, 0x123456789abcdef0u + turn);
      auto const first = arena.Add(bytes);
      auto const second = arena.Add(words);
      auto const third = arena.Add(bytes);
      arena.Upload();
      EXPECT_EQ(ToHost(arena.Data<unsigned char>(first), n), bytes) << n;
      EXPECT_EQ(ToHost(arena.Data<std::uint64_t>(second), words.size()), words) << n;
      EXPECT_EQ(ToHost(arena.Data<unsigned char>(third), n), bytes) << n;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.Data<std::uint64_t>(second)) % 16, 0u);
    }
  }
}

TEST_F(RuntimeTest, EventsTellHowFarTheStreamIs) {
  StreamEvent event;
  Launch("Spin", SpinKernel, 1, 1, kLong);
  event.Record();
  EXPECT_FALSE(event.IsReached());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "asking leaves no error";
  event.Await();
  EXPECT_TRUE(event.IsReached());
}

#ifdef GPU_EXACT_CHECKS
/** @brief An upload while the device may read the one before it is a mistake. */
TEST_F(RuntimeTest, AnUploadWaitsForTheOneBefore) {
  auto const sent = Numbers(5000, 1);
  UploadBuffer<unsigned char> buffer{"an upload"};
  buffer.Upload(sent);
  Synchronize();
  Launch("Spin", SpinKernel, 1, 1, kLong);
  buffer.Upload(sent);
  EXPECT_THROW(buffer.Upload(sent), std::logic_error);
  Synchronize();
  EXPECT_NO_THROW(buffer.Upload(sent));
  Synchronize();
}

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
