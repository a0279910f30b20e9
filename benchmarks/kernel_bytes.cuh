/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The bytes that a tree's kernels must read and write, to hold their times against a copy.
 *
 * What is counted is what is asked for of arrays as long as the entries, rows or bins: not what
 * lies in caches (sides of rows, sums of tiles), not the rest of a sector around a gathered value.
 * Entries are taken to spread evenly over rows. A kernel without a formula has no share.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "src/device/partition/split_tile_agent.cuh"

namespace gpu_exact::bench {
/** @brief What the formulas need of a table. */
struct TableSizes {
  double rows{0};
  double entries{0};
  // as the partition strategy keeps them
  double sorted{0};         // entries of sorted columns
  double sparse{0};         // those of columns with missing values
  double elements{0};       // entries of binned columns
  double groups{0};         // of binned columns
  double sparse_groups{0};  // with missing values
  double bins{0};
};

/** @brief A node that is split and its children's rows. */
struct SplitRows {
  double left;
  double right;
  [[nodiscard]] double Both() const { return left + right; }
};

/** @brief One level of a tree. */
struct LevelRows {
  double open{0};  // rows of all its nodes
  std::vector<SplitRows> split;
  [[nodiscard]] double Split() const {
    double n{0};
    for (SplitRows const& s : split) {
      n += s.Both();
    }
    return n;
  }
};

/** @brief Rows by level, from the leaf of each row; the last level has the deepest leaves. */
inline std::vector<LevelRows> CountRows(GrownTree const& tree,
                                        std::vector<NodeIdx> const& positions) {
  std::vector<double> rows(tree.size(), 0.0);
  for (NodeIdx p : positions) {
    rows[DecodePosition(p)] += 1.0;
  }
  for (std::size_t i = tree.size(); i-- > 1;) {  // children come after their parent
    rows[tree[i].parent] += rows[i];
  }
  std::vector<std::size_t> depth(tree.size(), 0);
  std::vector<LevelRows> levels;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    depth[i] = i == 0 ? 0 : depth[tree[i].parent] + 1;
    levels.resize(std::max(levels.size(), depth[i] + 1));
    levels[depth[i]].open += rows[i];
    if (!tree[i].IsLeaf()) {
      levels[depth[i]].split.push_back({rows[tree[i].left], rows[tree[i].right]});
    }
  }
  return levels;
}

/** @brief By kernel. */
using Amounts = std::map<std::string, double>;

/** @brief Kernels of all trees: gradients are 8 B a row, a position 4. */
inline void AddRowBytes(TableSizes const& t, std::vector<LevelRows> const& levels, Amounts* out) {
  Amounts& b = *out;
  b["training_rows:SummariseKernel"] = 8 * t.rows;
  b["training_rows:SumKernel<true>"] = 8 * t.rows;
  b["training_rows:SumKernel<false>"] = 8 * t.rows;
  b["row_partition:ResetKernel"] = (8 + 4 + 1) * t.rows;
  b["row_order:CompactKernel"] = 4 * t.rows;
  for (std::size_t d = 0; d + 1 < levels.size(); ++d) {
    b["row_partition:RouteMissingKernel"] += (4 + 1) * t.rows;     // position; row key
    b["row_partition:SumNodesKernel"] += (4 + 8) * t.rows;         // position, gradients
    b["row_order:RouteKernel"] += (4 + 4) * levels[d].open;        // row, value
    b["row_order:MoveKernel"] += 2 * (4 + 8) * levels[d].Split();  // row, gradients
  }
  b["row_order:SettleKernel"] = (4 + 4) * levels.back().open;  // row; position
}

