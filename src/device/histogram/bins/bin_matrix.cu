/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of binned_columns.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <iterator>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/histogram/build/shared_histogram.cuh"
#include "device/runtime/warp.cuh"
#include "device/table/row_table.cuh"

namespace gpu_exact {
namespace {
constexpr std::uint64_t kAligned = 8;  // elements: a walk loads so many at once

// As memory is planned.
static_assert(SharedHistogram::MaxBins(227 << 10) >= kMaxGroupBinsOf[0] &&
              SharedHistogram::MaxBins(163 << 10) == kMaxGroupBinsOf[1] &&
              SharedHistogram::MaxBins(99 << 10) == kMaxGroupBinsOf[2] &&
              SharedHistogram::MaxBins(64 << 10) == kMaxGroupBinsOf[3]);

/** @brief Bins that fit the shared memory of a block, and a GroupBin. */
std::uint32_t MaxGroupBins() {
  auto bytes = static_cast<std::size_t>(DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(SharedHistogram::MaxBins(bytes), FeatureGroup::kMaxBins));
}

/** @brief Elements that a lane loads at once: aligned ones, and few beyond the group's own. */
std::uint32_t ChunkOf(std::uint32_t stride, std::uint32_t first, std::uint32_t n_columns) {
  for (std::uint32_t chunk : {8u, 4u, 2u}) {
    if (stride % chunk == 0 && first % chunk == 0 && n_columns > chunk / 2) {
      return chunk;
    }
  }
  return 1;
}

// one thread a bin of all groups; words: all zero, of the stored bins of each of their groups
__global__ void MarkBeginsKernel(BinMatrixRef binned, BinMatrixRef stored, RankWord* words,
                                 std::uint64_t const* first_words) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i >= binned.n_bins) {
    return;
  }
  auto const* groups = binned.groups;
  auto const g = PartitionPoint(1u, binned.n_groups,
                                [=](std::uint32_t k) { return groups[k].first_bin > i; }) -
                 1;
  auto const bin = static_cast<std::uint32_t>(i - groups[g].first_bin);
  BinColumn const column = binned.columns[binned.ColumnOf(groups[g], bin)];
  float const lowest =
      binned.bins.lowest[binned.bins.offsets[column.feature] + bin - column.first_bin];
  BinColumn const finer = stored.columns[stored.column_of[column.feature]];
  std::uint32_t const at = finer.first_bin + stored.bins.BinOf(column.feature, lowest);
  atomicOr(&words[first_words[finer.group] + at / 32].bits, 1u << at % 32);
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
__device__ void ForRow(CsrView const& table, BinMatrixRef const& binned, std::uint64_t row,
                       FnT&& fn) {
  constexpr std::uint32_t kNoGroup = 0xffffffffu;
  std::uint32_t last_group{kNoGroup};  // groups ascend along a row: only this one may go on
  std::uint32_t n_last{0};             // entries of it so far
  EntryIdx const end = table.offsets[row + 1];
  for (EntryIdx base = table.offsets[row]; base < end; base += 32) {
    EntryIdx const i = base + threadIdx.x % 32;
    GroupEntry e{0.0f, BinMatrixRef::kNotBinned, kNoGroup, 0, 0};
    if (i < end) {
      CsrEntry const entry = table.entries[i];
      e.value = entry.value;
      e.column = binned.column_of[entry.feature];
    }
    bool const is_binned = e.column != BinMatrixRef::kNotBinned;
    if (is_binned) {
      e.group = binned.columns[e.column].group;
    }
    e.lanes = __match_any_sync(kAllLanes, e.group);
    e.rank = __popc(e.lanes & LaneMaskLt()) + (e.group == last_group ? n_last : 0);
    if (is_binned) {
      fn(e);
    }
    unsigned const any = __ballot_sync(kAllLanes, is_binned);
    if (any != 0) {
      int const last = 31 - __clz(static_cast<int>(any));
      last_group = __shfl_sync(kAllLanes, e.group, last);
      n_last = __shfl_sync(kAllLanes, e.rank, last) + 1;
    }
    __syncwarp();  // what fn writes for a group that goes on is written again, by another lane
  }
}

/** @brief Writes where a row's elements end. @param row_offsets Of all groups. */
__device__ void SetEnd(FeatureGroup const& group, std::uint64_t row, std::uint32_t end,
                       std::uint32_t* row_offsets) {
  bool const is_narrow = group.is_narrow != 0;
  RowOffsetPosition const at{static_cast<RowIdx>(row), is_narrow};
  std::uint32_t* const block = row_offsets + (group.row_offsets - row_offsets) + at.word;
  RowEnds<std::uint32_t>{block, is_narrow}.Set(at.row, end);
}

// one warp a row; row_offsets: of all groups that have them, zero; a row's count is written as its end
__global__ void CountElementsKernel(CsrView table, RowIdx first_row, BinMatrixRef binned,
                                    std::uint32_t* row_offsets) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForRow(table, binned, row, [&](GroupEntry const& e) {
    FeatureGroup const& group = binned.groups[e.group];
    bool const is_last = e.lanes >> threadIdx.x % 32 == 1;
    if (!group.Strided() && is_last) {
      SetEnd(group, first_row + row, e.rank + 1, row_offsets);
    }
  });
}

