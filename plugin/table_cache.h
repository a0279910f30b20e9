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
class DeviceTable {
 public:
  DeviceTable() = default;
  /** @brief Frees the table on the device, unless it is that of the process this one forked from. */
  ~DeviceTable();
  DeviceTable(DeviceTable const&) = delete;
  DeviceTable& operator=(DeviceTable const&) = delete;

  std::mutex mutex;

  /**
   * @brief The builder of a strategy, made where there is none; under the lock, as is its use.
   *
   * One of another strategy goes first, so that the device holds the table once.
   */
  [[nodiscard]] TreeBuilder* Builder(xgboost::SparsePage const& page, xgboost::MetaInfo const& info,
                                     int ordinal, Strategy strategy);

 private:
  std::unique_ptr<TreeBuilder> builder_;
  Strategy strategy_{Strategy::kAuto};  // of the builder
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
}  // namespace gpu_exact
