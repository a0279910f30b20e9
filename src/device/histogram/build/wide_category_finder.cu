/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements wide_category_finder.cuh.
 */
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

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
  FixedSum* sums;               // shape: (nodes, n_categories)
  std::uint32_t const* places;  // of those that have a sum, ascending
  std::uint32_t n_places;
  std::uint64_t const* keys;     // Key(), ascending
  std::uint32_t const* numbers;  // whose they are

  [[nodiscard]] __device__ static std::uint64_t Key(std::uint32_t node, std::uint32_t weight) {
    return std::uint64_t{node} << 32 | weight;
  }
  [[nodiscard]] __device__ std::uint64_t First(std::uint32_t node) const {
    return std::uint64_t{node} * column.n_categories;
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

// grid: one block a slice; result: sums, zero before
__global__ __launch_bounds__(kThreads) void SumCategoriesKernel(BinnedTableRef table, RowsRef rows,
                                                                RowSlice const* slices,
                                                                WideRef wide) {
  WaitForPreviousKernel();
  RowSlice const slice = slices[blockIdx.x];
  FixedSum* const sums = wide.sums + wide.First(slice.node);
  for (RowIdx base = slice.rows.begin; base < slice.rows.end; base += kThreads) {
    std::uint64_t const slot = std::uint64_t{base} + threadIdx.x;
    float value{NAN};
    FixedSum sum{0, 0};
    if (slot < slice.rows.end) {
      value = table.ValueOf(rows.rows[slot], wide.column.feature);
      sum = rows.units[slot].Fixed();
    }
    AddByWarp(sums, isnan(value) ? 0xffffffffu : static_cast<std::uint32_t>(value), sum);
  }
}

/** @brief Tells whether a category of a node has a sum. */
struct HasSum {
  FixedSum const* sums;
  __device__ bool operator()(std::uint32_t place) const { return !(sums[place] == FixedSum{0, 0}); }
};

// one thread a category with a sum
__global__ void MakeWeightKeysKernel(__grid_constant__ LevelRef const level, WideRef wide,
                                     std::uint64_t* keys, std::uint32_t* numbers) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i < wide.n_places) {
    std::uint32_t const place = wide.places[i];
    keys[i] = WideRef::Key(place / wide.column.n_categories,
                           CategoryWeight::Key(level, wide.sums[place]));
    numbers[i] = static_cast<std::uint32_t>(i);
  }
}

/** @brief Reads the lists of one node. */
struct WideList {
  WideRef const& wide;
  std::uint64_t first_place;
  std::uint32_t begin;

  [[nodiscard]] __device__ std::uint32_t Number(std::uint32_t rank) const {
    return wide.numbers[begin + rank] - begin;
  }
  [[nodiscard]] __device__ std::uint32_t Code(std::uint32_t number) const {
    return static_cast<std::uint32_t>(wide.places[begin + number] - first_place);
  }
};

// grid: one block a node
__global__ __launch_bounds__(kThreads) void SearchWideKernel(__grid_constant__ LevelRef const level,
                                                             __grid_constant__ WideRef const wide,
                                                             LevelSetsRef out) {
  WaitForPreviousKernel();
  using Agent = CategoryCutAgent<kThreads, WideList>;
  __shared__ typename Agent::Storage temp;
  __shared__ std::uint32_t bounds[2];
  __shared__ CategoryCounts counts;
  std::uint32_t const i = blockIdx.x;
  std::uint32_t const warp = threadIdx.x / 32;
  LevelNode const b = wide.nodes[i].level_node;
  if (!level.Allowed(b, wide.column.feature)) {
    return;
  }
  if (warp < 2) {
    std::uint64_t const first = wide.First(i + warp);
    std::uint32_t const at = WarpPartitionPoint(
        0u, wide.n_places, [&](std::uint32_t k) { return wide.places[k] >= first; });
    bounds[warp] = at;
  }
  __syncthreads();
  WideList const list{wide, wide.First(i), bounds[0]};
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
  Agent agent{&temp, level, wide.column, b, list, counts};
  if (agent.Offer(
          [&](std::uint32_t, std::uint32_t code) { return wide.sums[list.first_place + code]; })) {
    agent.WriteSet(out.Of(b));
  }
}
}  // namespace

