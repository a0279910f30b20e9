/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What is known of the rows of a tree against loops on the host.
 */
#include <cstring>

#include "src/device/training_rows.cuh"
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

TEST_F(RowScanTest, SumsMagnitudesOfTrainedRows) {
  std::vector<GradientPair> gpair;
  for (int r = 0; r < 4000; ++r) {
    gpair.push_back({r % 2 == 0 ? 0.5f : -0.25f, r % 4 == 3 ? -1.0f : 2.0f});
  }
  auto d_gpair = ToDevice(gpair);
  auto q = Quantiser::Make(0.5f, 2.0f, 4000);
  auto sum = q.Real(RowScan{}.SumMagnitudes({d_gpair.Data(), nullptr, 4000}, q));
  EXPECT_EQ(sum.grad, 2000 * 0.5 + 1000 * 0.25);
  EXPECT_EQ(sum.hess, 3000 * 2.0);
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
    sums.push_back(scan.SumMagnitudes(rows, q));
  }
  for (std::size_t i = 2; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], sums[i % 2]);
  }
}
}  // namespace
}  // namespace gpu_exact
