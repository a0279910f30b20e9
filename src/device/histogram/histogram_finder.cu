/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_finder.cuh.
 */
#include <algorithm>

#include "src/device/histogram/histogram_finder.cuh"
#include "src/device/histogram/histogram_kernels.cuh"

namespace gpu_exact {
namespace {
/** @brief Nodes of so many rows for each bin of a column are kept, so that children subtract. */
constexpr double kKeepRows = 4.0;

/** @brief Blocks that clear the segment a slice begins in, where slices are few. */
constexpr std::uint32_t kClearBlocks = 8;

/**
 * @brief Blocks of BuildKernel that run at a time with so much dynamic shared memory.
 *
 * Allows it all that there is: the setting is one for all finders of the process.
 */
std::uint32_t MaxBlocks(std::size_t bytes) {
  int const max_bytes = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  cudaFuncAttributes attributes{};
  EXACT_CUDA(cudaFuncGetAttributes(&attributes, BuildKernel));
  EXACT_CUDA(cudaFuncSetAttribute(BuildKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  max_bytes - static_cast<int>(attributes.sharedSizeBytes)));
  int n_blocks{0};  // on a multiprocessor
  EXACT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, BuildKernel,
                                                           SharedHistogram::kThreads, bytes));
  return static_cast<std::uint32_t>(
      std::max(1, n_blocks * DeviceAttribute(cudaDevAttrMultiProcessorCount)));
}
}  // namespace

HistogramFinder::HistogramFinder(BinnedColumns const& columns, std::uint64_t max_bytes,
                                 BuildLimits const& limits)
    : columns_{columns}, limits_{limits} {
  for (BinGroup const& group : columns.Groups()) {
    slicer_.AddGroup(group.n_elements, columns.NumRows(), group.n_bins);
  }
  auto const n_bins = std::max<std::uint64_t>(1, columns.Ref().n_bins);
  auto const bin_bytes = sizeof(FixedSum) + (columns.HasRanges() ? sizeof(std::uint32_t) : 0);
  max_slots_ = std::max<std::size_t>(1, max_bytes / (n_bins * bin_bytes));
  max_kept_ = max_slots_ == 1 ? 1 : max_slots_ - std::max<std::size_t>(1, max_slots_ / 4);
  keep_rows_ = kKeepRows * columns.MeanBins();
  this->MakeTiles();
  for (unsigned size = 2; size <= BlockCluster::kMost; size *= 2) {
    max_clusters_.push_back({size, MaxClusters(SearchKernel, size, kSearchThreads)});
  }
  std::uint32_t const max_blocks = MaxBlocks(shared_bytes_);
  if (limits_.n_blocks == 0) {
    limits_.n_blocks = max_blocks;
  }
}

void HistogramFinder::MakeTiles() {
  std::vector<BinTile> tiles;
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
    shared_bytes_ = std::max(shared_bytes_, SharedHistogram::Bytes(group));
  }
  for (BinTile const& tile : tiles) {
    longest_tile_ = std::max(longest_tile_, tile.n_bins);
  }
  n_tiles_ = static_cast<std::uint32_t>(tiles.size());
  CopyAsync(tiles_.Reserve(tiles.size()), tiles.data(), tiles.size());
}

void HistogramFinder::Find(LevelRef const& level, RowsRef const& rows, NodesToSearch const& nodes,
                           OpenRangesRef const& open) {
  this->AssignSlots(nodes);
  if (h_nodes_.empty()) {
    return;
  }
  this->PlanWork();
  this->SearchBatches(level, rows, open);
}

void HistogramFinder::FindAgain(LevelRef const& level, RowsRef const& rows,
                                OpenRangesRef const& open) {
  // Kept histograms are there; each is searched by itself.
  Batch& kept = batches_.front();
  std::vector<HistogramSearch> searches;
  for (HistogramSearch const& s : kept.searches) {
    searches.push_back({s.node, HistogramSearch::kNone});
    if (s.larger != HistogramSearch::kNone) {
      searches.push_back({s.larger, HistogramSearch::kNone});
    }
  }
  kept.searches = std::move(searches);
  kept.built = {};
  this->PlanWork();
  this->SearchBatches(level, rows, open);
}

