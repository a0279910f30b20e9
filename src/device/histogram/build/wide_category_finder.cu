/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements wide_category_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/std/functional>

#include "device/histogram/build/category_search.cuh"
#include "device/histogram/build/wide_category_finder.cuh"
#include "device/runtime/device_context.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr RowIdx kSliceRows = 4096;

/** @brief Lends the categories of some nodes. */
struct WideRef {
  CategoricalFeature column;
  SearchedNode const* nodes;
  std::uint32_t n_nodes;
  int code_bits;                  // of a place
  FixedSum* sums;                 // by number, or by code
  bool by_code;                   // of the one node
  std::uint64_t const* places;    // Place() of those that are listed, ascending
  std::uint64_t const* n_places;  // those past the last node are rows without a category
  std::uint64_t const* keys;      // Key(), ascending
  std::uint32_t const* numbers;   // whose they are

  [[nodiscard]] __device__ static std::uint64_t Key(std::uint64_t node, std::uint32_t weight) {
    return node << 32 | weight;
  }
  [[nodiscard]] __device__ std::uint64_t Place(std::uint64_t node, std::uint32_t code) const {
    return node << code_bits | code;
  }
  [[nodiscard]] __device__ std::uint32_t Code(std::uint64_t place) const {
    return static_cast<std::uint32_t>(place & ((std::uint64_t{1} << code_bits) - 1));
  }
  [[nodiscard]] __device__ FixedSum const& Sum(std::uint64_t number, std::uint32_t code) const {
    return sums[by_code ? code : number];
  }
};

/**
 * @brief Add sums by all lanes of a warp: one addition for all that go to the same place, where many do.
 * @param place kNone: there is none.
 */
__device__ void AddByWarp(FixedSum* sums, std::uint32_t place, FixedSum sum) {
  constexpr std::uint32_t kNone = 0xffffffffu;
  constexpr int kCrowd = 4;
  unsigned const alike = __match_any_sync(kAllLanes, place);
  bool const is_crowded = place != kNone && __popc(alike) >= kCrowd;
  if (__any_sync(kAllLanes, is_crowded)) {
    FixedSum all{0, 0};
    for (int lane = 0; lane < 32; ++lane) {
      FixedSum const other = Shuffle(sum, lane);
      if ((alike >> lane & 1u) != 0) {
        all = all + other;
      }
    }
    place = (alike & LaneMaskLt()) == 0 ? place : kNone;  // the first one adds
    sum = all;
  }
  if (place != kNone) {
    AtomicAdd(sums + place, sum);
  }
}

// grid: one block a slice; result: sums by code, zero before
__global__ __launch_bounds__(kThreads) void SumCategoriesKernel(BinnedTableRef table, RowsRef rows,
                                                                RowSlice const* slices,
                                                                WideRef wide) {
  WaitForPreviousKernel();
  RowSlice const slice = slices[blockIdx.x];
  for (RowIdx base = slice.rows.begin; base < slice.rows.end; base += kThreads) {
    std::uint64_t const slot = std::uint64_t{base} + threadIdx.x;
    float value{NAN};
    FixedSum sum{0, 0};
    if (slot < slice.rows.end) {
      value = table.ValueOf(rows.rows[slot], wide.column.feature);
      sum = rows.units[slot].Fixed();
    }
    AddByWarp(wide.sums, isnan(value) ? 0xffffffffu : static_cast<std::uint32_t>(value), sum);
  }
}

// grid: one block a slice; result: the place and the slot of each row
__global__ __launch_bounds__(kThreads) void MakePlaceKeysKernel(BinnedTableRef table, RowsRef rows,
                                                                RowSlice const* slices,
                                                                WideRef wide, std::uint64_t* places,
                                                                std::uint32_t* slots) {
  WaitForPreviousKernel();
  RowSlice const slice = slices[blockIdx.x];
  for (RowIdx k = threadIdx.x; k < slice.rows.Size(); k += kThreads) {
    RowIdx const slot = slice.rows.begin + k;
    float const value = table.ValueOf(rows.rows[slot], wide.column.feature);
    places[slice.first + k] = isnan(value)
                                  ? wide.Place(wide.n_nodes, 0)
                                  : wide.Place(slice.node, static_cast<std::uint32_t>(value));
    slots[slice.first + k] = slot;
  }
}

