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
  SideWord const* words;  // shape: (n_places / 32 + 1); nullptr: every place goes left, ask nothing

  /** @brief How many of the places before this one go left. */
  __device__ RowIdx LeftBefore(RowIdx place) const {
    SideWord w = words[place / 32];
    return w.n_before + __popc(w.left & ((1u << place % 32) - 1));
  }
};

/** @brief Where the rows of one split node go; some do not go left. */
class ChildPlaces {
 public:
  __device__ ChildPlaces(SidesRef const& sides, RowRange const& parent, RowRange const& right)
      : words_{sides.words} {
    RowIdx before = sides.LeftBefore(parent.begin);
    left_shift_ = parent.begin - before;
    right_shift_ = right.begin - (parent.begin - before);
  }

  [[nodiscard]] __device__ SideWord Word(RowIdx place) const { return words_[place / 32]; }

  /** @brief The new place of a row of the node. @param word Word(place). */
  [[nodiscard]] __device__ RowIdx Of(SideWord const& word, RowIdx place, bool* out_left) const {
    std::uint32_t bit = 1u << place % 32;
    RowIdx rank = word.n_before + __popc(word.left & (bit - 1));
    *out_left = (word.left & bit) != 0;
    return *out_left ? rank + left_shift_ : place - rank + right_shift_;
  }

 private:
  SideWord const* words_;
  std::uint32_t left_shift_;   // of a left child's place from its rank among all left ones
  std::uint32_t right_shift_;  // of a right child's from its rank among all right ones
};
}  // namespace gpu_exact
