/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What of a device's status is remembered. The device is one that this file makes up.
 */
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "train/device_status.h"

namespace gpu_exact {
namespace {
DeviceStatus answer;  // of the next questions
std::chrono::milliseconds takes{0};
int n_asked{0};
}  // namespace

DeviceStatus ProbeDevice(int) {
  ++n_asked;
  std::this_thread::sleep_for(takes);
  return answer;
}

namespace {
/** @brief A device that nobody has asked for yet. */
int NextOrdinal() {
  static int ordinal{0};
  return ordinal++;
}

TEST(DeviceStatus, WhatLastsIsAskedOnce) {
  for (auto const& lasting :
       {DeviceStatus{true, "A GPU", ""}, DeviceStatus{false, "", "The driver is too old.", true},
        DeviceStatus{false, "A GPU", "There are no kernels for it.", true}}) {
    int const ordinal = NextOrdinal();
    n_asked = 0;
    for (int i = 0; i < 3; ++i) {
      answer = i == 0 ? lasting : DeviceStatus{false, "", "Another answer."};
      auto const status = StatusOf(ordinal);
      EXPECT_EQ(status.usable, lasting.usable);
      EXPECT_EQ(status.name + status.reason, lasting.name + lasting.reason);
    }
    EXPECT_EQ(n_asked, 1);
  }
}

/** @brief No file is left to open, the machine is starting, another process has the GPU. */
TEST(DeviceStatus, WhatFailsForTheMomentIsAskedAgain) {
  for (auto const& passing : {DeviceStatus{false, "", "The driver does not answer."},
                              DeviceStatus{false, "A GPU", "Busy."}}) {
    int const ordinal = NextOrdinal();
    answer = passing;
    EXPECT_EQ(StatusOf(ordinal).reason, passing.reason);
    answer = {true, "A GPU", ""};
    auto const begin = std::chrono::steady_clock::now();
    while (!StatusOf(ordinal).usable) {  // no longer than the question took, often
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{30});
    }
    answer = {false, "", "Too late."};
    EXPECT_TRUE(StatusOf(ordinal).usable);
  }
}

/** @brief A driver may take a second to say no: trees on the CPU do not wait for it each time. */
TEST(DeviceStatus, LongQuestionsAreSeldom) {
  int const ordinal = NextOrdinal();
  answer = {false, "", "The driver does not answer."};
  takes = std::chrono::milliseconds{20};
  n_asked = 0;
  auto const begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds{200}) {
    EXPECT_FALSE(StatusOf(ordinal).usable);
  }
  EXPECT_EQ(n_asked, 1);
  takes = std::chrono::milliseconds{0};
}

/** @brief Whose parent used a GPU is told why it has none, and CUDA is not asked. */
TEST(DeviceStatus, AForkedProcessIsToldSo) {
  answer = {true, "A GPU", ""};
  ASSERT_TRUE(StatusOf(NextOrdinal()).usable);
  EXPECT_FALSE(ForkedAfterCuda());
  n_asked = 0;
  pid_t const child = fork();
  if (child == 0) {
    bool const told = ForkedAfterCuda() && StatusOf(0).reason == kForkedAfterCuda;
    _exit(told && n_asked == 0 ? 0 : 1);
  }
  int status{-1};
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
}  // namespace
}  // namespace gpu_exact
