/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements range_scanner.cuh.
 */
#include <algorithm>

#include "device/histogram/ranges/range_scanner.cuh"
#include "device/level/best_bound_first.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
constexpr int kScanThreads = 128;  // per block
constexpr int kScanBlocks = 8;     // on a multiprocessor: it waits for memory
/** @brief Sets the rows of a thread: all are asked for before the first is used. */
constexpr int kItems = SortedColumnsRef::kAtOnce;
/** @brief Sets up to how many entries on average ranges are each walked by a warp: more of them are
 *         under way then, and what they wait for costs more than their few steps. */
constexpr std::uint64_t kWarpsRange = 1024;
constexpr unsigned kListBlocks = 256;
constexpr unsigned kListThreads = 256;

/** @brief Bounds the entries of the table in a range: [begin, end) of its feature's sorted
 *         column. */
struct RangeEntries {
  FeatureIdx feature;
  std::uint32_t begin;
  std::uint32_t end;

  RangeEntries() = default;
  __device__ RangeEntries(LevelRef const& lv, BinMatrixRef const& binned, OpenRange const& range)
      : feature{binned.columns[range.column].feature},
        begin{binned.bins.first_rank[range.bin]},
        end{range.bin + 1 < binned.bins.offsets[feature + 1] ? binned.bins.first_rank[range.bin + 1]
                                                             : lv.columns.n_present[feature]} {}

  [[nodiscard]] __device__ std::int64_t Size() const { return end - begin; }
  /** @brief Estimate how many of them are a node's. */
  [[nodiscard]] __device__ std::int64_t OfNode(SearchedNode const& node, RowIdx n_rows) const {
    return this->Size() * node.rows.Size() / n_rows + 1;
  }
};

// grid: strided over the listed ranges; result: counts where the host reads them
__global__ void MeasureKernel(LevelRef lv, BinMatrixRef binned, SearchedNode const* nodes,
                              OpenRangesRef listed, OpenCounts* host_counts) {
  WaitForPreviousKernel();
  OpenCounts* const counts = listed.counts;
  std::uint32_t const n = listed.Size();
  std::int64_t n_scanned{0}, n_gathered{0};
  for (auto i = GlobalIdx(); i < n; i += gridDim.x * blockDim.x) {
    OpenRange const range = listed.list[i];
    SearchedNode const node = nodes[range.node];
    if (GainBound::Reaches(range.bound, lv.GainToBeat(node.level_node))) {
      RangeEntries const entries{lv, binned, range};
      n_scanned += entries.Size();
      n_gathered += entries.OfNode(node, lv.columns.n_rows);
    }
  }
  n_scanned = WarpSum(n_scanned);
  n_gathered = WarpSum(n_gathered);
  if (threadIdx.x % 32 == 0 && n_scanned != 0) {
    atomicAdd(&counts->n_scanned, static_cast<unsigned long long>(n_scanned));
    atomicAdd(&counts->n_gathered, static_cast<unsigned long long>(n_gathered));
  }
  __syncthreads();
  if (threadIdx.x == 0 && EndsGrid(&counts->n_ended)) {
    *host_counts = *counts;
  }
}

/** @brief Sums what a scan has passed of a range. Neighbouring parts add up. */
struct Passed {
  FixedSum sum;      // of the node's rows
  std::uint32_t at;  // the last one's entry
  bool any;          // whether there is one
  bool begun;        // whether a value begins past it; those of other nodes' rows count

  /** @brief Tell whether the node's next row has another value than its last one. @param begins
   *         Whether the value begins with that row. */
  [[nodiscard]] __device__ bool IsNew(bool begins) const { return begins || begun || !any; }
  __device__ friend Passed operator+(Passed const& a, Passed const& b) {
    return {a.sum + b.sum, b.any ? b.at : a.at, a.any || b.any, b.begun || (a.begun && !b.any)};
  }
};

/** @brief Order the candidates beside entries as a scan meets them. Its own inverse: it gives
 *         the entry of an order, too. */
__device__ std::uint32_t EntryOrder(ScanDirection d, std::uint32_t at) {
  return d == ScanDirection::kForward ? at : ~at;
}

/** @brief Holds the entries of a thread, in few registers. */
struct ScanItems {
  std::uint32_t at;             // the first one
  GradientUnits units[kItems];  // zero unless the row is the node's
  std::uint32_t bits;           // bit k: begins a value; bit kItems + k: is the node's

