/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of binned_columns.cuh.
 */
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <limits>

#include "src/device/partition/binned_columns.cuh"
#include "src/device/partition/shared_histogram.cuh"

namespace gpu_exact {
namespace {
/** @brief Element numbers of a group fit 32 bits, and CUB counts in an int. */
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 30;
/** @brief Fewer entries give no block enough to do, so that groups are made to fill the device. */
constexpr std::uint64_t kManyEntries = std::uint64_t{1} << 22;
constexpr std::uint32_t kMaxColumnBins = 8192;

/** @brief Bins that fit the shared memory of a block, and a GroupBin. */
std::uint32_t MaxGroupBins() {
  auto bytes = static_cast<std::size_t>(DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  return static_cast<std::uint32_t>(
      std::min(SharedHistogram::MaxBins(bytes), std::size_t{std::numeric_limits<GroupBin>::max()}));
}

/** @brief Where the entries of a group lie. */
struct GroupEntries {
  BinColumn const* columns;     // of the group, shape: (n_columns)
  std::uint32_t const* begins;  // counting the group's entries, shape: (n_columns)
  std::uint32_t n_columns;
  std::uint32_t n;
};

// one thread an entry of the group; out_rows: nullptr where dense, bins then go to their place
__global__ void WriteBinsKernel(ColumnsRef columns, GroupEntries in, RowIdx* out_rows,
                                GroupBin* out_bins) {
  auto i = GlobalIdx();
  if (i >= in.n) {
    return;
  }
  auto c = FirstIndex(std::uint32_t{1}, in.n_columns,
                      [=](std::uint32_t k) { return in.begins[k] > i; }) -
           1;
  BinColumn column = in.columns[c];
  ColumnEntry e = columns.entries[columns.entry_offsets[column.feature] + (i - in.begins[c])];
  auto value = e.value - columns.value_offsets[column.feature];
  auto bin = static_cast<GroupBin>(column.first_bin + value);
  if (out_rows == nullptr) {
    out_bins[std::uint64_t{e.row} * in.n_columns + c] = bin;
  } else {
    out_rows[i] = e.row;
    out_bins[i] = bin;
  }
}

// one thread an entry of the group
__global__ void CountRowsKernel(RowIdx const* rows, std::uint32_t n, std::uint32_t* counts) {
  auto i = GlobalIdx();
  if (i < n) {
    atomicAdd(counts + rows[i], 1u);
  }
}
}  // namespace

std::uint32_t BinnedColumns::MaxBins() { return std::min(MaxGroupBins(), kMaxColumnBins); }

BinnedColumns::BinnedColumns(ColumnsRef const& columns, std::vector<FeatureIdx> const& features,
                             std::uint32_t max_group_bins)
    : n_rows_{columns.n_rows} {
  std::vector<EntryIdx> entry_offsets(std::size_t{columns.n_features} + 1);
  std::vector<std::uint64_t> value_offsets(entry_offsets.size());
  CopyAsync(entry_offsets.data(), columns.entry_offsets, entry_offsets.size());
  CopyAsync(value_offsets.data(), columns.value_offsets, value_offsets.size());
  Synchronize();
  this->MakeGroups(features, entry_offsets, value_offsets, max_group_bins);

  std::vector<std::uint32_t> column_of(columns.n_features, BinnedRef::kNotBinned);
  for (std::size_t c = 0; c < h_columns_.size(); ++c) {
    column_of[h_columns_[c].feature] = static_cast<std::uint32_t>(c);
  }
  CopyAsync(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  CopyAsync(columns_.Reserve(h_columns_.size()), h_columns_.data(), h_columns_.size());
  CopyAsync(groups_.Reserve(h_groups_.size()), h_groups_.data(), h_groups_.size());
  this->Fill(columns, entry_offsets);
}

void BinnedColumns::MakeGroups(std::vector<FeatureIdx> const& features,
                               std::vector<EntryIdx> const& entry_offsets,
                               std::vector<std::uint64_t> const& value_offsets,
                               std::uint32_t max_group_bins) {
  EntryIdx n_entries{0};
  std::uint64_t n_bins{0};
  for (FeatureIdx f : features) {
    n_entries += entry_offsets[f + 1] - entry_offsets[f];
    n_bins += value_offsets[f + 1] - value_offsets[f];
  }
  std::uint64_t limit = MaxGroupBins();
  if (max_group_bins != 0) {
    limit = std::min<std::uint64_t>(limit, max_group_bins);
  } else if (std::max<EntryIdx>(n_entries, n_rows_) < kManyEntries) {
    auto n_blocks = static_cast<std::uint64_t>(DeviceAttribute(cudaDevAttrMultiProcessorCount));
    limit = std::min(limit, CeilDiv(n_bins, n_blocks));
  }
  std::uint64_t n_elements{0};
  std::uint32_t n_sparse{0};
  for (FeatureIdx f : features) {
    auto n_values = static_cast<std::uint32_t>(value_offsets[f + 1] - value_offsets[f]);
    if (n_values == 0) {
      continue;
    }
    auto n = static_cast<std::uint32_t>(entry_offsets[f + 1] - entry_offsets[f]);
    if (h_groups_.empty() || h_groups_.back().n_bins + n_values > limit ||
        h_groups_.back().n_elements + std::uint64_t{n} > kMaxElements) {
      h_groups_.push_back(
          {nullptr, nullptr, n_bins_, static_cast<std::uint32_t>(h_columns_.size()), 0, 0, 0});
    }
    auto& group = h_groups_.back();
    h_columns_.push_back(
        {f, static_cast<std::uint32_t>(h_groups_.size() - 1), group.n_bins, n_values});
    ++group.n_columns;
    group.n_bins += n_values;
    group.n_elements += n;
    n_bins_ += n_values;
    n_elements += n;
  }
  auto is_dense = [&](BinGroup const& group) {
    return group.n_elements == std::uint64_t{n_rows_} * group.n_columns;
  };
  for (auto const& group : h_groups_) {
    n_sparse += is_dense(group) ? 0 : 1;
  }
  auto const* elements = elements_.Reserve(n_elements + BinGroup::kBeyond);
  auto n_offsets = (std::uint64_t{n_rows_} + 1) * n_sparse;
  auto const* offsets = row_offsets_.Reserve(n_offsets);
  ZeroAsync(elements_.Data() + n_elements, BinGroup::kBeyond);
  ZeroAsync(row_offsets_.Data(), n_offsets);
  for (auto& group : h_groups_) {
    group.elements = elements;
    elements += group.n_elements;
    if (!is_dense(group)) {
      group.row_offsets = offsets;
      offsets += std::uint64_t{n_rows_} + 1;
    }
  }
}

void BinnedColumns::Fill(ColumnsRef const& columns, std::vector<EntryIdx> const& entry_offsets) {
  std::vector<std::uint32_t> begins;
  std::size_t n_sorted{0};
  for (auto const& group : h_groups_) {
    std::uint32_t begin{0};
    for (std::uint32_t c = group.first_column; c < group.first_column + group.n_columns; ++c) {
      FeatureIdx f = h_columns_[c].feature;
      begins.push_back(begin);
      begin += static_cast<std::uint32_t>(entry_offsets[f + 1] - entry_offsets[f]);
    }
    n_sorted = std::max(n_sorted, group.Dense() ? std::size_t{0} : group.n_elements);
  }
  DeviceBuffer<std::uint32_t> d_begins{"entries of binned columns"};
  DeviceBuffer<RowIdx> rows{"rows to sort"}, sorted_rows{"sorted rows"};
  DeviceBuffer<GroupBin> bins{"bins to sort"};
  CubScratch scratch;
  CopyAsync(d_begins.Reserve(begins.size()), begins.data(), begins.size());
  rows.Reserve(n_sorted);
  sorted_rows.Reserve(n_sorted);
  bins.Reserve(n_sorted);
  int row_bits{1};
  while ((std::uint64_t{1} << row_bits) < n_rows_) {
    ++row_bits;
  }
  for (auto const& group : h_groups_) {
    GroupEntries in{columns_.Data() + group.first_column, d_begins.Data() + group.first_column,
                    group.n_columns, group.n_elements};
    auto* out = elements_.Data() + (group.elements - elements_.Data());
    if (group.Dense()) {
      LaunchN("WriteBins", WriteBinsKernel, in.n, columns, in, nullptr, out);
      continue;
    }
    LaunchN("WriteBins", WriteBinsKernel, in.n, columns, in, rows.Data(), bins.Data());
    scratch.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, rows.Data(), sorted_rows.Data(),
                                             bins.Data(), out, static_cast<int>(in.n), 0, row_bits,
                                             Stream());
    });
    auto* offsets = row_offsets_.Data() + (group.row_offsets - row_offsets_.Data());
    LaunchN("CountRows", CountRowsKernel, in.n, rows.Data(), in.n, offsets);
    scratch.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(storage, bytes, offsets, std::uint64_t{n_rows_} + 1,
                                           Stream());
    });
  }
  Synchronize();  // the sort's buffers go
}

BinnedRef BinnedColumns::Ref() const {
  return {groups_.Data(),
          columns_.Data(),
          column_of_.Data(),
          n_bins_,
          static_cast<std::uint32_t>(h_groups_.size()),
          static_cast<std::uint32_t>(h_columns_.size())};
}

std::uint64_t BinnedColumns::Bytes() const {
  return groups_.Bytes() + columns_.Bytes() + column_of_.Bytes() + elements_.Bytes() +
         row_offsets_.Bytes();
}
}  // namespace gpu_exact
