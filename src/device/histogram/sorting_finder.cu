/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of sorting_finder.cuh.
 */
#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <iterator>

#include "src/device/fixed_sum.cuh"
#include "src/device/histogram/sorting_finder.cuh"

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
        by_bin{!t.values.Keeps(column.feature)},
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

/** @brief A node, a column, and what all candidates of theirs share. */
struct SortedColumn {
  LevelRef const& level;
  SortKey const& sort_key;
  SearchedNode const& node;
  FixedSum present;

  /**
   * @brief The best candidate beside some neighbours among the node's sorted entries.
   * @param before Sum of the entries before them.
   * @param below  Key of the entry before; any other one than the first key: there is none.
   * @param above  Likewise of the entry after.
   */
  template <int kItems>
  [[nodiscard]] __device__ RefinedValue Best(std::uint32_t const (&keys)[kItems],
                                             FixedSum const (&sums)[kItems], FixedSum before,
                                             std::uint32_t below, std::uint32_t above) const {
    NodeState const& state = level.nodes[node.bucket];
    RefinedValue best{0, ScanValue::kNone};
    if (!level.Allowed(node.bucket, sort_key.f)) {
      return best;
    }
    float const bar = level.Bar(node.bucket);
    bool const has_missing = !(present == state.sum);
    ValueId const first = level.columns.value_offsets[sort_key.f];
    auto offer = [&](ScanDirection d, std::uint32_t key) {
      if (level.MayReach(bar, state.sum, before, present, has_missing)) {
        std::uint64_t const bin = std::uint64_t{first} + sort_key.Bin(key);
        std::uint64_t const candidate = level.ScanKey(
            state, sort_key.f, d, d == ScanDirection::kForward ? bin + 1 : bin, before, present);
        if (candidate != 0) {
          best = BetterValue{}(best, {candidate, ScanValue::Make(d, sort_key.Value(key))});
        }
      }
    };
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (keys[k] == sort_key.missing) {
        break;  // as are all others
      }
      if (keys[k] != (k == 0 ? below : keys[k == 0 ? 0 : k - 1])) {
        offer(ScanDirection::kBackward, keys[k]);
      }
      before = before + sums[k];
      if (keys[k] != (k == kItems - 1 ? above : keys[k == kItems - 1 ? k : k + 1])) {
        offer(ScanDirection::kForward, keys[k]);
      }
    }
    return best;
  }
};

/** @brief Keys of every stride-th row of a node from the first on. @param at Those rows. */
template <int kItems>
__device__ void LoadKeys(RowsRef const& rows, SearchedNode const& node, SortKey const& sort_key,
                         std::uint32_t first, std::uint32_t stride, std::uint32_t (&keys)[kItems],
                         std::uint16_t (&at)[kItems]) {
  RowIdx const n_rows = node.rows.end - node.rows.begin;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    at[k] = static_cast<std::uint16_t>(k * stride + first);
    keys[k] = at[k] < n_rows ? sort_key.Of(rows.rows[node.rows.begin + at[k]]) : sort_key.missing;
  }
}

/** @brief Gradients of sorted entries; of missing ones, zero. Returns the sum of all. */
template <int kItems>
__device__ FixedSum LoadSums(LevelRef const& level, RowsRef const& rows, SearchedNode const& node,
                             SortKey const& sort_key, std::uint32_t const (&keys)[kItems],
                             std::uint16_t const (&at)[kItems], FixedSum (&sums)[kItems]) {
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    sums[k] =
        keys[k] == sort_key.missing ? FixedSum{0, 0} : rows.units[node.rows.begin + at[k]].Fixed();
  }
  FixedSum of_all{0, 0};
#pragma unroll
  for (FixedSum const& sum : sums) {
    of_all = of_all + sum;
  }
  return of_all;
}

struct AddSums {
  __device__ FixedSum operator()(FixedSum const& a, FixedSum const& b) const { return a + b; }
};

template <int kThreads, int kItems>
struct BlockStorage {
  using Sort = cub::BlockRadixSort<std::uint32_t, kThreads, kItems, std::uint16_t>;
  using Scan = cub::BlockScan<FixedSum, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Reduce = cub::BlockReduce<RefinedValue, kThreads>;
  union {
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
    std::uint32_t ends[kThreads][2];  // first and last key of each thread
  };
};

