/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Copies in both directions against plain ones.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "device/runtime/host_copy.cuh"
#include "device/runtime/uploader.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"
#include "tests/support/thread_team.h"

namespace gpu_exact {
namespace {
constexpr std::size_t kChunk = 4096;

CopyPlan SmallPlan() { return {kChunk, 4, 3, 0}; }

std::vector<unsigned char> MakeBytes(std::size_t n, unsigned seed) {
  std::vector<unsigned char> bytes(n);
  std::mt19937 engine{seed};
  for (auto& byte : bytes) {
    byte = static_cast<unsigned char>(engine());
  }
  return bytes;
}

/** @brief There and back; the bytes beside the arrays stay. */
void CheckCopies(HostCopier* copier, std::size_t n, unsigned seed) {
  constexpr std::size_t kMargin = 64;
  auto const want = MakeBytes(n, seed);
  auto all = MakeBytes(n + 2 * kMargin, seed + 1);
  auto d_all = ToDevice(all);
  auto source = want;
  copier->CopyToDevice(d_all.Data() + kMargin, source.data(), n);
  std::fill(source.begin(), source.end(), 0);  // may go when the call has returned
  if (n != 0) {
    std::memcpy(all.data() + kMargin, want.data(), n);
  }
  ASSERT_EQ(ToHost(d_all.Data(), all.size()), all) << n << " bytes to the device";

  std::vector<unsigned char> got(n + 2 * kMargin, 0xab);
  auto beside = got;
  copier->CopyToHost(got.data() + kMargin, d_all.Data() + kMargin, n);
  if (n != 0) {
    std::memcpy(beside.data() + kMargin, want.data(), n);
  }
  ASSERT_EQ(got, beside) << n << " bytes to the host";
}

using HostCopyTest = DeviceTest;

/** @brief Little goes by a kernel, more and odd numbers of bytes by a copy; what is beside stays. */
TEST_F(HostCopyTest, PageLockedMemory) {
  constexpr std::size_t kMargin = 64;
  unsigned seed{0};
  for (std::size_t n : {0, 1, 3, 4, 88, 1028, 65532, 65536, 65537, 65540, 200000}) {
    auto const want = MakeBytes(n, ++seed);
    auto all = MakeBytes(n + 2 * kMargin, ++seed);
    auto d_all = ToDevice(all);
    PinnedBuffer<unsigned char> pinned{"test bytes"};
    unsigned char* const host = pinned.Reserve(n + 2 * kMargin);
    std::fill_n(host, n + 2 * kMargin, 0xab);
    std::copy(want.cbegin(), want.cend(), host + kMargin);
    std::copy(want.cbegin(), want.cend(), all.begin() + kMargin);
    CopyPinned(d_all.Data() + kMargin, host + kMargin, n);
    ASSERT_EQ(ToHost(d_all.Data(), all.size()), all) << n << " bytes to the device";

    std::fill_n(host + kMargin, n, 0xab);
    CopyPinned(host + kMargin, d_all.Data() + kMargin, n);
    Synchronize();
    ASSERT_TRUE(std::equal(want.cbegin(), want.cend(), host + kMargin))
        << n << " bytes to the host";
    ASSERT_EQ(std::count(host, host + kMargin, 0xab), kMargin);
    ASSERT_EQ(std::count(host + kMargin + n, host + 2 * kMargin + n, 0xab), kMargin);
  }
}

/** @brief Arrays that are sent with a launch, and longer ones; each may be changed at once. */
TEST_F(HostCopyTest, Uploads) {
  Uploader words{"test words"};
  Uploader bytes{"test bytes"};
  unsigned seed{0};
  auto check = [&](auto* buffer, auto values) {
    auto const want = values;
    auto* const to = buffer->Upload(values);
    std::fill(values.begin(), values.end(), 0);
    ASSERT_EQ(ToHost(to, want.size()), want) << want.size();
  };
  for (std::size_t n : {3, 0, 1, 256, 255, 257, 100000, 2}) {
    std::vector<std::uint32_t> of_words(n);
    std::iota(of_words.begin(), of_words.end(), ++seed);
    check(&words, of_words);
    check(&bytes, MakeBytes(4 * n, ++seed));
    check(&bytes, MakeBytes(4 * n + 1, ++seed));
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_F(HostCopyTest, AnySize) {
  HostCopier copier{SmallPlan()};
  copier.SetTeam({3});  // however few cores there are
  unsigned seed{0};
  for (std::size_t n_chunks : {0, 1, 2, 3, 4, 5, 8, 9, 50}) {
    for (int more : {-1, 0, 1}) {
      if (n_chunks == 0 && more < 0) {
        continue;
      }
      CheckCopies(&copier, n_chunks * kChunk + static_cast<std::size_t>(more), ++seed);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_EQ(copier.HostBytes(), 4 * kChunk);
}

TEST_F(HostCopyTest, TheDefaultPlan) {
  HostCopier copier;
  CheckCopies(&copier, 1000, 1);
  EXPECT_EQ(copier.HostBytes(), 0u);
  CheckCopies(&copier, Scaled(30000001, 5000001), 2);
  copier.SetTeam({1});
  CheckCopies(&copier, 3000001, 3);
  copier.SetTeam({5});
  CheckCopies(&copier, 3000001, 4);
}

TEST_F(HostCopyTest, OtherPlans) {
  for (CopyPlan const& plan :
       {CopyPlan{kChunk, 2, 8, 0}, CopyPlan{kChunk, 3, 2, 0}, CopyPlan{1, 16, 2, 0},
        CopyPlan{kChunk, 16, 8, 10 * kChunk}, CopyPlan{kChunk, 4, 1, 0}}) {
    HostCopier copier{plan};
    copier.SetTeam({8});
    CheckCopies(&copier, 20 * plan.chunk_bytes + 1, 5);
    CheckCopies(&copier, 5 * plan.chunk_bytes, 6);
    ASSERT_FALSE(HasFatalFailure()) << plan.n_slots << " slots, " << plan.n_threads << " threads";
  }
}

TEST_F(HostCopyTest, ByATeam) {
  unsigned seed{0};
  for (HostTeam const& team :
       {HostTeam{4, RunOnThreads<>}, HostTeam{1, RunOnThreads<>}, HostTeam{8, RunOnThreads<6>}}) {
    HostCopier copier{SmallPlan()};
    copier.SetTeam(team);
    for (std::size_t n_chunks : {1, 2, 4, 5, 50}) {
      CheckCopies(&copier, n_chunks * kChunk + 1, ++seed);
      ASSERT_FALSE(HasFatalFailure()) << team.n_threads << " threads";
    }
  }
  HostCopier copier;
  copier.SetTeam({8, RunOnThreads<>});
  CheckCopies(&copier, Scaled(30000001, 5000001), ++seed);
}

/** @brief Each thread has a copier of its own, as builders have. */
TEST_F(HostCopyTest, SeveralAtATime) {
  std::atomic<int> n_right{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t, &n_right] {
      HostCopier copier{SmallPlan()};
      copier.SetTeam({3});
      DeviceBuffer<unsigned char> d_bytes{"a test's array"};
      for (unsigned run = 0; run < 20; ++run) {
        auto const bytes = MakeBytes((run * 3 + t) * kChunk + run, run * 4 + t);
        std::vector<unsigned char> got(bytes.size());
        copier.CopyToDevice(d_bytes.Reserve(bytes.size() + 1), bytes.data(), bytes.size());
        copier.CopyToHost(got.data(), d_bytes.Data(), got.size());
        n_right += got == bytes ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(n_right, 80);
}

/** @brief One copier, used by one thread after another: their streams are not the same one. */
TEST_F(HostCopyTest, OneAfterAnother) {
  HostCopier copier{SmallPlan()};
  copier.SetTeam({3});
  for (unsigned t = 0; t < 4; ++t) {
    std::thread{[&] { CheckCopies(&copier, 30 * kChunk + t, t); }}.join();
  }
}

TEST_F(HostCopyTest, InTheOrderOfTheStream) {
  constexpr std::size_t kBytes = 30 * kChunk;
  HostCopier copier{SmallPlan()};
  copier.SetTeam({3});
  DeviceBuffer<unsigned char> d_bytes{"a test's array"};
  std::vector<unsigned char> bytes(kBytes, 3);
  EXACT_CUDA(cudaMemsetAsync(d_bytes.Reserve(kBytes), 1, kBytes, Stream()));
  copier.CopyToDevice(d_bytes.Data(), bytes.data(), kBytes / 2);
  copier.CopyToHost(bytes.data(), d_bytes.Data(), kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) {
    ASSERT_EQ(bytes[i], i < kBytes / 2 ? 3 : 1) << i;
  }
  ZeroAsync(d_bytes.Data(), kBytes);
  EXPECT_EQ(ToHost(d_bytes.Data(), kBytes), std::vector<unsigned char>(kBytes, 0));
}

/** @brief No host has 2^60 bytes of memory: the copies are made without. */
TEST_F(HostCopyTest, WithoutPageLockedMemory) {
  if (UnderSanitizer()) {
    GTEST_SKIP() << "a sanitizer reports the failing call";
  }
  HostCopier copier{{kChunk, std::size_t{1} << 48, 3, 0}};
  copier.SetTeam({3});
  CheckCopies(&copier, 50 * kChunk + 1, 7);
  EXPECT_EQ(copier.HostBytes(), 0u);
  CheckCopies(&copier, 50 * kChunk + 1, 8);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

/**
 * @brief A CUDA call that fails in the middle of a copy, as no event of a captured stream can be
 *        waited for: one error, and the copier works on.
 */
TEST_F(HostCopyTest, AFailingCall) {
  if (UnderSanitizer()) {
    GTEST_SKIP() << "a sanitizer reports the failing call";
  }
  for (HostTeam const& team : {HostTeam{3}, HostTeam{3, RunOnThreads<>}}) {
    HostCopier copier{SmallPlan()};
    copier.SetTeam(team);
    std::vector<unsigned char> bytes(30 * kChunk);
    DeviceBuffer<unsigned char> d_bytes{"a test's array"};
    d_bytes.Reserve(bytes.size());
    for (bool to_device : {true, false}) {
      CheckCopies(&copier, 30 * kChunk, 9);  // takes the page-locked memory
      EXACT_CUDA(cudaStreamBeginCapture(Stream(), cudaStreamCaptureModeRelaxed));
      auto copy = [&] {
        to_device ? copier.CopyToDevice(d_bytes.Data(), bytes.data(), bytes.size())
                  : copier.CopyToHost(bytes.data(), d_bytes.Data(), bytes.size());
      };
      EXPECT_THROW(copy(), DeviceError);
      cudaGraph_t graph{nullptr};
      EXPECT_NE(cudaStreamEndCapture(Stream(), &graph), cudaSuccess);
      EXPECT_EQ(graph, nullptr);
      static_cast<void>(cudaGetLastError());
    }
    CheckCopies(&copier, 30 * kChunk, 10);
  }
}
}  // namespace
}  // namespace gpu_exact
