/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of best_split.cuh.
 */
#include "device/sort/thresholds.cuh"

namespace gpu_exact {
namespace {
constexpr unsigned kWarp = 32;

/** @brief Finds values of a node where entries are sorted by node. All lanes of a warp. */
template <typename EntryT>
struct SortedLookup {
  EntryT const* entries;
  NodeRangesRef ranges;

  __device__ EntryIdx Position(Bucket bucket, std::uint64_t value) const {
    auto e = entries;
    return FirstIndexByWarp(ranges.ranges[bucket].begin, ranges.ranges[bucket].end,
                            [=](EntryIdx i) { return e[i].value >= value; });
  }
  /** @brief The node's greatest value id below one; it exists. */
  __device__ ValueId Below(Bucket bucket, FeatureIdx, std::uint64_t value) const {
    return entries[this->Position(bucket, value) - 1].value;
  }
  /** @brief The node's least value id of a feature; it exists. */
  __device__ ValueId Least(Bucket bucket, FeatureIdx, ValueRange values) const {
    return entries[this->Position(bucket, values.first)].value;
  }
  __device__ EntryRange NodeEntries(Bucket bucket) const { return ranges.ranges[bucket]; }
  __device__ EntryRange FeatureEntries(Bucket bucket, ValueRange values) const {
    return {this->Position(bucket, values.first), this->Position(bucket, values.last)};
  }
};

/** @brief The same where nodes are mixed in the columns. All lanes of a warp. */
template <typename EntryT>
struct InterleavedLookup {
  InterleavedRef<EntryT> in;

  __device__ EntryIdx Position(std::uint64_t value) const {
    auto e = in.entries.entries;
    return FirstIndexByWarp(EntryIdx{0}, in.n_entries,
                            [=](EntryIdx i) { return e[i].value >= value; });
  }
  /** @brief The long tile that has the entry; n_long: a shared one has. */
  __device__ std::uint32_t LongTileOf(EntryIdx i) const {
    auto tiles = in.long_tiles;
    auto const t = FirstIndexByWarp(std::uint32_t{0}, in.n_long,
                                    [=](std::uint32_t j) { return tiles[j].entries.end > i; });
    return t < in.n_long && tiles[t].entries.begin <= i ? t : in.n_long;
  }
  /** @brief Of 32 entries, those of the node. @param i Of this lane; past `end` it has none. */
  __device__ unsigned InNode(EntryIdx i, EntryIdx end, Bucket bucket) const {
    return __ballot_sync(kAllLanes, i < end && in.row_keys[in.entries[i].row] == bucket);
  }
  __device__ ValueId Below(Bucket bucket, FeatureIdx, std::uint64_t value) const {
    EntryIdx end = this->Position(value);
    std::uint32_t const tile = this->LongTileOf(end - 1);
    bool const is_long = tile < in.n_long;
    EntryIdx const begin = is_long ? in.long_tiles[tile].entries.begin : 0;
    while (end > begin) {
      // Past entry 0 it wraps around.
      unsigned const hits = this->InNode(end - 1 - threadIdx.x, end, bucket);
      if (hits != 0) {
        EntryIdx const i = end - __ffs(hits);
        return i >= begin ? in.entries[i].value : in.Sum(bucket, tile - 1).last_value;
      }
      end -= min(end - begin, EntryIdx{kWarp});
    }
    return is_long ? in.Sum(bucket, tile - 1).last_value : 0;  // a short column has the entry
  }
  __device__ ValueId Least(Bucket bucket, FeatureIdx, ValueRange values) const {
    EntryIdx begin = this->Position(values.first);
    std::uint32_t tile = this->LongTileOf(begin);
    if (tile < in.n_long) {
      auto const& self = *this;
      tile = FirstIndexByWarp(tile, in.long_tiles[tile].last + 1, [&](std::uint32_t t) {
        return self.in.Sum(bucket, t).occupied != 0;
      });
      begin = in.long_tiles[tile].entries.begin;
    }
    for (EntryIdx i = begin; i < in.n_entries; i += kWarp) {
      unsigned const hits = this->InNode(i + threadIdx.x, in.n_entries, bucket);
      if (hits != 0) {
        return in.entries[i + __ffs(hits) - 1].value;
      }
    }
    return 0;  // not reached: the column has an entry of the node
  }
  __device__ EntryRange NodeEntries(Bucket) const { return {0, 0}; }
  __device__ EntryRange FeatureEntries(Bucket, ValueRange) const { return {0, 0}; }
};

// grid: one warp a node
template <typename LookupT>
__global__ void ResolveKernel(LevelRef level, LookupT lookup, LevelResult* out) {
  AwaitEarlier();
  Bucket bucket = blockIdx.x;
  std::uint64_t key = level.best[bucket];
  LevelResult result{
      level.nodes[bucket], {0.0f, 0, 0.0f, 0, 0}, lookup.NodeEntries(bucket), {0, 0}};
  if (CandidateKey::IsHere(key)) {
    ColumnsRef const& columns = level.columns;
    std::uint64_t place = CandidateKey::PlaceOf(key);
    FeatureIdx f = columns.FeatureOf(CandidateKey::AnyValueOf(place));
    ValueRange values = columns.Values(f);
    Candidate c = Candidate::FromPlace(values, place);
    bool forward = c.direction == ScanDirection::kForward;
    float threshold;
    if (c.present) {
      ValueId last =
          forward ? lookup.Below(bucket, f, values.last) : lookup.Least(bucket, f, values);
      threshold = PresentThreshold(c.direction, columns.values[last]);
    } else {
      ValueId below = lookup.Below(bucket, f, c.value);
      threshold = MidThreshold(c.direction, columns.values[below], columns.values[c.value]);
    }
    auto v = columns.values;
    auto first_right = FirstIndexByWarp(values.first, values.last,
                                        [=](std::uint64_t id) { return !(v[id] < threshold); });
    result.split = {CandidateKey::LossChange(key), f, threshold, forward ? 0u : 1u, first_right};
    result.winner = lookup.FeatureEntries(bucket, values);
  }
  if (threadIdx.x == 0) {
    out[bucket] = result;
  }
}
}  // namespace

template <typename EntryT>
void ResolveSplits(LevelRef const& level, InterleavedRef<EntryT> const& in, LevelResult* out) {
  Launch("Resolve", ResolveKernel<InterleavedLookup<EntryT>>, level.n_nodes, kWarp, level,
         InterleavedLookup<EntryT>{in}, out);
}
template void ResolveSplits(LevelRef const&, InterleavedRef<CarriedEntry> const&, LevelResult*);
template void ResolveSplits(LevelRef const&, InterleavedRef<ColumnEntry> const&, LevelResult*);

template <typename EntryT>
void ResolveSplits(LevelRef const& level, EntriesRef<EntryT> const& entries,
                   NodeRangesRef const& ranges, LevelResult* out) {
  Launch("Resolve", ResolveKernel<SortedLookup<EntryT>>, level.n_nodes, kWarp, level,
         SortedLookup<EntryT>{entries.entries, ranges}, out);
}
template void ResolveSplits(LevelRef const&, EntriesRef<CarriedEntry> const&, NodeRangesRef const&,
                            LevelResult*);
template void ResolveSplits(LevelRef const&, EntriesRef<ColumnEntry> const&, NodeRangesRef const&,
                            LevelResult*);
}  // namespace gpu_exact