// one warp a row; elements: of all groups
__global__ void WriteRowBinsKernel(CsrView table, RowIdx first_row, BinMatrixRef binned,
                                   CutsRef bins, GroupBin* elements) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForRow(table, binned, row, [&](GroupEntry const& e) {
    BinColumn const column = binned.columns[e.column];
    FeatureGroup const& group = binned.groups[e.group];
    auto const bin = bins.BinOf(column.feature, e.value);
    auto at = BinMatrixRef::Row(group, static_cast<RowIdx>(first_row + row)).begin +
              (group.Strided() ? e.column - group.first_column : e.rank);
    if (group.InBytes()) {
      auto* bytes = reinterpret_cast<ColumnBin*>(elements + (group.elements - elements));
      bytes[at] = static_cast<ColumnBin>(bin);
      return;
    }
    elements[(group.elements - elements) + at] = static_cast<GroupBin>(column.first_bin + bin);
  });
}

/** @brief Up to eight neighbouring columns of a group. */
struct ColumnChunk {
  static constexpr std::uint32_t kColumns = 8;

  std::uint32_t group;
  std::uint32_t first;  // place in the row
  std::uint32_t n;
};

constexpr unsigned kChunkRows = 256;  // of a block

// grid: chunks of the same rows side by side, whose elements are neighbours; one thread a row
__global__ __launch_bounds__(kChunkRows) void WriteChunksKernel(float const* const* values,
                                                                BinMatrixRef binned, CutsRef bins,
                                                                ColumnChunk const* chunks,
                                                                std::uint32_t n_chunks,
                                                                RowIdx n_rows, GroupBin* elements) {
  WaitForPreviousKernel();
  ColumnChunk const chunk = chunks[blockIdx.x % n_chunks];
  std::uint64_t const row = std::uint64_t{blockIdx.x / n_chunks} * kChunkRows + threadIdx.x;
  if (row >= n_rows) {
    return;
  }
  FeatureGroup const& group = binned.groups[chunk.group];
  GroupBin* const first = elements + (group.elements - elements);
  std::uint64_t const at = row * group.stride + chunk.first;
  BinColumn const* columns = binned.columns + group.first_column + chunk.first;
  float value[ColumnChunk::kColumns];  // all are asked for before the first is used
#pragma unroll
  for (std::uint32_t k = 0; k < ColumnChunk::kColumns; ++k) {
    value[k] = k < chunk.n ? values[columns[k].feature][row] : NAN;
  }
  bool const in_bytes = group.InBytes();
  std::uint32_t bin[ColumnChunk::kColumns];
#pragma unroll
  for (std::uint32_t k = 0; k < ColumnChunk::kColumns; ++k) {
    bin[k] = in_bytes ? FeatureGroup::kNoColumnBin : FeatureGroup::kNoBin;
    if (!isnan(value[k])) {
      bin[k] = (in_bytes ? 0 : columns[k].first_bin) + bins.BinOf(columns[k].feature, value[k]);
    }
  }
  // A whole chunk is written at once; places without a column have no bin either.
  if (in_bytes) {
    auto four = [&](int k) {
      return bin[k] | bin[k + 1] << 8 | bin[k + 2] << 16 | bin[k + 3] << 24;
    };
    *reinterpret_cast<uint2*>(reinterpret_cast<ColumnBin*>(first) + at) = {four(0), four(4)};
    return;
  }
  if (group.stride % ColumnChunk::kColumns == 0) {
    auto two = [&](int k) { return bin[k] | bin[k + 1] << 16; };
    *reinterpret_cast<uint4*>(first + at) = {two(0), two(2), two(4), two(6)};
    return;
  }
#pragma unroll
  for (std::uint32_t k = 0; k < ColumnChunk::kColumns; ++k) {
    if (k < chunk.n) {
      first[at + k] = static_cast<GroupBin>(bin[k]);
    }
  }
}

