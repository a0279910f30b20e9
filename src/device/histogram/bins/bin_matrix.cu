/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements bin_matrix.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <utility>

#include "device/histogram/bins/bin_matrix.cuh"
#include "device/runtime/warp.cuh"
#include "device/table/row_table.cuh"

namespace gpu_exact {
namespace {
/** @brief Holds an entry on its way into a group. */
struct GroupEntry {
  float value;
  BinnedColumn column;
  std::uint32_t group;
  std::uint32_t rank;   // among the row's entries in the group
  std::uint32_t lanes;  // whose entries are of the same group
};

/** @brief Call fn(GroupEntry) by a warp for the entries of a row that are binned. */
template <typename FnT>
__device__ void ForRow(CsrView const& table, BinMatrixRef const& binned, std::uint64_t row,
                       FnT&& fn) {
  constexpr std::uint32_t kNoGroup = 0xffffffffu;
  std::uint32_t last_group{kNoGroup};  // groups ascend along a row: only this one may go on
  std::uint32_t n_last{0};             // entries of it so far
  WalkRow(table, row, [&](EntryIdx i, bool has) {
    GroupEntry e{0.0f, BinMatrixRef::kNotBinned, kNoGroup, 0, 0};
    if (has) {
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
  });
}

/** @brief Writes where a row's elements end. @param row_offsets Those of all groups. */
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

/** @brief Names up to eight neighbouring columns of a group. */
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

std::uint32_t BinMatrix::MaxBins() {
  auto bytes = static_cast<std::size_t>(DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  return std::min(BinsOfBlock(bytes), FeatureGroup::kMaxBins);
}

GroupLimits BinMatrix::Limits(std::uint32_t max_group_bins) {
  return {MaxBins(), static_cast<std::uint32_t>(DeviceAttribute(cudaDevAttrMultiProcessorCount)),
          max_group_bins};
}

BinMatrix::BinMatrix(QuantileCuts const& bins, BinLayout&& layout, Memory at)
    : bins_{bins}, layout_{std::move(layout)}, elements_{"bins of the entries", at} {
  elements_.Reserve(layout_.n_elements);
  EXACT_CUDA(cudaMemsetAsync(elements_.Data(), 0xff, elements_.Bytes(), Stream()));
  ZeroAsync(row_offsets_.Reserve(layout_.n_row_offsets), layout_.n_row_offsets);
  this->PlaceGroups(*this);
  this->Upload();
}

BinMatrix::BinMatrix(BinMatrix const& stored, QuantileCuts const& bins, BinLayout&& layout)
    : bins_{bins}, layout_{std::move(layout)}, elements_{"bins of the entries", Memory::kDevice} {
  this->PlaceGroups(stored);
  this->Upload();
}

void BinMatrix::PlaceGroups(BinMatrix const& stored) {
  first_bins_.Reserve(layout_.first_bins.size());
  cell_maps_.Reserve(layout_.cell_maps.size());
  for (GroupLayout const& laid : layout_.groups) {
    FeatureGroup group{};
    group.elements = stored.elements_.Data() + laid.elements;
    group.row_offsets = laid.Strided() ? nullptr : stored.row_offsets_.Data() + laid.row_offsets;
    group.first_bin = laid.first_bin;
    group.first_column = laid.first_column;
    group.n_columns = laid.n_columns;
    group.n_bins = laid.n_bins;
    group.n_elements = static_cast<std::uint32_t>(laid.n_elements);
    group.stride = laid.stride;
    group.chunk = laid.chunk;
    group.has_ranges = laid.has_ranges ? 1 : 0;
    group.has_missing = laid.has_missing ? 1 : 0;
    group.first_bins =
        laid.InBytes() || laid.by_column ? first_bins_.Data() + laid.first_bins : nullptr;
    group.longest = laid.longest;
    group.is_narrow = laid.is_narrow ? 1 : 0;
    group.cell_maps = laid.by_column ? cell_maps_.Data() + laid.cell_maps : nullptr;
    group.first_stored = laid.first_stored;
    group.n_stored = laid.n_stored;
    group.shift = laid.shift;
    group.reads_part = laid.reads_part ? 1 : 0;
    h_groups_.push_back(group);
  }
}

void BinMatrix::Upload() {
  CopyFromHost(first_bins_.Data(), layout_.first_bins.data(), layout_.first_bins.size());
  CopyFromHost(cell_maps_.Data(), layout_.cell_maps.data(), layout_.cell_maps.size());
  std::vector<BinnedColumn> column_of(layout_.n_features, BinMatrixRef::kNotBinned);
  std::vector<BinColumn> const& columns = layout_.columns;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    column_of[columns[c].feature] = static_cast<std::uint32_t>(c);
  }
  CopyFromHost(column_of_.Reserve(column_of.size()), column_of.data(), column_of.size());
  CopyFromHost(columns_.Reserve(columns.size()), columns.data(), columns.size());
  CopyFromHost(groups_.Reserve(h_groups_.size()), h_groups_.data(), h_groups_.size());
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
  RowIdx const n_rows = layout_.n_rows;
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
  Launch("WriteChunks", WriteChunksKernel, n_chunks * CeilDiv(n_rows, kChunkRows), kChunkRows,
         columns, this->Ref(), bins_.Ref(), d_chunks.Data(), n_chunks, n_rows, elements_.Data());
  if (n_sparse != 0) {
    std::uint64_t const n = std::uint64_t{n_sparse} * n_rows;
    LaunchN("CountPresent", CountPresentKernel, n, columns, this->Ref(), d_sparse.Data(), n_sparse,
            n_rows, row_offsets_.Data());
    this->SumRowOffsets(0, n_rows);
    LaunchN("WritePresent", WritePresentKernel, n, columns, this->Ref(), bins_.Ref(),
            d_sparse.Data(), n_sparse, n_rows, elements_.Data());
  }
  Synchronize();  // the lists go
}

BinMatrixRef BinMatrix::Ref() const {
  return {groups_.Data(),
          columns_.Data(),
          column_of_.Data(),
          bins_.Ref(),
          layout_.n_bins,
          static_cast<std::uint32_t>(h_groups_.size()),
          static_cast<std::uint32_t>(layout_.columns.size())};
}
}  // namespace gpu_exact
