/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of fused_finder.cuh.
 */
#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "src/device/partition/split_tile_agent.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 32 * kTileWarps;
constexpr int kTileThreads = kThreads + 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kBlocks = 3;  // on a multiprocessor, which holds 1,024 threads
#else
constexpr int kBlocks = 4;
#endif
constexpr std::uint64_t kBlocksSideBySide = 2048;  // more than run at a time

/** @brief Tile of a block: in the order of the list, then its columns. */
struct TileOfBlock {
  std::uint32_t parent;
  std::uint32_t tile;  // of the node
  std::uint32_t column;

  __device__ TileOfBlock(TileRef const* tiles, std::uint32_t n_columns) {
    TileRef ref = tiles[blockIdx.x / n_columns];
    parent = ref.parent;
    tile = ref.tile;
    column = blockIdx.x % n_columns;
  }
};

/**
 * @brief Sums of the tiles of sparse columns, by child: of dense ones the children's are known.
 *        grid: tiles of long nodes x sparse columns; block: one tile.
 */
template <bool kRoot>
__global__ __launch_bounds__(kThreads) void SumTilesKernel(__grid_constant__ FusedRef const ref,
                                                           SplitParent const* parents,
                                                           TileRef const* tiles) {
  __shared__ SplitPrefix parts[kTileWarps];
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  TileOfBlock at{tiles, ref.columns.n_sparse};
  SplitParent const parent = parents[at.parent];
  Segment const s = FindSegment<kRoot>(ref, parent, ref.columns.of_sparse[at.column]);
  RowIdx begin = s.range.begin + at.tile * kTileEntries + warp * kWarpEntries;
  WarpTile tile;
  tile.n = WarpCount(s.range, begin);
  EntryIdx first = s.column_begin + begin;
  GradientPair own[kSplitItems];
  tile.LoadPlaces(ref.from + first);
#pragma unroll
  for (int j = 0; j < kSplitItems; ++j) {
    own[j] = {0.0f, 0.0f};
    if (tile.Has(j)) {
      own[j] = kRoot ? ref.row_gpair[PlaceWord::Place(tile.place[j])]
                     : ref.from_gpair[first + j * 32 + lane].units;
    }
  }
  MoveTile<kRoot>(ref, parent, &tile);
  SplitPrefix part = tile.Count();
#pragma unroll
  for (int j = 0; j < kSplitItems; ++j) {
    FixedSum g = kRoot ? ref.level.quantiser.Fixed(own[j]) : Quantiser::FromUnits(own[j]);
    part.all = part.all + g;
    part.left = (tile.left[j] >> lane & 1u) != 0 ? part.left + g : part.left;
  }
  part.all = SumLanes(part.all);
  part.left = SumLanes(part.left);
  if (lane == 0) {
    parts[warp] = part;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kTileWarps; ++w) {
      part = SplitPrefixOp{}(part, parts[w]);
    }
    ref.prefixes[std::uint64_t{parent.first_tile + at.tile} * ref.columns.n_sparse + at.column] =
        part;
  }
}

/**
 * @brief What lies before each tile of a segment. grid: (node, sparse column); block: one segment.
 * result: prefixes, exclusive, in place; totals of segments.
 */
template <int kScanThreads>
__global__ __launch_bounds__(kScanThreads) void ScanTilesKernel(SplitParent const* parents,
                                                                std::uint32_t n_sparse,
                                                                SplitPrefix* prefixes,
                                                                SplitPrefix* totals) {
  using BlockScan = cub::BlockScan<SplitPrefix, kScanThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename BlockScan::TempStorage temp;
  std::uint32_t parent = blockIdx.x / n_sparse;
  std::uint32_t column = blockIdx.x % n_sparse;
  std::uint32_t tile = parents[parent].first_tile;
  std::uint32_t end = parents[parent + 1].first_tile;
  SplitPrefix running = SplitPrefix::Begin();
  for (; tile < end; tile += kScanThreads) {
    std::uint32_t t = tile + threadIdx.x;
    SplitPrefix* p = prefixes + std::uint64_t{t} * n_sparse + column;
    SplitPrefix own = t < end ? *p : SplitPrefix::None();
    SplitPrefix before, aggregate;
    BlockScan{temp}.ExclusiveScan(own, before, SplitPrefix::None(), SplitPrefixOp{}, aggregate);
    if (t < end) {
      *p = SplitPrefixOp{}(running, before);
    }
    running = SplitPrefixOp{}(running, aggregate);
    __syncthreads();  // temp is used again
  }
  if (threadIdx.x == 0) {
    totals[blockIdx.x] = running;
  }
}

