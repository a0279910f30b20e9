/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements range_refiner.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "device/histogram/build/bin_reader.cuh"
#include "device/histogram/ranges/range_refiner.cuh"
#include "device/runtime/device_context.cuh"
#include "device/runtime/fixed_sum.cuh"
#include "device/table/value_key.cuh"

namespace gpu_exact {
namespace {
constexpr int kEmitThreads = 256;
constexpr int kEmitBlocks = 4;  // on a multiprocessor: it waits for memory
constexpr unsigned kListBlocks = 512;
constexpr unsigned kListThreads = 256;

/** @brief Lends the open bins of all nodes, a whole number of words each. */
struct OpenBinsRef {
  RankBitVectorRef bits;
  std::uint64_t stride;  // bits a node

  [[nodiscard]] __device__ std::uint64_t At(SearchedIdx node, std::uint64_t bin) const {
    return node * stride + bin;
  }
};

/** @brief Lends entries of open ranges: which range and value, which row. */
struct OpenEntriesRef {
  std::uint64_t* keys;  // ValueKey of the open range, in place of a column
  RowIdx* slots;
  std::uint64_t capacity;
};

// grid: strided over the listed ranges; result: bits of those that still may hold the best split
__global__ void MarkOpenKernel(LevelRef lv, SearchedNode const* nodes, OpenRangesRef listed,
                               OpenBinsRef open) {
  WaitForPreviousKernel();
  std::uint32_t const n = listed.Size();
  for (auto i = GlobalIdx(); i < n; i += gridDim.x * blockDim.x) {
    OpenRange const range = listed.list[i];
    if (GainBound::Reaches(range.bound, lv.GainToBeat(nodes[range.node].level_node))) {
      std::uint64_t const bit = open.At(range.node, range.bin);
      atomicOr(&open.bits.words[bit / 32].bits, 1u << bit % 32);
    }
  }
}

// grid: strided over the listed ranges; result: the open ones in the order of nodes and bins
__global__ void CollectOpenKernel(OpenRangesRef listed, OpenBinsRef open, std::uint64_t n_bits,
                                  OpenRange* out, OpenCounts* counts) {
  WaitForPreviousKernel();
  std::uint32_t const n = listed.Size();
  for (auto i = GlobalIdx(); i < n; i += gridDim.x * blockDim.x) {
    OpenRange const range = listed.list[i];
    std::uint64_t const bit = open.At(range.node, range.bin);
    if (open.bits.words[bit / 32].Has(bit % 32)) {
      out[open.bits.Rank(bit)] = range;
    }
  }
  if (GlobalIdx() == 0) {
    counts->n_open = open.bits.Rank(n_bits);
  }
}

/** @brief Queues entries that a warp has found in open ranges; it emits many at a time, as all
 *         warps count in one place. */
struct EmitQueue {
  static constexpr std::uint32_t kSteps = 4;
  static constexpr std::uint32_t kFull = 32 * kSteps;

  std::uint32_t bin[kFull + 32];  // of the group
  RowIdx slot[kFull + 32];
};

constexpr std::uint32_t kOpenWords = FeatureGroup::kMaxBins / 32 + 3;
constexpr std::uint32_t kNoBit = (kOpenWords - 1) * 32;  // never open

/** @brief Knows where entries of one segment go. */
struct Emitter {
  BinnedTableRef const& table;
  BinMatrixRef const& binned;
  FeatureGroup const& group;
  RowsRef const& rows;
  std::uint32_t const* bits;      // of the group's bins
  std::uint32_t const* n_before;  // open bins before each word
  std::uint32_t shift;            // of the first bin
  std::uint32_t first;            // open ranges [first, end) are wanted
  std::uint32_t end;
  OpenEntriesRef out;
  OpenCounts* counts;

