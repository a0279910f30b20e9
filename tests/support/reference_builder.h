/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Exact greedy trees by the plainest code that gives them: the judge of the kernels, and
 *        their stand-in on machines without a GPU. Shares nothing with src/.
 */
#pragma once

#include <memory>

#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/**
 * @brief A builder on the host, one thread. Host memory only, else std::invalid_argument.
 * @param comm  As of MakeDeviceBuilder(). Each worker holds all rows of the features that it owns.
 */
[[nodiscard]] std::unique_ptr<TreeBuilder> MakeReferenceBuilder(CsrView const& rows,
                                                                Communicator* comm = nullptr);
}  // namespace gpu_exact
