/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of sorting_finder.cuh.
 */
#include "src/device/histogram/sorting_finder.cuh"

#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "src/device/fixed_sum.cuh"

namespace gpu_exact {
namespace {
/** @brief The better candidate: the greater key, among alike ones that met first. */
struct BetterValue {
  __device__ RefinedValue operator()(RefinedValue const& a, RefinedValue const& b) const {
    if (a.key != b.key) {
      return a.key > b.key ? a : b;
    }
    return a.scan_value <= b.scan_value ? a : b;
  }
};

struct AddSums {
  __device__ FixedSum operator()(FixedSum const& a, FixedSum const& b) const { return a + b; }
};

/** @brief How a column's values are sorted: by bin where that tells the value, else as they are. */
struct SortKey {
  BinnedTableRef const& table;
  FeatureIdx f;
  bool by_bin;
  std::uint32_t missing;  // greater than all others
  int n_bits{32};         // of a key

  __device__ SortKey(BinnedTableRef const& t, BinColumn const& column)
      : table{t},
        f{column.feature},
        by_bin{t.values.column_of[column.feature] == RowValuesRef::kNotKept},
        missing{by_bin ? column.n_bins : 0xffffffffu} {
    n_bits = 32 - __clz(static_cast<int>(missing));
  }

  [[nodiscard]] __device__ std::uint32_t Of(RowIdx row) const {
    if (by_bin) {
      int const bin = table.finest.BinOf(row, f);
      return bin < 0 ? missing : static_cast<std::uint32_t>(bin);
    }
    float const value = table.ValueOf(row, f);
    return isnan(value) ? missing : OrderedBits(value);
  }
  [[nodiscard]] __device__ float Value(std::uint32_t key) const {
    BinsRef const& bins = table.finest.bins;
    return by_bin ? bins.lowest[bins.offsets[f] + key] : FromOrderedBits(key);
  }
  [[nodiscard]] __device__ std::uint32_t Bin(std::uint32_t key) const {
    return by_bin ? key : table.finest.bins.BinOf(f, FromOrderedBits(key));
  }
};

// grid: nodes, columns; nodes: indices of those that this size serves
template <int kThreads, int kItems>
struct SortSearch {
  using Sort = cub::BlockRadixSort<std::uint32_t, kThreads, kItems, std::uint16_t>;
  using Scan = cub::BlockScan<FixedSum, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Reduce = cub::BlockReduce<RefinedValue, kThreads>;
  union Storage {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
    std::uint32_t ends[kThreads][2];  // first and last key of each thread
  };
};

template <int kThreads, int kItems>
__global__ __launch_bounds__(kThreads) void SortSearchKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ BinnedTableRef const table,
    RowsRef rows, SearchedNode const* nodes, std::uint32_t first_node, std::uint32_t n_columns,
    RefinedValue* out) {
  using Search = SortSearch<kThreads, kItems>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& temp = *reinterpret_cast<typename Search::Storage*>(memory);
  std::uint32_t const i = first_node + blockIdx.x / n_columns;
  std::uint32_t const c = blockIdx.x % n_columns;
  SearchedNode const node = nodes[i];
  BinColumn const column = table.finest.columns[c];
  SortKey const sort_key{table, column};
  RowIdx const n_rows = node.rows.end - node.rows.begin;
  std::uint32_t keys[kItems];
  std::uint16_t at[kItems];  // rows of the node
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    at[k] = static_cast<std::uint16_t>(k * kThreads + threadIdx.x);
    keys[k] = at[k] < n_rows ? sort_key.Of(rows.rows[node.rows.begin + at[k]]) : sort_key.missing;
  }
  typename Search::Sort{temp.sort}.Sort(keys, at, 0, sort_key.n_bits);
  __syncthreads();
  temp.ends[threadIdx.x][0] = keys[0];
  temp.ends[threadIdx.x][1] = keys[kItems - 1];
  __syncthreads();
  bool const is_first = threadIdx.x == 0;
  bool const is_last = threadIdx.x == kThreads - 1;
  std::uint32_t const below = is_first ? ~keys[0] : temp.ends[threadIdx.x - 1][1];
  std::uint32_t const above = is_last ? ~keys[kItems - 1] : temp.ends[threadIdx.x + 1][0];
  __syncthreads();
  FixedSum own{0, 0};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (keys[k] != sort_key.missing) {
      own = own + level.quantiser.Fixed(rows.gpair[node.rows.begin + at[k]]);
    }
  }
  FixedSum before, present;
  typename Search::Scan{temp.scan}.ExclusiveScan(own, before, FixedSum{0, 0}, AddSums{}, present);
  __syncthreads();
  NodeState const& state = level.nodes[node.bucket];
  float const bar = level.Bar(node.bucket);
  bool const has_missing = !(present == state.sum);
  RefinedValue best{0, ScanValue::kNone};
  if (level.Allowed(node.bucket, column.feature)) {
    ValueId const first = level.columns.value_offsets[column.feature];
    auto offer = [&](ScanDirection d, std::uint32_t key) {
      if (level.MayReach(bar, state.sum, before, present, has_missing)) {
        ValueId const bin = first + sort_key.Bin(key);
        std::uint64_t const value = d == ScanDirection::kForward ? bin + std::uint64_t{1} : bin;
        std::uint64_t const candidate =
            level.ScanKey(state, column.feature, d, value, before, present);
        if (candidate != 0) {
          best = BetterValue{}(best, {candidate, ScanValue::Make(d, sort_key.Value(key))});
        }
      }
    };
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (keys[k] != sort_key.missing) {
        if (keys[k] != (k == 0 ? below : keys[k == 0 ? 0 : k - 1])) {
          offer(ScanDirection::kBackward, keys[k]);
        }
        before = before + level.quantiser.Fixed(rows.gpair[node.rows.begin + at[k]]);
        if (keys[k] != (k == kItems - 1 ? above : keys[k == kItems - 1 ? k : k + 1])) {
          offer(ScanDirection::kForward, keys[k]);
        }
      }
    }
  }
  best = typename Search::Reduce{temp.reduce}.Reduce(best, BetterValue{});
  if (threadIdx.x == 0) {
    out[std::uint64_t{i} * n_columns + c] = best;
    level.Offer(node.bucket, best.key);
  }
}

