/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Cuts the work on a level's nodes into slices of equal cost, one a block.
 */
#pragma once

#include <cstdint>
#include <vector>

#include "core/level.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Says which part of a node's rows is worked on by itself. */
enum class NodePart : std::uint32_t { kWhole, kFirst, kLater };

/** @brief Describes a node, or a part of one, whose rows are added up or looked through. */
struct BuiltNode {
  RowIdx begin;  // slot of its first row
  SearchedIdx node;
  std::uint64_t before;  // rows of the nodes before it
  NodePart part{NodePart::kWhole};
};

/** @brief Describes what of a device decides how rows are dealt out to the blocks that add them
 *         up. */
struct BuildLimits {
  std::uint32_t n_blocks{0};  // that run at a time; 0: the device tells
  // The cache holds so many rows, with gradients and a group's bins: half of an H200's 50 MB.
  std::uint64_t cached_rows{std::uint64_t{1} << 20};
};

/** @brief Sums the cost of the groups before one: for each row, and for each segment. */
struct GroupCost {
  std::uint64_t row;
  std::uint64_t segment;
};

/** @brief Points into the work, which is ordered by node, group, row. */
struct WorkOffset {
  std::uint32_t built;  // index among the built nodes, or parts of nodes
  std::uint32_t group;
  RowIdx row;  // of the segment

  [[nodiscard]] GPU_EXACT_HD bool operator<(WorkOffset const& that) const {
    return built != that.built   ? built < that.built
           : group != that.group ? group < that.group
                                 : row < that.row;
  }
  [[nodiscard]] GPU_EXACT_HD bool SameSegment(WorkOffset const& that) const {
    return group == that.group && built == that.built;
  }
};

/**
 * @brief Cuts the work on some nodes into slices, one a block.
 *
 * A segment is the rows of one node in one group of columns. Segments are ordered by node, then
 * group, so that blocks that run together share the rows that they read. Of rows that the cache
 * holds, slices are of equal cost: they may begin and end within a segment. Of more rows, nodes are
 * cut into parts, and slices are segments: then blocks go along the same rows at the same time,
 * each for another group, and memory is read once for all of them.
 */
class LoadBalancer {
 public:
  /** @brief Limits the work for which a block is started: 2,048 elements at least. */
  static constexpr std::uint64_t kMinSlice = 16384;

  /** @brief Adds a group. @param n_elements How many of its elements n_rows rows have. */
  void AddGroup(std::uint64_t n_elements, RowIdx n_rows, std::uint32_t n_bins);
  [[nodiscard]] std::vector<GroupCost> const& Costs() const { return costs_; }
  [[nodiscard]] std::uint32_t NumGroups() const {
    return static_cast<std::uint32_t>(costs_.size() - 1);
  }

  /**
   * @param nodes      Those worked on, and a last one whose `before` counts the rows of all.
   * @param max_slices At most so many.
   * @param min_slice  The least work of a slice.
   * @return Where each slice begins, and the end.
   */
  [[nodiscard]] std::vector<WorkOffset> Slices(std::vector<BuiltNode> const& nodes,
                                               std::uint32_t max_slices,
                                               std::uint64_t min_slice = kMinSlice) const;

  /**
   * @brief Cuts nodes into parts, the largest node first: as many as keep all blocks busy for a
   *        few rounds.
   * @param nodes Those worked on, and a last one whose `before` counts the rows of all.
   * @return The parts, and such a last one; nothing where no node needs to be cut.
   */
  [[nodiscard]] std::vector<BuiltNode> Parts(std::vector<BuiltNode> const& nodes,
                                             BuildLimits const& limits) const;
  /** @brief Makes a slice for each segment of the nodes: where each begins, and the end. */
  [[nodiscard]] std::vector<WorkOffset> Segments(std::uint32_t n_nodes) const;

 private:
  /** @brief Chooses how many parts, times groups, fill some rounds of blocks best: more rather than fewer,
   *         as nodes differ. */
  [[nodiscard]] std::uint64_t NumParts(std::uint64_t n_blocks) const;
  [[nodiscard]] std::uint64_t Before(std::vector<BuiltNode> const& nodes, std::size_t node,
                                     std::uint32_t group) const;
  /** @param first A node at or before the unit's. */
  [[nodiscard]] WorkOffset Locate(std::vector<BuiltNode> const& nodes, std::uint64_t unit,
                                  std::uint32_t first) const;

  std::vector<GroupCost> costs_{{0, 0}};
};
}  // namespace gpu_exact
