/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements node_sort_finder.cuh.
 */
#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>
#include <iterator>

#include "device/histogram/small_nodes/node_category_finder.cuh"
#include "device/histogram/small_nodes/node_sort.cuh"
#include "device/histogram/small_nodes/node_sort_finder.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
/** @brief Holds a node, a column, and what all candidates of theirs share. */
struct ColumnCandidates {
  LevelRef const& lv;
  NodeColumn const& column;
  SortedEntry const* entries;  // sorted
  std::uint32_t n_entries;
  FixedSum present;  // sum of them all

  /**
   * @brief Find the best candidate beside entries [i, end).
   * @param before Sum of the entries before i; then of those before the end, if the node may split on the
   *               feature.
   * @param best   The best candidate beside other entries.
   */
  [[nodiscard]] __device__ FoundCandidate Best(std::uint32_t i, std::uint32_t end, FixedSum* before,
                                               FoundCandidate best) const {
    LevelNode const b = column.node.level_node;
    NodeState const& state = lv.nodes[b];
    if (!lv.Allowed(b, column.f)) {
      return best;
    }
    float const to_beat = lv.GainToBeat(b);
    ValueId const first = lv.columns.value_offsets[column.f];
    auto offer = [&](ScanDirection d, SortedEntry const& entry) {
      std::uint64_t const key = lv.ScanKeyBeside(
          to_beat, state, column.f, d, std::uint64_t{first} + entry.Bin(), *before, present);
      if (key != 0 && key >= best.key) {
        best = BetterCandidate{}(best, {key, ScanValue::Make(d, column.Value(entry))});
      }
    };
#pragma unroll 1
    for (; i < end; ++i) {
      SortedEntry const entry = entries[i];
      if (entry.Begins()) {
        offer(ScanDirection::kBackward, entry);
      }
      *before = *before + column.Sum(entry);
      if (i + 1 == n_entries || entries[i + 1].Begins()) {
        offer(ScanDirection::kForward, entry);
      }
    }
    return best;
  }
};

/** @brief Bounds the sorted entries of a thread, as many for each: an odd number, so that the
 *         threads of a warp read other banks of shared memory. */
struct OwnEntries {
  std::uint32_t begin;
  std::uint32_t end;

  __device__ OwnEntries(std::uint32_t n_entries, std::uint32_t thread, std::uint32_t n_threads) {
    std::uint32_t const n = (n_entries + n_threads - 1) / n_threads | 1u;
    begin = min(thread * n, n_entries);
    end = min(begin + n, n_entries);
  }
  [[nodiscard]] __device__ FixedSum Sum(NodeColumn const& column,
                                        SortedEntry const* entries) const {
    FixedSum sum{0, 0};
#pragma unroll 4
    for (std::uint32_t i = begin; i < end; ++i) {
      sum = sum + column.Sum(entries[i]);
    }
    return sum;
  }
};

template <int kThreads, int kItems>
struct BlockStorage {
  using Scan = cub::BlockScan<FixedSum, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Reduce = cub::BlockReduce<FoundCandidate, kThreads>;

  typename BlockSortAgent<kThreads, kItems>::Storage sort;
  union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  };
};

/** @brief Lends nodes to kernels: a few come with the launch itself, as one more to upload them takes
 *         longer. */
struct NodesRef {
  static constexpr std::uint32_t kFew = 32;

  SearchedNode const* uploaded;  // by size class; nullptr: they are launched
  SearchedNode* written;         // where launched ones go, for those who read them later
  SearchedNode launched[kFew];

  /** @param writes Set by one thread for each node. */
  [[nodiscard]] __device__ SearchedNode Get(std::uint32_t i, bool writes) const {
    if (uploaded != nullptr) {
      return uploaded[i];
    }
    if (writes) {
      written[i] = launched[i];
    }
    return launched[i];
  }
};