/** @brief grid: tiles x columns; block: one tile. */
template <bool kRoot>
__global__ __launch_bounds__(kTileThreads,
                             kBlocks) void SplitTilesKernel(__grid_constant__ FusedRef const ref,
                                                            SplitParent const* parents,
                                                            TileRef const* tiles) {
  using Agent = SplitTileAgent<false, kRoot>;
  __shared__ typename Agent::TempStorage temp;
  SortedColumnsRef const& columns = ref.columns;
  TileOfBlock at{tiles, columns.n_columns};
  SplitParent const parent = parents[at.parent];
  Segment const s = FindSegment<kRoot>(ref, parent, at.column);
  RowIdx begin = s.range.begin + at.tile * kTileEntries;
  if (at.tile != 0 && begin >= s.range.end) {
    return;
  }
  std::uint64_t const tile = parent.first_tile + at.tile;
  TileCarry carry{nullptr, nullptr, nullptr, columns.n_columns, at.tile};
  std::uint32_t const sparse = columns.sparse[at.column];
  if (tile < ref.n_long_tiles && sparse != SortedColumnsRef::kDense) {
    carry.before = ref.prefixes + (tile * columns.n_sparse + sparse);
    carry.total = ref.totals + (std::uint64_t{at.parent} * columns.n_sparse + sparse);
  } else if (tile < ref.n_long_tiles) {
    carry.status = ref.statuses + (tile * columns.n_columns + at.column);
  }
  Agent{&temp, ref, parent, s}.RunTile(begin, carry, at.tile == 0);
}

/** @brief grid: small nodes x columns, a warp each. */
__global__ __launch_bounds__(kThreads,
                             kBlocks) void SplitSmallKernel(__grid_constant__ FusedRef const ref,
                                                            SplitParent const* parents,
                                                            std::uint32_t n_parents) {
  using Agent = SplitTileAgent<true, false>;
  __shared__ typename Agent::TempStorage temp;
  std::uint64_t i = std::uint64_t{blockIdx.x} * kTileWarps + threadIdx.x / 32;
  auto k = static_cast<std::uint32_t>(i / ref.columns.n_columns);
  if (k >= n_parents) {
    return;
  }
  SplitParent const parent = parents[k];
  Segment const s =
      FindSegment<false>(ref, parent, static_cast<std::uint32_t>(i % ref.columns.n_columns));
  Agent{&temp, ref, parent, s}.RunSegment();
}
}  // namespace

FusedFinder::FusedFinder(SortedColumns const& columns) : columns_{columns} {
  for (Half& half : halves_) {
    half.places.Reserve(columns.NumEntries());
    half.gpair.Reserve(columns.NumEntries());
  }
}

FusedRef FusedFinder::MakeRef(LevelRef const& level, SidesRef const& sides,
                              RowRange const* children, bool last_level) {
  SortedColumnsRef columns = columns_.Ref();
  RowRange* next = segments_[1].Reserve(std::size_t{level.n_nodes} * columns.n_sparse);
  FusedRef ref{};
  ref.level = level;
  ref.columns = columns;
  ref.sides = sides;
  ref.children = children;
  ref.parent_segments = segments_[0].Data();
  ref.child_segments = next;
  ref.moves = true;
  ref.write_gpair = !last_level;
  return ref;
}

template <bool kRoot>
void FusedFinder::Run(FusedRef ref, Tiles const& tiles) {
  std::uint64_t const n_columns = ref.columns.n_columns;
  std::uint64_t const n_sparse = ref.columns.n_sparse;
  ref.n_long_tiles = tiles.n_long_tiles;
  ref.prefixes = prefixes_.Reserve(tiles.n_long_tiles * n_sparse);
  ref.totals = totals_.Reserve(tiles.n_long * n_sparse);
  if (n_sparse != n_columns) {
    ref.statuses = statuses_.Reserve(tiles.n_long_tiles * n_columns);
    ZeroAsync(ref.statuses, tiles.n_long_tiles * n_columns);
  }
  Launch("SumTiles", SumTilesKernel<kRoot>, tiles.n_long_tiles * n_sparse, kThreads, ref,
         parents_.Data(), tiles_.Data());
  bool const many_tiles = tiles.n_long_tiles > 64 * tiles.n_long;
  Launch("ScanTiles", many_tiles ? ScanTilesKernel<kThreads> : ScanTilesKernel<32>,
         tiles.n_long * n_sparse, many_tiles ? kThreads : 32, parents_.Data(), ref.columns.n_sparse,
         ref.prefixes, ref.totals);
  Launch("SplitTiles", SplitTilesKernel<kRoot>, tiles.n_tiles * n_columns, kTileThreads, ref,
         parents_.Data(), tiles_.Data());
}

