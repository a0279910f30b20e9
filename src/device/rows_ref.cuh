/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The rows of a level's open nodes, in the order of their nodes.
 */
#pragma once

#include "gpu_exact/types.h"

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
};
}  // namespace gpu_exact
