/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of best_split.cuh.
 */
#include "src/device/sort/best_split.cuh"

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

  __device__ bool InNode(EntryIdx i, Bucket bucket) const {
    return in.row_keys[in.entries[i].row] == bucket;
  }
  __device__ ValueId Below(Bucket bucket, FeatureIdx f, std::uint64_t value) const {
    auto e = in.entries.entries;
    auto [begin, column_end] = in.OfFeature(f);
    EntryIdx end =
        FirstIndexByWarp(begin, column_end, [=](EntryIdx i) { return e[i].value >= value; });
    auto tile =
        in.tiles.of_feature[f] + static_cast<std::uint32_t>((end - 1 - begin) / kInterleavedTile);
    begin = in.OfTile(tile).begin;
    while (end > begin) {
      EntryIdx i = end - 1 - threadIdx.x;  // wraps around past entry 0
      bool hit = threadIdx.x < end - begin && this->InNode(i, bucket);
      unsigned hits = __ballot_sync(kAllLanes, hit);
      if (hits != 0) {
        return e[end - __ffs(hits)].value;
      }
      end -= min(end - begin, EntryIdx{kWarp});
    }
    return in.Sum(bucket, tile - 1).last_value;
  }
  __device__ ValueId Least(Bucket bucket, FeatureIdx f, ValueRange) const {
    auto const& self = *this;
    auto tile =
        FirstIndexByWarp(in.tiles.of_feature[f], in.tiles.of_feature[f + 1],
                         [&](std::uint32_t t) { return self.in.Sum(bucket, t).occupied != 0; });
    EntryIdx end = in.OfFeature(f).end;
    for (EntryIdx i = in.OfTile(tile).begin; i < end; i += kWarp) {
      bool hit = i + threadIdx.x < end && this->InNode(i + threadIdx.x, bucket);
      unsigned hits = __ballot_sync(kAllLanes, hit);
      if (hits != 0) {
        return in.entries[i + __ffs(hits) - 1].value;
      }
    }
    return 0;  // not reached: the tile has an entry of the node
  }
  __device__ EntryRange NodeEntries(Bucket) const { return {0, 0}; }
  __device__ EntryRange FeatureEntries(Bucket, ValueRange) const { return {0, 0}; }
};

// grid: one warp a node
template <typename LookupT>
__global__ void ResolveKernel(LevelRef level, LookupT lookup, LevelResult* out) {
  Bucket bucket = blockIdx.x;
  std::uint64_t key = level.best[bucket];
  LevelResult result{
      level.nodes[bucket], {0.0f, 0, 0.0f, 0, 0}, lookup.NodeEntries(bucket), {0, 0}};
  if (key != 0) {
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
