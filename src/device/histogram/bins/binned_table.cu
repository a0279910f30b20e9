/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements binned_table.cuh.
 */
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/histogram/bins/binned_table.cuh"
#include "plan/bin_numbers.h"
#include "plan/search_cost.h"

namespace gpu_exact {
namespace {
/** @brief Sizes of a table whose columns have been counted. */
struct CountedTable {
  std::vector<std::uint32_t> n_entries;  // of each feature
  EntryIdx n_all;
  RowIdx n_rows;
  FeatureIdx n_features;
  bool is_dense;

  explicit CountedTable(StagedTable const& table)
      : n_entries{table.CountEntries()},
        n_all{std::accumulate(n_entries.cbegin(), n_entries.cend(), EntryIdx{0})},
        n_rows{table.table.n_rows},
        n_features{table.table.n_features},
        is_dense{IsDense(n_all, n_rows, n_features)} {}
};

std::vector<std::uint32_t> Choose(CountedTable const& sizes, HistogramMemory const& memory) {
  return ChooseResolutions(sizes.n_rows, sizes.n_features, BinMatrix::MaxBins(), kMaxSortedRows,
                           memory, std::uint64_t{sizes.n_rows} * sizes.n_features - sizes.n_all);
}

/** @brief Makes the finest bins. @param few_values Bins that a column of few values has at most; 0: as
 *         in the finest resolution. */
FinestBins MakeFinest(TableSource const& table, CountedTable const& sizes,
                      std::vector<std::uint32_t> const& resolutions, SortedColumnsRule const& rule,
                      std::uint32_t few_values, std::vector<std::uint32_t> const& n_categories,
                      HistogramMemory const& memory) {
  // Coarser bins are whole numbers of them.
  std::uint32_t const coarsest = resolutions.size() > 1 ? resolutions.back() : ~0u;
  std::uint32_t const shift = ShiftOf(resolutions.front(), coarsest);
  std::uint32_t const limit = resolutions.front() >> shift << shift;
  std::vector<std::uint32_t> limits, values;
  for (std::uint32_t n : sizes.n_entries) {
    limits.push_back(n == 0 ? 0 : limit);
    values.push_back(few_values == 0 ? limits.back() : MaxValues(n, limits.back(), few_values));
  }
  UnbinnedColumns const columns{
      table,    sizes.n_entries, limits, values, memory.BinnedAtOnce(sizes.n_all, sizes.is_dense),
      coarsest, n_categories};
  return memory.sorts_columns ? MakeFinestBins(columns, rule, memory.rows_at)
                              : FinestBins{QuantileCuts{columns}, nullptr};
}
}  // namespace

BinnedTable::BinnedTable(StagedTable staged, std::vector<std::uint32_t> const& max_bins,
                         HistogramMemory const& memory, std::vector<std::uint32_t> n_categories,
                         std::uint32_t max_group_bins) {
  CountedTable const sizes{staged};
  std::vector<std::uint32_t> const& n_entries = sizes.n_entries;
  CopyFromHost(n_present_.Reserve(n_entries.size()), n_entries.data(), n_entries.size());
  bool const chooses = max_bins.empty();
  std::vector<std::uint32_t> const resolutions = chooses ? Choose(sizes, memory) : max_bins;
  SortedColumnsRule const rule{resolutions, sizes.is_dense};
  for (FeatureIdx f = 0; f < sizes.n_features; ++f) {
    if (n_categories[f] != 0) {
      categorical_.push_back({f, n_categories[f]});
    }
  }
  if (!categorical_.empty()) {
    CopyFromHost(n_categories_.Reserve(sizes.n_features), n_categories.data(), sizes.n_features);
  }
  for (CategoricalFeature const& f : categorical_) {
    n_categories[f.feature] = IsWide(f) ? 1 : f.n_categories;
  }
  FinestBins finest = MakeFinest(staged.Source(), sizes, resolutions, rule,
                                 chooses ? BinMatrix::MaxBins() : 0, n_categories, memory);
  sorted_columns_ = std::move(finest.rows);
  this->AddResolution(n_entries, std::move(finest.bins), sizes.n_rows);
  staged.MakeRoom();
  bool const in_bytes = LastTakesBytes(sizes.n_features, resolutions);
  std::vector<std::vector<ColumnBins>> bins{resolutions_.front()->bins.ByColumn()};
  for (std::size_t i = 1; i < resolutions.size(); ++i) {
    this->AddResolution(n_entries, QuantileCuts{resolutions_.front()->bins, resolutions[i]},
                        sizes.n_rows);
    bins.push_back(resolutions_.back()->bins.ByColumn());
  }
  for (std::size_t i = 0; i < resolutions.size(); ++i) {
    resolutions_[i]->scans = this->HasSortedColumns() &&
                             (i == 0 || rule.KeepsEveryColumnAbove(bins.front(), resolutions[i]));
  }
  std::vector<BinMatrix*> const all_stored =
      this->Allocate(LayTable(sizes.n_rows, n_entries, bins, in_bytes, memory.reads_finest,
                              BinMatrix::Limits(max_group_bins)),
                     memory.bins_at);
  std::vector<bool> have_values;
  for (ColumnBins const& column : bins.front()) {
    have_values.push_back(column.has_ranges);
  }
  for (CategoricalFeature const& f : categorical_) {
    have_values[f.feature] = IsWide(f);
  }
  if (staged.columns != nullptr) {
    for (auto* stored : all_stored) {
      stored->WriteColumns(staged.columns->Source().columns);
    }
    values_ = std::make_unique<RowValues>(std::move(*staged.columns), have_values);
    return;
  }
  ForEachPart(staged.Rows(), staged.n_at_once, [&](CsrView const& part, RowIdx first_row) {
    for (auto* stored : all_stored) {
      stored->WriteRows(part, first_row);
    }
  });
  values_ = std::make_unique<RowValues>(staged.Rows(), n_entries, have_values, memory.values_at,
                                        staged.n_at_once);
}

std::vector<BinMatrix*> BinnedTable::Allocate(TableLayout&& layout, Memory bins_at) {
  stored_ =
      std::make_unique<BinMatrix>(resolutions_.front()->bins, std::move(layout.stored), bins_at);
  std::vector<BinMatrix*> all_stored{stored_.get()};
  for (std::size_t i = 0; i < resolutions_.size(); ++i) {
    BinLayout& of_resolution = layout.resolutions[i];
    auto& r = *resolutions_[i];
    if (of_resolution.is_stored) {
      r.matrix = std::make_unique<BinMatrix>(r.bins, std::move(of_resolution), bins_at);
      all_stored.push_back(r.matrix.get());
    } else {
      r.matrix = std::make_unique<BinMatrix>(*stored_, r.bins, std::move(of_resolution));
    }
  }
  return all_stored;
}

void BinnedTable::AddResolution(std::vector<std::uint32_t> const& n_entries, QuantileCuts&& bins,
                                RowIdx n_rows) {
  if (bins.Size() > std::numeric_limits<ValueId>::max()) {  // their numbers are 32 bit
    throw std::invalid_argument{
        "The columns of the table have " + std::to_string(bins.Size()) + " bins, and at most " +
        std::to_string(std::numeric_limits<ValueId>::max()) +
        " fit; set gpu_exact_strategy to sort, or train with fewer columns."};
  }
  resolutions_.push_back(std::make_unique<Resolution>(std::move(bins)));
  auto* r = resolutions_.back().get();
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  std::vector<ValueId> offsets{0};
  for (FeatureIdx f = 0; f < n_features; ++f) {
    offsets.push_back(offsets.back() + r->bins.NumBins(f));
  }
  CopyFromHost(r->offsets.Reserve(offsets.size()), offsets.data(), offsets.size());
  EntryIdx const n = std::accumulate(n_entries.cbegin(), n_entries.cend(), EntryIdx{0});
  r->candidates = {nullptr, nullptr,    n_present_.Data(), r->offsets.Data(),   n, offsets.back(),
                   n_rows,  n_features, nullptr,           n_categories_.Data()};
}
}  // namespace gpu_exact