  /** @brief Tell whether a bin is open; FeatureGroup::kNoBin is not. */
  [[nodiscard]] __device__ bool IsOpen(std::uint32_t bin) const {
    std::uint32_t const bit = min(shift + bin, kNoBit);
    return (bits[bit / 32] >> bit % 32 & 1u) != 0;
  }
  /** @brief Give the number of an open bin among all. */
  [[nodiscard]] __device__ std::uint32_t Range(std::uint32_t bin) const {
    std::uint32_t const bit = shift + bin;
    return RankWord{bits[bit / 32], n_before[bit / 32]}.Rank(bit);
  }
  [[nodiscard]] __device__ bool IsWanted(std::uint32_t bin) const {
    return this->Range(bin) - first < end - first;
  }
  /** @brief Emit the first n of a queue, at most EmitQueue::kFull. All lanes of a warp. */
  __device__ void Emit(EmitQueue const& queue, std::uint32_t n) const {
    if (n == 0) {
      return;
    }
    std::uint32_t const lane = threadIdx.x % 32;
    std::uint64_t base{0};
    if (lane == 0) {
      base = atomicAdd(&counts->n_entries, static_cast<unsigned long long>(n));
    }
    base = __shfl_sync(kAllLanes, base, 0);
    RowIdx row[EmitQueue::kSteps];  // all loads are under way before the first is used
    float value[EmitQueue::kSteps];
#pragma unroll
    for (std::uint32_t k = 0; k < EmitQueue::kSteps; ++k) {
      std::uint32_t const i = 32 * k + lane;
      row[k] = i < n ? rows.rows[queue.slot[i]] : 0;
    }
#pragma unroll
    for (std::uint32_t k = 0; k < EmitQueue::kSteps; ++k) {
      std::uint32_t const i = 32 * k + lane;
      value[k] = i < n ? table.ValueOf(row[k],
                                       binned.columns[binned.ColumnOf(group, queue.bin[i])].feature)
                       : 0.0f;
    }
#pragma unroll
    for (std::uint32_t k = 0, i = lane; k < EmitQueue::kSteps; ++k, i += 32) {
      if (i < n && base + i < out.capacity) {
        out.keys[base + i] = ValueKey::Make(this->Range(queue.bin[i]) - first, RadixKey(value[k]));
        out.slots[base + i] = queue.slot[i];
      }
    }
  }
};

// grid: one block a slice; result: the entries of open ranges, in any order
__global__ __launch_bounds__(kEmitThreads, kEmitBlocks) void EmitKernel(
    BinnedTableRef table, BinMatrixRef binned, RowsRef rows, WorkRef work, OpenBinsRef open,
    std::uint32_t first_open, std::uint32_t end_open, OpenEntriesRef out, OpenCounts* counts) {
  WaitForPreviousKernel();
  __shared__ std::uint32_t bits[kOpenWords];
  __shared__ std::uint32_t n_before[kOpenWords];
  __shared__ EmitQueue queues[kEmitThreads / 32];
  __shared__ BinReader::Queue walk_queues[kEmitThreads / 32];
  EmitQueue& queue = queues[threadIdx.x / 32];
  std::uint32_t const lane = threadIdx.x % 32;
  WorkOffset const end = work.slices[blockIdx.x + 1];
  for (WorkOffset point = work.slices[blockIdx.x]; point < end; point = work.Next(point)) {
    FeatureGroup const group = binned.groups[point.group];
    if (group.has_ranges == 0) {
      continue;
    }
    BuiltNode const node = work.nodes[point.built];
    std::uint64_t const first_bit = open.At(node.node, group.first_bin);
    auto const shift = static_cast<std::uint32_t>(first_bit % 32);
    bool any{false};
    for (std::uint32_t i = threadIdx.x; i < CeilDiv(shift + group.n_bins, 32); i += kEmitThreads) {
      RankWord const word = open.bits.words[first_bit / 32 + i];
      bits[i] = word.bits;
      n_before[i] = word.n_before;
      // The first and the last word may have bits of other groups: then there is less to find.
      any = any || word.bits != 0;
    }
    if (threadIdx.x == 0) {
      bits[kNoBit / 32] = 0;
    }
    if (__syncthreads_or(any) != 0) {
      Emitter const emitter{table, binned,     group,    rows, bits,  n_before,
                            shift, first_open, end_open, out,  counts};
      RowIdx const last = point.SameSegment(end) ? end.row : work.NumRows(point.built);
      std::uint32_t n_queued{0};
      BinReader{group, rows, walk_queues + threadIdx.x / 32}.Walk<false>(
          node.begin + point.row, node.begin + last, kEmitThreads / 32,
          [&](RowIdx slot, GradientUnits const&) { return slot; },
          [&](auto const& chunk, RowIdx slot) {
            std::uint32_t open_bins{0};
#pragma unroll
            for (int i = 0; i < chunk.kSize; ++i) {
              std::uint32_t const bin = chunk.Bin(i);
              open_bins |= emitter.IsOpen(bin) ? 1u << i : 0u;
            }
            if (__any_sync(kAllLanes, open_bins != 0) == 0) {
              return;
            }
#pragma unroll
            for (int i = 0; i < chunk.kSize; ++i) {
              bool const hit = (open_bins >> i & 1u) != 0 && emitter.IsWanted(chunk.Bin(i));
              unsigned const hits = __ballot_sync(kAllLanes, hit);
              if (hits == 0) {
                continue;
              }
              if (hit) {
                std::uint32_t const at = n_queued + __popc(hits & LaneMaskLt());
                queue.bin[at] = chunk.Bin(i);
                queue.slot[at] = slot;
              }
              n_queued += __popc(hits);
              __syncwarp();
              if (n_queued >= EmitQueue::kFull) {
                emitter.Emit(queue, EmitQueue::kFull);
                n_queued -= EmitQueue::kFull;
                __syncwarp();
                if (lane < n_queued) {
                  queue.bin[lane] = queue.bin[lane + EmitQueue::kFull];
                  queue.slot[lane] = queue.slot[lane + EmitQueue::kFull];
                }
                __syncwarp();
              }
            }
          });
      emitter.Emit(queue, n_queued);
    }
    __syncthreads();  // the words are used again
  }
}

/** @brief Gives the open range of a sorted entry. */
struct RangeOfKey {
  std::uint64_t const* keys;
  __device__ std::uint32_t operator()(std::uint64_t i) const {
    return static_cast<std::uint32_t>(ValueKey::Column(keys[i]));
  }
};

/** @brief Lends sorted entries of open ranges with the sums up to each. */
struct SortedEntriesRef {
  std::uint64_t const* keys;
  FixedSum const* sums;
  std::uint64_t n;
  OpenRange const* open;  // the ranges of the keys
};

/** @brief Offers the candidates beside one entry: after it in a forward scan, before it in a
 *         backward. */
struct EntryCandidates {
  SearchedIdx node;
  LevelNode level_node;
  std::uint64_t forward{0};  // CandidateKey
  std::uint64_t backward{0};

