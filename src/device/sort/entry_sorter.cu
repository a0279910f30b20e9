/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of entry_sorter.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <stdexcept>

#include "src/device/sort/entry_sorter.cuh"

namespace gpu_exact {
namespace {
// CUB gives a segment to one block, so a long one is sorted alone, by all of them.
constexpr EntryIdx kLongSegment = EntryIdx{1} << 18;
// CUB's segment offsets are 32 bit: segments are sorted together while they lie this close.
constexpr EntryIdx kGroupSpan = EntryIdx{1} << 30;

// one thread an entry
__global__ void GatherKernel(ColumnEntry const* columns, GradientPair const* gpair, EntryIdx n,
                             Entry* out) {
  auto i = GlobalIdx();
  if (i < n) {
    ColumnEntry e = columns[i];
    out[i] = {e.row, e.value, gpair[e.row]};
  }
}

// one thread an open entry
__global__ void WriteKeysKernel(Entry const* entries, NodeRangesRef ranges,
                                std::uint8_t const* row_keys, std::uint8_t* keys) {
  auto i = GlobalIdx();
  if (i < ranges.n_open) {
    auto at = ranges.Position(ranges.NodeOf(i), i);
    keys[at] = row_keys[entries[at].row];
  }
}

// one thread a bucket
__global__ void FindBucketsKernel(std::uint8_t const* keys, EntryIdx n, Bucket n_nodes,
                                  EntryRange* ranges) {
  auto bucket = GlobalIdx();
  if (bucket < n_nodes) {
    ranges[bucket] = {FirstIndex(EntryIdx{0}, n, [=](EntryIdx i) { return keys[i] >= bucket; }),
                      FirstIndex(EntryIdx{0}, n, [=](EntryIdx i) { return keys[i] > bucket; })};
  }
}

// one thread a split node
__global__ void FindChildrenKernel(std::uint8_t const* keys, EntryRange const* nodes,
                                   Bucket n_split, EntryRange* children) {
  auto i = GlobalIdx();
  if (i < n_split) {
    EntryRange node = nodes[i];
    auto mid = FirstIndex(node.begin, node.end, [=](EntryIdx k) { return (keys[k] & 1) != 0; });
    children[2 * i] = {node.begin, mid};
    children[2 * i + 1] = {mid, node.end};
  }
}

struct SizeOfRange {
  EntryRange const* ranges;
  __device__ EntryIdx operator()(Bucket i) const { return ranges[i].Size(); }
};
}  // namespace

EntrySorter::EntrySorter(ColumnsRef const& columns) : n_entries_{columns.n_entries} {
  halves_[0].Reserve(n_entries_);
  halves_[1].Reserve(n_entries_);
  keys_.Reserve(n_entries_);
  sorted_keys_.Reserve(n_entries_);
}

void EntrySorter::Reset(ColumnsRef const& columns, GradientPair const* gpair) {
  current_ = 0;
  LaunchN("Gather", GatherKernel, n_entries_, columns.entries, gpair, n_entries_,
          halves_[0].Data());
  EntryRange all{0, n_entries_};
  CopyAsync(ranges_.Reserve(1), &all, 1);
  ref_.n_open = n_entries_;
  this->UseRanges(1);
}

void EntrySorter::SortByNode(std::uint8_t const* row_keys, Bucket n_nodes) {
  this->WriteKeys(row_keys);
  if (n_entries_ != 0) {
    this->SortRange({0, n_entries_}, 8);
  }
  current_ = 1 - current_;
  LaunchN("FindBuckets", FindBucketsKernel, n_nodes, sorted_keys_.Data(), n_entries_, n_nodes,
          ranges_.Reserve(n_nodes));
  this->UseRanges(n_nodes);
  CopyAsync(&ref_.n_open, ref_.open_ends + n_nodes - 1, 1);
  Synchronize();
}

void EntrySorter::SortByChild(std::vector<EntryRange> const& nodes,
                              std::vector<bool> const& is_split, std::uint8_t const* row_keys) {
  this->WriteKeys(row_keys);
  std::vector<EntryRange> segments;
  ref_.n_open = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_split[i]) {
      segments.push_back(nodes[i]);
      ref_.n_open += nodes[i].Size();
    }
  }
  this->SortSegments(segments);
  current_ = 1 - current_;
  auto n_split = static_cast<Bucket>(segments.size());
  CopyAsync(split_ranges_.Reserve(n_split), segments.data(), n_split);
  LaunchN("FindChildren", FindChildrenKernel, n_split, sorted_keys_.Data(), split_ranges_.Data(),
          n_split, ranges_.Reserve(2 * n_split));
  this->UseRanges(2 * n_split);
}

