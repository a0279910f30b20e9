/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Takes steps together with other workers: each learns what the others have, and who failed.
 */
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu_exact/communicator.h"

namespace gpu_exact {
/** @brief Name ranks: "Rank 1", or "Ranks 0, 1 and 5"; none is no rank. */
[[nodiscard]] std::string NameRanks(std::vector<std::int32_t> const& ranks);

/** @brief Strip what XGBoost's logger puts around an error's text: a place and a stack. */
[[nodiscard]] std::string SentenceOf(std::string text);

/**
 * @brief Throw WorkerError with the ranks of those that failed and what they say. Collective.
 * @param failure The own one; empty: none.
 */
[[noreturn]] void ThrowFailures(Communicator* comm, std::string const& failure);

/**
 * @brief Run something on each worker, and tell all what it returned. Collective.
 *
 * Where it throws on any worker, all throw WorkerError with ranks and texts: nobody goes on alone.
 *
 * @param comm  nullptr: this worker is alone; what it throws is passed on as it is.
 * @param fn    Not collective itself.
 * @return In the order of ranks.
 */
template <typename Fn, typename T = std::invoke_result_t<Fn>>
std::vector<T> TellAll(Communicator* comm, Fn const& fn) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!comm) {
    return {fn()};
  }
  struct Told {
    T value{};
    std::uint64_t failed{0};
  };
  std::vector<Told> told(comm->Size());
  auto& own = told[comm->Rank()];
  std::string failure;
  try {
    own.value = fn();
  } catch (std::exception const& e) {
    own.failed = 1;
    failure = SentenceOf(WordsOf(e));
  }
  comm->AllGather(told.data(), sizeof(Told));
  std::vector<T> values;
  for (auto const& worker : told) {
    if (worker.failed != 0) {
      ThrowFailures(comm, failure);
    }
    values.push_back(worker.value);
  }
  return values;
}
}  // namespace gpu_exact