  /** @param only_best Whether only the bin and the direction of the node's best candidate count. */
  __device__ EntryCandidates(LevelRef const& lv, BinMatrixRef const& binned,
                             SearchedNode const* nodes, SortedEntriesRef const& entries,
                             std::uint64_t i, bool only_best) {
    std::uint64_t const key = entries.keys[i];
    OpenRange const range = entries.open[ValueKey::Column(key)];
    node = range.node;
    level_node = nodes[node].level_node;
    bool const begins_value = i == 0 || entries.keys[i - 1] != key;
    bool const ends_value = i + 1 == entries.n || entries.keys[i + 1] != key;
    if (!begins_value && !ends_value) {
      return;
    }
    FeatureIdx const f = binned.columns[range.column].feature;
    std::uint64_t const best = __ldcg(lv.best + level_node);
    auto const wanted = [&](ScanDirection d) {
      return !only_best ||
             CandidateKey::Rank(lv.columns.Values(f), d, CandidateKey::Beside(d, range.bin)) ==
                 CandidateKey::RankOf(best);
    };
    NodeState const& state = lv.nodes[level_node];
    float const to_beat = lv.GainToBeat(level_node);
    // Only the bin counts: which value within it is told afterwards, for the best candidate alone.
    auto const key_of = [&](ScanDirection d, FixedSum const& before) {
      return lv.ScanKeyBeside(to_beat, state, f, d, range.bin, before, range.present);
    };
    if (ends_value && wanted(ScanDirection::kForward)) {
      forward = key_of(ScanDirection::kForward, range.before + entries.sums[i]);
    }
    if (begins_value && wanted(ScanDirection::kBackward)) {
      bool const begins_range =
          i == 0 || ValueKey::Column(entries.keys[i - 1]) != ValueKey::Column(key);
      backward = key_of(ScanDirection::kBackward,
                        begins_range ? range.before : range.before + entries.sums[i - 1]);
    }
  }
};

// one thread a sorted entry
__global__ void OfferEntriesKernel(__grid_constant__ LevelRef const lv, BinMatrixRef binned,
                                   SearchedNode const* nodes, SortedEntriesRef entries) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < entries.n) {
    EntryCandidates const c{lv, binned, nodes, entries, i, false};
    std::uint64_t const key = max(c.forward, c.backward);
    if (key != 0) {
      lv.Offer(c.level_node, key);
    }
  }
}

// one thread a node; values of candidates that are the best no more are forgotten
__global__ void ForgetValuesKernel(LevelRef lv, SearchedNode const* nodes, std::uint32_t n_nodes,
                                   FoundCandidate* found) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_nodes) {
    std::uint64_t const best = lv.best[nodes[i].level_node];
    if (found[i].key != best) {
      found[i] = {best, ScanValue::kNone};
    }
  }
}