  /** @param first Number of the first. Those outside of the range begin no value, and are not the
   *         node's. */
  __device__ ScanItems(SortedColumnsRef const& sorted, unsigned char const* column,
                       RangeEntries const& entries, std::uint32_t first, RowsRef const& rows,
                       LevelNode number)
      : at{first}, bits{0} {
    auto const loaded =
        at < entries.end ? sorted.Load(column, at) : SortedColumnsRef::Entries{{0, 0, 0, 0}, 0};
    ShortLevelNode node[kItems];  // all are asked for before the first is used
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      bool const is_entry = at + k >= entries.begin && at + k < entries.end;
      bool const is_asked = is_entry && !rows.are_all;
      node[k] = is_entry ? 0 : kNowhere;
      if (is_asked) {
        node[k] = rows.node_of[loaded.row[k]];
      }
      bits |= is_entry ? loaded.begins & 1u << k : 0;
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      bits |= node[k] == number ? 1u << (kItems + k) : 0;
      units[k] = node[k] == number ? rows.units_of_row[loaded.row[k]] : GradientUnits{0.0f, 0.0f};
    }
  }
  /** @brief Sum absolute gradients and hessians. */
  [[nodiscard]] __device__ GradientUnits Magnitudes() const {
    GradientUnits sum{0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      sum = {sum.grad + fabsf(units[k].grad), sum.hess + units[k].hess};
    }
    return sum;
  }
  /** @brief Combine them, beginning with none passed. */
  [[nodiscard]] __device__ Passed All() const {
    Passed all{{0, 0}, 0, false, false};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      all = all + this->Get(k);
    }
    return all;
  }
  [[nodiscard]] __device__ bool Begins(int k) const { return (bits >> k & 1u) != 0; }
  [[nodiscard]] __device__ bool IsOfNode(int k) const { return (bits >> (kItems + k) & 1u) != 0; }
  [[nodiscard]] __device__ Passed Get(int k) const {
    bool const is_in = this->IsOfNode(k);
    return {units[k].Fixed(), at + k, is_in, !is_in && this->Begins(k)};
  }
};

/** @brief Holds an open range with what a walk through it needs. */
struct TakenRange {
  OpenRange range;
  RangeEntries entries;
  FixedSum total;                  // of its node
  LevelNode level_node;            // its node
  LevelNode number;                // of it, by RowsRef::numbers
  bool missing;                    // whether rows of the node have no value of the feature
  unsigned char const* of_column;  // sorted columns
};

/**
 * @brief Lets teams take open ranges from a list, some at a time: the first ones are dealt out, of
 *        those that are left whoever has ended takes the next. By one warp of a team.
 */
struct RangeQueue {
  static constexpr std::uint32_t kMost = 8;  // at a time

  LevelRef const& lv;
  BinMatrixRef const& binned;
  SortedColumnsRef const& sorted;
  SearchedNode const* nodes;
  LevelNode const* numbers;
  OpenRangesRef const& listed;
  BestInRange* found;
  std::uint32_t n;        // ranges in the list
  std::uint32_t at_once;  // up to kMost
  std::uint32_t n_dealt;  // places for ranges, at_once for each team

  /** @brief Take the next ranges for this team; does not wait. @return The first, to lane 0; if it
   *         is not below n, there are none. */
  [[nodiscard]] __device__ std::uint64_t Reserve() const {
    if (n <= n_dealt) {
      return n;
    }
    return threadIdx.x % 32 == 0
               ? n_dealt + atomicAdd(reinterpret_cast<unsigned long long*>(&listed.counts->n_taken),
                                     static_cast<unsigned long long>(at_once))
               : 0;
  }
  /** @brief Read reserved ranges. @return Bits of those that are open; others are closed for good. */
  [[nodiscard]] __device__ std::uint32_t Load(std::uint64_t first, TakenRange* out) const {
    std::uint32_t const lane = threadIdx.x % 32;
    std::int64_t n_entries{0};  // 0: it is closed
    if (lane < at_once && first + lane < n) {
      OpenRange const range = listed.list[first + lane];
      SearchedNode const node = nodes[range.node];
      RangeEntries const entries{lv, binned, range};  // asked for before the gain to beat is there
      FixedSum const total = lv.nodes[node.level_node].sum;
      if (GainBound::Reaches(range.bound, lv.GainToBeat(node.level_node))) {
        n_entries = entries.OfNode(node, lv.columns.n_rows);
        out[lane] = {range,
                     entries,
                     total,
                     node.level_node,
                     numbers[node.level_node],
                     !(range.present == total),
                     sorted.columns[entries.feature]};
      }
      found[first + lane].key = 0;
    }
    unsigned const open = __ballot_sync(kAllLanes, n_entries != 0);
    if (open != 0) {
      n_entries = WarpSum(n_entries);
      if (lane == 0) {
        atomicAdd(&listed.counts->n_entries, static_cast<unsigned long long>(n_entries));
      }
    }
    return open;
  }
};

