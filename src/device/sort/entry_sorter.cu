/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements entry_sorter.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <stdexcept>
#include <utility>

#include "device/runtime/device_context.cuh"
#include "device/sort/entry_sorter.cuh"

namespace gpu_exact {
namespace {
// CUB's segment offsets are 32 bit: segments are sorted together while they lie this close.
constexpr EntryIdx kGroupSpan = EntryIdx{1} << 30;
constexpr int kKeyThreads = 256;
constexpr int kKeyItems = 4;

// one thread a row
__global__ void UnitsKernel(GradientPair const* gpair, Quantiser quantiser, RowIdx n,
                            GradientUnits* out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n) {
    out[i] = quantiser.Units(gpair[i]);
  }
}

// block: kKeyThreads * kKeyItems entries, of which a thread has all rows on their way at once
__global__ __launch_bounds__(kKeyThreads) void NodeKeysKernel(ColumnEntry const* entries,
                                                              EntryIdx n,
                                                              std::uint8_t const* row_keys,
                                                              std::uint8_t* keys) {
  WaitForPreviousKernel();
  auto const first = EntryIdx{blockIdx.x} * (kKeyThreads * kKeyItems) + threadIdx.x;
  RowIdx rows[kKeyItems];
#pragma unroll
  for (int k = 0; k < kKeyItems; ++k) {
    if (first + k * kKeyThreads < n) {
      rows[k] = entries[first + k * kKeyThreads].row;
    }
  }
#pragma unroll
  for (int k = 0; k < kKeyItems; ++k) {
    if (first + k * kKeyThreads < n) {
      keys[first + k * kKeyThreads] = row_keys[rows[k]];
    }
  }
}

// one thread an open entry; the keys of closed nodes' entries are not looked at
__global__ void ChildKeysKernel(ColumnEntry const* entries, NodeRangesRef ranges,
                                std::uint8_t const* row_keys, std::uint8_t* keys) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < ranges.NumOpen()) {
    auto at = ranges.Position(ranges.NodeOf(i), i);
    keys[at] = row_keys[entries[at].row];
  }
}

// grid: one warp a node; nodes lie side by side, from the first entry on
__global__ void FindNodesKernel(std::uint8_t const* keys, EntryIdx n, EntryRange* ranges,
                                EntryIdx* open_ends) {
  WaitForPreviousKernel();
  LevelNode level_node = blockIdx.x;
  auto begin =
      WarpPartitionPoint(EntryIdx{0}, n, [=](EntryIdx i) { return keys[i] >= level_node; });
  auto end = WarpPartitionPoint(begin, n, [=](EntryIdx i) { return keys[i] > level_node; });
  if (threadIdx.x == 0) {
    ranges[level_node] = {begin, end};
    open_ends[level_node] = end;
  }
}

// one thread a split node
__global__ void FindChildrenKernel(std::uint8_t const* keys, EntryRange const* nodes,
                                   LevelNode n_split, EntryRange* children) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i < n_split) {
    EntryRange node = nodes[i];
    auto mid = PartitionPoint(node.begin, node.end, [=](EntryIdx k) { return (keys[k] & 1) != 0; });
    children[2 * i] = {node.begin, mid};
    children[2 * i + 1] = {mid, node.end};
  }
}

struct SizeOfRange {
  EntryRange const* ranges;
  __device__ EntryIdx operator()(LevelNode i) const { return ranges[i].Size(); }
};
}  // namespace

void EntrySorter::Reset(GradientPair const* gpair, Quantiser const& quantiser) {
  LaunchN("Units", UnitsKernel, columns_.n_rows, gpair, quantiser, columns_.n_rows,
          units_.Reserve(columns_.n_rows));
  entries_ = columns_.entries;
  EntryRange all{0, columns_.n_entries};
  CopyFromHost(ranges_.Reserve(1), &all, 1);
  CopyFromHost(open_ends_.Reserve(1), &all.end, 1);
  ref_ = {ranges_.Data(), open_ends_.Data(), 1, columns_.n_entries};
}

void EntrySorter::SortByNode(std::uint8_t const* row_keys, LevelNode n_nodes, EntryIdx max_open) {
  EntryIdx const n = columns_.n_entries;
  keys_.Reserve(2 * n);
  current_ = 0;
  entries_ = halves_[0].Reserve(n);
  Launch("NodeKeys", NodeKeysKernel, CeilDiv(n, kKeyThreads * kKeyItems), kKeyThreads,
         columns_.entries, n, row_keys, keys_.Data());
  // The last bits of kNoKey are ones: above every node of a level.
  int const n_bits = BitsBelow(std::uint64_t{n_nodes} + 1);
  if (n != 0) {
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, keys_.Data(), this->SortedKeys(),
                                             columns_.entries, halves_[0].Data(), n, 0, n_bits,
                                             Stream());
    });
  }
  constexpr unsigned kWarp = 32;
  Launch("FindNodes", FindNodesKernel, n_nodes, kWarp, this->SortedKeys(), n,
         ranges_.Reserve(n_nodes), open_ends_.Reserve(n_nodes));
  ref_ = {ranges_.Data(), open_ends_.Data(), n_nodes, max_open};
}

