/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements load_balancer.h.
 */
#include "plan/load_balancer.h"

#include <algorithm>

namespace gpu_exact {
namespace {
// Costs of slices count eighths of an element's addition.
constexpr std::uint64_t kElementCost = 8;
constexpr std::uint64_t kRowCost = 8;
constexpr std::uint64_t kBinCost = 4;  // to clear it and to write it
}  // namespace

void LoadBalancer::AddGroup(std::uint64_t n_elements, RowIdx n_rows, std::uint32_t n_bins) {
  GroupCost const before = costs_.back();
  costs_.push_back(
      {before.row + kRowCost + kElementCost * n_elements / std::max<std::uint64_t>(n_rows, 1),
       before.segment + kBinCost * (n_bins + 64)});
}

std::uint64_t LoadBalancer::Before(std::vector<BuiltNode> const& nodes, std::size_t node,
                                   std::uint32_t group) const {
  GroupCost const& all = costs_.back();
  std::uint64_t units = nodes[node].before * all.row + node * all.segment;
  if (group != 0) {
    GroupCost const& before = costs_[group];
    units += (nodes[node + 1].before - nodes[node].before) * before.row + before.segment;
  }
  return units;
}

WorkOffset LoadBalancer::Locate(std::vector<BuiltNode> const& nodes, std::uint64_t unit,
                                std::uint32_t first) const {
  auto const n_nodes = static_cast<std::uint32_t>(nodes.size() - 1);
  auto node = first;
  while (node < n_nodes && this->Before(nodes, node + 1, 0) <= unit) {
    ++node;
  }
  if (node == n_nodes) {
    return {node, 0, 0};
  }
  auto const group = PartitionPoint(0u, this->NumGroups() - 1, [&](std::uint32_t g) {
    return this->Before(nodes, node, g + 1) > unit;
  });
  std::uint64_t const row_cost = costs_[group + 1].row - costs_[group].row;
  std::uint64_t const row = (unit - this->Before(nodes, node, group)) / row_cost;
  std::uint64_t const n_rows = nodes[node + 1].before - nodes[node].before;
  if (row < n_rows || n_rows == 0) {
    return {node, group, static_cast<RowIdx>(n_rows == 0 ? 0 : row)};
  }
  return group + 1 < this->NumGroups() ? WorkOffset{node, group + 1, 0}
                                       : WorkOffset{node + 1, 0, 0};
}

std::vector<WorkOffset> LoadBalancer::Slices(std::vector<BuiltNode> const& nodes,
                                             std::uint32_t max_slices,
                                             std::uint64_t min_slice) const {
  std::uint64_t const total = this->Before(nodes, nodes.size() - 1, 0);
  std::uint64_t const n = std::clamp<std::uint64_t>(total / min_slice, 1, std::max(max_slices, 1u));
  std::vector<WorkOffset> slices;
  for (std::uint64_t s = 0; s <= n; ++s) {
    // total * s could overflow
    // The point of a unit may be the begin of the node after the unit's.
    std::uint32_t const first = slices.empty() ? 0 : std::max(slices.back().built, 1u) - 1;
    slices.push_back(this->Locate(nodes, total / n * s + total % n * s / n, first));
  }
  return slices;
}

std::uint64_t LoadBalancer::NumParts(std::uint64_t n_blocks) const {
  constexpr std::uint64_t kMostRounds = 4;  // of more, blocks lose step with each other
  constexpr double kAlike = 0.01;
  std::uint64_t best{0};
  double filled{0.0};  // share of the rounds
  for (std::uint64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
    std::uint64_t const n = rounds * n_blocks / this->NumGroups();
    double const of_n =
        static_cast<double>(n * this->NumGroups()) / static_cast<double>(rounds * n_blocks);
    if (of_n > filled - kAlike) {
      best = n;
      filled = std::max(filled, of_n);
    }
  }
  return best;
}

std::vector<BuiltNode> LoadBalancer::Parts(std::vector<BuiltNode> const& nodes,
                                           BuildLimits const& limits) const {
  constexpr std::uint64_t kMostSegments = 8192;  // many small nodes share rows as they are
  constexpr std::uint64_t kLeastParts = 8;       // of fewer, some blocks have far more to do
  std::uint64_t const n_rows = nodes.back().before;
  std::size_t const n_nodes = nodes.size() - 1;
  if (n_rows <= limits.cached_rows || this->NumGroups() <= 1) {
    return {};
  }
  std::uint64_t const n_parts = this->NumParts(std::max(limits.n_blocks, 1u));
  if (n_parts < kLeastParts || (n_nodes + n_parts) * this->NumGroups() > kMostSegments) {
    return {};
  }
  struct CutNode {
    BuiltNode const* whole;
    std::uint64_t n_rows;
    std::uint64_t n_parts;
  };
  std::vector<CutNode> cut;
  std::uint64_t n_cut{0};
  for (std::size_t i = 0; i < n_nodes; ++i) {
    std::uint64_t const n = nodes[i + 1].before - nodes[i].before;
    cut.push_back({&nodes[i], n, std::max<std::uint64_t>(1, n_parts * n / n_rows)});
    n_cut += cut.back().n_parts;
  }
  for (; n_cut < n_parts; ++n_cut) {
    ++std::max_element(cut.begin(), cut.end(), [](CutNode const& a, CutNode const& b) {
        return a.n_rows * b.n_parts < b.n_rows * a.n_parts;
      })->n_parts;
  }
  if (n_cut == n_nodes) {
    return {};
  }
  // What takes longest begins first.
  std::stable_sort(cut.begin(), cut.end(),
                   [](CutNode const& a, CutNode const& b) { return a.n_rows > b.n_rows; });
  std::vector<BuiltNode> parts;
  std::uint64_t before{0};
  for (CutNode const& node : cut) {
    for (std::uint64_t p = 0; p < node.n_parts; ++p) {
      std::uint64_t const first = node.n_rows * p / node.n_parts;
      parts.push_back({static_cast<RowIdx>(node.whole->begin + first), node.whole->node,
                       before + first,
                       node.n_parts == 1 ? NodePart::kWhole
                       : p == 0          ? NodePart::kFirst
                                         : NodePart::kLater});
    }
    before += node.n_rows;
  }
  parts.push_back({0, 0, before});
  return parts;
}

std::vector<WorkOffset> LoadBalancer::Segments(std::uint32_t n_nodes) const {
  std::vector<WorkOffset> slices;
  for (std::uint32_t node = 0; node < n_nodes; ++node) {
    for (std::uint32_t group = 0; group < this->NumGroups(); ++group) {
      slices.push_back({node, group, 0});
    }
  }
  slices.push_back({n_nodes, 0, 0});
  return slices;
}
}  // namespace gpu_exact
