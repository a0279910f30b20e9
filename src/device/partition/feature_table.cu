/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of feature_table.cuh.
 */
#include <algorithm>
#include <utility>

#include "src/device/partition/feature_table.cuh"

namespace gpu_exact {
namespace {
/** @brief Columns of at most so many values are binned, however few entries they have. */
constexpr std::uint64_t kFewValues = 256;
/** @brief Others are where so many entries share a bin on average: the search visits all bins. */
constexpr std::uint64_t kEntriesPerBin = 8;

/** @brief In groups that have so many bins a row's offset, 4 B, takes 8 B an entry at most. */
constexpr std::uint64_t kGroupBins = 8192;

/** @brief The most distinct values of a binned column; 0: such a column is not. */
std::uint32_t MostFewValues(std::uint64_t n_entries, RowIdx n_rows, std::uint64_t max_bins) {
  if (n_entries == 0) {
    return 0;
  }
  std::uint64_t most = std::max(kFewValues, n_entries / kEntriesPerBin);
  if (2 * n_entries < n_rows) {
    // As many alike as have kGroupBins values together are a group, and share the rows' offsets.
    most = std::min(most, kGroupBins / CeilDiv(n_rows, 2 * n_entries));
  }
  return static_cast<std::uint32_t>(std::min({most, n_entries, max_bins}));
}
}  // namespace

FeatureTable::FeatureTable(CsrView const& table) {
  RowTable rows{table};
  std::vector<std::uint32_t> const n_entries = rows.CountEntries();
  std::uint64_t const max_bins = BinnedColumns::MaxBins();
  std::vector<std::uint32_t> limits;
  for (std::uint32_t n : n_entries) {
    limits.push_back(MostFewValues(n, table.n_rows, max_bins));
  }
  values_ = std::make_unique<DistinctValues>(rows.View(), limits);
  std::vector<FeatureIdx> sorted;
  std::vector<std::uint32_t> sorted_of(table.n_features, FeatureTableRef::kNotSorted);
  bool any_binned{false};
  for (FeatureIdx f = 0; f < table.n_features; ++f) {
    bool const is_binned = values_->NumValues(f) != 0;
    any_binned = any_binned || is_binned;
    if (n_entries[f] != 0 && !is_binned) {
      sorted_of[f] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(f);
    }
  }
  CopyAsync(sorted_of_.Reserve(sorted_of.size()), sorted_of.data(), sorted_of.size());
  if (any_binned) {
    binned_ = std::make_unique<BinnedColumns>(rows.View(), n_entries, *values_);
  }
  if (!sorted.empty()) {
    sorted_ =
        std::make_unique<SortedColumns>(std::move(rows), n_entries, sorted, sorted_of_.Data());
  }
  this->CopyOffsets(table, n_entries, sorted_of);
}

void FeatureTable::CopyOffsets(CsrView const& table, std::vector<std::uint32_t> const& n_entries,
                               std::vector<std::uint32_t> const& sorted_of) {
  std::vector<ValueId> values{0}, places{0};
  for (FeatureIdx f = 0; f < table.n_features; ++f) {
    std::uint32_t n_values = values_->NumValues(f);
    std::uint32_t n_places = n_values;
    if (sorted_of[f] != FeatureTableRef::kNotSorted) {
      n_values = sorted_->NumValues()[sorted_of[f]];
      n_places = n_entries[f];
    }
    values.push_back(values.back() + n_values);
    places.push_back(places.back() + n_places);
  }
  CopyAsync(n_present_.Reserve(n_entries.size()), n_entries.data(), n_entries.size());
  CopyAsync(value_offsets_.Reserve(values.size()), values.data(), values.size());
  CopyAsync(place_offsets_.Reserve(places.size()), places.data(), places.size());
  counts_ = {nullptr,         nullptr,       n_present_.Data(), value_offsets_.Data(),
             table.n_entries, values.back(), table.n_rows,      table.n_features};
  places_ = counts_;
  places_.value_offsets = place_offsets_.Data();
  places_.n_values = places.back();
}

FeatureTableRef FeatureTable::Ref() const {
  FeatureTableRef ref{};
  if (binned_ != nullptr) {
    ref.binned = binned_->Ref();
  }
  if (sorted_ != nullptr) {
    ref.sorted = sorted_->Ref();
    ref.values = sorted_->Values();
  }
  ref.sorted_of = sorted_of_.Data();
  ref.bin_values = values_->Ref().values;
  ref.bin_offsets = values_->Ref().offsets;
  return ref;
}

std::uint64_t FeatureTable::Bytes() const {
  return (sorted_ != nullptr ? sorted_->Bytes() : 0) + (binned_ != nullptr ? binned_->Bytes() : 0) +
         n_present_.Bytes() + value_offsets_.Bytes() + place_offsets_.Bytes() + sorted_of_.Bytes() +
         values_->Bytes();
}
}  // namespace gpu_exact
