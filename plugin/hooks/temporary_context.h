/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Gives a learner another context for a while.
 */
#pragma once

#include <xgboost/context.h>

#include <utility>

#include "load/release.h"

namespace gpu_exact {
/**
 * @brief Replaces a learner's context while this lives. Random numbers drawn meanwhile count.
 *
 * Boosters and updaters keep a pointer to the context of their learner: what they make in the
 * meantime goes on with the learner's own context afterwards.
 */
class TemporaryContext {
 public:
  /** @param ctx A member of a learner: only this view of it is constant. */
  TemporaryContext(xgboost::Context const* ctx, xgboost::Context other)
      : ctx_{const_cast<xgboost::Context*>(ctx)}, own_{*ctx} {
    *ctx_ = std::move(other);
  }
  ~TemporaryContext() {
    RandomOf(&own_) = RandomOf(ctx_);
    *ctx_ = std::move(own_);
  }
  TemporaryContext(TemporaryContext const&) = delete;
  TemporaryContext& operator=(TemporaryContext const&) = delete;

 private:
  xgboost::Context* ctx_;
  xgboost::Context own_;
};
}  // namespace gpu_exact
