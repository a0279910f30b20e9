/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of binned_columns.cuh.
 */
#include <algorithm>
#include <cub/device/device_scan.cuh>

#include "src/device/histogram/binned_columns.cuh"
#include "src/device/histogram/shared_histogram.cuh"
#include "src/device/row_table.cuh"
#include "src/device/warp.cuh"

namespace gpu_exact {
namespace {
constexpr std::uint64_t kAligned = 8;  // elements: a walk loads so many at once
/** @brief Fewer entries give no block enough to do, so that groups are made to fill the device. */
constexpr std::uint64_t kManyEntries = std::uint64_t{1} << 22;

/** @brief Bins that fit the shared memory of a block, and a GroupBin. */
std::uint32_t MaxGroupBins() {
  auto bytes = static_cast<std::size_t>(DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(SharedHistogram::MaxBins(bytes), BinGroup::kMaxBins));
}

/** @brief Elements of a row: so many that a walk loads several at once, and few without a column. */
std::uint32_t Stride(std::uint32_t n_columns) {
  for (std::uint32_t at_once : {8u, 4u, 2u}) {
    auto const stride = static_cast<std::uint32_t>(CeilDiv(n_columns, at_once) * at_once);
    if (8 * (stride - n_columns) <= n_columns) {
      return stride;
    }
  }
  return n_columns;
}

/** @brief An entry on its way into a group. */
struct GroupEntry {
  float value;
  std::uint32_t column;
  std::uint32_t group;
  std::uint32_t rank;   // among the row's entries in the group
  std::uint32_t lanes;  // whose entries are of the same group
};

/** @brief A warp calls fn(GroupEntry) for the entries of a row that are binned. */
template <typename FnT>
__device__ void ForRow(CsrView const& table, BinnedRef const& binned, std::uint64_t row, FnT&& fn) {
  constexpr std::uint32_t kNoGroup = 0xffffffffu;
  std::uint32_t last_group{kNoGroup};  // groups ascend along a row: only this one may go on
  std::uint32_t n_last{0};             // entries of it so far
  EntryIdx const end = table.offsets[row + 1];
  for (EntryIdx base = table.offsets[row]; base < end; base += 32) {
    EntryIdx const i = base + threadIdx.x % 32;
    GroupEntry e{0.0f, BinnedRef::kNotBinned, kNoGroup, 0, 0};
    if (i < end) {
      CsrEntry const entry = table.entries[i];
      e.value = entry.value;
      e.column = binned.column_of[entry.feature];
    }
    bool const is_binned = e.column != BinnedRef::kNotBinned;
    if (is_binned) {
      e.group = binned.columns[e.column].group;
    }
    e.lanes = __match_any_sync(kAllLanes, e.group);
    e.rank = __popc(e.lanes & LanesBelow()) + (e.group == last_group ? n_last : 0);
    if (is_binned) {
      fn(e);
    }
    unsigned const any = __ballot_sync(kAllLanes, is_binned);
    if (any != 0) {
      int const last = 31 - __clz(static_cast<int>(any));
      last_group = __shfl_sync(kAllLanes, e.group, last);
      n_last = __shfl_sync(kAllLanes, e.rank, last) + 1;
    }
  }
}

// one warp a row; row_offsets: of all groups that have them, zero
__global__ void CountElementsKernel(CsrView table, BinnedRef binned, std::uint32_t* row_offsets) {
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForRow(table, binned, row, [&](GroupEntry const& e) {
    BinGroup const& group = binned.groups[e.group];
    if (!group.Strided() && (e.lanes & LanesBelow()) == 0) {
      atomicAdd(row_offsets + (group.row_offsets - row_offsets) + row,
                static_cast<std::uint32_t>(__popc(e.lanes)));
    }
  });
}

// one warp a row; elements: of all groups
__global__ void WriteBinsKernel(CsrView table, BinnedRef binned, BinsRef bins, GroupBin* elements) {
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForRow(table, binned, row, [&](GroupEntry const& e) {
    BinColumn const column = binned.columns[e.column];
    BinGroup const& group = binned.groups[e.group];
    auto const bin = bins.BinOf(column.feature, e.value);
    auto at = BinnedRef::Row(group, static_cast<RowIdx>(row)).begin +
              (group.Strided() ? e.column - group.first_column : e.rank);
    elements[(group.elements - elements) + at] = static_cast<GroupBin>(column.first_bin + bin);
  });
}
}  // namespace

std::uint32_t BinnedColumns::MaxBins() { return MaxGroupBins(); }

BinnedColumns::BinnedColumns(CsrView const& table, std::vector<std::uint32_t> const& n_entries,
                             RankBins const& bins, std::uint32_t max_group_bins)
    : bins_{bins}, n_rows_{table.n_rows} {
  this->MakeGroups(n_entries, max_group_bins);

  std::vector<std::uint32_t> column_of(table.n_features, BinnedRef::kNotBinned);
  for (std::size_t c = 0; c < h_columns_.size(); ++c) {
    column_of[h_columns_[c].feature] = static_cast<std::uint32_t>(c);
  }
  CopyAsync(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  CopyAsync(columns_.Reserve(h_columns_.size()), h_columns_.data(), h_columns_.size());
  CopyAsync(groups_.Reserve(h_groups_.size()), h_groups_.data(), h_groups_.size());
  this->Fill(table);
}

void BinnedColumns::MakeGroups(std::vector<std::uint32_t> const& n_entries,
                               std::uint32_t max_group_bins) {
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  EntryIdx n_binned{0};
  std::uint64_t n_bins{0};
  for (FeatureIdx f = 0; f < n_features; ++f) {
    n_binned += n_entries[f];
    n_bins += bins_.NumBins(f);
  }
  std::uint64_t limit = MaxGroupBins();
  if (max_group_bins != 0) {
    limit = std::min<std::uint64_t>(limit, max_group_bins);
  } else if (std::max<EntryIdx>(n_binned, n_rows_) < kManyEntries) {
    auto n_blocks = static_cast<std::uint64_t>(DeviceAttribute(cudaDevAttrMultiProcessorCount));
    // Row offsets of a group of columns with missing values are 8 B an entry at most.
    std::uint64_t by_entries = CeilDiv(2 * n_binned, std::max<RowIdx>(n_rows_, 1));
    n_blocks = std::min(n_blocks, std::max<std::uint64_t>(by_entries, 1));
    limit = std::min(limit, CeilDiv(n_bins, n_blocks));
  }
  for (FeatureIdx f = 0; f < n_features; ++f) {
    std::uint32_t const n_of_column = bins_.NumBins(f);
    if (n_of_column == 0) {
      continue;
    }
    std::uint32_t const n = n_entries[f];
    if (h_groups_.empty() || h_groups_.back().n_bins + n_of_column > limit ||
        std::uint64_t{n_rows_} * (h_groups_.back().n_columns + 1) > kMaxGroupPlaces) {
      h_groups_.push_back({nullptr, nullptr, n_bins_, static_cast<std::uint32_t>(h_columns_.size()),
                           0, 0, 0, 0, 0, 0});
    }
    auto& group = h_groups_.back();
    h_columns_.push_back(
        {f, static_cast<std::uint32_t>(h_groups_.size() - 1), group.n_bins, n_of_column});
    ++group.n_columns;
    group.n_bins += n_of_column;
    group.n_elements += n;
    group.has_ranges |= bins_.HasRanges(f) ? 1 : 0;
    has_ranges_ = has_ranges_ || bins_.HasRanges(f);
    n_bins_ += n_of_column;
    n_elements_ += n;
  }
  std::uint64_t n_stored{0};
  std::vector<std::uint64_t> begins;
  std::vector<BinGroup*> sparse;
  for (auto& group : h_groups_) {
    std::uint64_t const n_places = std::uint64_t{n_rows_} * group.n_columns;
    group.has_missing = group.n_elements != n_places ? 1 : 0;
    if (n_places <= 2 * std::uint64_t{group.n_elements}) {
      group.stride = Stride(group.n_columns);
      group.n_elements = static_cast<std::uint32_t>(std::uint64_t{n_rows_} * group.stride);
    } else {
      sparse.push_back(&group);
    }
    begins.push_back(n_stored);
    n_stored += CeilDiv(group.n_elements, kAligned) * kAligned;
  }
  auto const* elements = elements_.Reserve(n_stored + BinGroup::kBeyond);
  EXACT_CUDA(cudaMemsetAsync(elements_.Data(), 0xff, elements_.Bytes(), Stream()));
  for (std::size_t g = 0; g < h_groups_.size(); ++g) {
    h_groups_[g].elements = elements + begins[g];
  }
  std::uint64_t const n_offsets = std::uint64_t{n_rows_} + 1;  // of a group
  auto const* offsets = row_offsets_.Reserve(n_offsets * sparse.size());
  ZeroAsync(row_offsets_.Data(), n_offsets * sparse.size());
  for (BinGroup* group : sparse) {
    group->row_offsets = offsets;
    offsets += n_offsets;
  }
}

void BinnedColumns::Fill(CsrView const& table) {
  if (h_groups_.empty()) {
    return;
  }
  CubScratch scratch;
  if (row_offsets_.Bytes() != 0) {
    auto* offsets = row_offsets_.Data();
    LaunchRows("CountElements", CountElementsKernel, n_rows_, table, this->Ref(), offsets);
    for (BinGroup const& group : h_groups_) {
      if (!group.Strided()) {
        scratch.Call([&](void* storage, std::size_t& bytes) {
          return cub::DeviceScan::ExclusiveSum(storage, bytes, offsets, std::uint64_t{n_rows_} + 1,
                                               Stream());
        });
        offsets += std::uint64_t{n_rows_} + 1;
      }
    }
  }
  LaunchRows("WriteBins", WriteBinsKernel, n_rows_, table, this->Ref(), bins_.Ref(),
             elements_.Data());
  Synchronize();  // the scratch goes
}

BinnedRef BinnedColumns::Ref() const {
  return {groups_.Data(),
          columns_.Data(),
          column_of_.Data(),
          bins_.Ref(),
          n_bins_,
          static_cast<std::uint32_t>(h_groups_.size()),
          static_cast<std::uint32_t>(h_columns_.size())};
}

std::uint64_t BinnedColumns::Bytes() const {
  return groups_.Bytes() + columns_.Bytes() + column_of_.Bytes() + elements_.Bytes() +
         row_offsets_.Bytes();
}
}  // namespace gpu_exact
