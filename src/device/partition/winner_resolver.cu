/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of winner_resolver.cuh.
 */
#include <limits>

#include "src/device/partition/split_tile.cuh"
#include "src/device/partition/winner_resolver.cuh"
#include "src/device/warp.cuh"

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

// one thread a place, in whole warps
__global__ void FindNeighboursKernel(FeatureTableRef table, RowsRef rows, Bucket n_nodes,
                                     RowIdx n_places, NeighbourBins* neighbours) {
  auto place = GlobalIdx();
  Bucket b = place < n_places ? rows.NodeOf(static_cast<RowIdx>(place), n_nodes) : n_nodes;
  NeighbourBins* n = neighbours + b;
  int below{-1};
  int above{kNoBin};
  if (b != n_nodes && n->feature != kNoFeature) {
    int bin = table.binned.BinOf(rows.rows[place], n->feature);  // -1: missing, as is no below
    bool is_below = bin < static_cast<int>(n->bin);
    below = is_below ? bin : -1;
    above = is_below ? kNoBin : bin;
  }
  int uniform{0};
  __match_all_sync(kAllLanes, b, &uniform);
  if (uniform != 0) {  // all are of one node: one lane offers for the warp
    below = -MinLanes(-below);
    above = MinLanes(above);
    if (threadIdx.x % 32 != 0) {
      return;
    }
  }
  if (below >= 0 && below > __ldcg(&n->below)) {
    atomicMax(&n->below, below);
  }
  if (above != kNoBin && above < __ldcg(&n->above)) {
    atomicMin(&n->above, above);
  }
}

/** @brief A winner among sorted columns. */
struct SortedSplit {
  float threshold;
  WinnerSegment entries;
};

struct SortedValues {
  FeatureTableRef table;
  RowsRef rows;
  SortedEntriesRef entries;

  /** @brief Value of the entry at an index of its column. */
  __device__ float At(std::uint32_t column, EntryIdx i) const {
    std::uint32_t word = entries.places[table.sorted.offsets[column] + i];
    return table.values.Find(rows.rows[PlaceWord::Place(word)], column);
  }
  __device__ RowRange Segment(Bucket b, std::uint32_t column) const {
    std::uint32_t sparse = table.sorted.sparse[column];
    return sparse == SortedColumnsRef::kDense
               ? rows.nodes[b]
               : entries.segments[std::uint64_t{b} * table.sorted.n_sparse + sparse];
  }
  __device__ SortedSplit Resolve(Winner const& w, Bucket b) const {
    std::uint32_t const column = table.sorted_of[w.feature];
    RowRange const s = this->Segment(b, column);
    ScanDirection const d = w.candidate.direction;
    RowIdx first_right = w.Forward() ? s.end : s.begin;  // as the candidate has it
    float threshold;
    if (w.candidate.present) {
      threshold = PresentThreshold(d, this->At(column, w.Forward() ? s.end - 1 : s.begin));
    } else {
      first_right = static_cast<RowIdx>(w.candidate.value - w.values.first);
      threshold = MidThreshold(d, this->At(column, first_right - 1), this->At(column, first_right));
    }
    // The threshold decides: between neighbouring floats it may do so otherwise than the candidate.
    auto goes_right = [&](RowIdx i) { return !(this->At(column, i) < threshold); };
    if ((first_right != s.begin && goes_right(first_right - 1)) ||
        (first_right != s.end && !goes_right(first_right))) {
      first_right = FirstIndex(s.begin, s.end, goes_right);
    }
    EntryIdx const begin = table.sorted.offsets[column];
    return {threshold, {begin + s.begin, begin + first_right, begin + s.end}};
  }
};

// one thread a node
__global__ void ResolveWinnersKernel(LevelRef level, SortedValues sorted,
                                     NeighbourBins const* neighbours, WinnerSegment* winners,
                                     LevelResult* out) {
  auto b = static_cast<Bucket>(GlobalIdx());
  if (b >= level.n_nodes) {
    return;
  }
  FeatureTableRef const& table = sorted.table;
  RowRange node = sorted.rows.nodes[b];
  LevelResult result{level.nodes[b], {0.0f, 0, 0.0f, 0, 0}, {node.begin, node.end}, {0, 0}};
  WinnerSegment winner{0, 0, 0};
  std::uint64_t key = level.best[b];
  if (key != 0) {
    Winner w{level.columns, key};
    float threshold;
    if (table.sorted_of[w.feature] != FeatureTableRef::kNotSorted) {
      SortedSplit split = sorted.Resolve(w, b);
      threshold = split.threshold;
      winner = split.entries;
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
  winners[b] = winner;
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
          SortedValues{table, rows, sorted}, neighbours_.Data(), winners_.Reserve(level.n_nodes),
          out);
  places_ = sorted.places;
}
}  // namespace gpu_exact
