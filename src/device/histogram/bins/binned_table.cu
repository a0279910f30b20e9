/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of binned_table.cuh.
 */
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/histogram/bins/binned_table.cuh"
#include "plan/histogram_plan.h"

namespace gpu_exact {
namespace {
/**
 * @brief Columns whose sorted columns are kept: those that have more bins than a resolution in
 *        which ranges are looked up in them.
 *
 * Where most values are missing, columns of few values may have ranges in the last resolution alone,
 * which serves the many small nodes. Few of their entries are open; they are gathered as soon.
 */
std::uint32_t LeastScannedBins(std::vector<std::uint32_t> const& max_bins, bool is_dense) {
  std::size_t const n = max_bins.size();
  return n == 1 ? ~0u : max_bins[n > 2 && !is_dense ? n - 2 : n - 1];
}

/**
 * @brief While no column has more bins than so many, or ranges in the finest resolution, none is kept.
 *
 * Ranges of such a sparse table hold hardly more than one value, in all resolutions but the last, and
 * are gathered nearly as soon, for a quarter less memory. (Of 801 values in 640 bins a tree takes
 * 3.5 ms in place of 3.1; of 1,601 values 7.7 in place of 4.2.)
 */
std::uint32_t MostGatheredBins(std::vector<std::uint32_t> const& max_bins, bool is_dense) {
  std::size_t const n = max_bins.size();
  return is_dense || n <= 2 ? 0 : max_bins[n - 2] + max_bins[n - 2] / 2;
}
}  // namespace

BinnedTable::BinnedTable(CsrView const& table, std::vector<std::uint32_t> const& max_bins,
                         HistogramMemory const& memory, std::uint32_t max_group_bins,
                         EntryIdx read_at_once, std::function<void()> const& rows_read) {
  EntryIdx const at_once = read_at_once == 0 ? memory.ReadAtOnce(table.n_entries) : read_at_once;
  if (IsDense(table.n_entries, table.n_rows, table.n_features)) {
    ColumnValues columns{table, std::vector<bool>(table.n_features, true), memory.values_at,
                         at_once};
    if (rows_read) {
      rows_read();
    }
    std::vector<std::uint32_t> const& n_entries = columns.CountEntries();
    auto const resolutions = this->MakeFinest(columns.Source(), n_entries, max_bins, memory);
    for (auto* stored : this->StoreBins(table, n_entries, resolutions, memory, max_group_bins)) {
      stored->WriteColumns(columns.Source().columns);
    }
    auto const kept = this->HaveRanges(table.n_features);
    values_ = std::make_unique<RowValues>(std::move(columns), kept);
    return;
  }
  RowTable rows{table,
                std::min(memory.BinnedAtOnce(table.n_entries, false), RowTable::kSortedAtOnce)};
  std::vector<std::uint32_t> const n_entries = rows.CountEntries();
  auto const resolutions = this->MakeFinest(rows.View(), n_entries, max_bins, memory);
  // A long table of the host makes room for its bins, and is read again, some rows at a time.
  bool const is_read_again = table.memory == Memory::kHost && table.n_entries > at_once;
  if (is_read_again) {
    rows.Release();
  }
  CsrView const& source = is_read_again ? table : rows.View();
  auto const all_stored = this->StoreBins(table, n_entries, resolutions, memory, max_group_bins);
  ForEachPart(source, at_once, [&](CsrView const& part, RowIdx first_row) {
    for (auto* stored : all_stored) {
      stored->WriteRows(part, first_row);
    }
  });
  values_ = std::make_unique<RowValues>(source, n_entries, this->HaveRanges(table.n_features),
                                        memory.values_at, at_once);
  if (rows_read) {
    rows_read();
  }
}

std::vector<std::uint32_t> BinnedTable::MakeFinest(TableSource const& table,
                                                   std::vector<std::uint32_t> const& n_entries,
                                                   std::vector<std::uint32_t> const& max_bins,
                                                   HistogramMemory const& memory) {
  CopyFromHost(n_present_.Reserve(n_entries.size()), n_entries.data(), n_entries.size());
  EntryIdx const total = std::accumulate(n_entries.cbegin(), n_entries.cend(), EntryIdx{0});
  bool const is_dense = IsDense(total, table.n_rows, table.n_features);
  std::vector<std::uint32_t> const resolutions =
      max_bins.empty()
          ? ChooseResolutions(table.n_rows, table.n_features, BinMatrix::MaxBins(), kMaxSortedRows,
                              memory, std::uint64_t{table.n_rows} * table.n_features - total)
          : max_bins;
  if (memory.sorts_columns) {
    sorted_columns_ =
        std::make_unique<SortedColumns>(table.n_rows, LeastScannedBins(resolutions, is_dense),
                                        MostGatheredBins(resolutions, is_dense), memory.rows_at);
  }
  std::vector<std::uint32_t> limits, values;
  // Of different values there are as many bins as slots, which are one less than a limit: coarser
  // bins are two or four of them each.
  std::uint32_t const finest = resolutions.front();
  std::uint32_t const limit =
      resolutions.size() > 1 && finest >= 32 ? (finest - 1) / 4 * 4 + 1 : finest;
  for (std::uint32_t n : n_entries) {
    limits.push_back(n == 0 ? 0 : limit);
    values.push_back(max_bins.empty() ? MaxValues(n, limits.back(), BinMatrix::MaxBins())
                                      : limits.back());
  }
  this->AddResolution(n_entries,
                      QuantileCuts{table, n_entries, limits, values,
                                   memory.BinnedAtOnce(total, is_dense), sorted_columns_.get()},
                      table.n_rows);
  if (memory.sorts_columns && !sorted_columns_->Any()) {
    sorted_columns_.reset();
  }
  return resolutions;
}

std::vector<bool> BinnedTable::HaveRanges(FeatureIdx n_features) const {
  std::vector<bool> have_ranges;
  for (FeatureIdx f = 0; f < n_features; ++f) {
    have_ranges.push_back(resolutions_.front()->bins.HasRanges(f));
  }
  return have_ranges;
}

std::vector<BinMatrix*> BinnedTable::StoreBins(CsrView const& table,
                                               std::vector<std::uint32_t> const& n_entries,
                                               std::vector<std::uint32_t> const& resolutions,
                                               HistogramMemory const& memory,
                                               std::uint32_t max_group_bins) {
  for (std::size_t i = 1; i < resolutions.size(); ++i) {
    bool const by_number =
        i + 1 < resolutions.size() || !TakesBytes(table.n_features, resolutions[i]);
    this->AddResolution(
        n_entries, QuantileCuts{resolutions_.front()->bins, n_entries, resolutions[i], by_number},
        table.n_rows);
  }
  for (std::size_t i = 0; i < resolutions.size(); ++i) {
    resolutions_[i]->scans =
        this->HasSortedColumns() && (i == 0 || sorted_columns_->HasAllBeyond(resolutions[i]));
  }
  bool const in_bytes = resolutions.size() > 1 && TakesBytes(table.n_features, resolutions.back());
  EntryIdx const n = std::accumulate(n_entries.cbegin(), n_entries.cend(), EntryIdx{0});
  QuantileCuts const& finest = resolutions_.front()->bins;
  auto bins = [&](std::size_t i) -> QuantileCuts const& { return resolutions_[i]->bins; };
  std::uint64_t const n_stored = NumStoredBins(n, table.n_rows, table.n_features);
  bool const is_dense = IsDense(n, table.n_rows, table.n_features);
  auto reads = [&](std::size_t i, std::size_t coarsest) {
    if (memory.shares_bins || ReadsFinest(n_stored, is_dense, 1.0)) {
      return true;  // however many are looked up
    }
    return ReadsFinest(n_stored, is_dense, 0.0) &&
           ReadsFinest(n_stored, is_dense,
                       BinMatrix::LookedUpShare(table.n_rows, n_entries, finest, bins(coarsest),
                                                bins(i), max_group_bins));
  };
  std::size_t coarsest = resolutions_.size() - (in_bytes ? 2 : 1);
  while (coarsest > 0 && !reads(coarsest, coarsest)) {
    --coarsest;
  }
  stored_ = std::make_unique<BinMatrix>(table.n_rows, n_entries, finest, bins(coarsest),
                                        max_group_bins, false, memory.bins_at);
  std::vector<BinMatrix*> all_stored{stored_.get()};
  for (std::size_t i = 0; i < resolutions_.size(); ++i) {
    bool const is_last = i + 1 == resolutions_.size();
    auto& columns = resolutions_[i]->columns;
    if (i == 0 || (i <= coarsest && reads(i, coarsest))) {
      columns = std::make_unique<BinMatrix>(*stored_, n_entries, bins(i), max_group_bins);
    } else {
      columns = std::make_unique<BinMatrix>(table.n_rows, n_entries, bins(i), bins(i),
                                            max_group_bins, in_bytes && is_last, memory.bins_at);
      all_stored.push_back(columns.get());
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
  r->candidates = {nullptr,        nullptr, n_present_.Data(), r->offsets.Data(), n,
                   offsets.back(), n_rows,  n_features};
}

std::uint64_t BinnedTable::Bytes() const {
  std::uint64_t bytes = values_->Bytes() + n_present_.Bytes() + stored_->Bytes() +
                        (sorted_columns_ != nullptr ? sorted_columns_->Bytes() : 0);
  for (auto const& r : resolutions_) {
    bytes += r->bins.Bytes() + r->columns->Bytes() + r->offsets.Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
