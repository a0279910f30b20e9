/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of winner_resolver.cuh.
 */
#include <limits>

#include "src/device/partition/split_tile.cuh"
#include "src/device/partition/winner_resolver.cuh"

namespace gpu_exact {
namespace {
constexpr FeatureIdx kNoFeature = std::numeric_limits<FeatureIdx>::max();
constexpr int kNoBin = std::numeric_limits<int>::max();

/** @brief A node's best candidate, read back from its key. */
struct Winner {
  FeatureIdx feature;
  ValueRange values;
  Candidate candidate;

  __device__ Winner(ColumnsRef const& columns, std::uint64_t key) {
    std::uint64_t place = CandidateKey::PlaceOf(key);
    feature = columns.FeatureOf(CandidateKey::AnyValueOf(place));
    values = columns.Values(feature);
    candidate = Candidate::FromPlace(values, place);
  }
  [[nodiscard]] __device__ bool Forward() const {
    return candidate.direction == ScanDirection::kForward;
  }
};
// one thread a node
__global__ void ReadWinnersKernel(LevelRef level, FeatureTableRef table, NeighbourBins* out) {
  auto b = GlobalIdx();
  if (b >= level.n_nodes) {
    return;
  }
  std::uint64_t key = level.best[b];
  NeighbourBins n{kNoFeature, 0, -1, kNoBin};
  if (key != 0) {
    Winner w{level.columns, key};
    if (table.sorted_of[w.feature] == FeatureTableRef::kNotSorted) {
      n.feature = w.feature;
      // Past the last bin of a forward scan, before the first one of a backward scan.
      std::uint64_t past = w.Forward() ? w.values.last : w.values.first;
      n.bin = static_cast<std::uint32_t>((w.candidate.present ? past : w.candidate.value) -
                                         w.values.first);
    }
  }
  out[b] = n;
}

// one thread a place
__global__ void FindNeighboursKernel(FeatureTableRef table, RowsRef rows, Bucket n_nodes,
                                     RowIdx n_places, NeighbourBins* neighbours) {
  auto place = static_cast<RowIdx>(GlobalIdx());
  if (place >= n_places) {
    return;
  }
  Bucket b = rows.NodeOf(place, n_nodes);
  if (b == n_nodes) {
    return;
  }
  NeighbourBins* n = neighbours + b;
  if (n->feature == kNoFeature) {
    return;
  }
  int bin = table.binned.BinOf(rows.rows[place], n->feature);
  if (bin < 0) {
    return;
  }
  if (bin < static_cast<int>(n->bin)) {
    if (bin > __ldcg(&n->below)) {
      atomicMax(&n->below, bin);
    }
  } else if (bin < __ldcg(&n->above)) {
    atomicMin(&n->above, bin);
  }
}

struct SortedValues {
  FeatureTableRef table;
  RowsRef rows;
  SortedEntriesRef entries;

  /** @brief Value of the entry at an index of its column. */
  __device__ float At(std::uint32_t column, EntryIdx i) const {
    std::uint32_t word = entries.places[table.sorted.offsets[column] + i];
    return table.values.Find(rows.rows[word & ~PlaceWord::kNewValue], column);
  }
  __device__ RowRange Segment(Bucket b, std::uint32_t column) const {
    std::uint32_t sparse = table.sorted.sparse[column];
    return sparse == SortedColumnsRef::kDense
               ? rows.nodes[b]
               : entries.segments[std::uint64_t{b} * table.sorted.n_sparse + sparse];
  }
  __device__ float Threshold(Winner const& w, Bucket b) const {
    std::uint32_t column = table.sorted_of[w.feature];
    ScanDirection d = w.candidate.direction;
    if (w.candidate.present) {
      RowRange s = this->Segment(b, column);
      return PresentThreshold(d, this->At(column, w.Forward() ? s.end - 1 : s.begin));
    }
    EntryIdx i = w.candidate.value - w.values.first;
    return MidThreshold(d, this->At(column, i - 1), this->At(column, i));
  }
};

// one thread a node
__global__ void ResolveWinnersKernel(LevelRef level, SortedValues sorted,
                                     NeighbourBins const* neighbours, LevelResult* out) {
  auto b = static_cast<Bucket>(GlobalIdx());
  if (b >= level.n_nodes) {
    return;
  }
  FeatureTableRef const& table = sorted.table;
  RowRange node = sorted.rows.nodes[b];
  LevelResult result{level.nodes[b], {0.0f, 0, 0.0f, 0, 0}, {node.begin, node.end}, {0, 0}};
  std::uint64_t key = level.best[b];
  if (key != 0) {
    Winner w{level.columns, key};
    float threshold;
    if (table.sorted_of[w.feature] != FeatureTableRef::kNotSorted) {
      threshold = sorted.Threshold(w, b);
    } else {
      auto v = table.bin_values + table.bin_offsets[w.feature];
      NeighbourBins n = neighbours[b];
      bool const ends = w.Forward() ? n.above == kNoBin : n.below < 0;  // of the present bins
      threshold = ends ? PresentThreshold(w.candidate.direction, v[w.Forward() ? n.below : n.above])
                       : MidThreshold(w.candidate.direction, v[n.below], v[n.above]);
    }
    result.split = {CandidateKey::LossChange(key), w.feature, threshold, w.Forward() ? 0u : 1u, 0};
  }
  out[b] = result;
}

}  // namespace

void WinnerResolver::Resolve(LevelRef const& level, FeatureTableRef const& table,
                             RowsRef const& rows, RowIdx n_places, SortedEntriesRef const& sorted,
                             LevelResult* out) {
  if (table.binned.n_columns != 0) {
    neighbours_.Reserve(level.n_nodes);
    LaunchN("ReadWinners", ReadWinnersKernel, level.n_nodes, level, table, neighbours_.Data());
    LaunchN("FindNeighbours", FindNeighboursKernel, n_places, table, rows, level.n_nodes, n_places,
            neighbours_.Data());
  }
  LaunchN("ResolveWinners", ResolveWinnersKernel, level.n_nodes, level,
          SortedValues{table, rows, sorted}, neighbours_.Data(), out);
}
}  // namespace gpu_exact
