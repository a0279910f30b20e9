/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Uploads that clear other memory, by each way that they go.
 */
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using UploadBufferTest = DeviceTest;

/** @brief Few bytes go with the launch, more of them through page-locked memory. */
TEST_F(UploadBufferTest, ClearsWhatItIsToldTo) {
  UploadBuffer<std::uint64_t> upload{"uploaded"};
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
}  // namespace
}  // namespace gpu_exact
