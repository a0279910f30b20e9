/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Lets workers agree before they grow trees together, so that none goes on with
 *        something else than the others.
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu_exact/communicator.h"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief Hash by FNV-1a, 64 bits; the same on every machine. */
class Hash {
 public:
  Hash& Add(void const* data, std::size_t bytes);
  Hash& Add(std::string const& text) { return this->Add(text.c_str(), text.size() + 1); }
  [[nodiscard]] std::uint64_t Value() const { return value_; }

 private:
  std::uint64_t value_{0xcbf29ce484222325};
};

[[nodiscard]] std::uint64_t HashOf(GrownTree const& tree);

/** @brief Stands for a tree's hash while it is not handed to XGBoost. */
inline constexpr std::uint64_t kUnfinishedTree{1};

/** @brief Holds one worker's state before an update. 72 bytes; TellAll() adds 8. */
struct WorkerState {
  std::uint64_t epoch{0};         // of the table that it has of the data; 0: none
  std::uint64_t newest_epoch{0};  // that it knows of
  std::uint64_t sources{0};       // hash of those that the module was built of
  std::uint64_t settings{0};      // hash of all that says how trees are grown
  std::uint64_t last_tree{0};     // hash; 0: its updater has grown none with others
  std::uint64_t weights{0};       // hash of those of features; 0: it has none
  std::uint64_t types{0};         // hash of those of features; 0: it has neither rows nor types
  std::uint32_t random{0};        // the generator's next word
  std::uint32_t n_features{0};
  std::uint32_t n_rounds{0};  // that its model has
  std::uint32_t n_groups{0};  // of trees, in a round
};

static_assert(sizeof(WorkerState) == 72);

/** @brief Throws WorkerError on every worker, naming ranks and remedy, where they must be equal. */
void CheckEqual(std::vector<WorkerState> const& worker_states);

/**
 * @brief Agree on the epoch of the table that all workers have of this data; a new one if any has
 *        none or another one, and then all make their table anew.
 */
[[nodiscard]] std::uint64_t AgreeOnEpoch(std::vector<WorkerState> const& worker_states);

/** @brief Give the newest epoch that a worker knows of: of this thread, as its group is. */
[[nodiscard]] std::uint64_t NewestEpoch();

/**
 * @brief Share what features have, weights or types, with workers without rows, which do not have it.
 *        Collective.
 * @param hash Its hash; 0: a worker has none.
 * @param own  shape: (n_features) or empty
 * @return That of the workers which have it; shape: (n_features) or empty.
 */
template <typename T>
[[nodiscard]] std::vector<T> AgreeOn(Communicator* comm,
                                     std::vector<WorkerState> const& worker_states,
                                     std::uint64_t WorkerState::*hash, std::vector<T> own) {
  static_assert(std::is_trivially_copyable_v<T>);
  auto const has_none = [&](auto const& worker_state) { return worker_state.*hash == 0; };
  auto const source = std::find_if_not(worker_states.cbegin(), worker_states.cend(), has_none);
  if (source == worker_states.cend() ||
      std::none_of(worker_states.cbegin(), worker_states.cend(), has_none)) {
    return own;
  }
  auto const n = source->n_features;
  own.resize(n);
  std::vector<T> all(n * worker_states.size());
  std::copy(own.cbegin(), own.cend(), all.begin() + n * comm->Rank());
  comm->AllGather(all.data(), n * sizeof(T));
  auto const begin = all.cbegin() + n * (source - worker_states.cbegin());
  return {begin, begin + n};
}
}  // namespace gpu_exact