// grid: nodes from first_node on, columns; one block for both
template <int kThreads, int kItems>
__global__ __launch_bounds__(kThreads) void SortByBlockKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ BinnedTableRef const table,
    RowsRef rows, SearchedNode const* nodes, std::uint32_t first_node, std::uint32_t n_columns,
    RefinedValue* out) {
  using Storage = BlockStorage<kThreads, kItems>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& temp = *reinterpret_cast<Storage*>(memory);
  std::uint32_t const i = first_node + blockIdx.x / n_columns;
  std::uint32_t const c = blockIdx.x % n_columns;
  SearchedNode const node = nodes[i];
  SortKey const sort_key{table, table.finest.columns[c]};
  std::uint32_t keys[kItems];
  std::uint16_t at[kItems];  // rows of the node
  LoadKeys(rows, node, sort_key, threadIdx.x, kThreads, keys, at);
  typename Storage::Sort{temp.sort}.Sort(keys, at, 0, sort_key.n_bits);
  __syncthreads();
  temp.ends[threadIdx.x][0] = keys[0];
  temp.ends[threadIdx.x][1] = keys[kItems - 1];
  __syncthreads();
  std::uint32_t const below = threadIdx.x == 0 ? ~keys[0] : temp.ends[threadIdx.x - 1][1];
  std::uint32_t const above =
      threadIdx.x == kThreads - 1 ? ~keys[kItems - 1] : temp.ends[threadIdx.x + 1][0];
  __syncthreads();
  FixedSum sums[kItems];
  FixedSum const own = LoadSums(level, rows, node, sort_key, keys, at, sums);
  FixedSum before, present;
  typename Storage::Scan{temp.scan}.ExclusiveScan(own, before, FixedSum{0, 0}, AddSums{}, present);
  __syncthreads();
  RefinedValue best =
      SortedColumn{level, sort_key, node, present}.Best(keys, sums, before, below, above);
  best = typename Storage::Reduce{temp.reduce}.Reduce(best, BetterValue{});
  if (threadIdx.x == 0) {
    out[std::uint64_t{i} * n_columns + c] = best;
    level.Offer(node.bucket, best.key);
  }
}

constexpr int kWarps = 8;  // of a block whose warps work by themselves

// grid: nodes up to end_node, columns; one warp for both
template <int kItems>
__global__ __launch_bounds__(32 * kWarps) void SortByWarpKernel(
    __grid_constant__ LevelRef const level, __grid_constant__ BinnedTableRef const table,
    RowsRef rows, SearchedNode const* nodes, std::uint32_t end_node, std::uint32_t n_columns,
    RefinedValue* out) {
  using Sort = cub::WarpMergeSort<std::uint32_t, kItems, 32, std::uint16_t>;
  __shared__ typename Sort::TempStorage temp[kWarps];
  int const lane = static_cast<int>(threadIdx.x % 32);
  std::uint64_t const pair = std::uint64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  auto const i = static_cast<std::uint32_t>(pair / n_columns);
  auto const c = static_cast<std::uint32_t>(pair % n_columns);
  if (i >= end_node) {
    return;
  }
  SearchedNode const node = nodes[i];
  SortKey const sort_key{table, table.finest.columns[c]};
  std::uint32_t keys[kItems];
  std::uint16_t at[kItems];  // rows of the node
  LoadKeys(rows, node, sort_key, lane, 32, keys, at);
  Sort{temp[threadIdx.x / 32]}.Sort(keys, at,
                                    [](std::uint32_t a, std::uint32_t b) { return a < b; });
  FixedSum sums[kItems];
  FixedSum const own = LoadSums(level, rows, node, sort_key, keys, at, sums);
  FixedSum const up_to = SumUpToLane(own);
  std::uint32_t const below = __shfl_up_sync(kAllLanes, keys[kItems - 1], 1);
  std::uint32_t const above = __shfl_down_sync(kAllLanes, keys[0], 1);
  RefinedValue best = SortedColumn{level, sort_key, node, Shuffle(up_to, 31)}.Best(
      keys, sums, up_to - own, lane == 0 ? ~keys[0] : below,
      lane == 31 ? ~keys[kItems - 1] : above);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    best = BetterValue{}(best, {__shfl_xor_sync(kAllLanes, best.key, step),
                                __shfl_xor_sync(kAllLanes, best.scan_value, step)});
  }
  if (lane == 0) {
    out[std::uint64_t{i} * n_columns + c] = best;
    level.Offer(node.bucket, best.key);
  }
}

/** @brief Launches for the nodes of each size. */
struct Launcher {
  LevelRef const& level;
  BinnedTableRef table;
  RowsRef const& rows;
  SearchedNode const* nodes;  // by size class
  std::uint32_t n_columns;
  RefinedValue* out;
  std::uint64_t max_blocks;

