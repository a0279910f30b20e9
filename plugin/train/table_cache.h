/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Keeps tables on the device, shared by every booster that trains on the same DMatrix.
 */
#pragma once

#include <xgboost/data.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "workers/xgboost_communicator.h"

namespace gpu_exact {
/**
 * @brief Tells one DMatrix from another, and when it is gone: what holds its categories belongs to
 *        it alone, from its making to its end. Pages do not do: an iterator's are new each time.
 */
using DataToken = std::weak_ptr<xgboost::CatContainer const>;

/**
 * @brief Give the types of a table's features; empty where none is categorical.
 *
 * `MetaInfo::HasCategorical()` does not tell that: it is false of a slice, which has the types.
 */
[[nodiscard]] std::vector<FeatureType> TypesOf(xgboost::MetaInfo const& info);

/** @brief Holds a builder, and the lock that its users hold, as it grows one tree at a time. */
class DeviceTable {
 public:
  DeviceTable() = default;
  ~DeviceTable() { this->Drop(); }
  DeviceTable(DeviceTable const&) = delete;
  DeviceTable& operator=(DeviceTable const&) = delete;

  std::mutex mutex;

  /**
   * @brief Give a builder of such options, made where there is none; under the lock, as is its use.
   *
   * One of other options, types, devices or epoch goes first, so that a device holds the table once.
   * Where there is no room, tables that nobody trains on at the moment are given up before a part of
   * it is laid in the host's memory, and before it is refused.
   *
   * @param data    Its pages are asked for only where a builder is made: those that an iterator gave
   *                are read from its cache each time.
   * @param devices The first is that of the table's key; of one among several workers, it alone.
   * @param types   The features' types, which all workers have agreed on.
   * @param comm    Kept with the builder. To make one is collective.
   * @param epoch   What the workers agreed on, see AgreeOnEpoch(): all make a builder, or none. 0 for
   *                one that is alone.
   */
  [[nodiscard]] TreeBuilder* Builder(xgboost::DMatrix* data, std::vector<int> const& devices,
                                     TableOptions const& options,
                                     std::vector<FeatureType> const& types,
                                     std::shared_ptr<Communicator> const& comm,
                                     std::uint64_t epoch);

  /** @brief Give the epoch of the builder; 0 if there is none of such options and types. Under the
   *         lock. */
  [[nodiscard]] std::uint64_t Epoch(xgboost::MetaInfo const& info,
                                    TableOptions const& options) const;

  /**
   * @brief Give the builder up, so that the next use makes one anew; under the lock.
   *
   * Its memory is freed, unless it is not this process's to free: that of the process this one forked
   * from, or of a CUDA context that another library has reset.
   */
  void Drop() noexcept;

  /** @brief Names why a table is given up for another one. */
  enum class For : std::uint8_t { kSpeed, kRoom };

  /**
   * @brief Tell whether there is a builder to give up that holds memory of one of the devices; under the
   *        lock. One among several workers stays: they make a table together.
   *
   * For another table's speed each is given up once: one that is used again afterwards was not idle.
   */
  [[nodiscard]] bool MayGiveUp(std::vector<int> const& devices, For why) const;
  /** @brief Give the builder up for another table; under the lock. */
  void GiveUp();

  /** @brief Give what it took to make the builder. */
  [[nodiscard]] double SetUpMs() const { return set_up_ms_; }

 private:
  /** @brief Tell whether no other library has reset a device since the builder was made. */
  [[nodiscard]] bool HasItsContexts() const noexcept;

  std::shared_ptr<Communicator> comm_;  // outlives the builder
  std::unique_ptr<TreeBuilder> builder_;
  TableOptions options_;                // of the builder
  std::vector<FeatureType> own_types_;  // of the builder; as the DMatrix has them, which may change
  std::vector<int> devices_;            // of the builder
  std::uint64_t epoch_{0};              // of the builder
  std::vector<std::uint64_t> contexts_;  // of its devices; see ContextOf()
  bool was_given_up_{false};             // for another table
  double set_up_ms_{0.0};
};

/**
 * @brief Holds the tables that one updater uses.
 *
 * Their device memory is freed when no updater uses them: with the updater, or at its first tree
 * after the DMatrix is gone, in another group of workers, or on another device. The DMatrix itself is
 * never kept alive.
 */
class TableCache {
 public:
  /**
   * @brief Find the table of a DMatrix in this thread's group, or add one without a builder.
   *
   * @param info    What the DMatrix knows of its table.
   * @param ordinal The CUDA device, or -1 for the first visible one.
   */
  [[nodiscard]] std::shared_ptr<DeviceTable> Get(xgboost::MetaInfo const& info, int ordinal);

 private:
  struct Use {
    DataToken data;
    std::shared_ptr<DeviceTable> table;
  };
  GroupToken group_;  // of the uses, as their device
  int ordinal_{-1};
  std::vector<Use> uses_;
};
}  // namespace gpu_exact