// grid: nodes from first_node on, columns; one block for both
template <int kThreads, int kItems>
__global__ __launch_bounds__(kThreads, 1024 / kThreads) void SortByBlockKernel(
    __grid_constant__ LevelRef const lv, __grid_constant__ BinnedTableRef const table, RowsRef rows,
    __grid_constant__ NodesRef const nodes, std::uint32_t first_node, std::uint32_t n_columns,
    FoundCandidate* out) {
  WaitForPreviousKernel();
  using Storage = BlockStorage<kThreads, kItems>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& temp = *reinterpret_cast<Storage*>(memory);
  std::uint32_t const i = first_node + blockIdx.x / n_columns;
  std::uint32_t const c = blockIdx.x % n_columns;
  SearchedNode const node = nodes.Get(i, c == 0 && threadIdx.x == 0);
  NodeColumn const column{table, rows, node, table.finest.columns[c]};
  // Where a table has categories, only nodes of up to NodeCategoryFinder::kMaxRows are sorted, and that
  // finder searches this column.
  if (kThreads * kItems <= NodeCategoryFinder::kMaxRows && lv.rules[column.f].categorical) {
    return;
  }
  std::uint32_t const n = BlockSortAgent<kThreads, kItems>{&temp.sort}.Sort(column);
  OwnEntries const own{n, threadIdx.x, kThreads};
  FixedSum before, present;
  typename Storage::Scan{temp.scan}.ExclusiveScan(own.Sum(column, temp.sort.entries), before,
                                                  FixedSum{0, 0}, cuda::std::plus<>{}, present);
  __syncthreads();
  // First each thread's first entry alone, offered by warps: of the others most stay below that
  // gain to beat, and their gain need not be computed.
  ColumnCandidates const candidates{lv, column, temp.sort.entries, n, present};
  FoundCandidate best{0, ScanValue::kNone};
  std::uint32_t const first_end = min(own.begin + 1, own.end);
#pragma unroll 1
  for (bool first : {true, false}) {
    best =
        candidates.Best(first ? own.begin : first_end, first ? first_end : own.end, &before, best);
    if (first) {
      lv.OfferByWarp(node.level_node, best.key);
      __syncthreads();
    }
  }
  best = typename Storage::Reduce{temp.reduce}.Reduce(best, BetterCandidate{});
  if (threadIdx.x == 0) {
    out[std::uint64_t{i} * n_columns + c] = best;
    lv.Offer(node.level_node, best.key);
  }
}

constexpr int kWarps = 8;  // per block whose warps work by themselves

// grid: nodes [first_node, end_node), columns; one warp for both
template <int kItems>
__global__ __launch_bounds__(32 * kWarps) void SortByWarpKernel(
    __grid_constant__ LevelRef const lv, __grid_constant__ BinnedTableRef const table, RowsRef rows,
    __grid_constant__ NodesRef const nodes, std::uint32_t first_node, std::uint32_t end_node,
    std::uint32_t n_columns, FoundCandidate* out) {
  WaitForPreviousKernel();
  __shared__ typename WarpSortAgent<kItems>::Storage of_warps[kWarps];
  auto& temp = of_warps[threadIdx.x / 32];
  std::uint32_t const lane = threadIdx.x % 32;
  std::uint64_t const pair = std::uint64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  auto const i = static_cast<std::uint32_t>(first_node + pair / n_columns);
  auto const c = static_cast<std::uint32_t>(pair % n_columns);
  if (i >= end_node) {
    return;
  }
  SearchedNode const node = nodes.Get(i, c == 0 && lane == 0);
  NodeColumn const column{table, rows, node, table.finest.columns[c]};
  if (lv.rules[column.f].categorical) {
    return;
  }
  std::uint32_t const n = WarpSortAgent<kItems>{&temp}.Sort(column);
  OwnEntries const own{n, lane, 32};
  FixedSum const sum = own.Sum(column, temp.entries);
  FixedSum const up_to = WarpInclusiveSum(sum);
  FixedSum before = up_to - sum;
  ColumnCandidates const candidates{lv, column, temp.entries, n, Shuffle(up_to, 31)};
  FoundCandidate const best = WarpReduce(
      candidates.Best(own.begin, own.end, &before, {0, ScanValue::kNone}), BetterCandidate{});
  if (lane == 0) {
    out[std::uint64_t{i} * n_columns + c] = best;
    lv.Offer(node.level_node, best.key);
  }
}