// one thread a sorted entry; of candidates alike in a bin the scan takes the one that it meets first
__global__ void FindValuesKernel(__grid_constant__ LevelRef const lv, BinMatrixRef binned,
                                 SearchedNode const* nodes, SortedEntriesRef entries,
                                 FoundCandidate* found) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= entries.n) {
    return;
  }
  EntryCandidates const c{lv, binned, nodes, entries, i, true};
  std::uint64_t const best = lv.best[c.level_node];
  if (best == 0 || (c.forward != best && c.backward != best)) {
    return;
  }
  auto const d = c.forward == best ? ScanDirection::kForward : ScanDirection::kBackward;
  atomicMin(&found[c.node].scan_value, ScanValue::Make(d, ValueKey::Value(entries.keys[i])));
}
}  // namespace

/** @brief Holds what all steps of one call read. */
struct RangeRefiner::Pass {
  LevelRef const& lv;
  BinnedTableRef const& table;
  RowsRef const& rows;
  SearchedNode const* nodes;
  std::uint32_t n_nodes;
  WorkRef work;
  OpenBinsRef open;
};

RangeRefiner::RangeRefiner(BinMatrix const& matrix, RefineRoom* room, std::uint64_t max_entries,
                           std::uint64_t max_certain)
    : matrix_{matrix}, room_{*room}, max_entries_{max_entries}, max_certain_{max_certain} {
  counts_.Reserve(1);
  host_counts_.Reserve(2);
  list_.Reserve(HistogramMemory::kFirstRanges);
}

OpenRangesRef RangeRefiner::List(std::size_t n_nodes) {
  std::uint64_t const most = n_nodes * matrix_.Ref().n_bins;
  if (most <= max_certain_) {
    list_.Reserve(most);
  }
  return this->Listed();
}

OpenRangesRef RangeRefiner::Listed() {
  return {list_.Data(), counts_.Data(),
          static_cast<std::uint32_t>(
              std::min<std::uint64_t>(list_.Bytes() / sizeof(OpenRange), ~std::uint32_t{0}))};
}

RangeRefiner::Refined RangeRefiner::Refine(LevelRef const& lv, BinnedTableRef const& table,
                                           RowsRef const& rows, HistogramFinder* finder,
                                           ResolutionShape shape, std::size_t depth) {
  std::uint32_t const n_nodes = finder->NumNodes();
  OpenRangesRef const listed = this->Listed();
  found_.Reserve(n_nodes);
  n_gathered_.reset();
  shape.scans = shape.scans && rows.node_of != nullptr;
  RefineCost const cost{static_cast<double>(n_nodes),
                        static_cast<double>(finder->NumSearchedRows()),
                        static_cast<double>(matrix_.NumRows()),
                        static_cast<double>(matrix_.Columns().size()),
                        shape,
                        static_cast<double>(max_entries_)};
  auto const scan = [&] {
    room_.scanner.Scan(lv, matrix_, table, rows, finder->Nodes(), n_nodes, listed, found_.Data(),
                       host_counts_.Data() + kScanned);
  };
  if (shape.scans && n_nodes * matrix_.Ref().n_bins <= listed.capacity && cost.ScansAnyway()) {
    scan();
    return Refined::kDone;
  }
  if (shape.scans) {
    room_.scanner.Measure(lv, matrix_.Ref(), finder->Nodes(), listed, host_counts_.Data() + kAsked);
    asked_.Record();
    scanned_.resize(std::max(scanned_.size(), depth + 1));
    bool const begun = scanned_[depth];
    if (begun) {
      scan();
    }
    OpenCounts const counts = this->AwaitCounts();
    if (!this->HadRoom(counts)) {
      return Refined::kListAgain;
    }
    scanned_[depth] =
        cost.Scans(static_cast<double>(counts.n_scanned), static_cast<double>(counts.n_gathered));
    if (scanned_[depth] && !begun) {
      scan();
    }
    if (scanned_[depth] || begun) {
      return Refined::kDone;
    }
  }
  ZeroAsync(found_.Data(), n_nodes);
  std::uint64_t const stride = CeilDiv(matrix_.Ref().n_bins, 32) * 32;
  return this->Gather({lv,
                       table,
                       rows,
                       finder->Nodes(),
                       n_nodes,
                       finder->AllRows(),
                       {room_.is_open.Reserve(n_nodes * stride), stride}});
}

