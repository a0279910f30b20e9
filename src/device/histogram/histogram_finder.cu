/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_finder.cuh.
 */
#include "src/device/histogram/histogram_finder.cuh"

#include <algorithm>

#include "src/device/histogram/histogram_kernels.cuh"

namespace gpu_exact {
namespace {
/** @brief Nodes of so many rows for each bin of a column are kept, so that children subtract. */
constexpr double kKeepRows = 4.0;

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

/** @brief Adds a node to a list for WorkSlicer, which ends with the sum of all rows. */
void Add(std::uint32_t node, RowRange const& rows, std::vector<BuiltNode>* list) {
  if (list->empty()) {
    list->push_back({0, 0, 0});
  }
  auto const before = list->back().before;
  list->back() = {rows.begin, node, before};
  list->push_back({0, 0, before + rows.end - rows.begin});
}
}  // namespace

HistogramFinder::HistogramFinder(BinnedColumns const& columns, std::uint64_t max_bytes,
                                 std::uint32_t max_slices)
    : columns_{columns}, kept_work_{columns}, direct_work_{columns} {
  auto const n_bins = std::max<std::uint64_t>(1, columns.Ref().n_bins);
  auto const bin_bytes = sizeof(FixedSum) + (columns.HasRanges() ? sizeof(std::uint32_t) : 0);
  max_slots_ = std::max<std::size_t>(1, max_bytes / (n_bins * bin_bytes));
  keep_rows_ = kKeepRows * static_cast<double>(n_bins) /
               static_cast<double>(std::max<std::size_t>(1, columns.Columns().size()));
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

void HistogramFinder::Find(LevelRef const& level, RowsRef const& rows, NodesToSearch const& nodes,
                           OpenRangesRef const& open) {
  this->AssignSlots(nodes);
  nodes_.Upload(h_nodes_);
  if (h_nodes_.empty() || columns_.Ref().n_bins == 0) {
    return;
  }
  this->SearchKept(level, rows, open);
  this->SearchDirectly(level, rows, open);
}

void HistogramFinder::FindAgain(LevelRef const& level, RowsRef const& rows,
                                OpenRangesRef const& open) {
  built_.clear();
  searches_.clear();
  for (std::uint32_t i = 0; i < h_nodes_.size(); ++i) {
    if (h_nodes_[i].slot != SearchedNode::kNoSlot) {
      searches_.push_back({i, KeptSearch::kNone});
    }
  }
  this->SearchKept(level, rows, open);
  this->SearchDirectly(level, rows, open);
}

void HistogramFinder::AssignSlots(NodesToSearch const& nodes) {
  std::vector<std::uint32_t> const before = std::move(slots_);
  std::size_t const n_before = n_slots_;
  slots_.assign(nodes.rows.size(), SearchedNode::kNoSlot);
  h_nodes_.clear();
  searches_.clear();
  built_.clear();
  direct_.clear();
  // Slots of parents whose children subtract are taken; all others are free.
  std::vector<bool> used(n_before, false);
  auto parent_slot = [&](NodesToSearch::Family const& family) {
    return family.n == 2 && family.parent < before.size() ? before[family.parent]
                                                          : SearchedNode::kNoSlot;
  };
  auto n_rows = [&](Bucket b) { return nodes.rows[b].end - nodes.rows[b].begin; };
  std::size_t n_used{0};
  for (auto const& family : nodes.families) {
    if (parent_slot(family) != SearchedNode::kNoSlot) {
      used[parent_slot(family)] = true;
      ++n_used;
    }
  }
  n_slots_ = 0;
  std::uint32_t fresh{0};
  auto take = [&] {
    while (fresh < used.size() && used[fresh]) {
      ++fresh;
    }
    ++n_used;
    return fresh++;
  };
  auto add = [&](Bucket bucket, std::uint32_t slot) {
    slots_[bucket] = slot;
    if (slot != SearchedNode::kNoSlot) {
      n_slots_ = std::max<std::size_t>(n_slots_, slot + 1);
    }
    h_nodes_.push_back({nodes.rows[bucket], bucket, slot});
    return static_cast<std::uint32_t>(h_nodes_.size() - 1);
  };
  for (auto const& family : nodes.families) {
    std::uint32_t const of_parent = parent_slot(family);
    Bucket larger = family.first;
    if (family.n == 2 && n_rows(family.first + 1) > n_rows(family.first)) {
      ++larger;
    }
    bool const is_large = n_rows(larger) >= keep_rows_;
    if (of_parent != SearchedNode::kNoSlot && is_large && n_used < max_slots_) {
      Bucket const smaller = 2 * family.first + 1 - larger;
      std::uint32_t const small_node = add(smaller, take());
      std::uint32_t const large_node = add(larger, of_parent);
      searches_.push_back({small_node, large_node});
      Add(small_node, nodes.rows[smaller], &built_);
      continue;
    }
    bool const keeps = is_large && !nodes.is_last_level && n_used + family.n <= max_slots_;
    for (Bucket b = family.first; b < family.first + family.n; ++b) {
      std::uint32_t const node = add(b, keeps ? take() : SearchedNode::kNoSlot);
      if (keeps) {
        searches_.push_back({node, KeptSearch::kNone});
      }
      Add(node, nodes.rows[b], keeps ? &built_ : &direct_);
    }
  }
  this->ReserveSlots(n_slots_, n_before);
}

void HistogramFinder::ReserveSlots(std::size_t n, std::size_t n_before) {
  std::uint64_t const n_bins = columns_.Ref().n_bins;
  std::size_t const n_now = n_bins == 0 ? n : histograms_.Bytes() / sizeof(FixedSum) / n_bins;
  if (n <= n_now) {
    return;
  }
  std::size_t const n_slots = std::max(n, std::min(max_slots_, 2 * n_now));
  auto grow = [&](auto* buffer, auto&& more) {
    more.Reserve(n_slots * n_bins);
    CopyAsync(more.Data(), buffer->Data(), std::min(n_before, n_now) * n_bins);
    std::swap(more, *buffer);
  };
  grow(&histograms_, DeviceBuffer<FixedSum>{"histograms"});
  if (columns_.HasRanges()) {
    grow(&magnitudes_, DeviceBuffer<std::uint32_t>{"magnitudes of histograms"});
  }
}

void HistogramFinder::SearchKept(LevelRef const& level, RowsRef const& rows,
                                 OpenRangesRef const& open) {
  if (searches_.empty()) {
    return;
  }
  FinderRef f{columns_.Ref(),
              nodes_.Data(),
              {},
              {histograms_.Data(), magnitudes_.Data()},
              {nullptr, nullptr},
              0,
              {tiles_.Data(), group_tiles_.Data()},
              open};
  if (!built_.empty()) {
    f.work = kept_work_.Plan(built_, max_slices_);
    Launch("ClearCuts", ClearCutsKernel<false>, f.work.n_slices, 512, f);
    Launch("Build", BuildKernel<false>, f.work.n_slices,
           {SharedHistogram::kThreads, SharedHistogram::Bytes(max_group_bins_)}, level, rows, f);
  }
  auto const n = static_cast<std::uint32_t>(searches_.size());
  Launch("SearchKept", SearchKeptKernel, std::uint64_t{n} * n_tiles_, kSearchThreads, level, f,
         kept_searches_.Upload(searches_), n);
}

void HistogramFinder::SearchDirectly(LevelRef const& level, RowsRef const& rows,
                                     OpenRangesRef const& open) {
  if (direct_.empty()) {
    return;
  }
  WorkRef const work = direct_work_.Plan(direct_, max_slices_);
  std::size_t const n_cut = std::size_t{work.n_slices} * max_group_bins_;
  FinderRef const f{columns_.Ref(),
                    nodes_.Data(),
                    work,
                    {nullptr, nullptr},
                    {cut_sums_.Reserve(n_cut),
                     columns_.HasRanges() ? cut_magnitudes_.Reserve(n_cut) : nullptr},
                    max_group_bins_,
                    {tiles_.Data(), group_tiles_.Data()},
                    open};
  Launch("ClearCuts", ClearCutsKernel<true>, work.n_slices, 512, f);
  Launch("BuildDirectly", BuildKernel<true>, work.n_slices,
         {SharedHistogram::kThreads, SharedHistogram::Bytes(max_group_bins_)}, level, rows, f);
  Launch("SearchCuts", SearchCutsKernel, std::uint64_t{work.n_slices} * max_group_tiles_,
         kSearchThreads, level, f, max_group_tiles_);
}

std::uint64_t HistogramFinder::Bytes() const {
  return kept_work_.Bytes() + direct_work_.Bytes() + tiles_.Bytes() + group_tiles_.Bytes() +
         histograms_.Bytes() + magnitudes_.Bytes() + cut_sums_.Bytes() + cut_magnitudes_.Bytes() +
         nodes_.Bytes() + kept_searches_.Bytes();
}
}  // namespace gpu_exact
