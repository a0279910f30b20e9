/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Which child each row of a level goes to, one bit a place, and its place there.
 */
#pragma once

#include "src/device/rows_ref.cuh"

namespace gpu_exact {
/** @brief 32 places: which go left, and how many left ones lie before. */
struct alignas(8) SideWord {
  std::uint32_t left;
  std::uint32_t n_before;
};

/** @brief A level's sides; rows keep their order within a child. */
struct SidesRef {
  SideWord const* words;  // shape: (n_places / 32 + 1); nullptr: every place goes left

  /** @brief How many of the places before this one go left. */
  __device__ RowIdx LeftBefore(RowIdx place) const {
    if (words == nullptr) {
      return place;
    }
    SideWord w = words[place / 32];
    return w.n_before + __popc(w.left & ((1u << place % 32) - 1));
  }
};

/** @brief Where the rows of one split node go. */
struct ChildPlaces {
  SidesRef sides;
  std::uint32_t left_shift;   // of a left child's place from its rank among all left ones
  std::uint32_t right_shift;  // of a right child's from its rank among all right ones

  __device__ ChildPlaces(SidesRef const& s, RowRange const& parent, RowRange const& right)
      : sides{s} {
    RowIdx before = sides.LeftBefore(parent.begin);
    left_shift = parent.begin - before;
    right_shift = right.begin - (parent.begin - before);
  }

  /** @brief The new place of a row of the node. */
  __device__ RowIdx Of(RowIdx place, bool* out_left) const {
    if (sides.words == nullptr) {
      *out_left = true;
      return place;
    }
    SideWord w = sides.words[place / 32];
    std::uint32_t bit = 1u << place % 32;
    RowIdx rank = w.n_before + __popc(w.left & (bit - 1));
    *out_left = (w.left & bit) != 0;
    return *out_left ? rank + left_shift : place - rank + right_shift;
  }
};
}  // namespace gpu_exact
