/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The work of a level's histograms, cut into equal slices, one a block.
 *
 * A segment is the rows of one node in one group of columns. Segments are ordered by node, then
 * group, so that blocks that run together share the rows that they read. A slice may begin and end
 * within a segment.
 */
#pragma once

#include "src/device/partition/binned_columns.cuh"
#include "src/device/rows_ref.cuh"
#include "src/level.h"

namespace gpu_exact {
/** @brief A node whose histogram is built from its rows. */
struct BuiltNode {
  RowIdx begin;   // places of its rows
  RowIdx before;  // rows of the nodes built before it
  Bucket bucket;
};

/** @brief What the groups before one take: for each row, and for each segment. */
struct GroupCost {
  std::uint64_t row;
  std::uint64_t segment;
};

/** @brief A place in the order of the work. */
struct WorkPoint {
  std::uint32_t node;
  std::uint32_t group;
  RowIdx row;  // of the segment

  [[nodiscard]] __device__ bool operator<(WorkPoint const& that) const {
    return node != that.node     ? node < that.node
           : group != that.group ? group < that.group
                                 : row < that.row;
  }
  [[nodiscard]] __device__ bool SameSegment(WorkPoint const& that) const {
    return group == that.group && node == that.node;
  }
};

struct WorkRef {
  BuiltNode const* nodes;   // shape: (n_nodes + 1)
  GroupCost const* costs;   // shape: (n_groups + 1)
  WorkPoint const* slices;  // where each begins, shape: (n_slices + 1)
  std::uint32_t n_nodes;
  std::uint32_t n_groups;
  std::uint32_t n_slices;

  [[nodiscard]] __device__ RowIdx NumRows(std::uint32_t node) const {
    return nodes[node + 1].before - nodes[node].before;
  }
  /** @brief The beginning of the segment after the point's. */
  [[nodiscard]] __device__ WorkPoint Next(WorkPoint const& point) const {
    return point.group + 1 < n_groups ? WorkPoint{point.node, point.group + 1, 0}
                                      : WorkPoint{point.node + 1, 0, 0};
  }
  /** @brief Whether a slice begins within a segment, which then has several blocks. */
  [[nodiscard]] __device__ bool Cuts(std::uint32_t slice) const {
    return slice < n_slices && slices[slice].row != 0;
  }
  /** @brief The first slice that begins within the segment in which this one begins. */
  [[nodiscard]] __device__ std::uint32_t FirstCut(std::uint32_t slice) const {
    auto all = slices;
    WorkPoint point = slices[slice];
    return FirstIndex(std::uint32_t{0}, slice, [=](std::uint32_t s) {
      return all[s].row != 0 && all[s].SameSegment(point);
    });
  }
};

/** @brief How the nodes of a level are built. */
enum class BuildMode : std::uint8_t {
  kAll,     // every node
  kSmaller  // of each pair of children the one with fewer rows
};

/** @brief Plans a level's slices. */
class HistogramWork {
 public:
  explicit HistogramWork(BinnedColumns const& columns);

  /**
   * @brief Does not wait.
   * @param n_nodes   Nodes of the level.
   * @param n_rows    Upper bound of the rows to add.
   * @param max_slices Blocks that run at a time.
   */
  WorkRef Plan(RowRange const* nodes, Bucket n_nodes, BuildMode mode, RowIdx n_rows,
               std::uint32_t max_slices);
  [[nodiscard]] std::uint64_t Bytes() const;

 private:
  std::vector<GroupCost> h_costs_;
  DeviceBuffer<GroupCost> costs_{"costs of column groups"};
  DeviceBuffer<BuiltNode> nodes_{"nodes to add up"};
  DeviceBuffer<WorkPoint> slices_{"slices of the histograms' work"};
};
}  // namespace gpu_exact
