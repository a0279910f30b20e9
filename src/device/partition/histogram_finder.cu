/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_finder.cuh.
 */
#include <algorithm>

#include "src/device/partition/histogram_finder.cuh"
#include "src/device/partition/histogram_kernels.cuh"

namespace gpu_exact {
namespace {
constexpr std::uint64_t kMinBudget = std::uint64_t{256} << 20;
constexpr std::uint64_t kBudgetPerEntry = 4;

/**
 * @brief Blocks of the kernel that run at a time with so much dynamic shared memory.
 *
 * Allows it all that there is: the setting is one for all finders of the process.
 */
template <typename KernelT>
std::uint32_t MaxBlocks(KernelT kernel, std::size_t bytes) {
  int const max_bytes = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  cudaFuncAttributes attributes{};
  EXACT_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  EXACT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  max_bytes - static_cast<int>(attributes.sharedSizeBytes)));
  int n_blocks{0};  // on a multiprocessor
  EXACT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, kernel,
                                                           SharedHistogram::kThreads, bytes));
  return static_cast<std::uint32_t>(
      std::max(1, n_blocks * DeviceAttribute(cudaDevAttrMultiProcessorCount)));
}

/** @brief Slots up to the last one of a level. */
std::size_t NumSlots(std::vector<std::uint32_t> const& slots) {
  return std::size_t{*std::max_element(slots.begin(), slots.end())} + 1;
}
}  // namespace

HistogramFinder::HistogramFinder(BinnedColumns const& columns, std::uint64_t max_bytes,
                                 std::uint32_t max_slices)
    : columns_{columns}, work_{columns} {
  if (max_bytes == 0) {
    max_bytes = std::max(kMinBudget, kBudgetPerEntry * columns.NumElements());
  }
  std::uint64_t slot_bytes = std::max<std::uint64_t>(1, columns.Ref().n_bins) * sizeof(FixedSum);
  max_slots_ = std::max<std::size_t>(1, max_bytes / slot_bytes);
  this->MakeTiles();
  auto bytes = SharedHistogram::Bytes(max_group_bins_);
  max_slices_ = std::min(MaxBlocks(BuildKernel<false>, bytes), MaxBlocks(BuildKernel<true>, bytes));
  if (max_slices != 0) {
    max_slices_ = max_slices;
  }
}

void HistogramFinder::MakeTiles() {
  std::vector<BinTile> tiles;
  std::vector<std::uint32_t> group_tiles{0};
  auto const& groups = columns_.Groups();
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    auto const& group = groups[g];
    for (std::uint32_t c = group.first_column; c < group.first_column + group.n_columns; ++c) {
      auto const& column = columns_.Columns()[c];
      if (c == group.first_column || tiles.back().n_columns == kTileColumns ||
          tiles.back().n_bins + column.n_bins > kTileBins) {
        tiles.push_back({g, c, 0, column.first_bin, 0});
      }
      ++tiles.back().n_columns;
      tiles.back().n_bins += column.n_bins;
    }
    group_tiles.push_back(static_cast<std::uint32_t>(tiles.size()));
    max_group_bins_ = std::max(max_group_bins_, group.n_bins);
    max_group_tiles_ = std::max(max_group_tiles_, group_tiles.back() - *(group_tiles.end() - 2));
  }
  n_tiles_ = static_cast<std::uint32_t>(tiles.size());
  CopyAsync(tiles_.Reserve(tiles.size()), tiles.data(), tiles.size());
  CopyAsync(group_tiles_.Reserve(group_tiles.size()), group_tiles.data(), group_tiles.size());
}

void HistogramFinder::Find(LevelRef const& level, RowsRef const& rows, RowIdx n_rows,
                           std::vector<Bucket> const& parents) {
  if (columns_.Ref().n_bins == 0 || level.n_nodes == 0) {
    return;
  }
  bool is_root = parents.empty();
  direct_ = (!is_root && direct_) || level.n_nodes > max_slots_;
  if (direct_) {
    this->FindDirectly(level, rows, n_rows);
  } else {
    this->AssignSlots(parents);
    this->FindKept(level, rows, n_rows, is_root);
  }
}

