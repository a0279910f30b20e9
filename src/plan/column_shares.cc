/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements column_shares.h.
 */
#include "plan/column_shares.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

namespace gpu_exact {
namespace {
/** @brief Orders workers by entries, then by their turn among those of as many, who it is,
 *         columns. */
using Load = std::tuple<std::uint64_t, std::int32_t, std::int32_t, std::uint32_t>;

/** @brief Compute a worker's turn among those of as many columns. Who begins is said by the golden
 *         ratio, so that whatever returns every few columns meets all workers alike. */
std::int32_t Turn(std::int32_t worker, std::uint32_t n_columns, std::int32_t n_workers) {
  std::uint32_t const part = n_columns * 2654435769u;  // of 2^32
  auto const first = static_cast<std::int32_t>(std::uint64_t{part} * n_workers >> 32);
  return (worker - first + n_workers) % n_workers;
}
}  // namespace

std::vector<std::int32_t> ShareColumns(std::vector<std::uint64_t> const& n_entries,
                                       std::int32_t n_workers) {
  std::vector<std::size_t> columns(n_entries.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  std::stable_sort(columns.begin(), columns.end(),
                   [&](auto a, auto b) { return n_entries[a] > n_entries[b]; });
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::int32_t w = 0; w < n_workers; ++w) {
    loads.push({0, Turn(w, 0, n_workers), w, 0});
  }
  std::vector<std::int32_t> worker_of(n_entries.size());
  for (std::size_t c : columns) {
    auto [n, turn, worker, n_columns] = loads.top();
    loads.pop();
    worker_of[c] = worker;
    n += n_entries[c] + 1;  // a column costs something by itself
    ++n_columns;
    loads.push({n, Turn(worker, n_columns, n_workers), worker, n_columns});
  }
  return worker_of;
}
}  // namespace gpu_exact
