/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Puts the two kinds of entries that the kernels of this strategy read behind one name.
 *
 * Where the gradients of all rows stay in the L2 cache, entries are those of the columns, 8 B, and
 * gradients are gathered by row. Else they are carried along, 16 B an entry, as a gather would read
 * 32 B of memory for each.
 */
#pragma once

#include "core/quantise.h"
#include "device/table/column_store.cuh"

namespace gpu_exact {
/** @brief Holds an entry with the gradients of its row. */
struct alignas(16) CarriedEntry {
  RowIdx row;
  ValueId value;
  GradientUnits units;
};

/** @brief Lends entries to kernels. @tparam EntryT CarriedEntry or ColumnEntry. */
template <typename EntryT>
struct EntriesRef {
  EntryT const* entries;
  GradientUnits const* units;  // by row; nullptr: entries carry them

  __device__ EntryT operator[](EntryIdx i) const { return entries[i]; }
  __device__ GradientUnits Units(CarriedEntry const& e) const { return e.units; }
  __device__ GradientUnits Units(ColumnEntry const& e) const { return units[e.row]; }
};
}  // namespace gpu_exact
