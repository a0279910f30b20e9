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
    Bucket b = this->FirstNode(place, n_nodes, 0);
    return this->Has(b, place, n_nodes) ? b : n_nodes;
  }

  /** @brief The first open node that ends past a place. @param from That of an earlier place. */
  [[nodiscard]] __device__ Bucket FirstNode(RowIdx place, Bucket n_nodes, Bucket from) const {
    auto ranges = nodes;
    if (from < n_nodes && ranges[from].end > place) {  // most neighbours are of one node
      return from;
    }
    return FirstIndex(from, n_nodes, [=](Bucket k) { return ranges[k].end > place; });
  }
  /** @brief Whether a place is in its FirstNode(). */
  [[nodiscard]] __device__ bool Has(Bucket first, RowIdx place, Bucket n_nodes) const {
    return first < n_nodes && nodes[first].begin <= place;
  }
};
}  // namespace gpu_exact
