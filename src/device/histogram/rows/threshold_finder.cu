/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements threshold_finder.cuh.
 */
#include "device/histogram/rows/threshold_finder.cuh"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr int kReadSlots = 4;  // per thread: all are asked for before the first is used

// one thread a node
__global__ void ReadCandidatesKernel(LevelRef lv, BinMatrixRef binned, BinnedTableRef table,
                                     SearchedNode const* nodes, LevelNode n_nodes,
                                     RefinedCandidates refined, NodeThreshold* points,
                                     LevelResult* out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= n_nodes) {
    return;
  }
  LevelNode const b = nodes[i].level_node;
  std::uint64_t const key = lv.best[b];
  NodeThreshold point{};
  point.feature = NodeThreshold::kNoFeature;
  point.scanned = point.next = point.next_bin = point.beyond = ScanValue::kNone;
  LevelResult result{lv.nodes[b], {0.0f, 0, 0.0f, 0}};
  if (CandidateKey::IsLocal(key)) {
    BestCandidate const best{lv.columns, key};
    point.feature = best.feature;
    point.direction = best.direction;
    if (lv.rules[best.feature].categorical) {
      point.by_categories = true;
      point.direction = lv.SendsMissingLeft(best.feature, key) ? ScanDirection::kBackward
                                                               : ScanDirection::kForward;
    } else {
      std::uint64_t const bin = binned.bins.offsets[best.feature] + best.bin;
      float scanned = binned.bins.lowest[bin];
      if (binned.bins.is_range[bin] != 0) {
        // The bound of a best candidate's range reaches it, so that the range was looked into.
        FoundCandidate const found =
            refined.n_columns == 0
                ? refined.found[i]
                : refined.found[i * refined.n_columns + binned.column_of[best.feature]];
        if (found.key == key && found.scan_value != ScanValue::kNone) {
          scanned = ScanValue::Read(best.direction, found.scan_value);
        }
      }
      point.scanned = ScanValue::Make(best.direction, scanned);
      if (table.values_of_host) {
        auto const of_column = table.finest.bins.BinOf(best.feature, scanned);
        point.bin = point.InOrder(static_cast<int>(of_column));
      }
    }
    result.split = lv.SplitOf(b, point.feature, point.direction, 0.0f);
  }
  points[b] = point;
  out[b] = result;
}

// grid: RowTile's; result: the nearest value on the other side, and which rows go left; where it
// reroutes, these once more
template <int kSlots, SideBy kBy>
__global__ __launch_bounds__(kThreads) void FindLeftKernel(SplitSidesRef sides, RowsRef rows,
                                                           LevelNode n_nodes, bool reroutes,
                                                           std::uint32_t* left) {
  WaitForPreviousKernel();
  RowTile<kThreads, kSlots> const tile{rows, n_nodes};
  NodeThreshold* const point = sides.points + tile.node;
  if (tile.IsEmpty() || point->feature == NodeThreshold::kNoFeature ||
      point->reroutes != reroutes) {
    return;
  }
  RowIdx row[kSlots];
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    row[j] = tile.Has(j) ? rows.rows[tile.Slot(j)] : 0;
  }
  RowSides const found = sides.Find<kBy>(tile, row);
#pragma unroll
  for (int j = 0; j < kSlots; ++j) {
    std::uint32_t const bit = 1u << row[j] % 32;
    if ((found.left >> j & 1u) != 0) {
      atomicOr(left + row[j] / 32, bit);
    } else if (reroutes && tile.Has(j)) {
      atomicAnd(left + row[j] / 32, ~bit);
    }
  }
  if (!reroutes) {
    found.OfWarp().OfferTo(point);
  }
}

// grid: RowTile's; result: the least value in the next bin, of nodes that have none in the candidate's
template <int kSlots>
__global__ __launch_bounds__(kThreads) void FindValuesBeyondKernel(SplitSidesRef sides,
                                                                   RowsRef rows,
                                                                   LevelNode n_nodes) {
  WaitForPreviousKernel();
  RowTile<kThreads, kSlots> const tile{rows, n_nodes};
  NodeThreshold const point = sides.points[tile.node];
  if (point.next_bin == ScanValue::kNone || point.next != ScanValue::kNone) {
    return;
  }
  RowSides found;
  for (int j = 0; j < kSlots; ++j) {
    if (tile.Has(j)) {
      RowIdx const row = rows.rows[tile.Slot(j)];
      int const bin = sides.table.finest.BinOf(row, point.feature);
      if (bin >= 0 && point.InOrder(bin) == point.next_bin) {
        float const value = sides.table.ValueOf(row, point.feature);
        found.beyond = min(found.beyond, ScanValue::Make(point.direction, value));
      }
    }
  }
  found.OfWarp().OfferTo(sides.points + tile.node);
}

// one thread a node
__global__ void FindThresholdsKernel(NodeThreshold* points, LevelNode n_nodes, LevelResult* out) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b < n_nodes && points[b].HasThreshold()) {
    points[b].FindThreshold();
    out[b].split.threshold = points[b].threshold;
  }
}
}  // namespace

void ThresholdFinder::Read(LevelRef const& lv, BinMatrixRef const& binned,
                           SearchedNode const* nodes, LevelNode n_nodes,
                           RefinedCandidates const& refined, LevelResult* out) {
  LaunchN("ReadCandidates", ReadCandidatesKernel, n_nodes, lv, binned, table_, nodes, n_nodes,
          refined, points_.Reserve(lv.n_nodes), out);
}

void ThresholdFinder::Resolve(SplitSidesRef const& sides, RowsRef const& rows, LevelNode n_nodes,
                              RowIdx n_slots, std::uint32_t* out_left, LevelResult* out) const {
  WithSlots<kReadSlots>(n_slots, [&](auto slots) {
    constexpr int kSlots = decltype(slots)::value;
    std::uint64_t const grid = RowTile<kThreads, kSlots>::Grid(n_slots, n_nodes);
    bool const by_bins = sides.table.values_of_host;
    Launch("FindLeft",
           by_bins ? FindLeftKernel<kSlots, SideBy::kBin> : FindLeftKernel<kSlots, SideBy::kValue>,
           grid, kThreads, sides, rows, n_nodes, false, out_left);
    if (by_bins) {
      FindValuesBeyond(sides, rows, n_nodes, n_slots);
    }
    LaunchN("FindThresholds", FindThresholdsKernel, n_nodes, sides.points, n_nodes, out);
    Launch("FindLeftByThreshold", FindLeftKernel<kSlots, SideBy::kValue>, grid, kThreads, sides,
           rows, n_nodes, true, out_left);
  });
}

void FindValuesBeyond(SplitSidesRef const& sides, RowsRef const& rows, LevelNode n_nodes,
                      RowIdx n_slots) {
  WithSlots<kReadSlots>(n_slots, [&](auto slots) {
    constexpr int kSlots = decltype(slots)::value;
    Launch("FindValuesBeyond", FindValuesBeyondKernel<kSlots>,
           RowTile<kThreads, kSlots>::Grid(n_slots, n_nodes), kThreads, sides, rows, n_nodes);
  });
}
}  // namespace gpu_exact