/** @brief Joins threads that walk a range together: a warp, or a block. */
template <int kTeam>
struct ScanTeam {
  static constexpr int kTeams = kScanThreads / kTeam;  // per block

  Passed passed[kTeam / 32];  // by warp
  BestInRange of_warps[kTeam / 32];
  TakenRange taken[RangeQueue::kMost];
  std::uint64_t first;
  std::uint32_t open;

  __device__ static int Rank() { return static_cast<int>(threadIdx.x) % kTeam; }
  __device__ static void Sync() {
    if constexpr (kTeam == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
  /** @brief Combine what was passed before the thread's items. @param all Before the team's tile,
   *         then with it. */
  __device__ Passed PassedBefore(Passed const& own, Passed* all) {
    FixedSum const sum = WarpInclusiveSum(own.sum);
    // The last row below a lane, and whether a value begins past it, are told by bits of the lanes.
    std::uint32_t const any = __ballot_sync(kAllLanes, own.any);
    std::uint32_t const begun = __ballot_sync(kAllLanes, own.begun);
    auto of_lanes = [&](std::uint32_t lanes, FixedSum const& of_sum) {
      int const last = 31 - __clz(static_cast<int>(any & lanes));  // -1: there is none
      std::uint32_t const at = __shfl_sync(kAllLanes, own.at, last);
      return Passed{of_sum, at, last >= 0, (begun & lanes & (last < 0 ? ~0u : ~0u << last)) != 0};
    };
    Passed const before = of_lanes(LaneMaskLt(), sum - own.sum);
    Passed const of_warp = of_lanes(kAllLanes, Shuffle(sum, 31));
    if constexpr (kTeam == 32) {
      Passed const before_all = *all + before;
      *all = *all + of_warp;
      return before_all;
    } else {
      if (Rank() % 32 == 0) {
        passed[Rank() / 32] = of_warp;
      }
      Sync();
      Passed before_warp = *all;
      for (int w = 0; w < kTeam / 32; ++w) {
        before_warp = w == Rank() / 32 ? *all : before_warp;
        *all = *all + passed[w];
      }
      return before_warp + before;
    }
  }
  /** @brief Bring the best of all threads' candidates to the thread of rank 0. */
  __device__ BestInRange Best(BestInRange best) {
    best = WarpReduce(best, BetterCandidate{});
    if constexpr (kTeam > 32) {
      if (Rank() % 32 == 0) {
        of_warps[Rank() / 32] = best;
      }
      Sync();
      for (int w = 1; w < kTeam / 32 && Rank() == 0; ++w) {
        best = BetterCandidate{}(best, of_warps[w]);
      }
    }
    return best;
  }
};

/** @brief Tries the candidates of one open range. */
struct RangeCandidates {
  LevelRef const& lv;
  TakenRange const& taken;

  [[nodiscard]] __device__ FixedSum Before(Passed const& passed) const {
    return taken.range.before + passed.sum;
  }
  /** @brief Tell whether a candidate beside any of the items may reach the gain to beat; false only
   *         if none can. */
  [[nodiscard]] __device__ bool AnyMayReach(ScanItems const& items, Passed const& passed,
                                            float to_beat) const {
    FixedSum const before = this->Before(passed);
    GradientUnits const magnitudes = items.Magnitudes();
    bool reaches = this->AnyMayReach(items, passed, to_beat,
                                     {lv.bound, before, taken.total - before, magnitudes});
    if (taken.missing) {  // else both scans see the same children
      FixedSum const after = taken.range.present - before;
      reaches = this->AnyMayReach(items, passed, to_beat,
                                  {lv.bound, taken.total - after, after, magnitudes}) ||
                reaches;
    }
    return reaches;
  }
  /** @brief Bound the gain of a candidate right after what was passed from above, in either
   *         scan. */
  [[nodiscard]] __device__ float Bound(Passed const& passed) const {
    return lv.Bound(taken.total, this->Before(passed), taken.range.present, taken.missing);
  }
  /**
   * @brief Try right after or right before a row of the node, and keep what is better.
   * @param passed What lies before the candidate. @param at The entry of the row.
   */
  __device__ void Try(ScanDirection d, Passed const& passed, std::uint32_t at,
                      BestInRange* best) const {
    std::uint64_t const key = lv.ScanBoundaryKey(lv.nodes[taken.level_node], taken.entries.feature,
                                                 d, CandidateKey::Beside(d, taken.range.bin),
                                                 this->Before(passed), taken.range.present);
    *best = BetterCandidate{}(*best, {key, EntryOrder(d, at)});
  }

 private:
  /** @param bound Bounds the first item; those that follow are made of it. */
  [[nodiscard]] __device__ bool AnyMayReach(ScanItems const& items, Passed const& passed,
                                            float to_beat, PassingBound bound) const {
    static_assert(kItems <= PassingBound::kMost);
    bool reaches{false};
    bool is_new = passed.begun || !passed.any;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      is_new = is_new || items.Begins(k);
      reaches = reaches || (is_new && items.IsOfNode(k) && bound.MayReach(lv.bound, to_beat));
      is_new = is_new && !items.IsOfNode(k);
      bound.Pass(items.units[k]);
    }
    return reaches;
  }
};

/**
 * @brief Try the candidates beside the items of a warp, one of which may reach the gain to beat.
 *        All its lanes.
 *
 * Few warps have any, and what it takes is many registers: it is not inlined, and loads the items
 * anew.
 *
 * @param before What was passed before the lane's items.
 * @param best   The lane's best candidate so far.
 * @return The same, or a better one.
 */
__device__ __noinline__ BestInRange TryItems(LevelRef const& lv, SortedColumnsRef const& sorted,
                                             RowsRef const& rows, TakenRange const& taken,
                                             std::uint32_t at, Passed before, BestInRange best) {
  RangeCandidates const candidates{lv, taken};
  ScanItems const items{sorted, taken.of_column, taken.entries, at, rows, taken.number};
  BestBoundFirst<kItems> bounds;
  Passed passed = before;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (items.IsOfNode(k) && passed.IsNew(items.Begins(k))) {
      bounds.Set(k, candidates.Bound(passed));
    }
    passed = passed + items.Get(k);
  }
  bounds.Offer(lv, taken.level_node, [&](std::uint32_t wanted) {
    passed = before;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if ((wanted >> k & 1u) != 0) {
        candidates.Try(ScanDirection::kBackward, passed, at + k, &best);
        if (passed.any) {
          candidates.Try(ScanDirection::kForward, passed, passed.at, &best);
        }
      }
      passed = passed + items.Get(k);
    }
    return best.key;
  });
  return best;
}

