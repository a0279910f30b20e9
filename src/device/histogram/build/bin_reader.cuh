/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Reads the bins of a node's rows, in one walk: every lane has bins, whatever the lengths of
 *        the rows, and what comes next is loaded before the present is used.
 *
 * Where a row has a cell for each column of the group, a lane loads up to eight bins of a row at
 * once, in one access, and of rows with no more than that several at a time. Lanes begin with
 * different ones of the eight: neighbouring rows often share the bin of a column, and additions to
 * one bin wait for each other. Otherwise rows have as many bins as values, and these are dealt out
 * to the lanes one by one. Bins that are stored finer become the group's own on their way; bins of
 * one byte become as wide as the others, or stay what they are for additions (BankedChunk).
 */
#pragma once

#include <type_traits>

#include "device/histogram/build/sparse_bin_reader.cuh"
#include "device/level/rows_ref.cuh"

namespace gpu_exact {
/** @brief Holds bins of one row that a lane has loaded at once, two in each word but the only
 *         one. */
template <int kBins>
struct BinChunk {
  static constexpr int kSize = kBins;
  static constexpr std::uint32_t kNone = FeatureGroup::kNoBin;
  static constexpr int kWords = kBins == 1 ? 1 : kBins / 2;

  std::uint32_t words[kWords];

  [[nodiscard]] __device__ static BinChunk None() {
    BinChunk chunk;
    for (std::uint32_t& word : chunk.words) {
      word = kBins == 1 ? FeatureGroup::kNoBin : FeatureGroup::kNoBin << 16 | FeatureGroup::kNoBin;
    }
    return chunk;
  }
  /** @param from Aligned to the chunk. */
  [[nodiscard]] __device__ static BinChunk Load(GroupBin const* from) {
    if constexpr (kBins == 8) {
      uint4 const w = __ldg(reinterpret_cast<uint4 const*>(from));
      return {{w.x, w.y, w.z, w.w}};
    } else if constexpr (kBins == 4) {
      uint2 const w = __ldg(reinterpret_cast<uint2 const*>(from));
      return {{w.x, w.y}};
    } else if constexpr (kBins == 2) {
      return {{__ldg(reinterpret_cast<std::uint32_t const*>(from))}};
    } else {
      return {{__ldg(from)}};
    }
  }
  [[nodiscard]] __device__ std::uint32_t Bin(int i) const {
    return kBins == 1 ? words[0] : (words[i / 2] >> i % 2 * 16 & 0xffffu);
  }
  /**
   * @brief Turn stored bins, all of this group, into the group's by a subtraction that borrows from
   *        no neighbour, and a shift.
   * @param has_gaps Whether there may be cells without a value.
   */
  [[nodiscard]] __device__ BinChunk Shifted(FeatureGroup const& group, bool has_gaps) const {
    std::uint32_t const first = group.first_stored << 16 | group.first_stored;
    std::uint32_t const mask = (0xffffu >> group.shift) * 0x10001u;
    BinChunk chunk;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      std::uint32_t const w = words[i];
      if constexpr (kBins == 1) {
        chunk.words[i] = w == FeatureGroup::kNoBin ? w : (w - group.first_stored) >> group.shift;
      } else {
        chunk.words[i] = (w - first) >> group.shift & mask;
        if (has_gaps) {
          chunk.words[i] |= __vcmpeq2(w, ~0u);
        }
      }
    }
    return chunk;
  }
  /** @brief Turn the stored bins of cells into those of the group, or kNoBin. @param maps One
   *         for each of these cells. */
  [[nodiscard]] __device__ BinChunk ByColumn(CellMap const* maps) const {
    auto const bin = [&](int i) { return CellMap{__ldg(&maps[i].word)}.BinOf(this->Bin(i)); };
    BinChunk chunk;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      chunk.words[i] = kBins == 1 ? bin(0) : bin(2 * i) | bin(2 * i + 1) << 16;
    }
    return chunk;
  }
  /** @brief Rotate all bins by n, around the end. */
  __device__ void Rotate(std::uint32_t n) {
    if constexpr (kBins >= 2) {
      std::uint32_t const half = n % 2 * 16;
      std::uint32_t const first = words[0];
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        words[i] = __funnelshift_r(
            words[i], i + 1 < kWords ? words[i + 1 < kWords ? i + 1 : 0] : first, half);
      }
    }
    if constexpr (kBins >= 4) {
#pragma unroll
      for (int step = 1; step < kWords; step *= 2) {
        BinChunk const old = *this;
        bool const moves = (n / 2 & step) != 0;
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
          words[i] = moves ? old.words[(i + step) % kWords] : old.words[i];
        }
      }
    }
  }
};