/** @brief Tells whether a category of a node has a sum. */
struct HasSum {
  FixedSum const* sums;
  __device__ bool operator()(std::uint64_t code) const { return !(sums[code] == FixedSum{0, 0}); }
};

// one thread a number that there may be; result: what is not listed comes last
__global__ void MakeWeightKeysKernel(__grid_constant__ LevelRef const lv, WideRef wide,
                                     std::uint64_t n, std::uint64_t* keys, std::uint32_t* numbers) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i >= n) {
    return;
  }
  std::uint64_t key = WideRef::Key(wide.n_nodes, 0);
  if (i < *wide.n_places) {
    std::uint64_t const place = wide.places[i];
    if (std::uint64_t const node = place >> wide.code_bits; node < wide.n_nodes) {
      key = WideRef::Key(node, CategoryWeight::Key(lv, wide.Sum(i, wide.Code(place))));
    }
  }
  keys[i] = key;
  numbers[i] = static_cast<std::uint32_t>(i);
}

/** @brief Reads the lists of one node. */
struct WideList {
  WideRef const& wide;
  std::uint32_t begin;

  [[nodiscard]] __device__ std::uint32_t Number(std::uint32_t rank) const {
    return wide.numbers[begin + rank] - begin;
  }
  [[nodiscard]] __device__ std::uint32_t Code(std::uint32_t number) const {
    return wide.Code(wide.places[begin + number]);
  }
};

// grid: one block a node
__global__ __launch_bounds__(kThreads) void SearchWideKernel(__grid_constant__ LevelRef const lv,
                                                             __grid_constant__ WideRef const wide,
                                                             LevelSetsRef out) {
  WaitForPreviousKernel();
  using Agent = CategoryCutAgent<kThreads, WideList>;
  __shared__ typename Agent::Storage temp;
  __shared__ std::uint32_t bounds[2];
  __shared__ CategoryCounts counts;
  __shared__ std::uint32_t listed[CategorySet::kMaxListed];
  std::uint32_t const i = blockIdx.x;
  std::uint32_t const warp = threadIdx.x / 32;
  LevelNode const b = wide.nodes[i].level_node;
  if (!lv.Allowed(b, wide.column.feature)) {
    return;
  }
  if (warp < 2) {
    std::uint64_t const first = wide.Place(i + warp, 0);
    std::uint32_t const at =
        WarpPartitionPoint(0u, static_cast<std::uint32_t>(*wide.n_places),
                           [&](std::uint32_t k) { return wide.places[k] >= first; });
    bounds[warp] = at;
  }
  __syncthreads();
  WideList const list{wide, bounds[0]};
  std::uint32_t const n_present = bounds[1] - bounds[0];
  std::uint32_t const n_below_zero = WarpPartitionPoint(0u, n_present, [&](std::uint32_t k) {
    return wide.keys[bounds[0] + k] >= WideRef::Key(i, CategoryWeight::kZero);
  });
  std::uint32_t const n_up_to_zero = WarpPartitionPoint(n_below_zero, n_present, [&](auto k) {
    return wide.keys[bounds[0] + k] > WideRef::Key(i, CategoryWeight::kZero);
  });
  std::uint32_t const first_absent =
      WarpPartitionPoint(0u, n_present, [&](std::uint32_t k) { return list.Code(k) != k; });
  if (threadIdx.x == 0) {
    counts = {n_present, n_below_zero, n_up_to_zero - n_below_zero,
              first_absent < wide.column.n_categories ? first_absent : CategoryWeight::kNone};
  }
  __syncthreads();
  Agent agent{&temp, lv, wide.column, b, list, counts};
  if (agent.Offer([&](std::uint32_t number, std::uint32_t code) {
        return wide.Sum(list.begin + number, code);
      })) {
    agent.WriteSet(listed, out.Of(b));
  }
}
}  // namespace

WideCategoryFinder::WideCategoryFinder(BinnedTable const& table, RowIdx max_rows)
    : table_{table}, max_rows_{max_rows} {
  for (CategoricalFeature const& f : table.Categorical()) {
    if (table.IsWide(f)) {
      features_.push_back(f);
    }
  }
}