void HistogramFinder::AssignSlots(NodesToSearch const& nodes) {
  std::vector<std::uint32_t> const before = std::move(slots_);
  std::size_t const n_before = n_slots_;
  slots_.assign(nodes.rows.size(), SearchedNode::kNoSlot);
  h_nodes_.clear();
  n_rows_ = 0;
  batches_.assign(1, {});
  auto n_rows = [&](Bucket b) { return nodes.rows[b].end - nodes.rows[b].begin; };
  auto larger_of = [&](NodesToSearch::Family const& f) {
    return f.n == 2 && n_rows(f.first + 1) > n_rows(f.first) ? f.first + 1 : f.first;
  };
  auto is_large = [&](NodesToSearch::Family const& f) {
    return n_rows(larger_of(f)) >= keep_rows_;
  };
  auto parent_slot = [&](NodesToSearch::Family const& f) {
    return f.n == 2 && f.parent < before.size() && is_large(f) ? before[f.parent]
                                                               : SearchedNode::kNoSlot;
  };
  // Slots of parents whose children subtract are taken; all others are free.
  std::vector<bool> used(n_before, false);
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
    auto const node = static_cast<std::uint32_t>(h_nodes_.size());
    h_nodes_.push_back({nodes.rows[bucket], bucket, slot});
    n_rows_ += n_rows(bucket);
    return node;
  };
  std::vector<std::uint32_t> passing;  // nodes whose histograms are not kept
  Batch& kept = batches_.front();
  for (auto const& family : nodes.families) {
    std::uint32_t const of_parent = parent_slot(family);
    if (of_parent != SearchedNode::kNoSlot && n_used < max_kept_) {
      Bucket const larger = larger_of(family);
      Bucket const smaller = 2 * family.first + 1 - larger;
      std::uint32_t const small_node = add(smaller, take());
      kept.searches.push_back({small_node, add(larger, of_parent)});
      kept.built.Add(small_node, nodes.rows[smaller]);
      continue;
    }
    bool const keeps = is_large(family) && !nodes.is_last_level && n_used + family.n <= max_kept_;
    for (Bucket b = family.first; b < family.first + family.n; ++b) {
      std::uint32_t const node = add(b, keeps ? take() : SearchedNode::kNoSlot);
      if (keeps) {
        kept.searches.push_back({node, HistogramSearch::kNone});
        kept.built.Add(node, nodes.rows[b]);
      } else {
        passing.push_back(node);
      }
    }
  }
  // The others use the room that is left, in turns.
  std::size_t const n_room = std::max<std::size_t>(1, max_slots_ - std::min(max_slots_, n_slots_));
  for (std::size_t i = 0; i < passing.size(); ++i) {
    if (i % n_room == 0) {
      batches_.emplace_back();
    }
    h_nodes_[passing[i]].slot = static_cast<std::uint32_t>(n_slots_ + i % n_room);
    batches_.back().searches.push_back({passing[i], HistogramSearch::kNone});
    batches_.back().built.Add(passing[i], h_nodes_[passing[i]].rows);
  }
  this->ReserveSlots(n_slots_ + std::min(n_room, passing.size()), n_before);
}

void HistogramFinder::PlanWork() {
  d_nodes_ = arena_.Add(h_nodes_);
  for (Batch& batch : batches_) {
    batch.built.Slice(slicer_, limits_, &arena_);
    batch.d_searches = arena_.Add(batch.searches);
  }
  arena_.Upload();
}

WorkRef HistogramFinder::AllRows() {
  constexpr std::uint32_t kSlices = 6144;  // more than run at a time: most have little to find
  PlannedWork all{};
  for (std::uint32_t i = 0; i < this->NumNodes(); ++i) {
    all.Add(i, h_nodes_[i].rows);
  }
  all.Slice(slicer_, kSlices, 8 * WorkSlicer::kMinSlice, &all_rows_);
  all_rows_.Upload();
  return all.Ref(slicer_, all_rows_);
}

void HistogramFinder::ReserveSlots(std::size_t n, std::size_t n_before) {
  std::uint64_t const n_bins = columns_.Ref().n_bins;
  std::size_t n_now = n_bins == 0 ? n : histograms_.Bytes() / sizeof(FixedSum) / n_bins;
  if (columns_.HasRanges() && n_bins != 0) {  // of both, as memory may have ended between them
    n_now = std::min<std::size_t>(n_now, magnitudes_.Bytes() / sizeof(std::uint32_t) / n_bins);
  }
  if (n <= n_now) {
    return;
  }
  // Old and new ones are there together for a while: the last step is from half of the most at most.
  std::size_t const wanted = std::max(n, 2 * n_now);
  std::size_t const n_slots = 2 * wanted > max_slots_ ? std::max(n, max_slots_) : wanted;
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

void HistogramFinder::SearchBatches(LevelRef const& level, RowsRef const& rows,
                                    OpenRangesRef const& open) {
  for (Batch const& batch : batches_) {
    if (batch.searches.empty() || n_tiles_ == 0) {
      continue;
    }
    FinderRef f{columns_.Ref(), this->Nodes(), {}, {histograms_.Data(), magnitudes_.Data()},
                tiles_.Data(),  open};
    if (!batch.built.nodes.empty()) {
      f.work = batch.built.Ref(slicer_, arena_);
      std::uint32_t const n_blocks = f.work.n_slices <= limits_.n_blocks ? kClearBlocks : 1;
      Launch("ClearCuts", ClearCutsKernel, std::uint64_t{f.work.n_slices} * n_blocks, 512, f,
             n_blocks);
      Launch("Build", BuildKernel, f.work.n_slices, {SharedHistogram::kThreads, shared_bytes_},
             rows, f);
    }
    auto const n = static_cast<std::uint32_t>(batch.searches.size());
    std::uint64_t const n_clusters = std::uint64_t{n} * n_tiles_;
    LaunchClusters("Search", SearchKernel, n_clusters, this->ClusterSize(n_clusters),
                   kSearchThreads, level, f, arena_.Data<HistogramSearch>(batch.d_searches), n);
  }
}

unsigned HistogramFinder::ClusterSize(std::uint64_t n_clusters) const {
  unsigned largest{1};
  for (auto const& [size, at_once] : max_clusters_) {
    if (n_clusters <= at_once && largest * kTileBins < longest_tile_) {
      largest = size;
    }
  }
  return largest;
}

std::uint64_t HistogramFinder::Bytes() const {
  return arena_.Bytes() + all_rows_.Bytes() + tiles_.Bytes() + histograms_.Bytes() +
         magnitudes_.Bytes();
}
}  // namespace gpu_exact