void HistogramFinder::AssignSlots(std::vector<Bucket> const& parents) {
  std::vector<PairSlots> pairs;
  std::size_t n_before{0};  // slots of the level before, all of them written
  if (parents.empty()) {
    pairs.push_back({0, 0});
    slots_ = {0};
  } else {
    n_before = NumSlots(slots_);
    std::vector<bool> used(std::max(n_before, 2 * parents.size()));
    for (Bucket parent : parents) {
      used[slots_[parent]] = true;
    }
    std::vector<std::uint32_t> slots;
    std::uint32_t fresh{0};
    for (Bucket parent : parents) {
      while (used[fresh]) {
        ++fresh;
      }
      pairs.push_back({slots_[parent], fresh});
      slots.insert(slots.end(), {slots_[parent], fresh++});
    }
    slots_ = std::move(slots);
  }
  this->ReserveSlots(NumSlots(slots_), n_before);
  CopyAsync(pairs_.Reserve(pairs.size()), pairs.data(), pairs.size());
}

void HistogramFinder::ReserveSlots(std::size_t n, std::size_t n_before) {
  std::size_t slot_bytes = columns_.Ref().n_bins * sizeof(FixedSum);
  std::size_t n_now = histograms_.Bytes() / slot_bytes;
  if (n <= n_now) {
    return;
  }
  DeviceBuffer<FixedSum> more{"histograms"};
  std::size_t n_slots = std::min(max_slots_, std::max(n, 2 * n_now));
  more.Reserve(n_slots * columns_.Ref().n_bins);
  CopyAsync(more.Data(), histograms_.Data(), n_before * columns_.Ref().n_bins);
  std::swap(more, histograms_);
}

void HistogramFinder::FindKept(LevelRef const& level, RowsRef const& rows, RowIdx n_rows,
                               bool is_root) {
  auto binned = columns_.Ref();
  auto mode = is_root ? BuildMode::kAll : BuildMode::kSmaller;
  auto work =
      work_.Plan(rows.nodes, level.n_nodes, mode, is_root ? n_rows : n_rows / 2, max_slices_);
  KeptRef kept{histograms_.Data(), pairs_.Data(), binned.n_bins};
  CutRef none{nullptr, 0};
  TilesRef tiles{tiles_.Data(), group_tiles_.Data()};
  Launch("ClearCuts", ClearCutsKernel, work.n_slices, 512, binned, work, kept, none);
  Launch("Build", BuildKernel<false>, work.n_slices,
         {SharedHistogram::kThreads, SharedHistogram::Bytes(max_group_bins_)}, level, rows, binned,
         work, kept, none, tiles);
  if (is_root) {
    Launch("SearchRoot", SearchRootKernel, n_tiles_, kSearchThreads, level, binned, kept,
           tiles_.Data());
  } else {
    Launch("SearchPairs", SearchPairsKernel, std::uint64_t{level.n_nodes / 2} * n_tiles_,
           kSearchThreads, level, binned, work, kept, tiles_.Data());
  }
}

void HistogramFinder::FindDirectly(LevelRef const& level, RowsRef const& rows, RowIdx n_rows) {
  auto binned = columns_.Ref();
  auto work = work_.Plan(rows.nodes, level.n_nodes, BuildMode::kAll, n_rows, max_slices_);
  KeptRef none{nullptr, nullptr, 0};
  CutRef cut{cut_sums_.Reserve(std::size_t{work.n_slices} * max_group_bins_), max_group_bins_};
  TilesRef tiles{tiles_.Data(), group_tiles_.Data()};
  Launch("ClearCuts", ClearCutsKernel, work.n_slices, 512, binned, work, none, cut);
  Launch("BuildDirectly", BuildKernel<true>, work.n_slices,
         {SharedHistogram::kThreads, SharedHistogram::Bytes(max_group_bins_)}, level, rows, binned,
         work, none, cut, tiles);
  Launch("SearchCuts", SearchCutsKernel, std::uint64_t{work.n_slices} * max_group_tiles_,
         kSearchThreads, level, binned, work, cut, tiles, max_group_tiles_);
}

std::uint64_t HistogramFinder::Bytes() const {
  return work_.Bytes() + tiles_.Bytes() + group_tiles_.Bytes() + histograms_.Bytes() +
         pairs_.Bytes() + cut_sums_.Bytes();
}
}  // namespace gpu_exact
