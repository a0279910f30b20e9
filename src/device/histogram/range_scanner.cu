/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of range_scanner.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_scan.cuh>
#include <type_traits>

#include "src/device/fixed_sum.cuh"
#include "src/device/histogram/range_scanner.cuh"

namespace gpu_exact {
namespace {
constexpr int kScanThreads = 128;  // of a block
constexpr int kScanBlocks = 8;     // on a multiprocessor: it waits for memory
constexpr int kItems = 4;          // rows of a thread, all are asked for before the first is used
/** @brief Ranges of so many entries on average, or less, are each walked by a warp: more of them are
 *         under way then, and what they wait for costs more than their few steps. */
constexpr std::uint64_t kWarpsRange = 1024;
constexpr unsigned kListBlocks = 256;
constexpr unsigned kListThreads = 256;

/** @brief Entries of the table in a range: [begin, end) of the sorted rows of its feature. */
struct RangeEntries {
  FeatureIdx feature;
  std::uint32_t begin;
  std::uint32_t end;

  __device__ RangeEntries(LevelRef const& level, BinnedRef const& binned, OpenRange const& range)
      : feature{binned.columns[range.column].feature},
        begin{binned.bins.first_rank[range.bin]},
        end{range.bin + 1 < binned.bins.offsets[feature + 1] ? binned.bins.first_rank[range.bin + 1]
                                                             : level.columns.n_present[feature]} {}

  [[nodiscard]] __device__ std::int64_t Size() const { return end - begin; }
  /** @brief About so many of them are a node's. */
  [[nodiscard]] __device__ std::int64_t OfNode(SearchedNode const& node, RowIdx n_rows) const {
    return this->Size() * (node.rows.end - node.rows.begin) / n_rows + 1;
  }
};

// grid: strided over the listed ranges
__global__ void MeasureKernel(LevelRef level, BinnedRef binned, SearchedNode const* nodes,
                              OpenRangesRef listed, OpenCounts* counts) {
  std::uint32_t const n = listed.Size();
  std::int64_t n_scanned{0}, n_gathered{0};
  for (auto i = GlobalIdx(); i < n; i += gridDim.x * blockDim.x) {
    OpenRange const range = listed.list[i];
    SearchedNode const node = nodes[range.node];
    if (GainBound::Reaches(range.bound, level.Bar(node.bucket))) {
      RangeEntries const entries{level, binned, range};
      n_scanned += entries.Size();
      n_gathered += entries.OfNode(node, level.columns.n_rows);
    }
  }
  n_scanned = SumLanes(n_scanned);
  n_gathered = SumLanes(n_gathered);
  if (threadIdx.x % 32 == 0 && n_scanned != 0) {
    atomicAdd(&counts->n_scanned, static_cast<unsigned long long>(n_scanned));
    atomicAdd(&counts->n_gathered, static_cast<unsigned long long>(n_gathered));
  }
}

/** @brief What a scan has passed of a range. */
struct Passed {
  FixedSum sum;           // of the node's rows
  std::uint32_t n_begun;  // values, of any rows
  std::uint32_t last;     // of the node's last row, n_begun + 1 when it was passed; 0: none was
  RowIdx row;             // that row
};
/** @brief Associative. */
struct PassedOp {
  __device__ Passed operator()(Passed const& a, Passed const& b) const {
    bool const any = b.last != 0;
    return {a.sum + b.sum, a.n_begun + b.n_begun, any ? a.n_begun + b.last : a.last,
            any ? b.row : a.row};
  }
};

/** @brief The candidates of one open range. */
struct RangeCandidates {
  LevelRef const& level;
  OpenRange const& range;
  Bucket bucket;
  FeatureIdx feature;
  bool missing;  // whether rows of the node have no value of the feature

  /** @brief Keep a candidate in best if it is better. @param place As in ScanKey(). */
  __device__ void Try(ScanDirection d, std::uint64_t place, FixedSum const& passed,
                      std::uint32_t order, RowIdx row, float bar, FoundCandidate* best) const {
    NodeState const& state = level.nodes[bucket];
    FixedSum const before = range.before + passed;
    bool const backward = d == ScanDirection::kBackward;
    if (level.MayReach(bar, state.sum, before, range.present, backward && missing)) {
      std::uint64_t const key = level.ScanKey(state, feature, d, place, before, range.present);
      if (key > best->key || (key == best->key && order < best->order)) {
        *best = {key, order, row};
      }
    }
  }
  /** @brief Right after the node's last row. @param at Where that was, or later. */
  __device__ void After(Passed const& passed, std::uint32_t at, float bar,
                        FoundCandidate* best) const {
    this->Try(ScanDirection::kForward, std::uint64_t{range.bin} + 1, passed.sum, at, passed.row,
              bar, best);
  }
  /** @brief Right before a row of the node. */
  __device__ void Before(Passed const& passed, std::uint32_t at, RowIdx row, float bar,
                         FoundCandidate* best) const {
    this->Try(ScanDirection::kBackward, range.bin, passed.sum, ~at, row, bar, best);
  }
};

/** @brief Teams take open ranges from a list in turns, some at a time. */
struct RangeQueue {
  LevelRef const& level;
  BinnedRef const& binned;
  SearchedNode const* nodes;
  OpenRangesRef const& listed;
  OpenCounts* counts;
  FoundCandidate* found;
  std::uint32_t at_once;  // up to 32