  /** @brief Calls fn(first, n) for nodes [first, end), as many at a time as a launch takes. */
  template <typename FnT>
  void InParts(std::uint64_t first, std::uint64_t end, int pairs_of_block, FnT&& fn) const {
    std::uint64_t const at_once = max_blocks * pairs_of_block / std::max(n_columns, 1u);
    while (first < end) {
      std::uint64_t const n = std::min(end - first, std::max<std::uint64_t>(at_once, 1));
      fn(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(n));
      first += n;
    }
  }
  template <int kItems>
  void ByWarps(std::uint32_t first_node, std::uint32_t n_nodes) const {
    this->InParts(first_node, std::uint64_t{first_node} + n_nodes, kWarps, [&](auto first, auto n) {
      Launch("SortByWarp", SortByWarpKernel<kItems>, CeilDiv(std::uint64_t{n} * n_columns, kWarps),
             32 * kWarps, level, table, rows, nodes + first, n, n_columns,
             out + std::uint64_t{first} * n_columns);
    });
  }
  template <int kThreads, int kItems>
  void ByBlocks(std::uint32_t first_node, std::uint32_t n_nodes) const {
    this->InParts(first_node, std::uint64_t{first_node} + n_nodes, 1, [&](auto first, auto n) {
      Launch("SortByBlock", SortByBlockKernel<kThreads, kItems>, std::uint64_t{n} * n_columns,
             {kThreads, sizeof(BlockStorage<kThreads, kItems>)}, level, table, rows, nodes, first,
             n_columns, out);
    });
  }
};

/** @brief Blocks of a kernel that run at a time, with so much dynamic shared memory. */
template <typename... ParamsT>
std::uint64_t BlocksAtOnce(void (*kernel)(ParamsT...), int n_threads, std::size_t bytes) {
  EXACT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)));
  int n_blocks{0};  // on a multiprocessor
  EXACT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, kernel, n_threads, bytes));
  return std::uint64_t(n_blocks) * DeviceAttribute(cudaDevAttrMultiProcessorCount);
}

/** @brief Nodes of so many rows at most, and how they are searched. */
struct SizeClass {
  RowIdx max_rows;
  void (Launcher::*launch)(std::uint32_t first_node, std::uint32_t n_nodes) const;
  std::uint64_t (*pairs_at_once)();  // of a node and a column

  template <int kItems>
  static constexpr SizeClass Warps() {
    return {32 * kItems, &Launcher::ByWarps<kItems>,
            [] { return kWarps * BlocksAtOnce(SortByWarpKernel<kItems>, 32 * kWarps, 0); }};
  }
  template <int kThreads, int kItems>
  static constexpr SizeClass Blocks() {
    return {kThreads * kItems, &Launcher::ByBlocks<kThreads, kItems>, [] {
              return BlocksAtOnce(SortByBlockKernel<kThreads, kItems>, kThreads,
                                  sizeof(BlockStorage<kThreads, kItems>));
            }};
  }
};

constexpr SizeClass kClasses[] = {SizeClass::Warps<1>(), SizeClass::Warps<4>(),
                                  SizeClass::Blocks<256, 4>(), SizeClass::Blocks<512, 8>(),
                                  SizeClass::Blocks<1024, 12>()};
static_assert(std::end(kClasses)[-1].max_rows == SortingFinder::kMaxRows);
}  // namespace

SortingFinder::SortingFinder(BinnedTable const& table, std::uint64_t max_blocks)
    : table_{table}, max_blocks_{max_blocks}, n_columns_{table.Ref().finest.n_columns} {
  for (SizeClass const& c : kClasses) {
    pairs_at_once_.push_back(c.pairs_at_once());
  }
}

void SortingFinder::Find(LevelRef const& level, RowsRef const& rows,
                         std::vector<SearchedNode> const& nodes) {
  std::vector<std::vector<SearchedNode>> classes(std::size(kClasses));
  for (SearchedNode const& node : nodes) {
    RowIdx const n = node.rows.end - node.rows.begin;
    auto const c = std::find_if(std::cbegin(kClasses), std::cend(kClasses),
                                [n](SizeClass const& c) { return n <= c.max_rows; });
    classes[c - std::cbegin(kClasses)].push_back(node);
  }
  // A launch whose blocks all run at a time takes no longer with some smaller nodes more.
  for (std::size_t c = classes.size(); c-- > 1;) {
    for (std::size_t smaller = c; !classes[c].empty() && smaller-- > 0;) {
      auto& others = classes[smaller];
      if ((classes[c].size() + others.size()) * n_columns_ <= pairs_at_once_[c]) {
        classes[c].insert(classes[c].end(), others.cbegin(), others.cend());
        others.clear();
      }
    }
  }
  std::vector<SearchedNode> by_class;
  for (auto const& of_class : classes) {
    by_class.insert(by_class.end(), of_class.cbegin(), of_class.cend());
  }
  Launcher const launcher{level,      table_.Ref(),
                          rows,       nodes_.Upload(by_class),
                          n_columns_, values_.Reserve(nodes.size() * n_columns_),
                          max_blocks_};
  std::uint32_t first{0};
  for (std::size_t c = 0; c < classes.size(); ++c) {
    auto const n = static_cast<std::uint32_t>(classes[c].size());
    (launcher.*kClasses[c].launch)(first, n);
    first += n;
  }
}
}  // namespace gpu_exact