void EntrySorter::SortByChild(std::vector<EntryRange> const& split_nodes,
                              std::uint8_t const* row_keys) {
  EntryIdx n_open{0};
  EntryIdx end{0};
  for (EntryRange const& node : split_nodes) {
    n_open += node.Size();
    end = std::max(end, node.end);
  }
  halves_[1 - current_].Reserve(end);
  LaunchN("ChildKeys", ChildKeysKernel, ref_.max_open, entries_, ref_, row_keys, keys_.Data());
  std::size_t const d_split_nodes = this->SortSegments(split_nodes);
  current_ = 1 - current_;
  entries_ = halves_[current_].Data();
  auto n_split = static_cast<LevelNode>(split_nodes.size());
  LevelNode const n_nodes = 2 * n_split;
  LaunchN("FindChildren", FindChildrenKernel, n_split, this->SortedKeys(),
          uploader_.Data<EntryRange>(d_split_nodes), n_split, ranges_.Reserve(n_nodes));
  auto sizes = thrust::make_transform_iterator(thrust::make_counting_iterator(LevelNode{0}),
                                               SizeOfRange{ranges_.Data()});
  open_ends_.Reserve(n_nodes);
  if (n_nodes != 0) {
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(storage, bytes, sizes, open_ends_.Data(), n_nodes,
                                           Stream());
    });
  }
  ref_ = {ranges_.Data(), open_ends_.Data(), n_nodes, n_open};
}

template <typename FnT>
void EntrySorter::OnePass(EntryIdx base, FnT&& sort) {
  // With both halves at hand CUB needs no other memory; one pass ends in the second one.
  cub::DoubleBuffer<std::uint8_t> keys{keys_.Data() + base, this->SortedKeys() + base};
  cub::DoubleBuffer<ColumnEntry> entries{halves_[current_].Data() + base,
                                         halves_[1 - current_].Data() + base};
  CallCub([&](void* storage, std::size_t& bytes) { return sort(storage, bytes, &keys, &entries); });
  if (keys.selector != 1 || entries.selector != 1) {
    throw std::logic_error{"CUB sorted entries in other than one pass."};
  }
}

void EntrySorter::SortRange(EntryRange const& range) {
  this->OnePass(range.begin, [&](void* storage, std::size_t& bytes, auto* keys, auto* entries) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, *keys, *entries, range.Size(), 0, 1,
                                           Stream());
  });
}

std::size_t EntrySorter::SortSegments(std::vector<EntryRange> const& segments) {
  std::vector<int> begins, ends;  // of short segments, counted from the first one of their group
  std::vector<std::pair<EntryIdx, std::size_t>> groups;  // where each begins: entry, short segment
  for (auto const& s : segments) {
    if (s.Size() >= long_segment_) {
      this->SortRange(s);
    } else if (s.Size() != 0) {
      if (groups.empty() || s.end - groups.back().first > kGroupSpan) {
        groups.emplace_back(s.begin, begins.size());
      }
      begins.push_back(static_cast<int>(s.begin - groups.back().first));
      ends.push_back(static_cast<int>(s.end - groups.back().first));
    }
  }
  std::size_t const d_segments = uploader_.Add(segments);
  std::size_t const d_begins = uploader_.Add(begins);
  std::size_t const d_ends = uploader_.Add(ends);
  uploader_.Upload();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto const [base, first] = groups[g];
    std::size_t const end = g + 1 < groups.size() ? groups[g + 1].second : begins.size();
    int const* const group_begins = uploader_.Data<int>(d_begins) + first;
    int const* const group_ends = uploader_.Data<int>(d_ends) + first;
    int const n_entries = ends[end - 1];
    auto const n = static_cast<int>(end - first);
    this->OnePass(base, [&](void* storage, std::size_t& bytes, auto* keys, auto* entries) {
      return cub::DeviceSegmentedRadixSort::SortPairs(storage, bytes, *keys, *entries, n_entries, n,
                                                      group_begins, group_ends, 0, 1, Stream());
    });
  }
  return d_segments;
}
}  // namespace gpu_exact
