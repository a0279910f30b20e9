/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of column_shares.h.
 */
#include "src/column_shares.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace gpu_exact {
std::vector<std::int32_t> ShareColumns(std::vector<std::uint64_t> const& n_entries,
                                       std::int32_t n_workers) {
  std::vector<std::size_t> columns(n_entries.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  std::stable_sort(columns.begin(), columns.end(),
                   [&](auto a, auto b) { return n_entries[a] > n_entries[b]; });
  using Load = std::pair<std::uint64_t, std::int32_t>;  // and whose it is
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::int32_t w = 0; w < n_workers; ++w) {
    loads.push({0, w});
  }
  std::vector<std::int32_t> worker_of(n_entries.size());
  for (std::size_t c : columns) {
    auto [load, worker] = loads.top();
    loads.pop();
    worker_of[c] = worker;
    loads.push({load + n_entries[c] + 1, worker});  // a column costs something by itself
  }
  return worker_of;
}
}  // namespace gpu_exact
