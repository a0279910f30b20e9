/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tells the two numberings of features apart: that of the whole table, and that of the columns
 *        which this worker has.
 *
 * What is told to the host or to other workers names features: LevelResult, Split, NodeSplit.
 * What searches the own table knows no other, and numbers features as that table does: there a
 * FeatureIdx counts columns. Only ColumnIdx and ColumnFeatures lead from one to the other.
 */
#pragma once

#include <cstdint>

#include "core/platform.h"
#include "gpu_exact/types.h"

namespace gpu_exact {
/** @brief Numbers a column of this worker. */
enum class ColumnIdx : std::uint32_t {};

/** @brief Marks a feature whose column another worker has. */
inline constexpr ColumnIdx kRemoteColumn{0xffffffffu};

/** @brief Give the number of a column in the own table. */
[[nodiscard]] GPU_EXACT_HD inline FeatureIdx InOwnTable(ColumnIdx column) {
  return static_cast<FeatureIdx>(column);
}

/** @brief Lends the features of the own columns to kernels. */
struct ColumnFeatures {
  FeatureIdx const* features{nullptr};  // by column, ascending; nullptr: all columns are here

  [[nodiscard]] __device__ FeatureIdx Of(ColumnIdx column) const {
    return features == nullptr ? InOwnTable(column) : features[InOwnTable(column)];
  }
};
}  // namespace gpu_exact
