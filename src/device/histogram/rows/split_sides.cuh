/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells on which side of its node's best candidate a row is, and which value of the node is next to
 *        the candidate on the other side.
 *
 * A candidate lies beside a value with weight: right after it in a forward scan, right before it in
 * a backward scan. That value is the bin's, or, of a bin that is a range, the one that the refiner
 * has found. The value on the other side is the nearest one that any row of the node has.
 *
 * Which side a row is on its bin tells, but for rows in the candidate's own. Where values are the
 * host's, only those rows' values are read, and those of the node's next bin.
 *
 * A split by categories has a set and no threshold: nothing is to be found, rows go by the set.
 */
#pragma once

#include <limits>

#include "device/histogram/bins/binned_table.cuh"
#include "device/histogram/bins/categories.cuh"
#include "device/histogram/rows/row_tile.cuh"
#include "device/runtime/warp.cuh"
#include "device/table/value_key.cuh"
#include "device/workers/split_exchange.cuh"

namespace gpu_exact {
/** @brief Tells where a node's best split lies. */
struct alignas(16) NodeThreshold {
  static constexpr FeatureIdx kNoFeature = std::numeric_limits<FeatureIdx>::max();

  FeatureIdx feature;       // kNoFeature: there is no candidate
  ScanDirection direction;  // backward: missing values go left
  bool by_categories;       // rows go by the node's set: scanned and threshold are of no meaning
  bool reroutes;            // the threshold says otherwise than the candidate: rows go by it
  bool padding;             // written, so that a word can be read whole
  std::uint32_t scanned;    // ScanValue that the candidate lies beside
  std::uint32_t next;       // the next one of the node, or kNone
  float threshold;          // NaN past a last value that is infinite
  // Where values are the host's, in the order of the scan:
  std::uint32_t bin;       // of the finest resolution, that has the value scanned last
  std::uint32_t next_bin;  // the node's next one, or kNone
  std::uint32_t beyond;    // the first value in the next bin, or kNone
  // Rows that have been moved to either child: left ones in the lower half, so that one addition counts
  // both.
  unsigned long long n_moved;
  FixedSum left_sum;  // of those that went left

  /** @brief Number a bin of the feature in the order of the scan. */
  [[nodiscard]] __device__ std::uint32_t InOrder(int of_column) const {
    auto const b = static_cast<std::uint32_t>(of_column);
    return direction == ScanDirection::kForward ? b : ScanValue::kNone - 1 - b;
  }
  [[nodiscard]] __device__ bool HasThreshold() const {
    return feature != kNoFeature && !by_categories;
  }
  /** @brief Set the threshold, when all rows have told what is next, and whether it reroutes. */
  __device__ void FindThreshold() {
    bool const forward = direction == ScanDirection::kForward;
    float const value = ScanValue::Read(direction, scanned);
    std::uint32_t const nearest = min(next, beyond);
    bool agrees{true};
    if (nearest == ScanValue::kNone) {
      threshold = PresentThreshold(direction, value);
    } else {
      float const next_value = ScanValue::Read(direction, nearest);
      threshold = MidThreshold(value, next_value);
      agrees = (next_value < threshold) != forward;
    }
    // The threshold decides: between neighbouring floats, or huge ones, it may do so otherwise than
    // the candidate.
    reroutes = !agrees || (value < threshold) != forward;
  }
};

/** @brief Holds what a thread finds of its rows. */
struct RowSides {
  std::uint32_t left{0};  // a bit for each: it goes left
  // as NodeThreshold's
  std::uint32_t next{ScanValue::kNone};
  std::uint32_t next_bin{ScanValue::kNone};
  std::uint32_t beyond{ScanValue::kNone};

