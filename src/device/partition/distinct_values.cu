/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of distinct_values.cuh.
 */
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "src/device/partition/distinct_values.cuh"
#include "src/device/row_table.cuh"
#include "src/device/value_key.cuh"

namespace gpu_exact {
namespace {
/** @brief No value has these bits but a NaN, which is no present value. */
constexpr std::uint32_t kEmptySlot = 0;

/** @brief The hash set of one column: open addressing, linear probing. */
struct ValueSet {
  std::uint64_t begin;     // of its slots
  std::uint32_t capacity;  // twice the limit
  std::uint32_t limit;

  [[nodiscard]] __device__ std::uint32_t FirstSlot(std::uint32_t bits) const {
    // The end of MurmurHash3: any bit of a value moves any bit of the hash.
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    return __umulhi(bits ^ (bits >> 16), capacity);
  }
};

struct ValueSets {
  ValueSet const* of_feature;  // shape: (n_features)
  std::uint32_t* slots;        // OrderedBits(), or kEmptySlot
  std::uint32_t* n_values;     // shape: (n_features)

  [[nodiscard]] __device__ bool HasTooMany(FeatureIdx f, std::uint32_t limit) const {
    return __ldcg(n_values + f) > limit;
  }

  /**
   * @brief Add a value unless the set is known to have more than its limit.
   *
   * So the count ends beyond the limit where there are more, and is exact otherwise: a value is
   * left out only past the limit, or where all slots, twice as many, have others.
   */
  __device__ void Add(FeatureIdx f, std::uint32_t bits) const {
    constexpr std::uint32_t kProbes = 8;  // before it looks again whether there are too many
    ValueSet const set = of_feature[f];
    if (set.limit == 0 || this->HasTooMany(f, set.limit)) {
      return;
    }
    auto slot = set.FirstSlot(bits);
    for (std::uint32_t probe = 1; probe <= set.capacity; ++probe) {
      auto* p = slots + set.begin + slot;
      // Nearly all values are there already. A slot that was taken stays so: of what the L1 cache
      // says only "empty" may be old.
      std::uint32_t seen = __ldca(p);
      if (seen == kEmptySlot) {
        seen = __ldcg(p);
      }
      if (seen == kEmptySlot) {
        seen = atomicCAS(p, kEmptySlot, bits);
        if (seen == kEmptySlot) {
          atomicAdd(n_values + f, 1u);
          return;
        }
      }
      if (seen == bits || (probe % kProbes == 0 && this->HasTooMany(f, set.limit))) {
        return;
      }
      slot = slot + 1 == set.capacity ? 0 : slot + 1;
    }
  }
};

// one warp a row
__global__ void AddValuesKernel(CsrView table, ValueSets sets) {
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForEachEntry(table, row, [&](EntryIdx i) {
    CsrEntry const entry = table.entries[i];
    sets.Add(entry.feature, OrderedBits(entry.value));
  });
}

// one block a feature, in turns; keys: in any order within a feature
__global__ void ListValuesKernel(ValueSets sets, std::uint64_t const* offsets,
                                 FeatureIdx n_features, std::uint64_t* keys) {
  __shared__ std::uint32_t n_listed;
  for (FeatureIdx f = blockIdx.x; f < n_features; f += gridDim.x) {
    if (offsets[f] == offsets[f + 1]) {
      continue;
    }
    if (threadIdx.x == 0) {
      n_listed = 0;
    }
    __syncthreads();
    ValueSet const set = sets.of_feature[f];
    for (std::uint32_t k = threadIdx.x; k < set.capacity; k += blockDim.x) {
      std::uint32_t const bits = sets.slots[set.begin + k];
      if (bits != kEmptySlot) {
        keys[offsets[f] + atomicAdd(&n_listed, 1u)] = ValueKey::Make(f, bits);
      }
    }
    __syncthreads();  // the counter is used again
  }
}

// one thread a value
__global__ void WriteValuesKernel(std::uint64_t const* keys, std::uint64_t n, float* values) {
  auto i = GlobalIdx();
  if (i < n) {
    values[i] = ValueKey::Value(keys[i]);
  }
}
}  // namespace

DistinctValues::DistinctValues(CsrView const& table, std::vector<std::uint32_t> const& limits)
    : n_values_(limits.size(), 0) {
  constexpr std::uint64_t kMaxBlocks = 1 << 12;  // enough for any GPU
  std::vector<std::uint64_t> offsets(limits.size() + 1, 0);
  std::vector<ValueSet> h_sets;
  std::uint64_t n_slots{0};
  for (std::uint32_t limit : limits) {
    h_sets.push_back({n_slots, 2 * limit, limit});
    n_slots += 2 * std::uint64_t{limit};
  }
  DeviceBuffer<ValueSet> of_feature{"sets of values"};
  DeviceBuffer<std::uint32_t> slots{"slots for values"}, n_values{"numbers of distinct values"};
  DeviceBuffer<std::uint64_t> keys{"distinct values to sort"};
  if (n_slots != 0) {
    CopyAsync(of_feature.Reserve(h_sets.size()), h_sets.data(), h_sets.size());
    ZeroAsync(slots.Reserve(n_slots), n_slots);
    ZeroAsync(n_values.Reserve(limits.size()), limits.size());
    ValueSets const sets{of_feature.Data(), slots.Data(), n_values.Data()};
    LaunchRows("AddValues", AddValuesKernel, table.n_rows, table, sets);
    n_values_ = ToHost(n_values.Data(), limits.size());
    for (std::size_t f = 0; f < limits.size(); ++f) {
      n_values_[f] = n_values_[f] <= limits[f] ? n_values_[f] : 0;
      offsets[f + 1] = offsets[f] + n_values_[f];
    }
  }
  auto const n = offsets.back();
  CopyAsync(offsets_.Reserve(offsets.size()), offsets.data(), offsets.size());
  if (n != 0) {
    auto n_features = static_cast<FeatureIdx>(limits.size());
    Launch("ListValues", ListValuesKernel, std::min<std::uint64_t>(n_features, kMaxBlocks), 128,
           ValueSets{of_feature.Data(), slots.Data(), n_values.Data()}, offsets_.Data(), n_features,
           keys.Reserve(n));
    Synchronize();
    slots.Release();
    DeviceBuffer<std::uint64_t> keys_alt{"distinct values, second half"};
    cub::DoubleBuffer<std::uint64_t> sorted{keys.Data(), keys_alt.Reserve(n)};
    CubScratch scratch;
    scratch.Call([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(storage, bytes, sorted, n, 0,
                                            ValueKey::NumBits(n_features), Stream());
    });
    LaunchN("WriteValues", WriteValuesKernel, n, sorted.Current(), n, values_.Reserve(n));
  }
  Synchronize();  // the keys go
}
}  // namespace gpu_exact