template <int kThreads, int kItems>
void LaunchSearch(LevelRef const& level, BinnedTableRef const& table, RowsRef const& rows,
                  SearchedNode const* nodes, std::uint32_t first, std::uint32_t end,
                  std::uint32_t n_columns, RefinedValue* out) {
  auto* kernel = SortSearchKernel<kThreads, kItems>;
  constexpr std::size_t kBytes = sizeof(typename SortSearch<kThreads, kItems>::Storage);
  EXACT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(kBytes)));
  Launch("SortSearch", kernel, std::uint64_t{end - first} * n_columns, {kThreads, kBytes}, level,
         table, rows, nodes, first, n_columns, out);
}
}  // namespace

SortingFinder::SortingFinder(BinnedTable const& table)
    : table_{table}, n_columns_{table.Ref().finest.n_columns} {}

void SortingFinder::Find(LevelRef const& level, RowsRef const& rows,
                         std::vector<SearchedNode> const& nodes) {
  if (nodes.empty() || n_columns_ == 0) {
    nodes_.Upload(nodes);
    return;
  }
  auto by_rows = nodes;
  auto n_rows = [](SearchedNode const& n) { return n.rows.end - n.rows.begin; };
  std::stable_sort(by_rows.begin(), by_rows.end(), [&](auto const& a, auto const& b) {
    return n_rows(a) < n_rows(b);
  });
  auto count = [&](RowIdx most) {
    auto const end = std::find_if(by_rows.cbegin(), by_rows.cend(),
                                  [&](auto const& n) { return n_rows(n) > most; });
    return static_cast<std::uint32_t>(end - by_rows.cbegin());
  };
  SearchedNode const* d_nodes = nodes_.Upload(by_rows);
  RefinedValue* out = values_.Reserve(nodes.size() * n_columns_);
  BinnedTableRef const table = table_.Ref();
  std::uint32_t const few = count(256);
  std::uint32_t const some = count(2048);
  std::uint32_t const many = count(8192);
  auto const all = static_cast<std::uint32_t>(nodes.size());
  LaunchSearch<128, 2>(level, table, rows, d_nodes, 0, few, n_columns_, out);
  LaunchSearch<512, 4>(level, table, rows, d_nodes, few, some, n_columns_, out);
  LaunchSearch<1024, 8>(level, table, rows, d_nodes, some, many, n_columns_, out);
  LaunchSearch<1024, 24>(level, table, rows, d_nodes, many, all, n_columns_, out);
}
}  // namespace gpu_exact
