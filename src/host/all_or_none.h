/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Makes all workers fail where one does.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "gpu_exact/communicator.h"

namespace gpu_exact {
/**
 * @brief Runs fn on every worker. Where it throws on one, that one throws on, and the others throw
 *        WorkerError with the rank and what its first 1,015 bytes say. Collective; fn is not.
 */
template <typename FnT>
void AllOrNone(Communicator* comm, FnT&& fn) {
  struct Report {
    std::uint64_t failed;
    char words[1016];
  };
  std::vector<Report> reports(comm->Size());
  Report& own = reports[comm->Rank()];
  std::exception_ptr error;
  try {
    fn();
  } catch (std::exception const& e) {
    error = std::current_exception();
    own.failed = 1;
    auto const words = WholeCharacters(WordsOf(e), sizeof(own.words) - 1);
    std::copy(words.cbegin(), words.cend(), own.words);
  }
  comm->AllGather(reports.data(), sizeof(Report));
  if (error) {
    std::rethrow_exception(error);
  }
  auto const failed =
      std::find_if(reports.cbegin(), reports.cend(), [](Report const& r) { return r.failed != 0; });
  if (failed != reports.cend()) {
    throw WorkerError{"Rank " + std::to_string(failed - reports.cbegin()) + " of " +
                      std::to_string(reports.size()) + ": " + failed->words};
  }
}
}  // namespace gpu_exact