  /** @brief By one warp of a team. @return Bits of those that are open; those before are closed. */
  __device__ std::uint32_t Take(std::uint32_t n, std::uint64_t* out_first) const {
    std::uint32_t const lane = threadIdx.x % 32;
    unsigned open{0};
    std::uint64_t first{0};
    while (open == 0 && first < n) {
      if (lane == 0) {
        first = atomicAdd(reinterpret_cast<unsigned long long*>(&counts->n_taken),
                          static_cast<unsigned long long>(at_once));
      }
      first = __shfl_sync(kAllLanes, first, 0);
      std::int64_t n_entries{0};  // 0: it is closed
      if (lane < at_once && first + lane < n) {
        OpenRange const& range = listed.list[first + lane];
        SearchedNode const& node = nodes[range.node];
        if (GainBound::Reaches(range.bound, level.Bar(node.bucket))) {
          n_entries = RangeEntries{level, binned, range}.OfNode(node, level.columns.n_rows);
        }
        found[first + lane].key = 0;
      }
      open = __ballot_sync(kAllLanes, n_entries != 0);
      if (open != 0) {
        n_entries = SumLanes(n_entries);
        if (lane == 0) {
          atomicAdd(&counts->n_entries, static_cast<unsigned long long>(n_entries));
        }
      }
    }
    *out_first = first;
    return open;
  }
};

/** @brief Threads that walk a range together: a warp, or a block. */
template <int kTeam>
struct ScanTeam {
  static constexpr int kTeams = kScanThreads / kTeam;  // of a block
  using Scan = std::conditional_t<kTeam == 32, cub::WarpScan<Passed>,
                                  cub::BlockScan<Passed, kTeam, cub::BLOCK_SCAN_WARP_SCANS>>;

  typename Scan::TempStorage scan;
  FoundCandidate of_warps[kTeam / 32];
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
  /** @brief The best of all threads' candidates, to the thread of rank 0. */
  __device__ FoundCandidate Best(FoundCandidate best) {
    auto const better = [](FoundCandidate const& a, FoundCandidate const& b) {
      return a.key != b.key ? a.key > b.key : a.order <= b.order;
    };
#pragma unroll
    for (int lanes = 16; lanes != 0; lanes /= 2) {
      FoundCandidate const other{__shfl_down_sync(kAllLanes, best.key, lanes),
                                 __shfl_down_sync(kAllLanes, best.order, lanes),
                                 __shfl_down_sync(kAllLanes, best.row, lanes)};
      best = better(best, other) ? best : other;
    }
    if constexpr (kTeam > 32) {
      if (Rank() % 32 == 0) {
        of_warps[Rank() / 32] = best;
      }
      Sync();
      for (int w = 1; w < kTeam / 32 && Rank() == 0; ++w) {
        best = better(best, of_warps[w]) ? best : of_warps[w];
      }
    }
    return best;
  }
};

// grid: as many blocks as run at a time; result: the best candidate of each listed range; no values
template <int kTeam>
__global__ __launch_bounds__(kScanThreads, kScanBlocks) void ScanRangesKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ BinnedRef const binned,
    SortedRowsRef sorted, __grid_constant__ RowsRef const rows, SearchedNodes nodes,
    __grid_constant__ OpenRangesRef const listed, OpenCounts* counts, FoundCandidate* found,
    RefinedValue* values) {
  using Team = ScanTeam<kTeam>;
  __shared__ Team teams[Team::kTeams];
  Team& team = teams[threadIdx.x / kTeam];
  for (auto i = GlobalIdx(); i < nodes.n; i += gridDim.x * blockDim.x) {
    values[i] = {0, ScanValue::kNone};
  }
  std::uint32_t const n = listed.Size();
  std::uint32_t const at_once = min(max(n / (4 * gridDim.x * Team::kTeams), 1u), 32u);
  while (true) {
    if (Team::Rank() < 32) {
      RangeQueue const queue{level, binned, nodes.nodes, listed, counts, found, at_once};
      std::uint64_t taken;
      std::uint32_t const still_open = queue.Take(n, &taken);
      if (Team::Rank() == 0) {
        team.first = taken;
        team.open = still_open;
      }
    }
    Team::Sync();
    std::uint32_t const open = team.open;
    if (open == 0) {
      return;
    }
    for (std::uint32_t left = open; left != 0; left &= left - 1) {
      std::uint64_t const i = team.first + __ffs(static_cast<int>(left)) - 1;
      OpenRange const range = listed.list[i];
      RangeEntries const entries{level, binned, range};
      Bucket const bucket = nodes.nodes[range.node].bucket;
      RangeCandidates const candidates{level, range, bucket, entries.feature,
                                       !(range.present == level.nodes[bucket].sum)};
      RowIdx const* of_column = sorted.columns[entries.feature];
      FoundCandidate best{0, 0, 0};
      Passed all{{0, 0}, 0, 0, 0};
      for (std::uint32_t begin = entries.begin; begin < entries.end; begin += kTeam * kItems) {
        std::uint32_t const at = begin + Team::Rank() * kItems;
        RowIdx entry[kItems];
        Passed item[kItems];
        float const bar = level.Bar(bucket);
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          entry[k] = at + k < entries.end ? of_column[at + k] : 0;
        }
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          RowIdx const row = entry[k] & ~SortedRowsRef::kBeginsValue;
          bool const is_in = at + k < entries.end && rows.node_of[row] == bucket;
          std::uint32_t const begins = entry[k] >> 31;
          item[k] = {{0, 0}, begins, is_in ? begins + 1 : 0, row};
        }
        Passed sum{{0, 0}, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          if (item[k].last != 0) {
            item[k].sum = level.quantiser.Fixed(rows.gpair_of_row[item[k].row]);
          }
        }
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          sum = PassedOp{}(sum, item[k]);
        }
        Passed before, of_team;
        typename Team::Scan{team.scan}.ExclusiveScan(sum, before, Passed{{0, 0}, 0, 0, 0},
                                                     PassedOp{}, of_team);
        before = PassedOp{}(all, before);
        all = PassedOp{}(all, of_team);
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          Passed const next_passed = PassedOp{}(before, item[k]);
          if (item[k].last != 0 && next_passed.last != before.last) {  // a value new in the node
            candidates.Before(before, at + k, item[k].row, bar, &best);
            if (before.last != 0) {
              candidates.After(before, at + k, bar, &best);
            }
          }
          before = next_passed;
        }
        Team::Sync();  // its memory is used again
      }
      if (Team::Rank() == 0 && all.last != 0) {
        candidates.After(all, entries.end, level.Bar(bucket), &best);
      }
      best = team.Best(best);
      if (Team::Rank() == 0 && best.key != 0) {
        level.Offer(bucket, best.key);
        found[i] = best;
      }
      Team::Sync();
    }
  }
}

