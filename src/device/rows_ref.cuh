/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows in the order of the open nodes, as kernels see them.
 */
#pragma once

#include "src/device/runtime.cuh"
#include "src/level.h"

namespace gpu_exact {
/** @brief Places of a node's rows: [begin, end). */
struct RowRange {
  RowIdx begin;
  RowIdx end;
};

/** @brief The trained rows of the open nodes, node by node. Borrowed by kernels. */
struct RowsRef {
  RowIdx const* rows;         // the row at each place
  GradientPair const* gpair;  // and its gradients
  RowRange const* nodes;      // places of each open node, by bucket, shape: (n_nodes); closed nodes
                              // leave holes between them

  /** @brief The open node of a place; n_nodes, as many as there are, where it is in none. */
  [[nodiscard]] __device__ Bucket NodeOf(RowIdx place, Bucket n_nodes) const {
    auto ranges = nodes;
    Bucket b = FirstIndex(Bucket{0}, n_nodes, [=](Bucket k) { return ranges[k].end > place; });
    return b < n_nodes && ranges[b].begin <= place ? b : n_nodes;
  }
};
}  // namespace gpu_exact
