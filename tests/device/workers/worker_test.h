/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests of workers that are threads of one process.
 */
#pragma once

#include "tests/device/random_problem.h"

namespace gpu_exact {
class WorkerTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && UnderRacecheck()) {
      GTEST_SKIP() << "racecheck cannot follow workers that are threads";
    }
  }
};
}  // namespace gpu_exact
