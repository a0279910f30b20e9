/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "hooks/take_over.h"

#include <atomic>

namespace gpu_exact {
namespace {
std::atomic<bool> taken_over{false};
}  // namespace

void TakeOver(bool enable) { taken_over = enable; }

bool IsTakenOver() { return taken_over; }
}  // namespace gpu_exact
