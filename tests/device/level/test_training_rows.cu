/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What is known of the rows of a tree against loops on the host.
 */
#include <cmath>
#include <cstring>

#include "device/level/training_rows.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
using RowScanTest = DeviceTest;

TEST_F(RowScanTest, SummarisesTrainedRows) {
  std::vector<GradientPair> gpair(5000, {0.5f, 0.25f});
  gpair[17] = {-8.0f, 0.1f};
  gpair[18] = {99.0f, -1.0f};  // deleted: counts for nothing
  gpair[4999] = {0.0f, 3.0f};
  gpair[7] = {std::nanf(""), 1.0f};
  gpair[8] = {1.0f, std::numeric_limits<float>::infinity()};
  std::vector<std::uint8_t> included(5000, 1);
  included[20] = 0;
  auto d_gpair = ToDevice(gpair);
  auto d_included = ToDevice(included);
  RowSummary s = RowScan{}.Summarise({d_gpair.Data(), d_included.Data(), 5000});
  float grad = 8.0f, hess = 3.0f;
  EXPECT_EQ(std::memcmp(&s.max_grad_bits, &grad, 4), 0);
  EXPECT_EQ(std::memcmp(&s.max_hess_bits, &hess, 4), 0);
  EXPECT_EQ(s.n_not_finite, 2u);
  EXPECT_EQ(s.n_left_out, 2u);
}

/** @brief By powers of two of the largest ones, as the host has them; also tiny and huge ones. */
TEST_F(RowScanTest, SumsMagnitudesOfTrainedRows) {
  std::vector<GradientPair> gpair;
  for (int r = 0; r < 4000; ++r) {
    gpair.push_back({r % 2 == 0 ? 0.5f : -0.25f, r % 4 == 3 ? -1.0f : 2.0f});
  }
  for (float scale : {1.0f, 0x1p-140f, 0x1p-60f, 0x1p100f}) {
    auto scaled = gpair;
    for (auto& g : scaled) {
      g = {g.grad * scale, g.hess * scale};
    }
    auto d_gpair = ToDevice(scaled);
    auto sum = RowScan{}.Summarise({d_gpair.Data(), nullptr, 4000}).magnitudes;
    auto q = Quantiser::Make(0.5f * scale, 2.0f * scale, 4000);
    FixedSum even = q.Fixed({0.5f * scale, 2.0f * scale});
    FixedSum odd = q.Fixed({0.25f * scale, 2.0f * scale});
    EXPECT_EQ(sum.grad, 2000 * even.grad + 1000 * odd.grad) << scale;
    EXPECT_EQ(sum.hess, 2000 * even.hess + 1000 * odd.hess) << scale;
    EXPECT_EQ(q.Real(sum).grad, (2000 * 0.5 + 1000 * 0.25) * scale) << scale;
    EXPECT_EQ(q.Real(sum).hess, 3000 * 2.0 * scale) << scale;
  }
}

TEST_F(RowScanTest, KnowsIfHessiansAreAlike) {
  constexpr RowIdx kRows = 3000;
  RowScan scan;
  auto are_alike = [&](std::vector<GradientPair> const& gpair) {
    auto d_gpair = ToDevice(gpair);
    return scan.Summarise({d_gpair.Data(), nullptr, kRows}).HessiansAreAlike(kRows);
  };
  for (float hess : {1.0f, 0.1f, 0x1p-149f, 0x1.fffffep127f}) {
    std::vector<GradientPair> gpair(kRows, {0.5f, hess});
    EXPECT_TRUE(are_alike(gpair)) << hess;
    gpair[17].hess = -1.0f;  // deleted
    EXPECT_TRUE(are_alike(gpair)) << hess;
    gpair[18].hess = std::nextafter(hess, 0.0f);
    EXPECT_FALSE(are_alike(gpair)) << hess;
    gpair[18].hess = 0.0f;
    EXPECT_FALSE(are_alike(gpair)) << hess;
  }
}

/** @brief One deleted row among many, wherever it is. */
TEST_F(RowScanTest, FindsADeletedRow) {
  RowScan scan;
  auto any = [&](std::vector<GradientPair> const& gpair) {
    auto d_gpair = ToDevice(gpair);
    return scan.AnyDeleted({d_gpair.Data(), nullptr, static_cast<RowIdx>(gpair.size())});
  };
  for (std::size_t n_rows : {1, 2, 255, 256, 257, 100000}) {
    std::vector<GradientPair> gpair(n_rows, {-1.0f, 0.0f});
    EXPECT_FALSE(any(gpair)) << n_rows;
    for (auto row : {std::size_t{0}, n_rows / 2, n_rows - 1}) {
      gpair[row].hess = -1e-45f;
      EXPECT_TRUE(any(gpair)) << row << " of " << n_rows;
      gpair[row].hess = -0.0f;
      EXPECT_FALSE(any(gpair)) << row << " of " << n_rows;
    }
  }
  EXPECT_FALSE(any({}));
  EXPECT_FALSE(any({{1.0f, std::numeric_limits<float>::quiet_NaN()}}));
}

TEST_F(RowScanTest, SumsDoNotDependOnTheGrid) {
  constexpr RowIdx kRows = 50000;
  Random random{12};
  std::vector<GradientPair> gpair(kRows);
  for (auto& g : gpair) {
    g = {random.Normal(), static_cast<float>(random.Real())};  // as floats, order would matter
  }
  auto d_gpair = ToDevice(gpair);
  auto q = Quantiser::Make(8.0f, 1.0f, kRows);
  std::vector<FixedSum> sums;
  for (std::uint64_t max_blocks : {1, 3, 7, 1000}) {
    TrainingRows rows{d_gpair.Data(), nullptr, kRows};
    RowScan scan{max_blocks};
    DeviceBuffer<FixedSum> root{"root"};
    scan.Sum(rows, q, root.Reserve(1));
    sums.push_back(ToHost(root.Data(), 1)[0]);
    sums.push_back(scan.Summarise(rows).magnitudes);
  }
  for (std::size_t i = 2; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], sums[i % 2]);
  }
}
}  // namespace
}  // namespace gpu_exact
