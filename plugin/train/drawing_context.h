/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes a context to draw random numbers with.
 */
#pragma once

#include <xgboost/context.h>

#include "load/release.h"

namespace gpu_exact {
/** @brief Copies a booster's context for the CPU. What is drawn with it counts once Keep() is
 *         called. */
class DrawingContext {
 public:
  explicit DrawingContext(xgboost::Context const* ctx)
      : ctx_{ctx}, kept_{RandomOf(ctx)}, cpu_{ctx->MakeCPU()} {}
  ~DrawingContext() { RandomOf(ctx_) = kept_; }
  DrawingContext(DrawingContext const&) = delete;
  DrawingContext& operator=(DrawingContext const&) = delete;

  [[nodiscard]] xgboost::Context const* Get() const { return &cpu_; }
  void Keep() { kept_ = RandomOf(&cpu_); }

 private:
  xgboost::Context const* ctx_;
  RandomEngine kept_;
  xgboost::Context cpu_;
};
}  // namespace gpu_exact
