/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements threshold_finder.cuh.
 */
#include <algorithm>
#include <limits>

#include "device/histogram/threshold_finder.cuh"
#include "device/runtime/warp.cuh"

namespace gpu_exact {
namespace {
constexpr FeatureIdx kNoFeature = std::numeric_limits<FeatureIdx>::max();
constexpr int kThreads = 256;
constexpr int kReadSlots = 4;  // per thread: each looks up its node only where it changes
constexpr int kRows = 4;       // per thread: all are asked for before the first is used

// one thread a node
__global__ void ReadCandidatesKernel(LevelRef level, BinMatrixRef binned, SearchedNode const* nodes,
                                     LevelNode n_nodes, RefinedCandidates refined,
                                     NodeThreshold* out, std::uint32_t* n_rerouted) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i == 0) {
    *n_rerouted = 0;  // counted once all nodes have been read
  }
  if (i >= n_nodes) {
    return;
  }
  LevelNode const b = nodes[i].level_node;
  std::uint64_t const key = level.best[b];
  NodeThreshold point{};
  point.feature = kNoFeature;
  point.scanned = point.next = point.next_bin = point.beyond = ScanValue::kNone;
  if (CandidateKey::IsLocal(key)) {
    BestCandidate const best{level.columns, key};
    point.feature = best.feature;
    point.direction = best.direction;
    if (level.rules[best.feature].categorical) {
      point.by_categories = true;
      point.direction = level.SendsMissingLeft(best.feature, key) ? ScanDirection::kBackward
                                                                  : ScanDirection::kForward;
      out[b] = point;
      return;
    }
    std::uint64_t const bin = binned.bins.offsets[best.feature] + best.bin;
    point.scanned = ScanValue::Make(best.direction, binned.bins.lowest[bin]);
    if (binned.bins.is_range[bin] != 0) {
      // The bound of a best candidate's range reaches it, so that the range was looked into.
      FoundCandidate const found =
          refined.n_columns == 0
              ? refined.found[i]
              : refined.found[i * refined.n_columns + binned.column_of[best.feature]];
      if (found.key == key && found.scan_value != ScanValue::kNone) {
        point.scanned = found.scan_value;
      }
    }
  }
  out[b] = point;
}

/** @brief Call fn(std::bool_constant), for kernels that need not ask. */
template <typename FnT>
void WithConstant(bool is_true, FnT&& fn) {
  if (is_true) {
    fn(std::true_type{});
  } else {
    fn(std::false_type{});
  }
}

/** @brief Tell whether a row goes left by the value that the best candidate lies beside, or by the set of its
 *         node. @tparam kSets Whether there are any. */
template <bool kSets>
__device__ bool GoesLeft(NodeThreshold const& point, LevelSetsRef const& sets, LevelNode b,
                         float value) {
  if (kSets && point.by_categories) {
    return isnan(value) ? point.direction == ScanDirection::kBackward
                        : !HasCategory(sets.Of(b), value);
  }
  bool const is_scanned = !isnan(value) && ScanValue::Make(point.direction, value) <= point.scanned;
  return point.direction == ScanDirection::kForward ? is_scanned : !is_scanned;
}

/** @brief Give a value on the other side of the candidate, or kNone. */
template <bool kSets>
__device__ std::uint32_t NextOf(NodeThreshold const& point, float value) {
  if (isnan(value) || (kSets && point.by_categories)) {
    return ScanValue::kNone;
  }
  std::uint32_t const scan_value = ScanValue::Make(point.direction, value);
  return scan_value > point.scanned ? scan_value : ScanValue::kNone;
}

/**
 * @brief Keep the least of what all slots of a node offer. All lanes of a warp.
 * @param field Of the node's point.
 * @param value kNone: nothing is offered.
 */
__device__ void OfferNext(NodeThreshold* points, LevelNode b, std::uint32_t NodeThreshold::*field,
                          std::uint32_t value) {
  int uniform{0};
  __match_all_sync(kAllLanes, b, &uniform);
  if (uniform != 0) {  // all are of one node: one lane offers for the warp
    value = WarpMin(value);
    value = threadIdx.x % 32 == 0 ? value : ScanValue::kNone;
  }
  if (value != ScanValue::kNone && value < __ldcg(&(points[b].*field))) {
    atomicMin(&(points[b].*field), value);
  }
}

/** @brief Deals out rows of a table to a warp, 32 at a time. */
struct RowTurns {
  std::uint64_t word;  // of the first ones
  std::uint64_t n_words;
  RowIdx n_rows;