std::vector<WideCategoryFinder::Batch> WideCategoryFinder::Divide(
    std::vector<SearchedNode> const& nodes, std::vector<RowSlice>* slices) const {
  std::vector<Batch> batches;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    RowRange const& all = nodes[i].rows;
    if (batches.empty() || std::uint64_t{batches.back().n_rows} + all.Size() > max_rows_) {
      batches.push_back({i, 0, slices->size(), 0, 0});
    }
    Batch& batch = batches.back();
    for (RowIdx begin = all.begin; begin < all.end;) {
      RowIdx const end = begin + std::min(kSliceRows, all.end - begin);
      slices->push_back({{begin, end}, batch.n_nodes, batch.n_rows + (begin - all.begin)});
      begin = end;
    }
    ++batch.n_nodes;
    batch.n_rows += all.Size();
    batch.n_slices = slices->size() - batch.first_slice;
  }
  return batches;
}

void WideCategoryFinder::Find(LevelRef const& lv, RowsRef const& rows,
                              std::vector<SearchedNode> const& nodes, LevelSetsRef const& out) {
  if (features_.empty() || nodes.empty()) {
    return;
  }
  std::vector<RowSlice> slices;
  std::vector<Batch> const batches = this->Divide(nodes, &slices);
  if (n_uploads_ == uploaders_.size()) {
    uploaders_.push_back(
        std::make_unique<Uploader>("nodes searched by wide columns, and their rows"));
  }
  Uploader* const uploader = uploaders_[n_uploads_++].get();
  std::size_t const d_nodes = uploader->Add(nodes);
  std::size_t const d_slices = uploader->Add(slices);
  uploader->Upload();
  for (CategoricalFeature const& f : features_) {
    for (Batch const& batch : batches) {
      this->FindAtOnce(lv, rows, f, batch, uploader->Data<SearchedNode>(d_nodes) + batch.first_node,
                       uploader->Data<RowSlice>(d_slices) + batch.first_slice, out);
    }
  }
}

void WideCategoryFinder::FindAtOnce(LevelRef const& lv, RowsRef const& rows,
                                    CategoricalFeature const& column, Batch const& batch,
                                    SearchedNode const* nodes, RowSlice const* slices,
                                    LevelSetsRef const& out) {
  if (batch.n_rows == 0) {
    return;
  }
  bool const by_code = batch.n_rows > max_rows_;  // one node
  std::uint64_t const most =
      by_code ? std::min(batch.n_rows, column.n_categories) : batch.n_rows;  // that are listed
  WideRef wide{column,
               nodes,
               batch.n_nodes,
               BitsBelow(column.n_categories),
               sums_.Reserve(by_code ? column.n_categories : most),
               by_code,
               places_.Reserve(most),
               n_places_.Reserve(1),
               nullptr,
               nullptr};
  cub::DoubleBuffer<std::uint64_t> keys{keys_[0].Reserve(most), keys_[1].Reserve(most)};
  cub::DoubleBuffer<std::uint32_t> numbers{numbers_[0].Reserve(most), numbers_[1].Reserve(most)};
  auto const sort = [&](int n_bits) {
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, numbers, most, 0, n_bits,
                                             Stream());
    });
  };
  int const node_bits = BitsBelow(std::uint64_t{batch.n_nodes} + 1);
  if (by_code) {
    ZeroAsync(wide.sums, column.n_categories);
    Launch("SumCategories", SumCategoriesKernel, batch.n_slices, kThreads, table_.Ref(), rows,
           slices, wide);
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceSelect::If(storage, bytes, thrust::make_counting_iterator(std::uint64_t{0}),
                                   places_.Data(), n_places_.Data(),
                                   std::int64_t{column.n_categories}, HasSum{wide.sums}, Stream());
    });
  } else {
    Launch("MakePlaceKeys", MakePlaceKeysKernel, batch.n_slices, kThreads, table_.Ref(), rows,
           slices, wide, keys.Current(), numbers.Current());
    sort(wide.code_bits + node_bits);
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceReduce::ReduceByKey(storage, bytes, keys.Current(), places_.Data(),
                                            SlotSums{numbers.Current(), SumOfSlot{rows.units}},
                                            wide.sums, n_places_.Data(), cuda::std::plus<>{},
                                            static_cast<std::int64_t>(most), Stream());
    });
  }
  LaunchN("MakeWeightKeys", MakeWeightKeysKernel, most, lv, wide, most, keys.Current(),
          numbers.Current());
  sort(32 + node_bits);
  wide.keys = keys.Current();
  wide.numbers = numbers.Current();
  Launch("SearchWide", SearchWideKernel, batch.n_nodes, kThreads, lv, wide, out);
}
}  // namespace gpu_exact
