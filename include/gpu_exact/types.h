/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Defines the words of this library: row, entry, feature, node, gradient pair.
 */
#pragma once

#include <cstdint>
#include <functional>

namespace gpu_exact {
using RowIdx = std::uint32_t;      // at most kMostRows rows
using FeatureIdx = std::uint32_t;  // fewer than 2^32
using EntryIdx = std::uint64_t;    // entries, the present values, pass 2^32 on ordinary tables
using NodeIdx = std::int32_t;      // node id inside one tree, in the order of splits; root is 0

inline constexpr RowIdx kMostRows = 0xfffffffe;  // that fit: the last id is no row's
inline constexpr NodeIdx kRoot = 0;
inline constexpr NodeIdx kNoNode = -1;

/** @brief Holds the first and second order gradient of one row; laid out as xgboost::GradientPair.
 *         Aligned, so that the device moves it in one piece. */
struct alignas(8) GradientPair {
  float grad;
  float hess;  // negative: the row is deleted
};

/** @brief Holds one present value of a row; laid out as xgboost::Entry. */
struct CsrEntry {
  FeatureIdx feature;
  float value;
};

/** @brief Names what the values of a feature are; laid out as xgboost::FeatureType. */
enum class FeatureType : std::uint8_t {
  kNumerical,
  kCategorical  // codes of categories, 0 <= code < kMostCategories; fractions are cut off
};

/** @brief Bounds the codes of categories: up to here a float tells whole numbers apart. */
inline constexpr std::uint32_t kMostCategories = 1u << 24;

/** @brief Names where an array lies. Device memory belongs to the builder's device. */
enum class Memory : std::uint8_t { kHost, kDevice };

struct CsrView;

/** @brief Reads the rows of a table that comes in pages, of which one is in memory at a time. */
class RowPages {
 public:
  virtual ~RowPages() = default;
  /** @brief Call visit(rows, number of their first row) for each page, in order; may be
   *         repeated. */
  virtual void ForEach(std::function<void(CsrView const&, RowIdx)> const& visit) const = 0;
};

/** @brief Lends a table in compressed rows; a value that is not present is missing. */
struct CsrView {
  EntryIdx const* offsets{nullptr};  // shape: (n_rows + 1), ascending from 0
  CsrEntry const* entries{nullptr};  // shape: (n_entries), rows one after another
  EntryIdx n_entries{0};
  RowIdx n_rows{0};
  FeatureIdx n_features{0};
  Memory memory{Memory::kHost};
  RowPages const* pages{nullptr};  // that have the rows, in place of offsets and entries
  // Host memory, shape: (n_features); nullptr: all are numerical. Not of a page, but of the table.
  FeatureType const* feature_types{nullptr};
};

/** @brief Lends gradients, one pair a row. */
struct GradientView {
  GradientPair const* data{nullptr};  // shape: (n_rows)
  Memory memory{Memory::kHost};
  bool are_all{false};  // a worker of several: those of all rows, not of its own
};

/**
 * @brief Encode a row's leaf as XGBoost does: the node id, or its bitwise complement for a row that
 *        took no part in training (not sampled, or deleted by a negative hessian).
 */
constexpr NodeIdx EncodePosition(NodeIdx nidx, bool trained) { return trained ? nidx : ~nidx; }
constexpr NodeIdx DecodePosition(NodeIdx position) { return position < 0 ? ~position : position; }
}  // namespace gpu_exact