WideCategoryFinder::WideCategoryFinder(BinnedTable const& table, std::uint64_t max_sums)
    : table_{table}, max_sums_{max_sums} {
  for (CategoricalFeature const& f : table.Categorical()) {
    if (table.IsWide(f)) {
      features_.push_back(f);
    }
  }
}

void WideCategoryFinder::Find(LevelRef const& level, RowsRef const& rows,
                              std::vector<SearchedNode> const& nodes, LevelSetsRef const& out) {
  for (CategoricalFeature const& f : features_) {
    std::size_t const at_once = std::max<std::uint64_t>(max_sums_ / f.n_categories, 1);
    for (std::size_t first = 0; first < nodes.size(); first += at_once) {
      auto const begin = nodes.cbegin() + static_cast<std::ptrdiff_t>(first);
      auto const n = static_cast<std::ptrdiff_t>(std::min(at_once, nodes.size() - first));
      this->FindAtOnce(level, rows, f, {begin, begin + n}, out);
    }
  }
}

void WideCategoryFinder::FindAtOnce(LevelRef const& level, RowsRef const& rows,
                                    CategoricalFeature const& column,
                                    std::vector<SearchedNode> const& nodes,
                                    LevelSetsRef const& out) {
  std::vector<RowSlice> slices;
  std::uint64_t n_rows{0};
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    RowRange const& all = nodes[i].rows;
    n_rows += all.Size();
    for (RowIdx begin = all.begin; begin < all.end;) {
      RowIdx const end = begin + std::min(kSliceRows, all.end - begin);
      slices.push_back({{begin, end}, i});
      begin = end;
    }
  }
  std::uint64_t const n_sums = nodes.size() * std::uint64_t{column.n_categories};
  std::uint64_t const most = std::min(n_rows, n_sums);
  std::size_t const d_nodes = uploader_.Add(nodes);
  std::size_t const d_slices = uploader_.Add(slices);
  uploader_.Upload();
  WideRef wide{column,
               uploader_.Data<SearchedNode>(d_nodes),
               sums_.Reserve(n_sums),
               places_.Reserve(most),
               0,
               nullptr,
               nullptr};
  ZeroAsync(wide.sums, n_sums);
  Launch("SumCategories", SumCategoriesKernel, slices.size(), kThreads, table_.Ref(), rows,
         uploader_.Data<RowSlice>(d_slices), wide);
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceSelect::If(storage, bytes, thrust::make_counting_iterator(0u), places_.Data(),
                                 n_places_.Reserve(1), static_cast<std::int64_t>(n_sums),
                                 HasSum{wide.sums}, Stream());
  });
  wide.n_places = static_cast<std::uint32_t>(ToHost(n_places_.Data(), 1).front());
  cub::DoubleBuffer<std::uint64_t> keys{keys_[0].Reserve(most), keys_[1].Reserve(most)};
  cub::DoubleBuffer<std::uint32_t> numbers{numbers_[0].Reserve(most), numbers_[1].Reserve(most)};
  LaunchN("MakeWeightKeys", MakeWeightKeysKernel, wide.n_places, level, wide, keys.Current(),
          numbers.Current());
  if (wide.n_places != 0) {
    int const n_bits = 32 + BitsBelow(nodes.size());
    CallCub([&](void* storage, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, numbers,
                                             std::uint64_t{wide.n_places}, 0, n_bits, Stream());
    });
  }
  wide.keys = keys.Current();
  wide.numbers = numbers.Current();
  Launch("SearchWide", SearchWideKernel, nodes.size(), kThreads, level, wide, out);
}
}  // namespace gpu_exact