/** @brief The sort strategy: an entry is 16 B, its row's or its own key 1. */
inline void AddSortBytes(TableSizes const& t, std::vector<LevelRows> const& levels,
                         std::size_t n_searched, Amounts const& calls, Amounts* out) {
  constexpr double kLongSegment = 1 << 18;  // a segment that is sorted alone
  Amounts& b = *out;
  double const n_a_row = t.entries / t.rows;
  auto found = calls.find("interleaved_finder:SearchTilesKernel");
  auto n_interleaved = static_cast<std::size_t>(found == calls.cend() ? 0.0 : found->second);
  b["entry_sorter:GatherKernel"] = (8 + 8 + 16) * t.entries;
  for (std::size_t d = 0; d < n_searched; ++d) {
    if (d < n_interleaved) {
      b["interleaved_finder:ReduceTilesKernel"] += (16 + 1) * t.entries;
      b["interleaved_finder:SearchTilesKernel"] += (16 + 1) * t.entries;
      continue;
    }
    double open = levels[d].open * n_a_row;
    b["sorted_finder:ReduceTilesKernel"] += 16 * open;
    b["sorted_finder:SearchTilesKernel"] += 16 * open;
    if (d == 0) {
      continue;
    }
    bool by_node = d == n_interleaved;  // all entries; later by child
    double sorted_alone = by_node ? t.entries : 0;
    double together{0};
    b["entry_sorter:WriteKeysKernel"] +=
        (16 + 1 + 1) * (by_node ? t.entries : levels[d - 1].open * n_a_row);
    for (SplitRows const& s : levels[d - 1].split) {
      double n = by_node ? 0 : s.Both() * n_a_row;
      (n >= kLongSegment ? sorted_alone : together) += n;
    }
    b["cub:DeviceRadixSortHistogramKernel"] += sorted_alone;
    b["cub:DeviceRadixSortOnesweepKernel"] += 2 * (16 + 1) * sorted_alone;
    b["cub:DeviceSegmentedRadixSortKernel"] += (1 + 2 * (16 + 1)) * together;
  }
}

/** @brief The partition strategy's sorted columns: an entry is 4 B of place, 8 of gradients. */
inline void AddFusedBytes(TableSizes const& t, std::vector<LevelRows> const& levels,
                          std::size_t n_searched, std::int32_t max_depth, Amounts* out) {
  Amounts& b = *out;
  b["fused_finder:SumTilesKernel<true>"] = (4 + 8 + 12) * t.sorted;  // row, gradients; entry
  b["fused_finder:SplitTilesKernel<false>"] = 12 * t.sorted;
  for (std::size_t d = 1; d < n_searched; ++d) {
    bool last = d + 1 == static_cast<std::size_t>(max_depth);
    for (SplitRows const& s : levels[d - 1].split) {
      double part = s.Both() / t.rows;
      double moved = (12 + (last ? 4 : 12)) * part * t.sorted;
      if (s.Both() <= kWarpEntries) {
        b["fused_finder:SplitSmallKernel"] += moved;
        continue;
      }
      b["fused_finder:SplitTilesKernel<true>"] += moved;
      if (s.Both() > kTileEntries) {
        b["fused_finder:SumTilesKernel<false>"] += 12 * part * t.sparse;
      }
    }
  }
}

/**
 * @brief Its binned columns: an element is 2 B; a row 4 and its gradients 8 in each group, and 8 of
 *        offsets where the group has missing values; a bin 16.
 */
inline void AddHistogramBytes(TableSizes const& t, std::vector<LevelRows> const& levels,
                              std::size_t n_searched, Amounts const& calls, Amounts* out) {
  Amounts& b = *out;
  auto found = calls.find("gpu_exact:BuildKernel<false>");
  auto n_kept = static_cast<std::size_t>(found == calls.cend() ? 0.0 : found->second);
  double const a_row = 2 * t.elements / t.rows + (4 + 8) * t.groups + 8 * t.sparse_groups;
  b["gpu_exact:SearchRootKernel"] = 16 * t.bins;
  for (std::size_t d = 0; d < n_searched; ++d) {
    if (d >= n_kept) {  // every node, searched in shared memory
      b["gpu_exact:BuildKernel<true>"] += a_row * levels[d].open;
      continue;
    }
    double& build = b["gpu_exact:BuildKernel<false>"];
    if (d == 0) {
      build += a_row * t.rows + 16 * t.bins;
      continue;
    }
    for (SplitRows const& s : levels[d - 1].split) {  // reads parent and smaller child
      build += a_row * std::min(s.left, s.right) + 16 * t.bins;
      b["gpu_exact:SearchPairsKernel"] += 16 * t.bins * (s.left < s.right ? 4 : 3);
    }
  }
}

/**
 * @brief Bytes a tree.
 * @param levels Of the tree.
 * @param calls  A tree, of each kernel that ran.
 */
inline Amounts KernelBytes(TableSizes const& table, std::vector<LevelRows> const& levels,
                           std::int32_t max_depth, Amounts const& calls) {
  // Leaves of the deepest level have been searched too, unless no depth was left.
  auto n_searched = std::min(levels.size(), static_cast<std::size_t>(max_depth));
  Amounts bytes;
  AddRowBytes(table, levels, &bytes);
  AddSortBytes(table, levels, n_searched, calls, &bytes);
  AddFusedBytes(table, levels, n_searched, max_depth, &bytes);
  AddHistogramBytes(table, levels, n_searched, calls, &bytes);
  return bytes;
}
}  // namespace gpu_exact::bench