/**
 * @brief Holds eight bins of one byte, for additions.
 *
 * Each column's sums have a bank of shared memory of their own (SharedHistogram): lanes that add for
 * different columns never meet in one, whatever the bins. So the lanes that have the same eight
 * columns take them in different order: i ^ 0, i ^ 1, ... i ^ 7. Of short rows more than eight lanes
 * have the same columns; then there are copies of the sums.
 */
struct BankedChunk {
  static constexpr int kSize = 8;
  static constexpr std::uint32_t kNone = 0xffu;

  std::uint32_t words[2];  // in byte i the bin of column i ^ order
  std::uint32_t bank;      // of byte 0; of byte i: bank ^ i

  [[nodiscard]] __device__ static BankedChunk None() { return {{~0u, ~0u}, 0}; }
  [[nodiscard]] __device__ std::uint32_t Bin(int i) const {
    return __byte_perm(words[i / 4], 0, 0x4440 | i % 4);
  }
};

/** @brief Tells in which order a lane adds up the columns of its chunks, and in which copy of the
 *         sums. */
struct BankOrder {
  std::uint32_t order;  // 0 to 7
  std::uint32_t first_bank;

  /**
   * @param n_chunks How many chunks a row has; they take 8 banks each.
   * @param turn     The lane's among those with the same columns: its number / n_chunks.
   */
  __device__ BankOrder(std::uint32_t n_chunks, std::uint32_t turn)
      : order{turn % BankedChunk::kSize},
        first_bank{n_chunks <= 2 ? turn / BankedChunk::kSize * BankedChunk::kSize * n_chunks : 0} {}
};

/** @brief Holds eight bins of one byte that a lane has loaded at once. */
struct ByteChunk {
  std::uint32_t words[2];

  [[nodiscard]] __device__ static ByteChunk Load(ColumnBin const* from) {
    uint2 const w = __ldg(reinterpret_cast<uint2 const*>(from));
    return {{w.x, w.y}};
  }
  [[nodiscard]] __device__ static ByteChunk None() { return {{~0u, ~0u}}; }

  /** @param chunk Its number in the row. */
  [[nodiscard]] __device__ BankedChunk Banked(BankOrder const& order, std::uint32_t chunk) const {
    std::uint32_t const first_four = 0x3210u ^ order.order * 0x1111u;
    return {{__byte_perm(words[0], words[1], first_four),
             __byte_perm(words[0], words[1], first_four ^ 0x4444u)},
            order.first_bank + BankedChunk::kSize * chunk + order.order};
  }
  /** @param first_bins The first bins of the eight columns. */
  [[nodiscard]] __device__ BinChunk<8> Widen(GroupBin const* first_bins) const {
    uint4 const first = __ldg(reinterpret_cast<uint4 const*>(first_bins));
    std::uint32_t const none[2]{__vcmpeq4(words[0], ~0u), __vcmpeq4(words[1], ~0u)};
    // Bytes become halves of words: a byte and a zero, or a byte twice.
    auto low = [](std::uint32_t x) { return __byte_perm(x, 0, 0x4140); };
    auto high = [](std::uint32_t x) { return __byte_perm(x, 0, 0x4342); };
    auto low_twice = [](std::uint32_t x) { return __byte_perm(x, 0, 0x1100); };
    auto high_twice = [](std::uint32_t x) { return __byte_perm(x, 0, 0x3322); };
    static_assert(FeatureGroup::kNoBin == 0xffffu &&
                  FeatureGroup::kNoColumnBin == BankedChunk::kNone);
    return {{(low(words[0]) + first.x) | low_twice(none[0]),
             (high(words[0]) + first.y) | high_twice(none[0]),
             (low(words[1]) + first.z) | low_twice(none[1]),
             (high(words[1]) + first.w) | high_twice(none[1])}};
  }
};

// What a walk's row made of the row that another lane has. All lanes of a warp.
__device__ inline RowIdx FromLane(RowIdx slot, int lane) {
  return __shfl_sync(kAllLanes, slot, lane);
}
__device__ inline GradientUnits FromLane(GradientUnits const& units, int lane) {
  return {__shfl_sync(kAllLanes, units.grad, lane), __shfl_sync(kAllLanes, units.hess, lane)};
}

class BinReader {
 public:
  /** @brief Gathers rows that have entries in the group, so that all lanes have work. */
  struct Queue {
    RowElements elements[32];
    RowIdx slot[32];
  };

