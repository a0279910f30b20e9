/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The bins of one table in every way that they are stored and read.
 */
#pragma once

#include <map>
#include <string>
#include <vector>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/level/rows_ref.cuh"
#include "tests/device/histogram/quantile_cuts_problem.cuh"

namespace gpu_exact {
/** @brief Says how the bins of a group lie. */
inline std::string StorageOf(FeatureGroup const& group) {
  std::string const rows = !group.Strided() ? (group.is_narrow != 0 ? "narrow" : "wide")
                           : group.InBytes()
                               ? "bytes"
                               : "chunks of " + std::to_string(group.chunk) +
                                     (group.n_columns > group.chunk ? ", several" : "");
  std::string const bins = group.cell_maps != nullptr ? ", by column"
                           : group.shift != 0         ? ", shifted"
                                                      : "";
  return rows + bins + (group.reads_part != 0 ? ", a part" : "");
}

/** @brief Lists the bins that a table's rows have in one matrix, by the values of the table. */
class BinsOfTable {
 public:
  BinsOfTable(Table const& table, BinMatrix const& binned, QuantileCuts const& bins)
      : table_{table},
        binned_{binned},
        bins_{bins, table.n_features},
        column_of_(table.n_features) {
    for (std::uint32_t c = 0; c < binned.Columns().size(); ++c) {
      column_of_[binned.Columns()[c].feature] = c;
    }
  }
  /** @brief Give the bins of a row, counted in the group, ascending. */
  [[nodiscard]] std::vector<std::uint32_t> OfRow(std::uint32_t group, RowIdx row) const {
    std::vector<std::uint32_t> out;
    for (auto i = table_.offsets[row]; i < table_.offsets[row + 1]; ++i) {
      CsrEntry const& e = table_.entries[i];
      BinColumn const& column = binned_.Columns()[column_of_[e.feature]];
      if (column.group == group) {
        out.push_back(column.first_bin + bins_.BinOf(e.feature, e.value));
      }
    }
    return out;
  }

 private:
  Table const& table_;
  BinMatrix const& binned_;
  HostBins bins_;
  std::vector<std::uint32_t> column_of_;
};

/**
 * @brief Call fn(binned, bins) with a table's bins as they are stored in two bytes and in one, and as
 *        they are read from stored ones: all columns of a row, and a part of them; as they are, shifted
 *        alike, and each column by itself.
 */
template <typename FnT>
void ForEachStorage(Table const& table, FnT&& fn) {
  constexpr std::uint32_t kOneGroup = 20000;  // bins
  constexpr std::uint32_t kParts = 150;  // bins: four columns of the finest, all of the coarsest
  constexpr std::uint32_t kChunks =
      272;  // of the finest one whole chunk of columns, of the next two
  auto const n_entries = CountEntries(table);
  QuantileCuts const finest = MakeQuantileCuts(table, 34);
  QuantileCuts const shifted{finest, 17};
  QuantileCuts const coarsest{finest,
                              5};  // the last bin of a column is of two finer ones, not of eight
  TableOnDevice const on_device{table};
  auto const store = [&](QuantileCuts const& grouped_by, std::uint32_t group_bins, bool in_bytes) {
    BinMatrix stored{finest,
                     LayStored(table.n_rows, n_entries, finest.ByColumn(), grouped_by.ByColumn(),
                               BinMatrix::Limits(group_bins), in_bytes)};
    stored.WriteRows(on_device.view, 0);
    return stored;
  };
  for (bool in_bytes : {false, true}) {
    fn(store(finest, kOneGroup, in_bytes), finest);
  }
  for (std::uint32_t group_bins : {kOneGroup, kParts, kChunks}) {
    BinMatrix const stored = store(coarsest, group_bins, false);
    for (QuantileCuts const* bins : {&finest, &shifted, &coarsest}) {
      fn(BinMatrix{stored, *bins,
                   LayRead(stored.Layout(), n_entries, bins->ByColumn(),
                           BinMatrix::Limits(group_bins))},
         *bins);
    }
  }
}

/** @brief A table whose columns give groups of every storage: of many values, some of few. */
inline Table MakeStoredTable(FeatureIdx n_columns, double missing, RowIdx n_rows, Random* random) {
  std::vector<ColumnShape> columns(n_columns, {0, missing});
  if (n_columns % 3 == 2) {  // beside them no shift serves a whole group
    columns[n_columns / 2] = {3, missing};
  }
  return MakeBinnedTable(columns, n_rows, random);
}

/** @brief Rows in the slots of a node, in any order, and gradients that tell the slots apart. */
struct SlotsProblem {
  std::vector<RowIdx> rows;
  std::vector<GradientUnits> units;
  std::int64_t hess_of_row{0};  // as LevelRef's

  /** @param alike Whether all hessians are. */
  SlotsProblem(RowIdx n_slots, RowIdx n_rows, Random* random, bool alike = false) {
    for (RowIdx slot = 0; slot < n_slots; ++slot) {
      rows.push_back(static_cast<RowIdx>(random->Int(0, static_cast<int>(n_rows) - 1)));
      // Far above 32 bits, and of both signs: sums carry from one word to the next.
      units.push_back({static_cast<float>(std::ldexp(random->Real() - 0.5, random->Int(2, 50))),
                       static_cast<float>(std::ldexp(1.0 + slot, random->Int(0, 32)))});
      units.back().grad = std::trunc(units.back().grad);
      if (alike) {
        units.back().hess = units.front().hess;
        hess_of_row = units.front().Fixed().hess;
      }
    }
    d_rows_ = ToDevice(rows);
    d_units_ = ToDevice(units);
  }
  [[nodiscard]] RowsRef Ref() const {
    return {d_rows_.Data(), d_units_.Data(), nullptr, nullptr, nullptr, nullptr, false};
  }

 private:
  DeviceBuffer<RowIdx> d_rows_{"rows"};
  DeviceBuffer<GradientUnits> d_units_{"gradients"};
};
}  // namespace gpu_exact
