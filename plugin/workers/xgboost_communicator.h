/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes a Communicator of XGBoost's own (xgboost.collective, Dask, Spark).
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu_exact/communicator.h"
#include "src/collective/coll.h"

namespace gpu_exact {
/**
 * @brief Tells one group of workers from another, and when it is gone. Empty: this thread is alone,
 *        in no communicator or in one of one worker.
 */
using GroupToken = std::weak_ptr<xgboost::collective::Coll>;

/** @brief Speaks for the group that this thread is in; XGBoost has one for each thread. */
[[nodiscard]] GroupToken CurrentGroup();

[[nodiscard]] inline bool IsSame(GroupToken const& lhs, GroupToken const& rhs) {
  return !lhs.owner_before(rhs) && !rhs.owner_before(lhs);
}

/** @brief Use XGBoost's sockets, in host memory. Not its C API, which R's package lacks. */
class XGBoostCommunicator final : public Communicator {
 public:
  XGBoostCommunicator();

  [[nodiscard]] std::int32_t Rank() const override { return rank_; }
  [[nodiscard]] std::int32_t Size() const override { return size_; }
  void AllGather(void* inout, std::size_t bytes) override;
  void AllReduce(std::uint64_t* inout, std::size_t n) override;

 private:
  void CheckThread() const;
  void Check(std::string const& error) const;

  std::int32_t rank_;
  std::int32_t size_;
};

/** @brief Give the workers of this thread's group; nullptr where it is alone. */
[[nodiscard]] std::shared_ptr<Communicator> CurrentCommunicator();
}  // namespace gpu_exact
