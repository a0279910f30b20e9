/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Uploads of small arrays, and of other memory that they clear, by each way that they go.
 */
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "device/runtime/uploader.cuh"
#include "tests/device/runtime/upload_problem.cuh"

namespace gpu_exact {
namespace {
using UploaderTest = DeviceTest;

/** @brief Few bytes go with the launch, more of them through page-locked memory. */
TEST_F(UploaderTest, ClearsWhatItIsToldTo) {
  Uploader upload{"uploaded"};
  for (std::size_t n_values : {0, 1, 128, 129, 20000}) {
    for (std::size_t n_cleared : {0, 1, 300, 70000}) {
      std::vector<std::uint64_t> values(n_values);
      std::iota(values.begin(), values.end(), 1);
      auto cleared = ToDevice(std::vector<std::uint32_t>(n_cleared + 1, 7));
      auto const* const there = upload.Upload(values, WordsToClear::Of(cleared.Data(), n_cleared));
      ASSERT_EQ(ToHost(there, n_values), values);
      std::vector<std::uint32_t> want(n_cleared, 0);
      want.push_back(7);  // the next word stays
      ASSERT_EQ(ToHost(cleared.Data(), n_cleared + 1), want) << n_values << " values";
    }
  }
}

TEST_F(UploaderTest, UploadsWhatIsNewEachTime) {
  Uploader buffer{"an upload"};
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t n : kLengths) {
      auto const sent = Numbers(n, turn);
      EXPECT_EQ(ToHost(buffer.Upload(sent), n), sent) << n;  // waits
    }
  }
}

TEST_F(UploaderTest, UploadsSeveralArraysAtOnce) {
  Uploader arena{"some uploads"};
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

#ifdef GPU_EXACT_CHECKS
/** @brief An upload while the device may read the one before it is a mistake. */
TEST_F(UploaderTest, AnUploadWaitsForTheOneBefore) {
  auto const sent = Numbers(5000, 1);
  Uploader buffer{"an upload"};
  buffer.Upload(sent);
  Synchronize();
  KeepBusy();
  buffer.Upload(sent);
  EXPECT_THROW(buffer.Upload(sent), std::logic_error);
  Synchronize();
  EXPECT_NO_THROW(buffer.Upload(sent));
  Synchronize();
}
#endif
}  // namespace
}  // namespace gpu_exact