RangeRefiner::Refined RangeRefiner::Gather(Pass const& pass) {
  constexpr std::size_t kFirstEntries = std::size_t{1} << 17;
  OpenRangesRef const listed = this->Listed();
  std::uint64_t const n_bits = pass.n_nodes * pass.open.stride;
  room_.open.Reserve(listed.capacity);
  room_.entries.Reserve(std::min<std::uint64_t>(kFirstEntries, max_entries_));
  room_.is_open.ClearAsync(n_bits);
  Launch("MarkOpen", MarkOpenKernel, kListBlocks, kListThreads, pass.lv, pass.nodes, listed,
         pass.open);
  room_.is_open.Count(n_bits);
  Launch("CollectOpen", CollectOpenKernel, kListBlocks, kListThreads, listed, pass.open, n_bits,
         room_.open.Data(), counts_.Data());
  this->Emit(pass, 0, ~0u);
  OpenCounts const counts = this->ReadCounts();
  if (!this->HadRoom(counts)) {
    return Refined::kListAgain;
  }
  n_gathered_ = counts.n_entries;
  if (counts.n_entries <= room_.entries.Size()) {
    this->Search(pass, counts.n_entries, 0, counts.n_open);
  } else {
    this->SearchInParts(pass, 0, counts.n_open, counts.n_entries);
  }
  return Refined::kDone;
}

bool RangeRefiner::HadRoom(OpenCounts const& counts) {
  if (counts.n_listed <= this->Listed().capacity) {
    return true;
  }
  list_.Reserve(counts.n_listed + counts.n_listed / 4);
  return false;
}

OpenCounts RangeRefiner::ReadCounts() {
  CopyPinned(host_counts_.Data() + kAsked, counts_.Data(), 1);
  asked_.Record();
  return this->AwaitCounts();
}

OpenCounts RangeRefiner::AwaitCounts() const {
  asked_.Await();
  return host_counts_.Data()[kAsked];
}

void RangeRefiner::Emit(Pass const& pass, std::uint32_t first, std::uint32_t end) {
  Launch("Emit", EmitKernel, pass.work.n_slices, kEmitThreads, pass.table, matrix_.Ref(), pass.rows,
         pass.work, pass.open, first, end,
         OpenEntriesRef{room_.entries.Keys(0), room_.entries.Slots(0), room_.entries.Size()},
         counts_.Data());
}

void RangeRefiner::SearchInParts(Pass const& pass, std::uint32_t first, std::uint32_t end,
                                 std::uint64_t n_entries) {
  if (n_entries > max_entries_ && end - first > 1) {
    std::uint32_t const middle = first + (end - first) / 2;
    for (auto const& [begin, last] : {std::pair{first, middle}, std::pair{middle, end}}) {
      ZeroAsync(&counts_.Data()->n_entries, 1);
      this->Emit(pass, begin, last);
      this->SearchInParts(pass, begin, last, this->ReadCounts().n_entries);
    }
    return;
  }
  if (n_entries > room_.entries.Size()) {
    room_.entries.Reserve(std::max(n_entries, std::min(max_entries_, 2 * n_entries)));
    ZeroAsync(&counts_.Data()->n_entries, 1);
    this->Emit(pass, first, end);
  }
  this->Search(pass, n_entries, first, end - first);
}

void RangeRefiner::Search(Pass const& pass, std::uint64_t n, std::uint32_t first,
                          std::uint32_t n_open) {
  if (n == 0) {
    return;
  }
  OpenEntriesRoom const& room = room_.entries;
  cub::DoubleBuffer<std::uint64_t> keys{room.Keys(0), room.Keys(1)};
  cub::DoubleBuffer<RowIdx> slots{room.Slots(0), room.Slots(1)};
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, slots, n, 0,
                                           ValueKey::NumBits(n_open), Stream());
  });
  auto const indices = thrust::make_counting_iterator(std::uint64_t{0});
  auto ranges = thrust::make_transform_iterator(indices, RangeOfKey{keys.Current()});
  SlotSums const gradients{slots.Current(), SumOfSlot{pass.rows.units}};
  FixedSum* const sums = room.Sums(keys.selector);
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveScanByKey(storage, bytes, ranges, gradients, sums,
                                               cuda::std::plus<>{}, n, cuda::std::equal_to<>{},
                                               Stream());
  });
  SortedEntriesRef const entries{keys.Current(), sums, n, room_.open.Data() + first};
  LaunchN("OfferEntries", OfferEntriesKernel, n, pass.lv, matrix_.Ref(), pass.nodes, entries);
  LaunchN("ForgetValues", ForgetValuesKernel, pass.n_nodes, pass.lv, pass.nodes, pass.n_nodes,
          found_.Data());
  LaunchN("FindValues", FindValuesKernel, n, pass.lv, matrix_.Ref(), pass.nodes, entries,
          found_.Data());
}
}  // namespace gpu_exact
