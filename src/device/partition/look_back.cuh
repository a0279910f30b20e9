/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief What lies before a tile, in one pass: each tile publishes its own sums, then looks back at
 *        the tiles before it until one knows all that lies before its end.
 * @see   Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016
 *
 * Every 64-bit word carries a value and its state, so that no order between words is needed. Tiles
 * wait only for tiles of earlier blocks, as CUB's scans do.
 */
#pragma once

#include "src/device/fixed_sum.cuh"
#include "src/device/partition/split_prefix.cuh"
#include "src/device/warp.cuh"

namespace gpu_exact {
/** @brief A value with its state in the two lowest bits. */
struct TileWord {
  static constexpr unsigned kNone = 0;
  static constexpr unsigned kTile = 1;  // of the tile alone
  static constexpr unsigned kAll = 2;   // of everything up to the end of the tile

  std::int64_t word;

  [[nodiscard]] __device__ unsigned State() const { return static_cast<unsigned>(word) & 3u; }
  /** @brief Within 2^61; sums of rows that the root leaves out may wrap, and are not used. */
  [[nodiscard]] __device__ std::int64_t Value() const { return word >> 2; }
  __device__ void Publish(std::int64_t value, unsigned state) {
    *const_cast<std::int64_t volatile*>(&word) = value * 4 + state;
  }
  [[nodiscard]] __device__ static TileWord Load(TileWord const& at) {
    return {*const_cast<std::int64_t const volatile*>(&at.word)};
  }
};

/** @brief What a tile publishes. Zero before the tiles run. */
struct TileStatus {
  TileWord counts;   // left entries, and flags in the two lowest bits
  TileWord sums[4];  // gradients and hessians of left entries, then of all
};

/** @brief The tiles of one segment, looked at by one warp. */
class LookBack {
 public:
  /**
   * @param tile     The tile's status; those before it lie stride apart.
   * @param n_before Tiles before it, all of n_entries.
   */
  __device__ LookBack(TileStatus* tile, std::uint32_t stride, std::uint32_t n_before,
                      std::uint32_t n_entries)
      : tile_{tile}, stride_{stride}, n_before_{n_before}, n_entries_{n_entries} {}

  /** @brief Let later tiles know. @param prefix Of the tile alone, or up to its end. */
  __device__ void Publish(SplitPrefix const& prefix, unsigned state) const {
    if (Lane() == 0) {
      tile_->counts.Publish(prefix.n_left * std::int64_t{4} + prefix.flags, state);
      tile_->sums[0].Publish(prefix.left.grad, state);
      tile_->sums[1].Publish(prefix.left.hess, state);
      tile_->sums[2].Publish(prefix.all.grad, state);
      tile_->sums[3].Publish(prefix.all.hess, state);
    }
  }

  /**
   * @brief Look for what lies before the tile.
   * @param wait Otherwise a tile that has published nothing ends the search.
   * @return Whether it is known.
   */
  __device__ bool Find(bool wait, SplitPrefix* out_before) const {
    SplitPrefix before = n_before_ == 0 ? SplitPrefix::Begin() : SplitPrefix::None();
    before.n = n_before_ * n_entries_;
    bool open_left{true}, open_right{true};  // no entry of the child seen yet
    for (std::uint32_t seen = 0; seen < n_before_; seen += 32) {
      TileStatus const* tile = this->Before(seen);
      TileWord counts, sums[4];
      unsigned state;
      do {
        counts = TileWord::Load(tile->counts);
        unsigned any = counts.State(), all = counts.State();
        for (int i = 0; i < 4; ++i) {
          sums[i] = TileWord::Load(tile->sums[i]);
          any |= sums[i].State();
          all &= sums[i].State();
        }
        state = any == all ? any : TileWord::kNone;  // between two of them: not yet
        if (!wait && __any_sync(kAllLanes, state == TileWord::kNone)) {
          return false;
        }
      } while (__any_sync(kAllLanes, state == TileWord::kNone));
      bool const is_end = state == TileWord::kAll;
      std::uint32_t ends = __ballot_sync(kAllLanes, is_end);
      std::uint32_t used = UpToFirst(ends);
      bool const is_used = (used >> Lane() & 1u) != 0;
      auto n_left = static_cast<std::uint32_t>(counts.Value() >> 2);
      before.n_left += SumLanes(is_used ? n_left : 0);
      before.flags |= Flag((counts.Value() & 1) != 0, is_end || n_left != 0, used, &open_left);
      before.flags |=
          Flag((counts.Value() & 2) != 0, is_end || n_left != n_entries_, used, &open_right) << 1;
      SplitSums s{{0, 0}, {0, 0}};
      if (is_used) {
        s = {{sums[0].Value(), sums[1].Value()}, {sums[2].Value(), sums[3].Value()}};
      }
      s = SumFirstLanes(s, __popc(used));
      before.left = before.left + s.left;
      before.all = before.all + s.all;
      if (ends != 0) {
        break;
      }
    }
    *out_before = before;
    return true;
  }

 private:
  __device__ static unsigned Lane() { return threadIdx.x % 32; }
  /** @brief The lane's of 32 earlier tiles, nearest first; the first tile of all past the last. */
  [[nodiscard]] __device__ TileStatus const* Before(std::uint32_t seen) const {
    return tile_ - std::uint64_t{min(seen + Lane() + 1, n_before_)} * stride_;
  }
  /** @brief Lanes up to the first of a mask. The first tile knows all, so that it is the last. */
  __device__ static std::uint32_t UpToFirst(std::uint32_t mask) {
    return mask == 0 ? kAllLanes : (mask & -mask) * 2 - 1;
  }
  /** @brief Sum of the first n lanes, seldom more than a few; the others hold zeros. */
  __device__ static SplitSums SumFirstLanes(SplitSums s, int n) {
    for (int step = 1; step < n; step *= 2) {
      s = s + SplitSums{ShuffleXor(s.left, step), ShuffleXor(s.all, step)};
    }
    return {Shuffle(s.left, 0), Shuffle(s.all, 0)};
  }
  /** @brief Whether any lane has the flag, up to the first that has an entry of the child. */
  __device__ static std::uint32_t Flag(bool flag, bool has_entry, std::uint32_t used, bool* open) {
    std::uint32_t flags = __ballot_sync(kAllLanes, flag) & used;
    std::uint32_t stops = __ballot_sync(kAllLanes, has_entry) & used;
    bool result = *open && (flags & UpToFirst(stops)) != 0;
    *open = *open && stops == 0;
    return result ? 1 : 0;
  }

  TileStatus* tile_;
  std::uint32_t stride_;
  std::uint32_t n_before_;
  std::uint32_t n_entries_;
};
}  // namespace gpu_exact