  /** @brief Join what a warp has found, but for its rows. All lanes. */
  [[nodiscard]] __device__ RowSides OfWarp() const {
    return {0, WarpMin(next), WarpMin(next_bin), WarpMin(beyond)};
  }
  /** @brief Offer to the node what a warp has found. */
  __device__ void OfferTo(NodeThreshold* point) const {
    auto const offer = [](std::uint32_t* least, std::uint32_t value) {
      if (threadIdx.x % 32 == 0 && value != ScanValue::kNone && value < __ldcg(least)) {
        atomicMin(least, value);
      }
    };
    offer(&point->next, next);
    offer(&point->next_bin, next_bin);
    offer(&point->beyond, beyond);
  }
};

/** @brief Tells what sends rows to their sides. */
enum class SideBy {
  kValue,  // the candidate, or the threshold where it reroutes, or a set of categories
  kBin,    // the same, where values are the host's
  kBits,   // the worker that has the split
};

/** @brief Lends to kernels what sends the rows of a level to their sides. */
struct SplitSidesRef {
  BinnedTableRef table;
  NodeThreshold* points;  // shape: (n_nodes)
  LevelSetsRef sets;
  LeftRowsRef left_rows;  // of all workers, if any

  /** @brief Tell whether workers have told which rows go left, and the thresholds. */
  [[nodiscard]] GPU_EXACT_HD bool AreTold() const { return left_rows.words != nullptr; }
  /** @brief Tell whether a node has a best candidate. */
  [[nodiscard]] __device__ bool HasSplit(LevelNode b) const {
    return this->AreTold() ? left_rows.winners[b] != SplitExchange::kNobody
                           : points[b].feature != NodeThreshold::kNoFeature;
  }

  /** @brief Find the sides of a tile's rows. */
  template <SideBy kBy, int kThreads, int kSlots>
  [[nodiscard]] __device__ RowSides Find(RowTile<kThreads, kSlots> const& tile,
                                         RowIdx const (&row)[kSlots]) const {
    RowSides found;
    if constexpr (kBy == SideBy::kBits) {
      std::uint32_t const* const words = left_rows.Of(tile.node);
      std::uint32_t word[kSlots];
#pragma unroll
      for (int j = 0; j < kSlots; ++j) {
        word[j] = tile.Has(j) ? words[row[j] / 32] : 0;
      }
#pragma unroll
      for (int j = 0; j < kSlots; ++j) {
        found.left |= (word[j] >> row[j] % 32 & 1u) << j;
      }
      return found;
    }
    NodeThreshold const point = points[tile.node];
    bool const forward = point.direction == ScanDirection::kForward;
    if (kBy == SideBy::kBin && !point.by_categories) {
#pragma unroll
      for (int j = 0; j < kSlots; ++j) {
        if (!tile.Has(j)) {
          continue;
        }
        int const bin = table.finest.BinOf(row[j], point.feature);
        bool is_scanned{false};
        if (bin >= 0) {
          std::uint32_t const at = point.InOrder(bin);
          is_scanned = at < point.bin;
          if (at > point.bin) {
            found.next_bin = min(found.next_bin, at);
          } else if (at == point.bin) {
            float const value = table.ValueOf(row[j], point.feature);
            std::uint32_t const scan_value = ScanValue::Make(point.direction, value);
            is_scanned = scan_value <= point.scanned;
            found.next = is_scanned ? found.next : min(found.next, scan_value);
          }
        }
        found.left |= (is_scanned == forward ? 1u : 0u) << j;
      }
      return found;
    }
    float value[kSlots];
    if (float const* const column = table.values.Column(point.feature); column != nullptr) {
#pragma unroll
      for (int j = 0; j < kSlots; ++j) {  // all are asked for before the first is used
        value[j] = tile.Has(j) ? column[row[j]] : NAN;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kSlots; ++j) {
        value[j] = tile.Has(j) ? table.ValueOf(row[j], point.feature) : NAN;
      }
    }
#pragma unroll
    for (int j = 0; j < kSlots; ++j) {
      bool left = !forward;  // where the value is missing
      if (!isnan(value[j])) {
        std::uint32_t const scan_value = ScanValue::Make(point.direction, value[j]);
        if (point.by_categories) {
          left = !HasCategory(sets.Of(tile.node), value[j]);
        } else if (point.reroutes) {
          left = value[j] < point.threshold;
        } else {
          left = (scan_value <= point.scanned) == forward;
          found.next = scan_value > point.scanned ? min(found.next, scan_value) : found.next;
        }
      }
      found.left |= (tile.Has(j) && left ? 1u : 0u) << j;
    }
    return found;
  }
};
}  // namespace gpu_exact
