/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements histogram_finder.cuh.
 */
#include <algorithm>
#include <utility>

#include "device/histogram/build/histogram_finder.cuh"
#include "device/histogram/build/histogram_kernels.cuh"

namespace gpu_exact {
namespace {
/** @brief Sets how many rows for each bin of a column a node has whose histogram is kept for its
 *         children. */
constexpr double kKeepRows = 4.0;

/** @brief Sets how many blocks clear the segment a slice begins in, where slices are few. */
constexpr std::uint32_t kClearBlocks = 8;

/**
 * @brief Count the blocks of BuildKernel that run at a time with some dynamic shared memory.
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

HistogramFinder::HistogramFinder(BinMatrix const& matrix, HistogramPool* pool,
                                 BuildLimits const& limits,
                                 std::vector<CategoricalFeature> const& categorical)
    : matrix_{matrix}, pool_{*pool}, limits_{limits}, categories_{matrix, categorical} {
  for (FeatureGroup const& group : matrix.Groups()) {
    slicer_.AddGroup(group.n_elements, matrix.NumRows(), group.n_bins);
  }
  keep_rows_ = kKeepRows * matrix.Layout().MeanBins();
  this->MakeTiles();
  for (unsigned size = 2; size <= BlockCluster::kMost; size *= 2) {
    max_clusters_.push_back({size, MaxClusters(SearchKernel<false>, size, kSearchThreads)});
  }
  std::uint32_t const max_blocks = MaxBlocks(shared_bytes_);
  if (limits_.n_blocks == 0) {
    limits_.n_blocks = max_blocks;
  }
}

void HistogramFinder::MakeTiles() {
  std::vector<BinTile> tiles;
  auto const& groups = matrix_.Groups();
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    auto const& group = groups[g];
    bool begins{true};
    for (std::uint32_t c = group.first_column; c < group.first_column + group.n_columns; ++c) {
      auto const& column = matrix_.Columns()[c];
      if (categories_.Has(column.feature)) {
        begins = true;
        continue;
      }
      if (std::exchange(begins, false) || tiles.back().n_columns == kTileColumns ||
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
  CopyFromHost(tiles_.Reserve(tiles.size()), tiles.data(), tiles.size());
}

bool HistogramFinder::IsLarge(NodesToSearch const& nodes, Family const& family) const {
  return std::any_of(nodes.rows.cbegin() + family.first,
                     nodes.rows.cbegin() + family.first + family.n,
                     [&](RowRange const& rows) { return rows.Size() >= keep_rows_; });
}

void HistogramFinder::Begin(NodesToSearch const& nodes) {
  parents_.clear();
  for (auto const& family : nodes.families) {
    bool const subtracts =
        family.n == 2 && this->HasKept(family.parent) && this->IsLarge(nodes, family);
    parents_.push_back(subtracts ? std::exchange(kept_[family.parent], SearchedNode::kNoHistogram)
                                 : SearchedNode::kNoHistogram);
  }
  for (std::uint32_t const histogram : kept_) {
    pool_.Release(histogram);
  }
  kept_.clear();
}

void HistogramFinder::Find(LevelRef const& lv, RowsRef const& rows, NodesToSearch const& nodes,
                           OpenRangesRef const& open, LevelSetsRef const& sets) {
  this->Place(nodes);
  if (h_nodes_.empty()) {
    return;
  }
  this->PlacePassing();
  this->PlanWork();
  this->SearchBatches(lv, rows, open, &sets);
}

void HistogramFinder::FindAgain(LevelRef const& lv, RowsRef const& rows,
                                OpenRangesRef const& open) {
  // Kept histograms are there; each is searched by itself.
  std::vector<HistogramSearch> searches;
  for (HistogramSearch const& s : of_kept_.searches) {
    searches.push_back({s.node, HistogramSearch::kNone});
    if (s.larger != HistogramSearch::kNone) {
      searches.push_back({s.larger, HistogramSearch::kNone});
    }
  }
  of_kept_ = {};
  of_kept_.searches = std::move(searches);
  this->PlacePassing();  // other resolutions have kept some since
  this->PlanWork();
  this->SearchBatches(lv, rows, open, nullptr);
}

void HistogramFinder::Place(NodesToSearch const& nodes) {
  constexpr std::uint32_t kNone = SearchedNode::kNoHistogram;
  kept_.assign(nodes.rows.size(), kNone);
  h_nodes_.clear();
  passing_.clear();
  n_rows_ = 0;
  of_kept_ = {};
  std::uint64_t from[]{0, 0};  // of one histogram, of two side by side
  auto n_rows = [&](LevelNode b) { return nodes.rows[b].Size(); };
  auto add = [&](LevelNode level_node, std::uint32_t histogram) {
    kept_[level_node] = histogram;
    auto const node = static_cast<std::uint32_t>(h_nodes_.size());
    h_nodes_.push_back({nodes.rows[level_node], level_node, histogram});
    n_rows_ += n_rows(level_node);
    return node;
  };
  for (std::size_t i = 0; i < nodes.families.size(); ++i) {
    Family const& family = nodes.families[i];
    // Where the parent's is kept, one of the two is what it has left, in its place.
    bool const subtracts = parents_[i] != kNone;
    bool const keeps = subtracts || (!nodes.is_last_level && this->IsLarge(nodes, family));
    std::uint32_t const n_taken = subtracts ? 1 : family.n;
    std::uint64_t const n_bins = matrix_.Ref().n_bins;
    std::uint32_t const first = keeps ? pool_.Allocate(n_bins, n_taken, &from[n_taken - 1]) : kNone;
    if (subtracts && first != kNone) {
      LevelNode const larger =
          n_rows(family.first + 1) > n_rows(family.first) ? family.first + 1 : family.first;
      LevelNode const smaller = 2 * family.first + 1 - larger;
      std::uint32_t const small_node = add(smaller, first);
      of_kept_.searches.push_back({small_node, add(larger, parents_[i])});
      of_kept_.Add(small_node, nodes.rows[smaller]);
      continue;
    }
    pool_.Release(parents_[i]);
    for (LevelNode k = 0; k < family.n; ++k) {
      LevelNode const b = family.first + k;
      bool const is_kept = first != kNone;
      std::uint32_t const node =
          add(b, is_kept ? static_cast<std::uint32_t>(first + k * n_bins) : kNone);
      if (is_kept) {
        of_kept_.searches.push_back({node, HistogramSearch::kNone});
        of_kept_.Add(node, nodes.rows[b]);
      } else {
        passing_.push_back(node);
      }
    }
  }
}

void HistogramFinder::PlacePassing() {
  batches_.assign(1, of_kept_);
  std::uint64_t const n_bins = matrix_.Ref().n_bins;
  std::uint64_t const first = pool_.KeptEnd();
  std::uint64_t const n_room = pool_.RoomToPass(n_bins, passing_.size());
  for (std::size_t i = 0; i < passing_.size(); ++i) {
    if (i % n_room == 0 && passing_.size() > n_room) {
      batches_.emplace_back();
    }
    SearchedNode& node = h_nodes_[passing_[i]];
    node.histogram = static_cast<std::uint32_t>(first + i % n_room * n_bins);
    batches_.back().searches.push_back({passing_[i], HistogramSearch::kNone});
    batches_.back().Add(passing_[i], node.rows);
  }
}

void HistogramFinder::PlanWork() {
  d_nodes_ = uploader_.Add(h_nodes_);
  for (PlannedWork& batch : batches_) {
    batch.Slice(slicer_, limits_, &uploader_);
    batch.d_searches = uploader_.Add(batch.searches);
  }
  uploader_.Upload();
}

WorkRef HistogramFinder::AllRows() {
  constexpr std::uint32_t kSlices = 6144;  // more than run at a time: most have little to find
  PlannedWork all{};
  for (std::uint32_t i = 0; i < this->NumNodes(); ++i) {
    all.Add(i, h_nodes_[i].rows);
  }
  all.Slice(slicer_, kSlices, 8 * LoadBalancer::kMinSlice, &all_rows_);
  all_rows_.Upload();
  return all.Ref(slicer_, all_rows_);
}

void HistogramFinder::SearchBatches(LevelRef const& lv, RowsRef const& rows,
                                    OpenRangesRef const& open, LevelSetsRef const* sets) {
  OpenCounts* to_clear = open.counts;
  for (PlannedWork const& batch : batches_) {
    if (batch.searches.empty() || matrix_.Columns().empty()) {
      continue;
    }
    FinderRef f{matrix_.Ref(), this->Nodes(), {}, pool_.Sums(matrix_.HasRanges()), tiles_.Data(),
                open,          lv.hess_of_row};
    if (!batch.nodes.empty()) {
      f.work = batch.Ref(slicer_, uploader_);
      std::uint32_t const n_blocks = f.work.n_slices <= limits_.n_blocks ? kClearBlocks : 1;
      Launch("ClearSharedSegments", ClearSharedSegmentsKernel,
             std::uint64_t{f.work.n_slices} * n_blocks, 512, f, n_blocks,
             std::exchange(to_clear, nullptr));
      Launch("Build", BuildKernel, f.work.n_slices, {SharedHistogram::kThreads, shared_bytes_},
             rows, f);
    }
    if (to_clear != nullptr) {
      ZeroAsync(std::exchange(to_clear, nullptr), 1);
    }
    auto const* const searches = uploader_.Data<HistogramSearch>(batch.d_searches);
    auto const n = static_cast<std::uint32_t>(batch.searches.size());
    if (sets != nullptr) {  // before the others, which then have more to beat
      bool const has_larger =
          std::any_of(batch.searches.cbegin(), batch.searches.cend(),
                      [](auto const& s) { return s.larger != HistogramSearch::kNone; });
      categories_.Find(lv, {this->Nodes(), f.histograms.sums, searches, n, has_larger}, *sets);
    }
    std::uint64_t const n_clusters = std::uint64_t{n} * n_tiles_;
    LaunchClusters("Search", lv.bound.limited ? SearchKernel<true> : SearchKernel<false>,
                   n_clusters, this->ClusterSize(n_clusters), kSearchThreads, lv, f, searches, n);
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
}  // namespace gpu_exact