// grid: strided over the listed ranges; result: the values beside the best candidates of nodes, and
// the counts where the host reads them
__global__ void KeepValuesKernel(LevelRef level, BinnedRef binned, BinnedTableRef table,
                                 SearchedNode const* nodes, OpenRangesRef listed,
                                 FoundCandidate const* found, OpenCounts const* counts,
                                 RefinedValue* values, OpenCounts* host_counts) {
  if (GlobalIdx() == 0) {
    *host_counts = *counts;
  }
  std::uint32_t const n = listed.Size();
  for (auto i = GlobalIdx(); i < n; i += gridDim.x * blockDim.x) {
    FoundCandidate const c = found[i];
    if (c.key == 0) {
      continue;
    }
    OpenRange const& range = listed.list[i];
    if (c.key == level.best[nodes[range.node].bucket]) {  // of one range alone: it tells the bin
      float const value = table.ValueOf(c.row, binned.columns[range.column].feature);
      values[range.node] = {c.key,
                            ScanValue::Make(BestCandidate{level.columns, c.key}.direction, value)};
    }
  }
}
}  // namespace

void RangeScanner::Measure(LevelRef const& level, BinnedRef const& binned,
                           SearchedNode const* nodes, OpenRangesRef const& listed,
                           OpenCounts* out_counts) {
  Launch("Measure", MeasureKernel, kListBlocks, kListThreads, level, binned, nodes, listed,
         out_counts);
}

void RangeScanner::Scan(LevelRef const& level, BinnedColumns const& columns,
                        BinnedTableRef const& table, RowsRef const& rows,
                        SearchedNodes const& nodes, OpenRangesRef const& listed, OpenCounts* counts,
                        RefinedValue* out_values, OpenCounts* out_counts) {
  found_.Reserve(listed.capacity);
  auto const n_blocks = kScanBlocks * DeviceAttribute(cudaDevAttrMultiProcessorCount);
  BinnedRef const binned = columns.Ref();
  bool const by_warps = columns.NumElements() <= kWarpsRange * binned.n_bins;
  auto* kernel = by_warps ? ScanRangesKernel<32> : ScanRangesKernel<kScanThreads>;
  Launch("ScanRanges", kernel, static_cast<std::uint64_t>(n_blocks), kScanThreads, level, binned,
         table.sorted_rows, rows, nodes, listed, counts, found_.Data(), out_values);
  Launch("KeepValues", KeepValuesKernel, kListBlocks, kListThreads, level, binned, table,
         nodes.nodes, listed, found_.Data(), counts, out_values, out_counts);
}
}  // namespace gpu_exact