  __device__ explicit RowTurns(RowIdx n)
      : word{kRows * (GlobalIdx() / 32)}, n_words{n / 32 + std::uint64_t{1}}, n_rows{n} {}
  [[nodiscard]] __device__ bool Any() const { return word < n_words; }
  [[nodiscard]] __device__ std::uint64_t Row(int k) const {
    return (word + k) * 32 + threadIdx.x % 32;
  }
  /** @brief kNowhere past the end. */
  [[nodiscard]] __device__ ShortLevelNode NodeOf(RowsRef const& rows, int k) const {
    return this->Row(k) < n_rows ? rows.node_of[this->Row(k)] : kNowhere;
  }
  __device__ void WriteWord(std::uint32_t* words, int k, bool is_set) const {
    std::uint32_t const bits = __ballot_sync(kAllLanes, is_set);
    if (threadIdx.x % 32 == 0 && word + k < n_words) {
      words[word + k] = bits;
    }
  }
  __device__ void Next() { word += kRows * (std::uint64_t{gridDim.x} * blockDim.x / 32); }
};

// grid: strided over rows; result: as FindNextKernel, by row
template <bool kSets>
__global__ __launch_bounds__(kThreads) void FindNextByRowKernel(BinnedTableRef table, RowsRef rows,
                                                                LevelNode n_nodes, RowIdx n_rows,
                                                                NodeThreshold* points,
                                                                std::uint32_t* left_of_row,
                                                                LevelSetsRef sets) {
  WaitForPreviousKernel();
  extern __shared__ std::uint32_t next[];  // by node, of the rows of this block
  for (LevelNode b = threadIdx.x; b < n_nodes; b += kThreads) {
    next[b] = ScanValue::kNone;
  }
  __syncthreads();
  for (RowTurns turns{n_rows}; turns.Any(); turns.Next()) {
    ShortLevelNode node[kRows];
    NodeThreshold point[kRows];
    float value[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      node[k] = turns.NodeOf(rows, k);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      point[k].feature = kNoFeature;
      if (node[k] != kNowhere) {
        point[k] = points[node[k]];
      }
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      value[k] = point[k].feature != kNoFeature
                     ? table.ValueOf(static_cast<RowIdx>(turns.Row(k)), point[k].feature)
                     : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      bool const any = point[k].feature != kNoFeature;
      turns.WriteWord(left_of_row, k, any && GoesLeft<kSets>(point[k], sets, node[k], value[k]));
      std::uint32_t const offered = any ? NextOf<kSets>(point[k], value[k]) : ScanValue::kNone;
      if (offered != ScanValue::kNone && offered < next[node[k]]) {
        atomicMin(next + node[k], offered);
      }
    }
  }
  __syncthreads();
  for (LevelNode b = threadIdx.x; b < n_nodes; b += kThreads) {
    if (next[b] < __ldcg(&points[b].next)) {
      atomicMin(&points[b].next, next[b]);
    }
  }
}

/** @brief Tell whether a row of an open node goes left, by the node's threshold where it says
 *         otherwise than the candidate. */
__device__ bool Rerouted(BinnedTableRef const& table, NodeThreshold const& point, RowIdx row,
                         bool left) {
  return point.reroutes ? table.GoesLeft(row, point.feature, point.threshold,
                                         point.direction == ScanDirection::kBackward)
                        : left;
}

// grid: strided over rows; result: as RerouteKernel, by row
__global__ __launch_bounds__(kThreads) void RerouteByRowKernel(BinnedTableRef table, RowsRef rows,
                                                               NodeThreshold const* points,
                                                               std::uint32_t const* n_rerouted,
                                                               RowIdx n_rows,
                                                               std::uint32_t* left_of_row) {
  WaitForPreviousKernel();
  if (*n_rerouted == 0) {
    return;
  }
  for (RowTurns turns{n_rows}; turns.Any(); turns.Next()) {
    for (int k = 0; k < kRows && turns.word + k < turns.n_words; ++k) {
      ShortLevelNode const b = turns.NodeOf(rows, k);
      bool left = (left_of_row[turns.word + k] >> threadIdx.x % 32 & 1u) != 0;
      if (b != kNowhere) {
        left = Rerouted(table, points[b], static_cast<RowIdx>(turns.Row(k)), left);
      }
      turns.WriteWord(left_of_row, k, left);
    }
  }
}

// one thread a node; result: where in the scan the candidate's bin is
__global__ void FindBinsKernel(BinnedTableRef table, LevelNode n_nodes, NodeThreshold* points) {
  WaitForPreviousKernel();
  auto b = GlobalIdx();
  if (b < n_nodes && points[b].feature != kNoFeature && !points[b].by_categories) {
    NodeThreshold const p = points[b];
    float const value = ScanValue::Read(p.direction, p.scanned);
    points[b].bin = p.InOrder(static_cast<int>(table.finest.bins.BinOf(p.feature, value)));
  }
}