// grid: rows of one group after the other, one thread each; row_offsets: as above
__global__ void CountPresentKernel(float const* const* values, BinMatrixRef binned,
                                   std::uint32_t const* sparse, std::uint32_t n_sparse,
                                   RowIdx n_rows, std::uint32_t* row_offsets) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  auto const s = static_cast<std::uint32_t>(i / n_rows);
  if (s >= n_sparse) {
    return;
  }
  auto const row = i % n_rows;
  FeatureGroup const& group = binned.groups[sparse[s]];
  std::uint32_t n{0};
  for (std::uint32_t c = 0; c < group.n_columns; ++c) {
    n += isnan(values[binned.columns[group.first_column + c].feature][row]) ? 0 : 1;
  }
  SetEnd(group, row, n, row_offsets);
}

constexpr int kSumThreads = 1024;

// one block a group; of rows [first_row, + n_rows) counts stand where ends are to be, of those before ends
__global__ __launch_bounds__(kSumThreads) void SumRowOffsetsKernel(FeatureGroup const* groups,
                                                                   RowIdx first_row, RowIdx n_rows,
                                                                   std::uint32_t* row_offsets) {
  WaitForPreviousKernel();
  using Scan = cub::BlockScan<std::uint32_t, kSumThreads>;
  __shared__ typename Scan::TempStorage scan;
  FeatureGroup const group = groups[blockIdx.x];
  if (group.Strided()) {
    return;
  }
  bool const is_narrow = group.is_narrow != 0;
  std::uint64_t const n_block = is_narrow ? RowOffsetBlock::kNarrowRows : RowOffsetBlock::kWideRows;
  std::uint32_t* const own = row_offsets + (group.row_offsets - row_offsets);
  auto const block = [&](std::uint64_t i) {
    return RowEnds<std::uint32_t>{own + i * RowOffsetBlock::kWords, is_narrow};
  };
  std::uint64_t const end_row = std::uint64_t{first_row} + n_rows;
  std::uint64_t const first = first_row / n_block;
  std::uint64_t const end = (end_row + n_block - 1) / n_block;
  // Where the first block begins: all rows of the one before it have been summed.
  std::uint32_t begin =
      first == 0 ? 0 : *block(first - 1).block + block(first - 1).Get(n_block - 1);
  for (std::uint64_t base = first; base < end; base += kSumThreads) {
    std::uint64_t const i = base + threadIdx.x;
    RowEnds<std::uint32_t> const ends = block(i);
    std::uint32_t n{0};
    for (std::uint64_t k = 0; i < end && k < n_block && i * n_block + k < end_row; ++k) {
      std::uint32_t const value = ends.Get(k);
      n = i * n_block + k < first_row ? value : n + value;
      ends.Set(k, n);
    }
    std::uint32_t before{0}, all{0};
    Scan(scan).ExclusiveSum(n, before, all);
    if (i < end) {
      *ends.block = begin + before;
    }
    begin += all;
    __syncthreads();  // scan is used again
  }
}