// grid: as many blocks as run at a time; result: the best candidate of each listed range; no values
template <int kTeam>
__global__ __launch_bounds__(kScanThreads, kScanBlocks) void ScanRangesKernel(
    __grid_constant__ LevelRef const lv, __grid_constant__ BinMatrixRef const binned,
    __grid_constant__ SortedColumnsRef const sorted, __grid_constant__ RowsRef const rows,
    SearchedNode const* nodes, std::uint32_t n_nodes, __grid_constant__ OpenRangesRef const listed,
    BestInRange* found, FoundCandidate* out_found) {
  WaitForPreviousKernel();
  using Team = ScanTeam<kTeam>;
  __shared__ Team teams[Team::kTeams];
  Team& team = teams[threadIdx.x / kTeam];
  for (auto i = GlobalIdx(); i < n_nodes; i += gridDim.x * blockDim.x) {
    out_found[i] = {0, ScanValue::kNone};
  }
  std::uint32_t const n = listed.Size();
  std::uint32_t const n_teams = gridDim.x * Team::kTeams;
  std::uint32_t const at_once = min(max(n / (4 * n_teams), 1u), RangeQueue::kMost);
  RangeQueue const queue{lv,     binned, sorted, nodes,   rows.numbers,
                         listed, found,  n,      at_once, n_teams * at_once};
  // Neighbours in the list go to different multiprocessors.
  std::uint64_t next = std::uint64_t{threadIdx.x / kTeam * gridDim.x + blockIdx.x} * at_once;
  while (true) {
    if (Team::Rank() < 32) {
      std::uint32_t still_open{0};
      std::uint64_t first{0};
      while (still_open == 0) {
        first = __shfl_sync(kAllLanes, next, 0);
        if (first >= n) {
          break;
        }
        next = queue.Reserve();  // on its way while these are walked
        still_open = queue.Load(first, team.taken);
      }
      if (Team::Rank() == 0) {
        team.first = first;
        team.open = still_open;
      }
    }
    Team::Sync();
    std::uint32_t const open = team.open;
    if (open == 0) {
      return;
    }
    for (std::uint32_t left = open; left != 0; left &= left - 1) {
      TakenRange const& taken = team.taken[__ffs(static_cast<int>(left)) - 1];
      RangeCandidates const candidates{lv, taken};
      std::uint32_t const end = taken.entries.end;
      BestInRange best{0, 0};
      Passed all{{0, 0}, 0, false, false};
      for (std::uint32_t begin = taken.entries.begin / kItems * kItems; begin < end;
           begin += kTeam * kItems) {
        std::uint32_t const at = begin + Team::Rank() * kItems;
        float const to_beat = lv.GainToBeat(taken.level_node);
        ScanItems const items{sorted, taken.of_column, taken.entries, at, rows, taken.number};
        Passed const before = team.PassedBefore(items.All(), &all);
        if (__any_sync(kAllLanes, candidates.AnyMayReach(items, before, to_beat)) != 0) {
          best = TryItems(lv, sorted, rows, taken, at, before, best);
        }
        Team::Sync();  // its memory is used again
      }
      if (Team::Rank() == 0 && all.any &&
          GainBound::Reaches(candidates.Bound(all), lv.GainToBeat(taken.level_node))) {
        candidates.Try(ScanDirection::kForward, all, all.at, &best);
      }
      best = team.Best(best);
      if (Team::Rank() == 0 && best.key != 0) {
        lv.Offer(taken.level_node, best.key);
        found[team.first + __ffs(static_cast<int>(left)) - 1] = best;
      }
      Team::Sync();
    }
  }
}