// grid: slots and one more; result: the nearest value on the other side, which rows go left
// kSets: rows of some nodes go by a set; kBins: values are the host's, and beyond the candidate's bin only
// the next bin is found
template <int kSlots, bool kSets, bool kBins>
__global__ __launch_bounds__(kThreads) void FindNextKernel(BinnedTableRef table, RowsRef rows,
                                                           LevelNode n_nodes, RowIdx n_slots,
                                                           NodeThreshold* points,
                                                           RankBitVectorRef goes_left,
                                                           LevelSetsRef sets) {
  WaitForPreviousKernel();
  ForEachSlot<kThreads, kSlots>(rows, n_nodes, n_slots, [&](int, std::uint64_t slot, LevelNode b) {
    std::uint32_t next{ScanValue::kNone};
    std::uint32_t next_bin{ScanValue::kNone};
    bool left{false};
    if (b != n_nodes && points[b].feature != kNoFeature) {
      NodeThreshold const point = points[b];
      RowIdx const row = rows.rows[slot];
      if (kBins && !(kSets && point.by_categories)) {
        int const bin = table.finest.BinOf(row, point.feature);
        bool is_scanned{false};
        if (bin >= 0) {
          std::uint32_t const at = point.InOrder(bin);
          is_scanned = at < point.bin;
          next_bin = at > point.bin ? at : next_bin;
          if (at == point.bin) {
            auto const value = ScanValue::Make(point.direction, table.ValueOf(row, point.feature));
            is_scanned = value <= point.scanned;
            next = is_scanned ? next : value;
          }
        }
        left = is_scanned == (point.direction == ScanDirection::kForward);
      } else {
        float const value = table.ValueOf(row, point.feature);
        left = GoesLeft<kSets>(point, sets, b, value);
        next = NextOf<kSets>(point, value);
      }
    }
    if (slot / 32 <= n_slots / 32) {
      goes_left.WriteWord(slot, left);
    }
    OfferNext(points, b, &NodeThreshold::next, next);
    if (kBins) {
      OfferNext(points, b, &NodeThreshold::next_bin, next_bin);
    }
  });
}

// grid: slots; result: the least value in the next bin, of nodes that have none in the candidate's
template <int kSlots>
__global__ __launch_bounds__(kThreads) void FindValuesBeyondKernel(BinnedTableRef table,
                                                                   RowsRef rows, LevelNode n_nodes,
                                                                   RowIdx n_slots,
                                                                   NodeThreshold* points) {
  WaitForPreviousKernel();
  ForEachSlot<kThreads, kSlots>(rows, n_nodes, n_slots, [&](int, std::uint64_t slot, LevelNode b) {
    std::uint32_t beyond{ScanValue::kNone};
    if (b != n_nodes && points[b].next_bin != ScanValue::kNone &&
        points[b].next == ScanValue::kNone) {
      NodeThreshold const point = points[b];
      RowIdx const row = rows.rows[slot];
      int const bin = table.finest.BinOf(row, point.feature);
      if (bin >= 0 && point.InOrder(bin) == point.next_bin) {
        beyond = ScanValue::Make(point.direction, table.ValueOf(row, point.feature));
      }
    }
    OfferNext(points, b, &NodeThreshold::beyond, beyond);
  });
}

// one thread a node
__global__ void FindThresholdsKernel(LevelRef level, NodeThreshold* points,
                                     std::uint32_t* n_rerouted, LevelResult* out) {
  WaitForPreviousKernel();
  auto b = static_cast<LevelNode>(GlobalIdx());
  if (b >= level.n_nodes) {
    return;
  }
  LevelResult result{level.nodes[b], {0.0f, 0, 0.0f, 0}};
  NodeThreshold const p = points[b];
  if (p.feature != kNoFeature && p.by_categories) {
    result.split = level.SplitOf(b, p.feature, p.direction, 0.0f);
  } else if (p.feature != kNoFeature) {
    bool const forward = p.direction == ScanDirection::kForward;
    float const scanned = ScanValue::Read(p.direction, p.scanned);
    float threshold;
    // The threshold decides: between neighbouring floats, or huge ones, it may do so otherwise than
    // the candidate.
    bool agrees = true;
    std::uint32_t const nearest = min(p.next, p.beyond);
    if (nearest == ScanValue::kNone) {
      threshold = PresentThreshold(p.direction, scanned);
    } else {
      float const next = ScanValue::Read(p.direction, nearest);
      threshold = MidThreshold(scanned, next);
      agrees = (next < threshold) != forward;
    }
    agrees = agrees && (scanned < threshold) == forward;
    if (!agrees) {
      points[b].reroutes = true;
      points[b].threshold = threshold;
      atomicAdd(n_rerouted, 1u);
    }
    result.split = level.SplitOf(b, p.feature, p.direction, threshold);
  }
  out[b] = result;
}