  /** @param queue The warp's own, in shared memory. */
  __device__ BinReader(FeatureGroup const& group, RowsRef const& rows, Queue* queue)
      : group_{group},
        rows_{rows},
        queue_{*queue},
        is_shifted_{group.cell_maps == nullptr && (group.reads_part == 0 || group.Strided())},
        has_gaps_{group.has_missing != 0 ||
                  (group.Strided() && group.n_columns % group.chunk != 0)} {}

  /**
   * @brief Walk along the rows in slots [begin, end). All threads of a block of n_warps, no barrier.
   *
   * @tparam kGradients Load them, for additions; otherwise row gets zeros.
   * @param  row  row(slot, units) makes of a lane's row what bins need of it; see FromLane().
   * @param  bins bins(chunk, of_row): a lane's next bins, BinChunk, or BankedChunk of bytes with
   *              gradients, and what row made of their row. All lanes of a warp together; places
   *              without a value hold the chunk's kNone.
   *
   * Inlined, however long: what the functions refer to would go to local memory to be seen by a call.
   */
  template <bool kGradients, typename RowFn, typename BinsFn>
  __device__ __forceinline__ void Walk(RowIdx begin, RowIdx end, RowIdx n_warps, RowFn&& row,
                                       BinsFn&& bins) const {
    EXACT_DEVICE_CHECK(blockDim.x == 32 * n_warps);
    EXACT_DEVICE_CHECK(group_.Strided() == (group_.row_offsets == nullptr));
    EXACT_DEVICE_CHECK(!group_.Strided() ||
                       (group_.chunk != 0 && group_.stride % group_.chunk == 0));
    EXACT_DEVICE_CHECK(!group_.InBytes() || (group_.stride <= kMaxByteColumns && is_shifted_));
    RowIdx const lane = threadIdx.x % 32;
    // Few rows are spread over all warps.
    RowIdx n_tile = max(1u, min(32u, static_cast<RowIdx>(CeilDiv(end - begin, n_warps))));
    Tiles tiles{rows_,  begin + threadIdx.x / 32 * n_tile + lane,
                end,    n_warps * n_tile,
                n_tile, lane < n_tile};
    if (!group_.Strided()) {
      this->WalkSparse<kGradients>(tiles, row, bins);
    } else if (group_.InBytes()) {
      this->WalkStrided<8, kGradients, Stored::kBytes>(tiles, row, bins);
    } else if (kGradients && is_shifted_) {  // additions are many: they have code of their own
      this->WalkChunks<kGradients, Stored::kShifted>(tiles, row, bins);
    } else {
      this->WalkChunks<kGradients, Stored::kAnyhow>(tiles, row, bins);
    }
  }

 private:
  /** @brief Names the rows that a warp goes along, one a lane and tile. */
  struct Tiles {
    RowsRef const& rows;
    RowIdx slot;
    RowIdx end;
    RowIdx stride;
    RowIdx n_tile;  // rows of a tile
    bool active;

    /** @brief Tell whether the warp has a tile here; of all lanes, since the first is always
     *         active. */
    [[nodiscard]] __device__ bool Any() const { return slot - threadIdx.x % 32 < end; }
    [[nodiscard]] __device__ bool Valid(RowIdx tile) const {
      return active && slot + tile * stride < end;
    }
    /** @brief Give the lane's row, some tiles ahead. */
    [[nodiscard]] __device__ RowIdx Row(RowIdx tile) const {
      RowIdx const at = slot + tile * stride;
      return !this->Valid(tile) ? 0 : rows.are_all ? at : rows.rows[at];
    }
    template <bool kGradients>
    [[nodiscard]] __device__ GradientUnits Gradients(RowIdx tile) const {
      return kGradients && this->Valid(tile) ? rows.units[slot + tile * stride]
                                             : GradientUnits{0.0f, 0.0f};
    }
  };

  /** @brief Tells how bins are stored. */
  enum class Stored {
    kBytes,    // of the column, one byte each
    kShifted,  // all that is loaded is of the group, each as a power of two of them
    kAnyhow    // as kShifted, or as the CellMap of each place tells
  };

  /** @brief Turn the bins that were loaded into the group's. @param cell The first one's. */
  template <Stored kStored, int kBins>
  [[nodiscard]] __device__ BinChunk<kBins> Mapped(BinChunk<kBins> const& chunk,
                                                  std::uint32_t cell) const {
    return kStored == Stored::kShifted || is_shifted_ ? chunk.Shifted(group_, has_gaps_)
                                                      : chunk.ByColumn(group_.cell_maps + cell);
  }