void EntrySorter::WriteKeys(std::uint8_t const* row_keys) {
  LaunchN("WriteKeys", WriteKeysKernel, ref_.n_open, halves_[current_].Data(), ref_, row_keys,
          keys_.Data());
}

template <typename FnT>
void EntrySorter::OnePass(EntryIdx base, FnT&& sort) {
  // With both halves at hand CUB needs no other memory; one pass ends in the second one.
  cub::DoubleBuffer<std::uint8_t> keys{keys_.Data() + base, sorted_keys_.Data() + base};
  cub::DoubleBuffer<Entry> entries{halves_[current_].Data() + base,
                                   halves_[1 - current_].Data() + base};
  scratch_.Call(
      [&](void* storage, std::size_t& bytes) { return sort(storage, bytes, &keys, &entries); });
  if (keys.selector != 1 || entries.selector != 1) {
    throw std::logic_error{"CUB sorted entries in other than one pass."};
  }
}

void EntrySorter::SortRange(EntryRange const& range, int n_bits) {
  this->OnePass(range.begin, [&](void* storage, std::size_t& bytes, auto* keys, auto* entries) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, *keys, *entries, range.Size(), 0, n_bits,
                                           Stream());
  });
}

void EntrySorter::SortSegments(std::vector<EntryRange> const& segments) {
  std::vector<int> begins, ends;
  EntryIdx base{0};
  auto sort_group = [&] {
    if (begins.empty()) {
      return;
    }
    auto n = static_cast<int>(begins.size());
    CopyAsync(segment_begins_.Reserve(n), begins.data(), n);
    CopyAsync(segment_ends_.Reserve(n), ends.data(), n);
    this->OnePass(base, [&](void* storage, std::size_t& bytes, auto* keys, auto* entries) {
      return cub::DeviceSegmentedRadixSort::SortPairs(storage, bytes, *keys, *entries, ends.back(),
                                                      n, segment_begins_.Data(),
                                                      segment_ends_.Data(), 0, 1, Stream());
    });
    begins.clear();
    ends.clear();
  };
  for (auto const& s : segments) {
    if (s.Size() >= kLongSegment) {
      this->SortRange(s, 1);
    } else if (s.Size() != 0) {
      if (begins.empty() || s.end - base > kGroupSpan) {
        sort_group();
        base = s.begin;
      }
      begins.push_back(static_cast<int>(s.begin - base));
      ends.push_back(static_cast<int>(s.end - base));
    }
  }
  sort_group();
}

void EntrySorter::UseRanges(Bucket n_nodes) {
  ref_.ranges = ranges_.Data();
  ref_.open_ends = open_ends_.Reserve(n_nodes);
  ref_.n_nodes = n_nodes;
  auto sizes = thrust::make_transform_iterator(thrust::make_counting_iterator(Bucket{0}),
                                               SizeOfRange{ranges_.Data()});
  if (n_nodes != 0) {
    scratch_.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(storage, bytes, sizes, open_ends_.Data(), n_nodes,
                                           Stream());
    });
  }
}

std::uint64_t EntrySorter::Bytes() const {
  return halves_[0].Bytes() + halves_[1].Bytes() + keys_.Bytes() + sorted_keys_.Bytes() +
         ranges_.Bytes() + split_ranges_.Bytes() + open_ends_.Bytes() + segment_begins_.Bytes() +
         segment_ends_.Bytes() + scratch_.Bytes();
}
}  // namespace gpu_exact
