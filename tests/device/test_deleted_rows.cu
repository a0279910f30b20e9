/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief One deleted row among many, wherever it is.
 */
#include <limits>

#include "gpu_exact/tree_builder.h"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
class DeletedRowsTest : public DeviceTest {
 protected:
  static bool Ask(std::vector<GradientPair> const& gradients) {
    auto const on_device = ToDevice(gradients);
    return AnyDeletedRow(-1, on_device.Data(), static_cast<RowIdx>(gradients.size()));
  }
};

TEST_F(DeletedRowsTest, FindsOne) {
  for (std::size_t n_rows : {1, 2, 255, 256, 257, 100000}) {
    std::vector<GradientPair> gradients(n_rows, {-1.0f, 0.0f});
    EXPECT_FALSE(Ask(gradients)) << n_rows;
    for (auto row : {std::size_t{0}, n_rows / 2, n_rows - 1}) {
      gradients[row].hess = -1e-45f;
      EXPECT_TRUE(Ask(gradients)) << row << " of " << n_rows;
      gradients[row].hess = -0.0f;
      EXPECT_FALSE(Ask(gradients)) << row << " of " << n_rows;
    }
  }
}

TEST_F(DeletedRowsTest, NeitherNoRowsNorNanCount) {
  EXPECT_FALSE(Ask({}));
  EXPECT_FALSE(Ask({{1.0f, std::numeric_limits<float>::quiet_NaN()}}));
}
}  // namespace
}  // namespace gpu_exact