  template <bool kGradients, Stored kStored, typename RowFn, typename BinsFn>
  __device__ void WalkChunks(Tiles const& tiles, RowFn&& row, BinsFn&& bins) const {
    if (group_.chunk == 8) {
      this->WalkStrided<8, kGradients, kStored>(tiles, row, bins);
    } else if (group_.chunk == 4) {
      this->WalkStrided<4, kGradients, kStored>(tiles, row, bins);
    } else if (group_.chunk == 2) {
      this->WalkStrided<2, kGradients, kStored>(tiles, row, bins);
    } else {
      this->WalkStrided<1, kGradients, kStored>(tiles, row, bins);
    }
  }

  /** @brief Walk so that each lane takes rows of one chunk: several are loaded before the first is
   *         used. */
  template <int kBins, bool kGradients, Stored kStored, typename RowFn, typename BinsFn>
  __device__ void WalkNarrow(Tiles tiles, RowFn&& fn, BinsFn&& bins) const {
    using Chunk = BinChunk<kBins>;
    constexpr int kRows = kBins == 8 ? 2 : 4;
    RowIdx row[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      row[k] = tiles.Row(k);
    }
    for (; tiles.Any(); tiles.slot += kRows * tiles.stride) {
      Chunk chunk[kRows];
      GradientUnits g[kRows];
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        chunk[k] =
            tiles.Valid(k) ? Chunk::Load(group_.elements + row[k] * group_.stride) : Chunk::None();
        g[k] = tiles.template Gradients<kGradients>(k);
      }
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        row[k] = tiles.Row(kRows + k);
      }
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (tiles.Valid(k)) {  // None() is of no group
          chunk[k] = this->Mapped<kStored>(chunk[k], 0);
        }
        if constexpr (kGradients) {
          chunk[k].Rotate(threadIdx.x % 32);
        }
        bins(chunk[k], fn(tiles.slot + k * tiles.stride, g[k]));
      }
    }
  }

  /** @brief Walk so that each lane takes chunks of rows: chunk 0 of the first row, chunk 1, ... */
  template <int kBins, bool kGradients, Stored kStored, typename RowFn, typename BinsFn>
  __device__ void WalkStrided(Tiles tiles, RowFn&& fn, BinsFn&& bins) const {
    constexpr bool kBytes = kStored == Stored::kBytes;
    constexpr bool kBanked = kBytes && kGradients;
    if constexpr (!kBytes) {
      if (group_.n_columns <= kBins) {
        this->WalkNarrow<kBins, kGradients, kStored>(tiles, fn, bins);
        return;
      }
    }
    using Chunk = BinChunk<kBins>;
    using Loaded = std::conditional_t<kBytes, ByteChunk, Chunk>;
    using Used = std::conditional_t<kBanked, BankedChunk, Chunk>;
    std::uint32_t const lane = threadIdx.x % 32;
    std::uint32_t const n_chunks = (group_.n_columns + kBins - 1) / kBins;  // per row
    std::uint32_t const inverse = n_chunks == 1 ? 0 : 0xffffffffu / n_chunks + 1;
    std::uint32_t const n_tasks = tiles.n_tile * n_chunks;
    auto row_of = [&](std::uint32_t task) {
      return n_chunks == 1 ? task : __umulhi(task, inverse);
    };
    auto chunk_in_row = [&](std::uint32_t task) { return task - row_of(task) * n_chunks; };
    BankOrder const order{n_chunks, row_of(lane)};
    auto load = [&](RowIdx row, std::uint32_t task, bool any) {
      std::uint32_t const r = row_of(task) % 32;
      RowIdx const of_task = __shfl_sync(kAllLanes, row, static_cast<int>(r));
      // Of rows past the end, row is 0: loaded, and thrown away.
      std::uint32_t const at = of_task * group_.stride + chunk_in_row(task) * kBins;
      if constexpr (kBytes) {
        return any ? ByteChunk::Load(group_.Bytes() + at) : ByteChunk::None();
      } else {
        return any ? Chunk::Load(group_.elements + at) : Chunk::None();
      }
    };
    auto chunk_of = [&](Loaded const& loaded, std::uint32_t task) {
      if constexpr (kBanked) {
        return loaded.Banked(order, chunk_in_row(task));
      } else if constexpr (kBytes) {
        return loaded.Widen(group_.first_bins + chunk_in_row(task) * kBins);
      } else {
        return this->Mapped<kStored>(loaded, chunk_in_row(task) * kBins);
      }
    };
    RowIdx row = tiles.Row(0);
    GradientUnits g = tiles.Gradients<kGradients>(0);
    Loaded next = load(row, lane, lane < n_tasks);
    for (; tiles.Any(); tiles.slot += tiles.stride) {
      auto const own = fn(tiles.slot, g);
      unsigned const valid = __ballot_sync(kAllLanes, tiles.Valid(0));
      RowIdx const next_row = tiles.Row(1);
      g = tiles.Gradients<kGradients>(1);
      for (std::uint32_t first = 0; first < n_tasks; first += 32) {
        std::uint32_t const task = first + lane;
        std::uint32_t const r = row_of(task) % 32;
        bool const is_valid = task < n_tasks && (valid >> r & 1u) != 0;
        Used chunk = is_valid ? chunk_of(next, task) : Used::None();
        bool const is_last = first + 32 >= n_tasks;
        std::uint32_t const next_task = is_last ? lane : task + 32;
        next = load(is_last ? next_row : row, next_task, next_task < n_tasks);
        if constexpr (kGradients && !kBanked) {
          chunk.Rotate(lane);
        }
        bins(chunk, FromLane(own, static_cast<int>(r)));
      }
      row = next_row;
    }
  }

  /** @brief Walk where many rows may have no entry in the group; the others queue. */
  template <bool kGradients, typename RowFn, typename BinsFn>
  __device__ void WalkSparse(Tiles tiles, RowFn&& fn, BinsFn&& bins) const {
    auto const lane = static_cast<int>(threadIdx.x % 32);
    int n_queued{0};
    auto walk_queued = [&] {
      __syncwarp();
      bool valid = lane < n_queued;
      RowElements e = valid ? queue_.elements[lane] : RowElements{0, 0};
      RowIdx const slot = valid ? queue_.slot[lane] : 0;
      GradientUnits const g =
          kGradients && valid ? tiles.rows.units[slot] : GradientUnits{0.0f, 0.0f};
      __syncwarp();
      this->WalkBatch(
          e, [&] { return fn(slot, g); }, bins);
      n_queued = 0;
    };
    auto elements_of = [&](RowIdx tile, RowIdx row) {
      return tiles.Valid(tile) ? BinMatrixRef::Row(group_, row) : RowElements{0, 0};
    };
    RowElements e = elements_of(0, tiles.Row(0));
    RowIdx row = tiles.Row(1);
    for (; tiles.Any(); tiles.slot += tiles.stride) {
      RowElements next = elements_of(1, row);
      row = tiles.Row(2);
      bool filled = e.Size() != 0;
      unsigned all_filled = __ballot_sync(kAllLanes, filled);
      if (n_queued + __popc(all_filled) > 32) {
        walk_queued();
      }
      if (filled) {
        int at = n_queued + __popc(all_filled & LaneMaskLt());
        EXACT_DEVICE_CHECK(at < 32);
        queue_.elements[at] = e;
        queue_.slot[at] = tiles.slot;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(group_.elements + e.begin));
      }
      n_queued += __popc(all_filled);
      e = next;
    }
    walk_queued();
  }

  /** @brief Walk along up to 32 rows, one a lane; those with entries come first. */
  template <typename RowFn, typename BinsFn>
  __device__ void WalkBatch(RowElements e, RowFn&& row, BinsFn&& bins) const {
    SparseBinReader all{group_.elements, e};
    if (all.Size() == 0) {
      return;
    }
    SparseBinReader::Windows even;
    SparseBinReader::Windows odd;
    all.LoadNext(&even);
    auto const own = row();
    auto use = [&](std::uint32_t first, SparseBinReader::Windows const& windows) {
#pragma unroll
      for (int u = 0; u < SparseBinReader::kWindows; ++u) {
        bool const is_entry = first + 32 * u + threadIdx.x % 32 < all.Size();
        BinChunk<1> const chunk{{is_entry ? windows.bin[u] : FeatureGroup::kNoBin}};
        bins(is_shifted_ ? chunk.Shifted(group_, has_gaps_)
                         : BinChunk<1>{{group_.BinOf(chunk.words[0])}},
             FromLane(own, windows.source[u]));
      }
    };
    // The next windows are on their way while the present ones are used.
    constexpr std::uint32_t kStep = 32 * SparseBinReader::kWindows;
    for (std::uint32_t first = 0; first < all.Size(); first += 2 * kStep) {
      all.LoadNext(&odd);
      use(first, even);
      if (first + kStep >= all.Size()) {
        break;
      }
      all.LoadNext(&even);
      use(first + kStep, odd);
    }
  }

  FeatureGroup const& group_;
  RowsRef const& rows_;
  Queue& queue_;
  bool is_shifted_;  // as Stored::kShifted
  bool has_gaps_;    // whether a place that is loaded may have no value, or be of no column
};
}  // namespace gpu_exact