// the same grid as CountPresent's; elements: of all groups
__global__ void WritePresentKernel(float const* const* values, BinMatrixRef binned, CutsRef bins,
                                   std::uint32_t const* sparse, std::uint32_t n_sparse,
                                   RowIdx n_rows, GroupBin* elements) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  auto const s = static_cast<std::uint32_t>(i / n_rows);
  if (s >= n_sparse) {
    return;
  }
  auto const row = i % n_rows;
  FeatureGroup const& group = binned.groups[sparse[s]];
  GroupBin* to = elements + (group.elements - elements) +
                 BinMatrixRef::Row(group, static_cast<RowIdx>(row)).begin;
  for (std::uint32_t c = 0; c < group.n_columns; ++c) {
    BinColumn const column = binned.columns[group.first_column + c];
    float const value = values[column.feature][row];
    if (!isnan(value)) {
      *to++ = static_cast<GroupBin>(column.first_bin + bins.BinOf(column.feature, value));
    }
  }
}
}  // namespace

std::uint32_t BinMatrix::MaxBins() { return MaxGroupBins(); }

BinMatrix::BinMatrix(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                     QuantileCuts const& bins, QuantileCuts const& coarsest,
                     std::uint32_t max_group_bins, bool in_bytes, Memory at)
    : bins_{bins}, n_rows_{n_rows}, elements_{"bins of the entries", at} {
  this->MakeGroups(n_entries, coarsest, max_group_bins, in_bytes, nullptr);
  this->PlaceGroups(in_bytes);
  this->Upload(n_entries.size());
}

BinMatrix::BinMatrix(BinMatrix const& stored, std::vector<std::uint32_t> const& n_entries,
                     QuantileCuts const& bins, std::uint32_t max_group_bins)
    : bins_{bins}, n_rows_{stored.n_rows_}, elements_{"bins of the entries", Memory::kDevice} {
  this->MakeGroups(n_entries, bins, max_group_bins, false, &stored);
  this->FindGroups(stored);
  this->Upload(n_entries.size());
  if (std::any_of(h_groups_.cbegin(), h_groups_.cend(),
                  [](FeatureGroup const& g) { return g.shift == QuantileCuts::kByRank; })) {
    this->FindBegins(stored);
  }
}

