/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares the training parameters that XGBoost hands to the updater by name.
 */
#pragma once

#include <xgboost/parameter.h>

#include <cstdint>
#include <string>

#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief Names what to do where the GPU cannot build trees. */
enum Fallback : std::int32_t { kFallbackWarn = 0, kFallbackError = 1, kFallbackDefault = 2 };

/** @brief Names the variable of the environment that says what `gpu_exact_fallback` is where it is
 *         not given: `warn` or `error`. */
inline constexpr char const* kFallbackVariable = "GPU_EXACT_FALLBACK";
/** @brief Names it as earlier releases did. */
inline constexpr char const* kOldFallbackVariable = "XGBOOST_GPU_EXACT_FALLBACK";

/** @brief Declares this library's own parameters. */
struct GpuExactParam : public xgboost::XGBoostParameter<GpuExactParam> {
  std::int32_t gpu_exact_strategy;  // in the order of gpu_exact::Strategy
  std::int32_t gpu_exact_fallback;
  double gpu_exact_memory_limit;
  std::string gpu_exact_devices;

  DMLC_DECLARE_PARAMETER(GpuExactParam) {
    DMLC_DECLARE_FIELD(gpu_exact_strategy)
        .set_default(0)
        .add_enum("auto", 0)
        .add_enum("sort", 1)
        .add_enum("histogram", 2)
        .describe(
            "How the best splits are found: `auto` chooses for the data. It changes speed and "
            "memory, not the trees.");
    DMLC_DECLARE_FIELD(gpu_exact_fallback)
        .set_default(kFallbackDefault)
        .add_enum("warn", kFallbackWarn)
        .add_enum("error", kFallbackError)
        .add_enum("default", kFallbackDefault)
        .describe(
            "Where the GPU cannot build trees: `warn` once and use XGBoost's own exact builder, or "
            "raise an `error`; by `default` what GPU_EXACT_FALLBACK says, or `warn`.");
    DMLC_DECLARE_FIELD(gpu_exact_memory_limit)
        .set_lower_bound(0.0)
        .set_default(0.0)
        .describe(
            "Device memory that a table may take: bytes, or up to 1 the share of what is free; 0 "
            "takes what is free less a sixteenth. Less of it makes `histogram` slower, not "
            "different; `sort` takes no less, and refuses the table.");
    DMLC_DECLARE_FIELD(gpu_exact_devices)
        .set_default("")
        .describe(
            "GPUs that share the columns of a table: empty for the booster's own, `all` where the "
            "table is large enough, or a list such as `0,1`. It changes the speed, not the trees.");
  }
};

/** @brief Names where an updater's saved configuration has them; the other ones as XGBoost's own
 *         has. */
inline constexpr char const* kParamKey = "gpu_exact_train_param";
inline constexpr char const* kColMakerKey = "colmaker_train_param";

/** @brief Mirrors the parameters of XGBoost's `grow_colmaker`; the same names, ranges and
 *         defaults. */
struct ColMakerParam : public xgboost::XGBoostParameter<ColMakerParam> {
  float opt_dense_col;
  std::int32_t default_direction;  // in the order of gpu_exact::DefaultDirection

  DMLC_DECLARE_PARAMETER(ColMakerParam) {
    DMLC_DECLARE_FIELD(opt_dense_col)
        .set_range(0.0f, 1.0f)
        .set_default(1.0f)
        .describe("Columns of at least this density send rows without a value left.");
    DMLC_DECLARE_FIELD(default_direction)
        .set_default(0)
        .add_enum("learn", 0)
        .add_enum("left", 1)
        .add_enum("right", 2)
        .describe("Where rows without a value go: learned for each split, or one side for all.");
  }
};
}  // namespace gpu_exact