/** @brief Launches for the nodes of each size. */
struct Launcher {
  LevelRef const& lv;
  BinnedTableRef table;
  RowsRef const& rows;
  NodesRef const& nodes;
  std::uint32_t n_columns;
  FoundCandidate* out;
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
             32 * kWarps, lv, table, rows, nodes, first, first + n, n_columns, out);
    });
  }
  template <int kThreads, int kItems>
  void ByBlocks(std::uint32_t first_node, std::uint32_t n_nodes) const {
    this->InParts(first_node, std::uint64_t{first_node} + n_nodes, 1, [&](auto first, auto n) {
      Launch("SortByBlock", SortByBlockKernel<kThreads, kItems>, std::uint64_t{n} * n_columns,
             {kThreads, sizeof(BlockStorage<kThreads, kItems>)}, lv, table, rows, nodes, first,
             n_columns, out);
    });
  }
};

/** @brief Count the blocks of a kernel that run at a time, with some dynamic shared memory. */
template <typename... ParamsT>
std::uint64_t BlocksAtOnce(void (*kernel)(ParamsT...), int n_threads, std::size_t bytes) {
  EXACT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)));
  int n_blocks{0};  // on a multiprocessor
  EXACT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, kernel, n_threads, bytes));
  return std::uint64_t(n_blocks) * DeviceAttribute(cudaDevAttrMultiProcessorCount);
}

/** @brief Sets how nodes of up to a number of rows are searched. */
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

static_assert(sizeof(BlockStorage<1024, 12>) <= 64 * 1024, "Turing has no more to share");

constexpr SizeClass kClasses[] = {SizeClass::Warps<1>(), SizeClass::Warps<4>(),
                                  SizeClass::Blocks<256, 4>(), SizeClass::Blocks<512, 8>(),
                                  SizeClass::Blocks<1024, 12>()};
static_assert(std::end(kClasses)[-1].max_rows == NodeSortFinder::kMaxRows);
}  // namespace

NodeSortFinder::NodeSortFinder(BinnedTable const& table, std::uint64_t max_blocks)
    : table_{table},
      max_blocks_{max_blocks},
      n_columns_{table.Ref().finest.n_columns},
      any_numerical_{table.Categorical().size() < n_columns_} {
  for (SizeClass const& c : kClasses) {
    pairs_at_once_.push_back(c.pairs_at_once());
  }
}

void NodeSortFinder::Find(LevelRef const& lv, RowsRef const& rows,
                          std::vector<SearchedNode> const& nodes) {
  std::vector<std::vector<SearchedNode>> classes(std::size(kClasses));
  for (SearchedNode const& node : nodes) {
    RowIdx const n = node.rows.Size();
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
  NodesRef ref{};
  if (by_class.size() > NodesRef::kFew || !any_numerical_) {
    nodes_ = ref.uploaded = uploaded_.Upload(by_class);
  } else {
    std::copy(by_class.cbegin(), by_class.cend(), ref.launched);
    nodes_ = ref.written = launched_.Reserve(NodesRef::kFew);
  }
  if (!any_numerical_) {
    return;
  }
  Launcher const launcher{lv,         table_.Ref(), rows,
                          ref,        n_columns_,   found_.Reserve(nodes.size() * n_columns_),
                          max_blocks_};
  std::uint32_t first{0};
  for (std::size_t c = 0; c < classes.size(); ++c) {
    auto const n = static_cast<std::uint32_t>(classes[c].size());
    (launcher.*kClasses[c].launch)(first, n);
    first += n;
  }
}
}  // namespace gpu_exact