void BinMatrix::Upload(std::size_t n_features) {
  std::vector<std::uint32_t> column_of(n_features, BinMatrixRef::kNotBinned);
  for (std::size_t c = 0; c < h_columns_.size(); ++c) {
    column_of[h_columns_[c].feature] = static_cast<std::uint32_t>(c);
  }
  CopyFromHost(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  CopyFromHost(columns_.Reserve(h_columns_.size()), h_columns_.data(), h_columns_.size());
  CopyFromHost(groups_.Reserve(h_groups_.size()), h_groups_.data(), h_groups_.size());
}

void BinMatrix::MakeGroups(std::vector<std::uint32_t> const& n_entries,
                           QuantileCuts const& coarsest, std::uint32_t max_group_bins,
                           bool in_bytes, BinMatrix const* stored) {
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  EntryIdx n_binned{0};
  std::uint64_t n_bins{0};
  for (FeatureIdx f = 0; f < n_features; ++f) {
    n_binned += n_entries[f];
    n_bins += coarsest.NumBins(f);
  }
  std::uint64_t limit = MaxGroupBins();
  if (max_group_bins != 0) {
    limit = std::min<std::uint64_t>(limit, max_group_bins);
  } else if (std::max<EntryIdx>(n_binned, n_rows_) < kManyEntries) {
    auto n_blocks = static_cast<std::uint64_t>(DeviceAttribute(cudaDevAttrMultiProcessorCount));
    n_blocks = std::min(n_blocks, FillingGroups(n_binned, n_rows_));
    limit = std::min(limit, CeilDiv(n_bins, n_blocks));
  }
  // In bytes, each column of a group has a bank. Groups without places are not, and may be wider.
  auto const is_full = [&](FeatureGroup const& group) {
    return in_bytes && group.n_columns == kMaxByteColumns && this->HasCells(group);
  };
  std::uint64_t n_coarsest{0};    // bins of the group
  std::uint32_t stored_group{0};  // that it reads
  for (FeatureIdx f = 0; f < n_features; ++f) {
    std::uint32_t const n_of_column = bins_.NumBins(f);
    if (n_of_column == 0) {
      continue;
    }
    std::uint32_t const n = n_entries[f];
    std::uint32_t const reads = stored == nullptr ? 0 : stored->h_columns_[h_columns_.size()].group;
    if (h_groups_.empty() || n_coarsest + coarsest.NumBins(f) > limit || reads != stored_group ||
        h_groups_.back().n_bins + n_of_column > kMaxStoredBins || is_full(h_groups_.back()) ||
        h_groups_.back().n_columns == RowOffsetBlock::kMaxColumns ||
        std::uint64_t{n_rows_} * (h_groups_.back().n_columns + 1) > kMaxGroupCells) {
      FeatureGroup group{};
      group.first_bin = n_bins_;
      group.first_column = static_cast<std::uint32_t>(h_columns_.size());
      h_groups_.push_back(group);
      n_coarsest = 0;
      stored_group = reads;
    }
    auto& group = h_groups_.back();
    h_columns_.push_back(
        {f, static_cast<std::uint32_t>(h_groups_.size() - 1), group.n_bins, n_of_column});
    n_coarsest += coarsest.NumBins(f);
    ++group.n_columns;
    group.n_bins += n_of_column;
    group.n_stored = group.n_bins;  // where it does not read others
    group.n_elements += n;
    group.has_ranges |= bins_.HasRanges(f) ? 1 : 0;
    has_ranges_ = has_ranges_ || bins_.HasRanges(f);
    n_bins_ += n_of_column;
    n_elements_ += n;
  }
}

void BinMatrix::PlaceGroups(bool in_bytes) {
  std::uint64_t n_stored{0};
  std::vector<std::uint64_t> begins;
  std::vector<FeatureGroup*> sparse, of_bytes;
  std::vector<GroupBin> first_bins;  // of groups in bytes, by place
  for (auto& group : h_groups_) {
    std::uint64_t const n_places = std::uint64_t{n_rows_} * group.n_columns;
    std::uint64_t n_words{group.n_elements};  // of two bytes
    group.has_missing = group.n_elements != n_places ? 1 : 0;
    if (this->HasCells(group)) {
      std::uint32_t const n_bytes =
          in_bytes && group.n_columns <= kMaxByteColumns ? NumByteCells(group.n_columns) : 0;
      auto const first = h_columns_.cbegin() + group.first_column;
      auto const fewer = [](BinColumn const& a, BinColumn const& b) { return a.n_bins < b.n_bins; };
      std::uint32_t const longest = std::max_element(first, first + group.n_columns, fewer)->n_bins;
      bool const is_narrow =
          n_bytes != 0 && longest <= kMaxByteBins && longest * kMaxByteColumns <= MaxGroupBins();
      group.stride = is_narrow ? n_bytes : NumCells(group.n_columns);
      group.chunk = is_narrow ? 8 : ChunkOf(group.stride, 0, group.n_columns);
      n_words = std::uint64_t{n_rows_} * group.stride;
      group.n_elements = static_cast<std::uint32_t>(n_words);
      if (is_narrow) {
        group.longest = longest;
        of_bytes.push_back(&group);
        std::transform(first, first + group.n_columns, std::back_inserter(first_bins),
                       [](BinColumn const& c) { return static_cast<GroupBin>(c.first_bin); });
        first_bins.resize(first_bins.size() + group.stride - group.n_columns, 0);
        n_words /= sizeof(GroupBin);
      }
    } else {
      sparse.push_back(&group);
    }
    begins.push_back(n_stored);
    n_stored += CeilDiv(n_words, kAligned) * kAligned;
  }
  auto const* elements = elements_.Reserve(n_stored + FeatureGroup::kBeyond);
  EXACT_CUDA(cudaMemsetAsync(elements_.Data(), 0xff, elements_.Bytes(), Stream()));
  for (std::size_t g = 0; g < h_groups_.size(); ++g) {
    h_groups_[g].elements = elements + begins[g];
  }
  std::uint64_t n_offsets{0};  // words
  auto const words = [&](FeatureGroup const& group) {
    return RowOffsetBlock::Bytes(n_rows_, group.is_narrow != 0) / sizeof(std::uint32_t);
  };
  for (FeatureGroup* group : sparse) {
    group->is_narrow = RowOffsetBlock::IsNarrow(group->n_columns) ? 1 : 0;
    n_offsets += words(*group);
  }
  auto const* offsets = row_offsets_.Reserve(n_offsets);
  ZeroAsync(row_offsets_.Data(), n_offsets);
  for (FeatureGroup* group : sparse) {
    group->row_offsets = offsets;
    offsets += words(*group);
  }
  auto const* places = first_bins_.Reserve(first_bins.size());
  CopyFromHost(first_bins_.Data(), first_bins.data(), first_bins.size());
  for (FeatureGroup* group : of_bytes) {
    group->first_bins = places;
    places += group->stride;
  }
}

void BinMatrix::FindGroups(BinMatrix const& stored) {
  for (FeatureGroup& group : h_groups_) {
    BinColumn const& first = stored.h_columns_[group.first_column];
    BinColumn const& last = stored.h_columns_[group.first_column + group.n_columns - 1];
    FeatureGroup const& from = stored.h_groups_[first.group];
    std::uint32_t const place = group.first_column - from.first_column;
    std::uint64_t const n_places = std::uint64_t{n_rows_} * group.n_columns;
    group.has_missing = group.n_elements != n_places ? 1 : 0;
    group.first_stored = first.first_bin;
    group.n_stored = last.first_bin + last.n_bins - first.first_bin;
    group.shift = bins_.Shift(first.feature);
    for (std::uint32_t c = group.first_column; c < group.first_column + group.n_columns; ++c) {
      if (bins_.Shift(h_columns_[c].feature) != group.shift) {
        group.shift = QuantileCuts::kByRank;
      }
    }
    group.reads_part = group.n_columns != from.n_columns ? 1 : 0;
    group.row_offsets = from.row_offsets;
    group.is_narrow = from.is_narrow;
    group.stride = from.stride;
    group.elements = from.elements + (from.Strided() ? place : 0);
    group.chunk = from.Strided() ? ChunkOf(group.stride, place, group.n_columns) : 0;
    // Of rows without places all elements are met.
    group.n_elements = from.Strided() ? static_cast<std::uint32_t>(n_places) : from.n_elements;
  }
}

double BinMatrix::LookedUpShare(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                                QuantileCuts const& stored, QuantileCuts const& coarsest,
                                QuantileCuts const& bins, std::uint32_t max_group_bins) {
  BinMatrix from{stored, n_rows};
  from.MakeGroups(n_entries, coarsest, max_group_bins, false, nullptr);
  BinMatrix read{bins, n_rows};
  read.MakeGroups(n_entries, bins, max_group_bins, false, &from);
  read.FindGroups(from);
  double n_looked_up{0.0}, n{0.0};
  for (BinColumn const& column : read.h_columns_) {
    n += n_entries[column.feature];
    n_looked_up +=
        read.h_groups_[column.group].shift == QuantileCuts::kByRank ? n_entries[column.feature] : 0;
  }
  return n_looked_up / std::max(n, 1.0);
}

void BinMatrix::FindBegins(BinMatrix const& stored) {
  std::vector<std::uint64_t> first_words;  // by stored group
  std::uint64_t n{0};
  for (FeatureGroup const& group : stored.h_groups_) {
    first_words.push_back(n / 32);
    n += CeilDiv(group.n_bins, 32) * 32;
  }
  RankWord* const words = begins_.Reserve(n).words;
  begins_.ClearAsync(n);
  DeviceBuffer<std::uint64_t> d_first_words{"words of stored groups"};
  CopyFromHost(d_first_words.Reserve(first_words.size()), first_words.data(), first_words.size());
  LaunchN("MarkBegins", MarkBeginsKernel, n_bins_, this->Ref(), stored.Ref(), words,
          d_first_words.Data());
  CubScratch scratch;
  begins_.Count(n, &scratch);
  for (FeatureGroup& group : h_groups_) {
    if (group.shift == QuantileCuts::kByRank) {
      group.begins = words + first_words[stored.h_columns_[group.first_column].group];
    }
  }
  CopyFromHost(groups_.Data(), h_groups_.data(), h_groups_.size());
  Synchronize();  // the scratch goes
}

void BinMatrix::SumRowOffsets(RowIdx first_row, RowIdx n_rows) {
  Launch("SumRowOffsets", SumRowOffsetsKernel, n_rows == 0 ? 0 : h_groups_.size(), kSumThreads,
         groups_.Data(), first_row, n_rows, row_offsets_.Data());
}

void BinMatrix::WriteRows(CsrView const& rows, RowIdx first_row) {
  if (row_offsets_.Bytes() != 0) {
    LaunchRows("CountElements", CountElementsKernel, rows.n_rows, rows, first_row, this->Ref(),
               row_offsets_.Data());
    this->SumRowOffsets(first_row, rows.n_rows);
  }
  LaunchRows("WriteRowBins", WriteRowBinsKernel, rows.n_rows, rows, first_row, this->Ref(),
             bins_.Ref(), elements_.Data());
  Synchronize();  // the rows may go
}

void BinMatrix::WriteColumns(float const* const* columns) {
  std::vector<ColumnChunk> chunks;
  std::vector<std::uint32_t> sparse;
  for (std::uint32_t g = 0; g < h_groups_.size(); ++g) {
    std::uint32_t const n = h_groups_[g].n_columns;
    for (std::uint32_t c = 0; h_groups_[g].Strided() && c < n; c += ColumnChunk::kColumns) {
      chunks.push_back({g, c, std::min(ColumnChunk::kColumns, n - c)});
    }
    if (!h_groups_[g].Strided()) {
      sparse.push_back(g);
    }
  }
  auto const n_chunks = static_cast<std::uint32_t>(chunks.size());
  auto const n_sparse = static_cast<std::uint32_t>(sparse.size());
  DeviceBuffer<ColumnChunk> d_chunks{"columns to be binned"};
  DeviceBuffer<std::uint32_t> d_sparse{"groups to be binned"};
  CopyFromHost(d_chunks.Reserve(n_chunks), chunks.data(), n_chunks);
  CopyFromHost(d_sparse.Reserve(n_sparse), sparse.data(), n_sparse);
  Launch("WriteChunks", WriteChunksKernel, n_chunks * CeilDiv(n_rows_, kChunkRows), kChunkRows,
         columns, this->Ref(), bins_.Ref(), d_chunks.Data(), n_chunks, n_rows_, elements_.Data());
  if (n_sparse != 0) {
    std::uint64_t const n = std::uint64_t{n_sparse} * n_rows_;
    LaunchN("CountPresent", CountPresentKernel, n, columns, this->Ref(), d_sparse.Data(), n_sparse,
            n_rows_, row_offsets_.Data());
    this->SumRowOffsets(0, n_rows_);
    LaunchN("WritePresent", WritePresentKernel, n, columns, this->Ref(), bins_.Ref(),
            d_sparse.Data(), n_sparse, n_rows_, elements_.Data());
  }
  Synchronize();  // the lists go
}

BinMatrixRef BinMatrix::Ref() const {
  return {groups_.Data(),
          columns_.Data(),
          column_of_.Data(),
          bins_.Ref(),
          n_bins_,
          static_cast<std::uint32_t>(h_groups_.size()),
          static_cast<std::uint32_t>(h_columns_.size())};
}

std::uint64_t BinMatrix::Bytes() const {
  return groups_.Bytes() + columns_.Bytes() + column_of_.Bytes() + elements_.DeviceBytes() +
         row_offsets_.Bytes() + first_bins_.Bytes() + begins_.Bytes();
}
}  // namespace gpu_exact
