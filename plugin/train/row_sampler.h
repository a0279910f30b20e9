/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Samples rows as `grow_colmaker` does.
 */
#pragma once

#include <xgboost/base.h>
#include <xgboost/context.h>
#include <xgboost/host_device_vector.h>

#include <cstdint>
#include <vector>

#include "gpu_exact/communicator.h"
#include "gpu_exact/tree_builder.h"
#include "load/release.h"

namespace gpu_exact {
/**
 * @brief Draws the rows of a tree.
 *
 * A draw takes two words of the generator for every row but the deleted ones (negative hessian), in
 * the order of rows.
 */
class RowSampler {
 public:
  /**
   * @param ctx       The booster's context: it says where the gradients lie.
   * @param builder   Looks at them where that is the GPU.
   * @param subsample From 0 to less than 1.
   * @param comm      Workers that draw for their own rows, each from where the one before it stops;
   *                  collective then. nullptr: all rows are here.
   * @param rng       Ends as XGBoost's own builder leaves it after all rows.
   * @return shape: (n_rows), 0 for a row left out; valid until the next call.
   */
  [[nodiscard]] std::uint8_t const* Sample(
      xgboost::Context const* ctx, TreeBuilder* builder,
      xgboost::HostDeviceVector<xgboost::GradientPair> const& gradients, float subsample,
      Communicator* comm, RandomEngine* rng);

 private:
  std::vector<std::uint8_t> included_;  // kept: fresh memory takes longer than the draws
};
}  // namespace gpu_exact
