/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_plan.h.
 */
#include "src/histogram_plan.h"

#include <algorithm>
#include <cmath>

namespace gpu_exact {
namespace {
// Costs of slices count eighths of an element's addition.
constexpr std::uint64_t kElementCost = 8;
constexpr std::uint64_t kRowCost = 8;
constexpr std::uint64_t kBinCost = 4;  // to clear it and to write it

/** @brief First index in [begin, end) for which above(index) holds; above is monotone. */
template <typename IndexT, typename FnT>
IndexT FirstIndexOf(IndexT begin, IndexT end, FnT&& above) {
  while (begin < end) {
    IndexT mid = begin + (end - begin) / 2;
    if (above(mid)) {
      end = mid;
    } else {
      begin = mid + 1;
    }
  }
  return begin;
}
}  // namespace

double HistogramCost::Search(double n_rows, double n_bins) {
  double const share = std::min(1.0, kOpenShare * n_rows / (n_bins * n_bins));
  return kBin * n_bins + kOpenEntry * share * n_rows;
}

double HistogramCost::Node(double n_rows, double density, ResolutionShape const& shape) {
  constexpr double kSector = 32.0;
  constexpr double kBinBytes = 2.0;
  constexpr double kRowBytes = 12.0;  // row and gradients, which the columns of a group share
  double const bytes = kBinBytes * shape.n_group_columns;
  double const read = std::max(bytes, std::min(kSector, bytes / density)) + kRowBytes;
  return Search(n_rows, shape.n_bins) + kByte * n_rows * read / shape.n_group_columns;
}

double HistogramCost::BestBins(double n_rows) {
  return std::cbrt(2.0 * kOpenShare * kOpenEntry / kBin * n_rows * n_rows);
}

std::vector<std::uint32_t> ChooseResolutions(RowIdx n_rows, FeatureIdx n_features,
                                             std::uint32_t max_bins) {
  constexpr std::uint64_t kSmallTable = 150'000;  // bins of all values: microseconds a node
  constexpr std::uint32_t kLeastBins = 32;
  if (n_rows <= max_bins && std::uint64_t{n_rows} * n_features <= kSmallTable) {
    return {std::max(n_rows, kLeastBins)};
  }
  // As many columns as a block has room for, two at least, share its reading of rows.
  double const best = std::max(HistogramCost::BestBins(n_rows), double{kLeastBins});
  auto const n_columns = std::max(2u, static_cast<std::uint32_t>(max_bins / best));
  std::uint32_t const finest = max_bins / n_columns;
  std::vector<std::uint32_t> bins{finest};
  for (std::uint32_t coarser : {finest / 4, finest / 32}) {
    if (coarser >= kLeastBins) {
      bins.push_back(coarser);
    }
  }
  return bins;
}

std::size_t ResolutionFor(RowIdx n_rows, RowIdx n_all,
                          std::vector<ResolutionShape> const& resolutions) {
  double const density = static_cast<double>(std::max(n_rows, 1u)) / std::max(n_all, 1u);
  auto cost = [&](ResolutionShape const& r) { return HistogramCost::Node(n_rows, density, r); };
  auto const best = std::min_element(
      resolutions.cbegin(), resolutions.cend(),
      [&](ResolutionShape const& a, ResolutionShape const& b) { return cost(a) < cost(b); });
  return static_cast<std::size_t>(best - resolutions.cbegin());
}

void WorkSlicer::AddGroup(std::uint64_t n_elements, RowIdx n_rows, std::uint32_t n_bins) {
  GroupCost const before = costs_.back();
  costs_.push_back(
      {before.row + kRowCost + kElementCost * n_elements / std::max<std::uint64_t>(n_rows, 1),
       before.segment + kBinCost * (n_bins + 64)});
}

std::uint64_t WorkSlicer::Before(std::vector<BuiltNode> const& nodes, std::size_t node,
                                 std::uint32_t group) const {
  GroupCost const& all = costs_.back();
  std::uint64_t units = nodes[node].before * all.row + node * all.segment;
  if (group != 0) {
    GroupCost const& before = costs_[group];
    units += (nodes[node + 1].before - nodes[node].before) * before.row + before.segment;
  }
  return units;
}

WorkPoint WorkSlicer::Locate(std::vector<BuiltNode> const& nodes, std::uint64_t unit) const {
  auto const n_nodes = static_cast<std::uint32_t>(nodes.size() - 1);
  auto const node = FirstIndexOf(0u, n_nodes, [&](std::uint32_t i) {
    return this->Before(nodes, i + 1, 0) > unit;
  });
  if (node == n_nodes) {
    return {node, 0, 0};
  }
  auto const group = FirstIndexOf(0u, this->NumGroups() - 1, [&](std::uint32_t g) {
    return this->Before(nodes, node, g + 1) > unit;
  });
  std::uint64_t const row_cost = costs_[group + 1].row - costs_[group].row;
  std::uint64_t const row = (unit - this->Before(nodes, node, group)) / row_cost;
  std::uint64_t const n_rows = nodes[node + 1].before - nodes[node].before;
  if (row < n_rows || n_rows == 0) {
    return {node, group, static_cast<RowIdx>(n_rows == 0 ? 0 : row)};
  }
  return group + 1 < this->NumGroups() ? WorkPoint{node, group + 1, 0} : WorkPoint{node + 1, 0, 0};
}

std::vector<WorkPoint> WorkSlicer::Slices(std::vector<BuiltNode> const& nodes,
                                          std::uint32_t max_slices) const {
  std::uint64_t const total = this->Before(nodes, nodes.size() - 1, 0);
  std::uint64_t const n =
      std::clamp<std::uint64_t>(total / kMinSlice, 1, std::max(max_slices, 1u));
  std::vector<WorkPoint> slices;
  for (std::uint64_t s = 0; s <= n; ++s) {
    // total * s could overflow
    slices.push_back(this->Locate(nodes, total / n * s + total % n * s / n));
  }
  return slices;
}
}  // namespace gpu_exact
