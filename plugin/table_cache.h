/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The tables on the device, shared by every booster that trains on the same DMatrix.
 */
#pragma once

#include <xgboost/data.h>

#include <memory>
#include <mutex>
#include <vector>

#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief A builder and the lock that its users hold, as it grows one tree at a time. */
struct DeviceTable {
  std::mutex mutex;
  std::unique_ptr<TreeBuilder> builder;  // made by the first user, under the lock
};

/**
 * @brief The tables that one updater uses.
 *
 * Their device memory is freed when no updater uses them: with the updater, or at its first tree
 * after the DMatrix is gone. The DMatrix itself is never kept alive.
 */
class TableCache {
 public:
  /**
   * @brief Find the table of a page, or add one without a builder.
   *
   * @param page    The only page of a DMatrix.
   * @param ordinal The CUDA device, or -1 for the first visible one.
   */
  [[nodiscard]] std::shared_ptr<DeviceTable> Get(
      std::shared_ptr<xgboost::SparsePage const> const& page, xgboost::MetaInfo const& info,
      int ordinal);

 private:
  struct Use {
    std::weak_ptr<xgboost::SparsePage const> page;
    std::shared_ptr<DeviceTable> table;
  };
  std::vector<Use> uses_;
};

/** @brief A page as the builder reads it: on its device if it lies there, else on the host. */
[[nodiscard]] CsrView ViewOf(xgboost::SparsePage const& page, xgboost::MetaInfo const& info,
                             int ordinal);
}  // namespace gpu_exact
