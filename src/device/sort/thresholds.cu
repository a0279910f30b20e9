/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements thresholds.cuh.
 */
#include "device/sort/thresholds.cuh"

namespace gpu_exact {
namespace {
constexpr unsigned kWarp = 32;

/** @brief Looks up values of a node. All lanes of a warp. */
struct ValueLookup {
  TilesRef in;
  RowNodesRef rows;

  __device__ EntryIdx Position(std::uint64_t value) const {
    auto e = in.entries;
    return WarpPartitionPoint(EntryIdx{0}, in.n_entries,
                              [=](EntryIdx i) { return e[i].value >= value; });
  }
  /** @brief Find the long tile that has the entry; n_long: one of a block or warp has. */
  __device__ std::uint32_t LongTileOf(EntryIdx i) const {
    auto tiles = in.long_tiles;
    auto const t = WarpPartitionPoint(std::uint32_t{0}, in.n_long,
                                      [=](std::uint32_t j) { return tiles[j].entries.end > i; });
    return t < in.n_long && tiles[t].entries.begin <= i ? t : in.n_long;
  }
  /** @brief Mark those of 32 entries that are of the node. @param i This lane's entry; past `end` it has
   *         none. */
  __device__ unsigned InNode(EntryIdx i, EntryIdx end, LevelNode level_node) const {
    return __ballot_sync(kAllLanes, i < end && rows.NodeOf(in.entries[i].row) == level_node);
  }
  /** @brief Find the node's greatest value id below one; it exists. */
  __device__ ValueId Below(LevelNode level_node, std::uint64_t value) const {
    EntryIdx end = this->Position(value);
    std::uint32_t const tile = this->LongTileOf(end - 1);
    bool const is_long = tile < in.n_long;
    EntryIdx const begin = is_long ? in.long_tiles[tile].entries.begin : 0;
    while (end > begin) {
      // Past entry 0 it wraps around.
      unsigned const hits = this->InNode(end - 1 - threadIdx.x, end, level_node);
      if (hits != 0) {
        EntryIdx const i = end - __ffs(hits);
        return i >= begin ? in.entries[i].value : in.Sum(level_node, tile - 1).last_value;
      }
      end -= min(end - begin, EntryIdx{kWarp});
    }
    return is_long ? in.Sum(level_node, tile - 1).last_value : 0;  // a short column has the entry
  }
  /** @brief Find the node's least value id of a feature; it exists. */
  __device__ ValueId Least(LevelNode level_node, ValueRange values) const {
    EntryIdx begin = this->Position(values.begin);
    std::uint32_t tile = this->LongTileOf(begin);
    if (tile < in.n_long) {
      auto const& self = *this;
      tile = WarpPartitionPoint(tile, in.long_tiles[tile].last + 1, [&](std::uint32_t t) {
        return self.in.Sum(level_node, t).occupied != 0;
      });
      begin = in.long_tiles[tile].entries.begin;
    }
    for (EntryIdx i = begin; i < in.n_entries; i += kWarp) {
      unsigned const hits = this->InNode(i + threadIdx.x, in.n_entries, level_node);
      if (hits != 0) {
        return in.entries[i + __ffs(hits) - 1].value;
      }
    }
    return 0;  // not reached: the column has an entry of the node
  }
};

// grid: one warp a node
__global__ void LookUpThresholdsKernel(LevelRef lv, ValueLookup lookup, LevelResult* out,
                                       std::uint64_t* out_first_right) {
  WaitForPreviousKernel();
  LevelNode level_node = blockIdx.x;
  std::uint64_t key = lv.best[level_node];
  LevelResult result{lv.nodes[level_node], {0.0f, 0, 0.0f, 0}};
  if (CandidateKey::IsLocal(key)) {
    ColumnsRef const& columns = lv.columns;
    std::uint64_t rank = CandidateKey::RankOf(key);
    FeatureIdx f = columns.FeatureOf(CandidateKey::AnyValueOf(rank));
    ValueRange values = columns.Values(f);
    Candidate c = Candidate::FromRank(values, rank);
    bool forward = c.direction == ScanDirection::kForward;
    float threshold;
    if (c.present) {
      ValueId last =
          forward ? lookup.Below(level_node, values.end) : lookup.Least(level_node, values);
      threshold = PresentThreshold(c.direction, columns.values[last]);
    } else {
      float const below = columns.values[lookup.Below(level_node, c.value)];
      float const above = columns.values[c.value];
      threshold = forward ? MidThreshold(below, above) : MidThreshold(above, below);
    }
    auto v = columns.values;
    auto const first_right = WarpPartitionPoint(
        values.begin, values.end, [=](std::uint64_t id) { return !(v[id] < threshold); });
    result.split = lv.SplitOf(level_node, f, c.direction, threshold);
    if (threadIdx.x == 0) {
      out_first_right[level_node] = first_right;
    }
  }
  if (threadIdx.x == 0) {
    out[level_node] = result;
  }
}
}  // namespace

void FindThresholds(LevelRef const& lv, TilesRef const& tiles, RowNodesRef const& rows,
                    LevelResult* out, std::uint64_t* out_first_right) {
  Launch("LookUpThresholds", LookUpThresholdsKernel, lv.n_nodes, kWarp, lv,
         ValueLookup{tiles, rows}, out, out_first_right);
}
}  // namespace gpu_exact
