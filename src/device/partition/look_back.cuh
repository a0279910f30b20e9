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
  /** @brief Within 2^61. */
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
  /** @param tile The tile's status; those before it lie stride apart. */
  __device__ LookBack(TileStatus* tile, std::uint32_t stride, std::uint32_t n_before)
      : tile_{tile}, stride_{stride}, n_before_{n_before} {}

  /** @brief Counts before the tile; own are the tile's. Tiles before it have kTile entries. */
  template <std::uint32_t kTile>
  __device__ SplitCounts Counts(SplitCounts const& own) const {
    SplitCounts before{0, n_before_ * kTile, 0};
    if (n_before_ == 0) {
      before.flags = SplitPrefix::Begin().flags;
    } else {
      this->PublishCounts(own, TileWord::kTile);
    }
    bool open_left{true}, open_right{true};  // no entry of the child seen yet
    for (std::uint32_t seen = 0; seen < n_before_; seen += 32) {
      TileStatus const* tile = this->Before(seen);
      TileWord w;
      do {
        w = TileWord::Load(tile->counts);
      } while (__any_sync(kAllLanes, w.State() == TileWord::kNone));
      bool const is_end = w.State() == TileWord::kAll;
      std::uint32_t ends = __ballot_sync(kAllLanes, is_end);
      std::uint32_t used = UpToFirst(ends);
      auto n_left = static_cast<std::uint32_t>(w.Value() >> 2);
      before.n_left += SumLanes((used >> Lane() & 1u) != 0 ? n_left : 0);
      before.flags |= Flag((w.Value() & 1) != 0, is_end || n_left != 0, used, &open_left);
      before.flags |= Flag((w.Value() & 2) != 0, is_end || n_left != kTile, used, &open_right) << 1;
      if (ends != 0) {
        break;
      }
    }
    this->PublishCounts(before.Then(own), TileWord::kAll);
    return before;
  }

  /** @brief Sums before the tile; own are the tile's. */
  __device__ SplitSums Sums(SplitSums const& own) const {
    if (n_before_ != 0) {
      this->PublishSums(own, TileWord::kTile);
    }
    SplitSums before{{0, 0}, {0, 0}};
    for (std::uint32_t seen = 0; seen < n_before_; seen += 32) {
      TileStatus const* tile = this->Before(seen);
      TileWord w[4];
      unsigned state;
      do {
        unsigned any{0}, all{3};
        for (int i = 0; i < 4; ++i) {
          w[i] = TileWord::Load(tile->sums[i]);
          any |= w[i].State();
          all &= w[i].State();
        }
        state = any == all ? any : TileWord::kNone;  // between two of them: not yet
      } while (__any_sync(kAllLanes, state == TileWord::kNone));
      std::uint32_t ends = __ballot_sync(kAllLanes, state == TileWord::kAll);
      bool const used = (UpToFirst(ends) >> Lane() & 1u) != 0;
      before.left.grad += SumLanes(used ? w[0].Value() : 0);
      before.left.hess += SumLanes(used ? w[1].Value() : 0);
      before.all.grad += SumLanes(used ? w[2].Value() : 0);
      before.all.hess += SumLanes(used ? w[3].Value() : 0);
      if (ends != 0) {
        break;
      }
    }
    this->PublishSums(before + own, TileWord::kAll);
    return before;
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
  /** @brief Whether any lane has the flag, up to the first that has an entry of the child. */
  __device__ static std::uint32_t Flag(bool flag, bool has_entry, std::uint32_t used, bool* open) {
    std::uint32_t flags = __ballot_sync(kAllLanes, flag) & used;
    std::uint32_t stops = __ballot_sync(kAllLanes, has_entry) & used;
    bool result = *open && (flags & UpToFirst(stops)) != 0;
    *open = *open && stops == 0;
    return result ? 1 : 0;
  }
  __device__ void PublishCounts(SplitCounts const& c, unsigned state) const {
    if (Lane() == 0) {
      tile_->counts.Publish(c.n_left * std::int64_t{4} + c.flags, state);
    }
  }
  __device__ void PublishSums(SplitSums const& p, unsigned state) const {
    if (Lane() == 0) {
      tile_->sums[0].Publish(p.left.grad, state);
      tile_->sums[1].Publish(p.left.hess, state);
      tile_->sums[2].Publish(p.all.grad, state);
      tile_->sums[3].Publish(p.all.hess, state);
    }
  }

  TileStatus* tile_;
  std::uint32_t stride_;
  std::uint32_t n_before_;
};
}  // namespace gpu_exact
