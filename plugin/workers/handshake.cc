/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "workers/handshake.h"

#include <algorithm>
#include <optional>
#include <string>

#include "workers/tell_all.h"

namespace gpu_exact {
namespace {
thread_local std::uint64_t newest_epoch{0};

/** @brief Throw if a worker's is neither `none` nor that of the first which has any. */
template <typename T>
void CheckField(std::vector<WorkerState> const& worker_states, T WorkerState::*field,
                char const* what, std::optional<T> none = std::nullopt) {
  std::optional<std::size_t> first;
  std::vector<std::int32_t> others;
  for (std::size_t rank = 0; rank < worker_states.size(); ++rank) {
    auto const& value = worker_states[rank].*field;
    if (none && value == *none) {
      continue;
    }
    first = first.value_or(rank);
    if (value != worker_states[*first].*field) {
      others.push_back(static_cast<std::int32_t>(rank));
    }
  }
  if (!others.empty()) {
    throw WorkerError{NameRanks(others) + " of " + std::to_string(worker_states.size()) +
                      (others.size() == 1 ? " differs" : " differ") + " from rank " +
                      std::to_string(*first) + " in " + what};
  }
}
}  // namespace

Hash& Hash::Add(void const* data, std::size_t bytes) {
  auto const* begin = static_cast<unsigned char const*>(data);
  std::for_each(begin, begin + bytes,
                [this](auto byte) { value_ = (value_ ^ byte) * 0x100000001b3; });
  return *this;
}

std::uint64_t HashOf(GrownTree const& tree) {
  Hash hash;
  for (auto const& node : tree) {
    hash.Add(&node.left, sizeof(node.left))
        .Add(&node.feature, sizeof(node.feature))
        .Add(&node.threshold, sizeof(node.threshold))
        .Add(node.categories.data(), node.categories.size() * sizeof(node.categories[0]))
        .Add(&node.default_left, sizeof(node.default_left))
        .Add(&node.weight, sizeof(node.weight));
  }
  return hash.Value();
}

void CheckEqual(std::vector<WorkerState> const& worker_states) {
  CheckField(worker_states, &WorkerState::sources,
             "its build of xgboost_gpu_exact: install the same one on every worker.");
  CheckField(worker_states, &WorkerState::settings,
             "its training parameters: give every worker the same ones.");
  CheckField(worker_states, &WorkerState::n_groups,
             "the trees of a round: give every worker the same objective and `num_class`.");
  CheckField(worker_states, &WorkerState::n_features,
             "its number of columns: make every DMatrix inside of the communicator.");
  CheckField(worker_states, &WorkerState::random,
             "its random numbers: give every worker the same `seed`, and a booster that has trained"
             " as the others have.");
  CheckField(worker_states, &WorkerState::last_tree,
             "the tree that it grew last: give every worker a booster that has trained as the"
             " others have.",
             std::optional<std::uint64_t>{0});
  CheckField(worker_states, &WorkerState::n_rounds,
             "the rounds that its model has: give every worker a booster that has trained as the"
             " others have, or the same model to go on from.");
  CheckField(worker_states, &WorkerState::weights,
             "`feature_weights`: give every worker that has rows the same ones.",
             std::optional<std::uint64_t>{0});
  CheckField(worker_states, &WorkerState::types,
             "`feature_types`: name the same columns categorical on every worker that has rows.",
             std::optional<std::uint64_t>{0});
}

std::uint64_t AgreeOnEpoch(std::vector<WorkerState> const& worker_states) {
  auto const epoch = worker_states.front().epoch;
  bool all_have{epoch != 0};
  for (auto const& worker_state : worker_states) {
    all_have = all_have && worker_state.epoch == epoch;
    newest_epoch = std::max(newest_epoch, worker_state.newest_epoch);
  }
  return all_have ? epoch : ++newest_epoch;
}

std::uint64_t NewestEpoch() { return newest_epoch; }
}  // namespace gpu_exact
