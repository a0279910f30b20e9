/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implementation of staged_table.cuh.
 */
#include <algorithm>

#include "device/histogram/bins/staged_table.cuh"
#include "plan/bin_layout.h"

namespace gpu_exact {
StagedTable::StagedTable(CsrView const& source, HistogramMemory const& memory, EntryIdx at_once)
    : table{source},
      n_at_once{at_once == 0 ? memory.ReadAtOnce(source.n_entries) : at_once},
      is_read_again{source.memory == Memory::kHost && source.n_entries > n_at_once} {
  if (IsDense(table.n_entries, table.n_rows, table.n_features)) {
    columns = std::make_unique<ColumnValues>(table, std::vector<bool>(table.n_features, true),
                                             memory.values_at, n_at_once);
  } else {
    rows = std::make_unique<RowTable>(
        table, std::min(memory.BinnedAtOnce(table.n_entries, false), RowTable::kSortedAtOnce));
  }
}

void StagedTable::MakeRoom() {
  if (rows != nullptr && is_read_again) {
    rows->Release();
  }
}
}  // namespace gpu_exact
