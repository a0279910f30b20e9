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
/**
 * @brief Tells one DMatrix from another, and when it is gone: what holds its categories belongs to
 *        it alone, from its making to its end. Pages do not do: an iterator's are new each time.
 */
using DataToken = std::weak_ptr<xgboost::CatContainer const>;

/** @brief How a table lies on the device: see MakeDeviceBuilder(). */
struct TableOptions {
  Strategy strategy{Strategy::kAuto};
  double memory_limit{0.0};

  [[nodiscard]] bool operator==(TableOptions const& that) const {
    return strategy == that.strategy && memory_limit == that.memory_limit;
  }
};

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
   * @brief A builder of such options, made where there is none; under the lock, as is its use.
   *
   * One of other options goes first, so that the device holds the table once.
   *
   * @param data Its pages are asked for only where a builder is made: those that an iterator gave
   *             are read from its cache each time.
   */
  [[nodiscard]] TreeBuilder* Builder(xgboost::DMatrix* data, int ordinal,
                                     TableOptions const& options);

  /** @brief What it took to make the builder. */
  [[nodiscard]] double SetUpMs() const { return set_up_ms_; }

 private:
  std::unique_ptr<TreeBuilder> builder_;
  TableOptions options_;  // of the builder
  double set_up_ms_{0.0};
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
   * @brief Find the table of a DMatrix, or add one without a builder.
   *
   * @param info    Of the DMatrix.
   * @param ordinal The CUDA device, or -1 for the first visible one.
   */
  [[nodiscard]] std::shared_ptr<DeviceTable> Get(xgboost::MetaInfo const& info, int ordinal);

 private:
  struct Use {
    DataToken data;
    std::shared_ptr<DeviceTable> table;
  };
  std::vector<Use> uses_;
};
}  // namespace gpu_exact