// grid: slots; result: which rows go left, of nodes whose threshold says otherwise
template <int kSlots>
__global__ __launch_bounds__(kThreads) void RerouteKernel(BinnedTableRef table, RowsRef rows,
                                                          NodeThreshold const* points,
                                                          std::uint32_t const* n_rerouted,
                                                          LevelNode n_nodes, RowIdx n_slots,
                                                          RankBitVectorRef goes_left) {
  WaitForPreviousKernel();
  if (*n_rerouted == 0) {
    return;
  }
  ForEachSlot<kThreads, kSlots>(rows, n_nodes, n_slots, [&](int, std::uint64_t slot, LevelNode b) {
    if (slot / 32 > n_slots / 32) {
      return;
    }
    bool left = goes_left.words[slot / 32].Has(slot % 32);
    if (b != n_nodes) {
      left = Rerouted(table, points[b], rows.rows[slot], left);
    }
    goes_left.WriteWord(slot, left);
  });
}
}  // namespace

void ThresholdFinder::Read(LevelRef const& level, BinMatrixRef const& binned,
                           SearchedNode const* nodes, LevelNode n_nodes,
                           RefinedCandidates const& refined) {
  LaunchN("ReadCandidates", ReadCandidatesKernel, n_nodes, level, binned, nodes, n_nodes, refined,
          points_.Reserve(level.n_nodes), n_rerouted_.Reserve(1));
}

void ThresholdFinder::ResolveByRow(LevelRef const& level, BinnedTableRef const& table,
                                   RowsRef const& rows, std::uint32_t* out_left_of_row,
                                   LevelResult* out, LevelSetsRef const& sets) {
  RowIdx const n_rows = level.columns.n_rows;
  // Enough rows in each block for what it tells of all nodes.
  std::uint64_t const of_block = std::max<std::uint64_t>(kRows * kThreads, 4 * level.n_nodes);
  std::uint64_t const n_blocks =
      std::min<std::uint64_t>(CeilDiv(std::uint64_t{n_rows} + 1, of_block),
                              8 * DeviceAttribute(cudaDevAttrMultiProcessorCount));
  WithConstant(sets.words != nullptr, [&](auto has_sets) {
    Launch("FindNextByRow", FindNextByRowKernel<decltype(has_sets)::value>, n_blocks,
           {kThreads, level.n_nodes * sizeof(std::uint32_t)}, table, rows, level.n_nodes, n_rows,
           points_.Data(), out_left_of_row, sets);
  });
  LaunchN("FindThresholds", FindThresholdsKernel, level.n_nodes, level, points_.Data(),
          n_rerouted_.Data(), out);
  resolved_.Record();
  Launch("RerouteByRow", RerouteByRowKernel, n_blocks, kThreads, table, rows, points_.Data(),
         n_rerouted_.Data(), n_rows, out_left_of_row);
}

void ThresholdFinder::Resolve(LevelRef const& level, BinnedTableRef const& table,
                              RowsRef const& rows, RowIdx n_slots,
                              RankBitVectorRef const& goes_left, LevelResult* out,
                              LevelSetsRef const& sets) {
  WithSlots<kReadSlots>(n_slots, [&](auto slots) {
    constexpr int kSlots = decltype(slots)::value;
    std::uint64_t const n_blocks =
        SlotTurns::Grid(std::uint64_t{n_slots} + 1, kThreads * kSlots, level.n_nodes);
    if (table.values_of_host) {
      LaunchN("FindBins", FindBinsKernel, level.n_nodes, table, level.n_nodes, points_.Data());
    }
    WithConstant(sets.words != nullptr, [&](auto has_sets) {
      WithConstant(table.values_of_host, [&](auto by_bins) {
        Launch("FindNext",
               FindNextKernel<kSlots, decltype(has_sets)::value, decltype(by_bins)::value>,
               n_blocks, kThreads, table, rows, level.n_nodes, n_slots, points_.Data(), goes_left,
               sets);
      });
    });
    if (table.values_of_host) {
      Launch("FindValuesBeyond", FindValuesBeyondKernel<kSlots>, n_blocks, kThreads, table, rows,
             level.n_nodes, n_slots, points_.Data());
    }
    LaunchN("FindThresholds", FindThresholdsKernel, level.n_nodes, level, points_.Data(),
            n_rerouted_.Data(), out);
    resolved_.Record();
    Launch("Reroute", RerouteKernel<kSlots>, n_blocks, kThreads, table, rows, points_.Data(),
           n_rerouted_.Data(), level.n_nodes, n_slots, goes_left);
  });
}
}  // namespace gpu_exact
