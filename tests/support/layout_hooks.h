/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What tests call of the adapter to the XGBoost of the process.
 */
#pragma once

#include <memory>

#include "gpu_exact/communicator.h"

namespace gpu_exact {
struct LayoutHooks {
  void (*pretend_cuda)(bool enable);
  std::shared_ptr<Communicator> (*current_communicator)();
};
}  // namespace gpu_exact
