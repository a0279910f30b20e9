/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Connects this module's calls into XGBoost to the libxgboost of the process.
 *
 * The module is linked against nothing of XGBoost. Each XGBoost function that an adapter calls is a
 * stub (trampolines.cc) that jumps through a table, and BindXGBoost() fills the table of the one that
 * knows the library's release.
 */
#pragma once

#include <cstdint>

#include "gpu_exact/host_team.h"
#include "load/adapter.h"

namespace gpu_exact {
/**
 * @brief Find libxgboost, choose the adapter to its release and bind what it imports. Later calls only
 *        give the adapter.
 *
 * An import is an exported symbol of the library, or else an entry of its .symtab: the stock CUDA
 * wheel hides its C++ functions but is not stripped. Throws std::runtime_error with the remedy, and
 * then nothing is bound. By one thread at a time.
 */
Adapter const& BindXGBoost();

/**
 * @brief Give the threads that run XGBoost's own loops, which go on spinning for a while after
 *        each: they copy at once where threads that are started would wait for a core.
 *
 * Of a copy of XGBoost that was built without GNU's OpenMP it has none.
 *
 * @param n_threads How many XGBoost's loops have: the same threads are used then.
 */
[[nodiscard]] HostTeam TeamOfXGBoost(std::int32_t n_threads);

/**
 * @brief Lets vectors that XGBoost makes in this thread while this lives take device memory from
 *        the pool of its device, as with `use_cuda_async_pool` in XGBoost's global configuration.
 *
 * A copy of XGBoost that cannot goes on as before.
 */
class VectorsFromPool {
 public:
  explicit VectorsFromPool(bool wanted);
  ~VectorsFromPool();
  VectorsFromPool(VectorsFromPool const&) = delete;
  VectorsFromPool& operator=(VectorsFromPool const&) = delete;

 private:
  bool is_set_{false};
};

/** @brief Tell whether BindXGBoost() has found the copy of XGBoost that is in R's package. */
[[nodiscard]] bool BoundToR();
}  // namespace gpu_exact