// grid: strided over the listed ranges; result: the values beside the best candidates of nodes, and
// the counts where the host reads them
__global__ void KeepValuesKernel(LevelRef lv, BinMatrixRef binned, BinnedTableRef table,
                                 SearchedNode const* nodes, OpenRangesRef listed,
                                 BestInRange const* found, FoundCandidate* out_found,
                                 OpenCounts* host_counts) {
  WaitForPreviousKernel();
  if (GlobalIdx() == 0) {
    *host_counts = *listed.counts;
  }
  std::uint32_t const n = listed.Size();
  for (auto i = GlobalIdx(); i < n; i += gridDim.x * blockDim.x) {
    BestInRange const c = found[i];
    if (c.key == 0) {
      continue;
    }
    OpenRange const& range = listed.list[i];
    if (c.key == lv.best[nodes[range.node].level_node]) {  // of one range alone: it tells the bin
      FeatureIdx const f = binned.columns[range.column].feature;
      ScanDirection const d = BestCandidate{lv.columns, c.key}.direction;
      RowIdx const row =
          table.sorted_columns.Row(table.sorted_columns.columns[f], EntryOrder(d, c.entry_order));
      out_found[range.node] = {c.key, ScanValue::Make(d, table.ValueOf(row, f))};
    }
  }
}
}  // namespace

void RangeScanner::Measure(LevelRef const& lv, BinMatrixRef const& binned,
                           SearchedNode const* nodes, OpenRangesRef const& listed,
                           OpenCounts* out_counts) {
  Launch("Measure", MeasureKernel, kListBlocks, kListThreads, lv, binned, nodes, listed,
         out_counts);
}

void RangeScanner::Scan(LevelRef const& lv, BinMatrix const& matrix, BinnedTableRef const& table,
                        RowsRef const& rows, SearchedNode const* nodes, std::uint32_t n_nodes,
                        OpenRangesRef const& listed, FoundCandidate* out_found,
                        OpenCounts* out_counts) {
  found_.Reserve(listed.capacity);
  auto const n_blocks = kScanBlocks * DeviceAttribute(cudaDevAttrMultiProcessorCount);
  BinMatrixRef const binned = matrix.Ref();
  bool const by_warps = matrix.NumEntries() <= kWarpsRange * binned.n_bins;
  auto* kernel = by_warps ? ScanRangesKernel<32> : ScanRangesKernel<kScanThreads>;
  Launch("ScanRanges", kernel, static_cast<std::uint64_t>(n_blocks), kScanThreads, lv, binned,
         table.sorted_columns, rows, nodes, n_nodes, listed, found_.Data(), out_found);
  Launch("KeepValues", KeepValuesKernel, kListBlocks, kListThreads, lv, binned, table, nodes,
         listed, found_.Data(), out_found, out_counts);
}
}  // namespace gpu_exact
