/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Lends entries with the gradients of their rows: these are gathered, and stay in the L2 cache
 *        while rows are not very many.
 */
#pragma once

#include "core/quantise.h"
#include "device/table/column_store.cuh"

namespace gpu_exact {
struct EntriesRef {
  ColumnEntry const* entries;
  GradientUnits const* units;  // by row

  __device__ ColumnEntry operator[](EntryIdx i) const { return entries[i]; }
  __device__ GradientUnits Units(ColumnEntry const& e) const { return units[e.row]; }
};
}  // namespace gpu_exact
