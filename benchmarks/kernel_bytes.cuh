/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The bytes that a tree's kernels must move to or from memory, to hold their times against a
 *        copy: a lower bound, so that no kernel is faster.
 *
 * Of an array as long as the entries, rows or bins what a kernel asks for is counted once, however
 * often it asks. Not counted is what the cache may keep from one kernel to the next: its size for
 * each level on which a kernel runs. Nor are arrays that are small beside those (sides of rows,
 * sums of tiles), nor the rest of a sector around a gathered value. Entries are taken to spread
 * evenly over rows. A kernel without a formula has no share.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu_exact/tree_builder.h"
#include "src/device/sort/entry_sorter.cuh"

namespace gpu_exact::bench {
/** @brief What the formulas need of a table and the device. */
struct TableSizes {
  double rows{0};
  double entries{0};
  double cache{0};  // bytes of the device's L2
  /** @brief Of a gradient pair that is gathered by row, at random: the chance that its sector of
   *         32 B is not in the cache decides; 8 B are asked for. */
  [[nodiscard]] double GatheredGradients() const {
    return std::clamp(32 * (1 - cache / (8 * rows)), 0.0, 8.0);
  }
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

inline double CallsOf(Amounts const& calls, std::string const& kernel) {
  auto found = calls.find(kernel);
  return found == calls.cend() ? 0.0 : found->second;
}

/** @brief Kernels over rows: gradients are 8 B a row; a row id or a position 4. */
inline void AddRowBytes(TableSizes const& t, std::vector<LevelRows> const& levels, Amounts* out) {
  Amounts& b = *out;
  b["training_rows:SummariseKernel"] = 8 * t.rows;        // gradients
  b["training_rows:SumMagnitudesKernel"] = 8 * t.rows;    // gradients
  b["training_rows:SumKernel"] = 8 * t.rows;              // gradients
  b["row_partition:ResetKernel"] = (8 + 4 + 1) * t.rows;  // gradients; position and key written
  b["row_partitioner:CompactKernel"] = (4 + 2) * t.rows;  // row, its node written
  for (std::size_t d = 0; d + 1 < levels.size(); ++d) {
    b["row_partition:RouteMissingKernel"] += (4 + 1) * t.rows;  // position; key written
    b["row_partition:SumNodesKernel"] += (4 + 8) * t.rows;      // position, gradients
    b["row_partitioner:MoveKernel"] +=
        2 * (4 + 8) * levels[d].Split();  // row, gradients: read, written
  }
  double const n_last = levels.back().open;
  b["row_partitioner:WriteOpenPositionsKernel"] =
      2 * t.rows + 4 * n_last;                                          // node; position written
  b["row_partitioner:WritePositionsOfSlotsKernel"] = (4 + 4) * n_last;  // row; position written
}

/**
 * @brief The sort strategy: an entry's own key is 1 B, the entry 16, or 8 where gradients by row
 *        lie in the cache, as keys by row do.
 */
inline void AddSortBytes(TableSizes const& t, std::vector<LevelRows> const& levels,
                         std::size_t n_searched, Amounts const& calls, Amounts* out) {
  constexpr auto kLongSegment = static_cast<double>(EntrySorter<ColumnEntry>::kLongSegment);
  Amounts& b = *out;
  double const n_a_row = t.entries / t.rows;
  double const entry = CallsOf(calls, "entry_sorter:GatherKernel") != 0 ? 16 : 8;
  double const n_long = CallsOf(calls, "interleaved_finder:SearchTilesKernel");
  double const n_shared = CallsOf(calls, "interleaved_finder:SearchSharedTilesKernel");
  double const n_short = CallsOf(calls, "interleaved_finder:SearchShortTilesKernel");
  auto n_interleaved = static_cast<std::size_t>(std::max({n_long, n_shared, n_short}));
  auto end_by_node = std::max<std::size_t>(1, n_interleaved) +
                     static_cast<std::size_t>(CallsOf(calls, "entry_sorter:NodeKeysKernel"));
  // row and value; gradients; entry written
  b["entry_sorter:GatherKernel"] = (8 + t.GatheredGradients() + 16) * t.entries;
  for (std::size_t d = 0; d < n_searched; ++d) {
    if (d < n_interleaved) {
      // All entries: those of open nodes lie among the others. Not known where only some are in long
      // columns.
      if (n_shared + n_short == 0) {
        b["interleaved_finder:ReduceTilesKernel"] += entry * t.entries;
        b["interleaved_finder:SearchTilesKernel"] += entry * t.entries;
      }
      continue;
    }
    double open = levels[d].open * n_a_row;
    b["sorted_finder:ReduceTilesKernel"] += entry * open;  // entries of open nodes
    b["sorted_finder:SearchTilesKernel"] += entry * open;  // again
    if (d == 0) {
      continue;
    }
    double sorted_alone{0}, together{0};
    if (d < end_by_node) {
      sorted_alone = t.entries;
      b["entry_sorter:NodeKeysKernel"] += (entry + 1) * t.entries;  // all of it; key written
    } else {
      b["entry_sorter:ChildKeysKernel"] += (entry + 1) * levels[d - 1].open * n_a_row;  // likewise
      for (SplitRows const& s : levels[d - 1].split) {
        double n = s.Both() * n_a_row;
        (n >= kLongSegment ? sorted_alone : together) += n;
      }
    }
    b["cub:DeviceRadixSortHistogramKernel"] += sorted_alone;  // key
    // entry and key: read, written
    b["cub:DeviceRadixSortOnesweepKernel"] += 2 * (entry + 1) * sorted_alone;
    b["cub:DeviceSegmentedRadixSortKernel"] += 2 * (entry + 1) * together;
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
  Amounts asked;
  AddRowBytes(table, levels, &asked);
  AddSortBytes(table, levels, n_searched, calls, &asked);
  Amounts moved;
  for (auto const& [kernel, bytes] : asked) {
    // Calls of one level have parts of the arrays.
    double n_levels = std::min(CallsOf(calls, kernel), static_cast<double>(levels.size()));
    if (bytes > n_levels * table.cache) {
      moved[kernel] = bytes - n_levels * table.cache;
    }
  }
  return moved;
}
}  // namespace gpu_exact::bench
