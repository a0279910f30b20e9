/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "hooks/round.h"

namespace gpu_exact {
namespace {
thread_local Round const* current{nullptr};
}  // namespace

Round::Round(std::uint32_t before, std::uint32_t groups)
    : n_before{before}, n_groups{groups}, outer_{current} {
  current = this;
}
Round::~Round() { current = outer_; }

Round const* Round::Current() { return current; }
}  // namespace gpu_exact
