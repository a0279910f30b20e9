/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of feature_table.cuh.
 */
#include <algorithm>
#include <limits>

#include "src/device/partition/feature_table.cuh"

namespace gpu_exact {
namespace {
/** @brief Columns of at most so many values are binned, however few entries they have. */
constexpr std::uint64_t kFewValues = 256;
/** @brief Others are where so many entries share a bin on average: the search visits all bins. */
constexpr std::uint64_t kEntriesPerBin = 8;

/** @brief Whether a column has so many values that the offsets of its group's rows, 4 B each, are
 *         8 B an entry at most; as many alike as have kGroupBins values together are a group. */
bool IsFull(EntryIdx n_entries, std::uint64_t n_values, RowIdx n_rows) {
  constexpr std::uint64_t kGroupBins = 8192;
  return 2 * n_entries *
             std::max<std::uint64_t>(1, kGroupBins / std::max<std::uint64_t>(1, n_values)) >=
         n_rows;
}

// one block a feature
__global__ void CopyBinValuesKernel(ColumnsRef columns, std::uint64_t const* bin_offsets,
                                    float* bin_values) {
  for (FeatureIdx f = blockIdx.x; f < columns.n_features; f += gridDim.x) {
    auto n = bin_offsets[f + 1] - bin_offsets[f];
    for (std::uint64_t i = threadIdx.x; i < n; i += blockDim.x) {
      bin_values[bin_offsets[f] + i] = columns.values[columns.value_offsets[f] + i];
    }
  }
}
}  // namespace

FeatureTable::FeatureTable(ColumnStore const& store) {
  ColumnsRef columns = store.Ref();
  FeatureIdx const n_features = columns.n_features;
  std::vector<EntryIdx> const& entries = store.EntryOffsets();
  std::vector<std::uint64_t> values = ToHost(columns.value_offsets, std::size_t{n_features} + 1);
  std::vector<FeatureIdx> sorted, binned;
  std::vector<std::uint32_t> sorted_of(n_features, FeatureTableRef::kNotSorted);
  std::vector<std::uint64_t> places{0}, bins{0};
  std::uint64_t const max_bins = BinnedColumns::MaxBins();
  for (FeatureIdx f = 0; f < n_features; ++f) {
    std::uint64_t n_entries = entries[f + 1] - entries[f];
    std::uint64_t n_values = values[f + 1] - values[f];
    bool few = n_values <= max_bins &&
               (n_values <= kFewValues || n_values * kEntriesPerBin <= n_entries) &&
               IsFull(n_entries, n_values, columns.n_rows);
    std::uint64_t n_bins{0}, n_sorted{0};
    if (n_entries != 0 && few) {
      binned.push_back(f);
      n_bins = n_values;
    } else if (n_entries != 0) {
      sorted_of[f] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(f);
      n_sorted = n_entries;
    }
    bins.push_back(bins.back() + n_bins);
    places.push_back(places.back() + n_bins + n_sorted);
  }
  if (!sorted.empty()) {
    sorted_ = std::make_unique<SortedColumns>(columns, entries, sorted);
  }
  if (!binned.empty()) {
    binned_ = std::make_unique<BinnedColumns>(columns, binned);
  }
  CopyAsync(sorted_of_.Reserve(n_features), sorted_of.data(), n_features);
  CopyAsync(entry_offsets_.Reserve(entries.size()), entries.data(), entries.size());
  CopyAsync(value_offsets_.Reserve(values.size()), values.data(), values.size());
  CopyAsync(place_offsets_.Reserve(places.size()), places.data(), places.size());
  CopyAsync(bin_offsets_.Reserve(bins.size()), bins.data(), bins.size());
  bin_values_.Reserve(bins.back());
  Launch("CopyBinValues", CopyBinValuesKernel, std::min<std::uint64_t>(n_features, 1 << 16), 128,
         columns, bin_offsets_.Data(), bin_values_.Data());
  Synchronize();  // the vectors go
  counts_ = {nullptr,           nullptr,       entry_offsets_.Data(), value_offsets_.Data(),
             columns.n_entries, values.back(), columns.n_rows,        n_features};
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
  ref.bin_values = bin_values_.Data();
  ref.bin_offsets = bin_offsets_.Data();
  return ref;
}

std::uint64_t FeatureTable::Bytes() const {
  return (sorted_ != nullptr ? sorted_->Bytes() : 0) + (binned_ != nullptr ? binned_->Bytes() : 0) +
         entry_offsets_.Bytes() + value_offsets_.Bytes() + place_offsets_.Bytes() +
         sorted_of_.Bytes() + bin_values_.Bytes() + bin_offsets_.Bytes();
}
}  // namespace gpu_exact