FusedFinder::Tiles FusedFinder::MakeTiles(std::vector<SplitParent> parents, RowIdx small_rows) {
  auto n_rows = [](SplitParent const& p) { return p.rows.end - p.rows.begin; };
  auto n_tiles = [&](SplitParent const& p) { return CeilDiv(n_rows(p), kTileEntries); };
  // Nodes of several tiles, the largest first; then of one, then of a warp.
  auto is_long = [&](SplitParent const& p) { return n_rows(p) > kTileEntries; };
  auto is_small = [&](SplitParent const& p) { return n_rows(p) <= small_rows; };
  std::stable_sort(parents.begin(), parents.end(),
                   [&](auto const& a, auto const& b) { return n_rows(a) > n_rows(b); });
  Tiles count{};
  for (SplitParent& p : parents) {
    p.first_tile = count.n_tiles;
    if (is_small(p)) {
      ++count.n_small;
      continue;
    }
    ++count.n_large;
    count.n_tiles += static_cast<std::uint32_t>(n_tiles(p));
    if (is_long(p)) {
      ++count.n_long;
      count.n_long_tiles = count.n_tiles;
    }
  }
  // So many nodes take turns that a tile seldom runs beside the one before it, which it needs, and
  // that the first tiles of a node have found good candidates when the others come.
  std::uint64_t const n_turns = CeilDiv(kBlocksSideBySide, columns_.Ref().n_columns);
  std::vector<TileRef> tiles;
  for (std::uint32_t first = 0, last = 0; first < count.n_large; first = last) {
    // Those of long nodes come first.
    std::uint32_t end = first < count.n_long ? count.n_long : count.n_large;
    last = static_cast<std::uint32_t>(std::min<std::uint64_t>(first + n_turns, end));
    for (std::uint32_t tile = 0; tile < n_tiles(parents[first]); ++tile) {
      for (std::uint32_t i = first; i < last && tile < n_tiles(parents[i]); ++i) {
        tiles.push_back({i, tile});
      }
    }
  }
  parents.push_back({{0, 0}, 0, 0, count.n_tiles});
  CopyAsync(parents_.Reserve(parents.size()), parents.data(), parents.size());
  CopyAsync(tiles_.Reserve(tiles.size()), tiles.data(), tiles.size());
  return count;
}

void FusedFinder::FindRoot(LevelRef const& level, GradientPair const* gpair, SidesRef const& sides,
                           RowRange const* root, RowIdx n_rows, bool last_level) {
  FusedRef ref = this->MakeRef(level, sides, root, last_level);
  ref.from = ref.columns.rows;
  ref.row_gpair = gpair;
  ref.to = halves_[0].Ref();
  ref.moves = sides.words != nullptr;
  Tiles const tiles = this->MakeTiles({SplitParent{{0, n_rows}, 0, 0, 0}}, 0);
  this->Run<true>(ref, tiles);
  std::swap(segments_[0], segments_[1]);
  places_ = ref.moves ? ref.to.places : ref.from;
}

void FusedFinder::Find(LevelRef const& level, std::vector<SplitParent> const& parents,
                       SidesRef const& sides, RowRange const* children, bool last_level) {
  FusedRef ref = this->MakeRef(level, sides, children, last_level);
  ref.from = places_;
  ref.from_gpair = halves_[0].gpair.Data();
  ref.to = halves_[1].Ref();
  Tiles const tiles = this->MakeTiles(parents, kWarpEntries);
  this->Run<false>(ref, tiles);
  Launch("SplitSmall", SplitSmallKernel, CeilDiv(tiles.n_small * ref.columns.n_columns, kTileWarps),
         kThreads, ref, parents_.Data() + tiles.n_large, tiles.n_small);
  std::swap(segments_[0], segments_[1]);
  std::swap(halves_[0], halves_[1]);
  places_ = ref.to.places;
}

std::uint64_t FusedFinder::Bytes() const {
  std::uint64_t bytes =
      parents_.Bytes() + prefixes_.Bytes() + totals_.Bytes() + tiles_.Bytes() + statuses_.Bytes();
  for (int i = 0; i < 2; ++i) {
    bytes += halves_[i].places.Bytes() + halves_[i].gpair.Bytes() + segments_[i].Bytes();
  }
  return bytes;
}
}  // namespace gpu_exact
