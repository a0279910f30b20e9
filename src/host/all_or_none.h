/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes all workers fail where one does.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "gpu_exact/communicator.h"

namespace gpu_exact {
/**
 * @brief Takes a step that all workers end together, whichever of them fail. So they may read each
 *        other's memory in it: what it needs is allocated before, and nobody goes until all have met.
 */
class JointStep {
 public:
  /** @brief Allocate; before anything is shown to others. */
  explicit JointStep(Communicator* comm) : comm_{comm}, reports_(comm->Size()) {}

  /**
   * @brief Run fn on every worker. Where it throws on one, that one throws on, and the others throw
   *        WorkerError with the rank and what its first 1,015 bytes say. Collective, once; fn is not.
   */
  template <typename FnT>
  void Run(FnT&& fn) {
    Report& own = reports_[comm_->Rank()];
    std::exception_ptr error;
    try {
      fn();
    } catch (std::exception const& e) {
      error = std::current_exception();
      own.failed = 1;
      auto const words = WholeCharacters(WordsOf(e), sizeof(own.words) - 1);
      std::copy(words.cbegin(), words.cend(), own.words);
    }
    comm_->AllGather(reports_.data(), sizeof(Report));
    if (error) {
      std::rethrow_exception(error);
    }
    auto const failed = std::find_if(reports_.cbegin(), reports_.cend(),
                                     [](Report const& r) { return r.failed != 0; });
    if (failed != reports_.cend()) {
      throw WorkerError{"Rank " + std::to_string(failed - reports_.cbegin()) + " of " +
                        std::to_string(reports_.size()) + ": " + failed->words};
    }
  }

 private:
  struct Report {
    std::uint64_t failed;
    char words[1016];
  };

  Communicator* comm_;
  std::vector<Report> reports_;
};

/** @brief Runs fn on every worker, as JointStep::Run() does. */
template <typename FnT>
void AllOrNone(Communicator* comm, FnT&& fn) {
  JointStep{comm}.Run(std::forward<FnT>(fn));
}
}  // namespace gpu_exact
