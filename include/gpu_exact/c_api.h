/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Declares what the module libxgboost_gpu_exact.so offers to a program that loads it:
 *        Python's ctypes, R's dyn.load, dlopen or the linker. Functions of type int return 0, or -1
 *        with a message in GpuExactGetLastError(). Nothing here makes a CUDA call but
 *        GpuExactDeviceStatus().
 */
#pragma once

#include <stdint.h>  // NOLINT: C reads this too

/** @brief Tells the version that this header is of: 300 is 0.3.0. GpuExactVersion() tells the module's. */
#define GPU_EXACT_VERSION 300

#if defined(__cplusplus)
extern "C" {
#endif

/** @brief Give the last error of the calling thread: one sentence with the remedy; never NULL. */
__attribute__((visibility("default"))) char const* GpuExactGetLastError(void);

/** @brief Give the version of this plugin, such as "1.2.3". */
__attribute__((visibility("default"))) char const* GpuExactVersion(void);

/**
 * @brief Bind to the libxgboost of this process and register the updater `grow_gpu_exact`.
 *
 * libxgboost must be loaded already, and boosters of the process be made later. Call it before other
 * threads use XGBoost: it writes XGBoost's registries, which they read without a lock. May be called
 * again: later calls do nothing.
 */
__attribute__((visibility("default"))) int GpuExactRegister(void);

/**
 * @brief Take over `tree_method="exact"` (the updater `grow_colmaker`), on `device="cuda"` too, or
 *        give it back.
 *
 * @param enable 1: boosters configured from now on build their exact trees on the GPU;
 *               0: XGBoost's own builder serves them again. Registers first where needed.
 */
__attribute__((visibility("default"))) int GpuExactTakeOver(int enable);

/**
 * @brief Choose the device of exact boosters that name none, as if they had named it.
 *
 * Holds for boosters that are configured from now on, where XGBoost has CUDA and that GPU is usable.
 *
 * @param device "cpu", which is XGBoost's own default, "cuda" or "cuda:<ordinal>".
 */
__attribute__((visibility("default"))) int GpuExactSetDefaultDevice(char const* device);

/**
 * @brief Tell whether a GPU can build trees here. Makes a CUDA context.
 *
 * @param ordinal    The CUDA device, or -1 for the first visible one.
 * @param out_usable 1 or 0.
 * @param out_text   The device's name, with a build that would be faster on it, or the reason why it
 *                   is not usable; valid until the thread's
 *                   next call.
 */
__attribute__((visibility("default"))) int GpuExactDeviceStatus(int ordinal, int* out_usable,
                                                                char const** out_text);

/**
 * @brief Tell what the last tree of this process took, and how many trees grew where.
 *
 * Counted are trees whose boosters this module serves: those of XGBoost's own builder only where it
 * grows them in the module's place.
 *
 * @param out_json An object: "gpu_trees" and "cpu_trees", numbers of trees; of the last one "device",
 *                 "reason" (why the CPU grew it), "strategy", "rows", "columns", "entries",
 *                 "set_up_ms" of its table, "tree_ms", "phases_ms", "device_bytes" held after it,
 *                 "peak_bytes" that all tables of the process have held at a time,
 *                 "planned_bytes" at most, "planned_host_bytes" of page-locked memory in their
 *                 place, "refined_share" of entries or null. Valid until the thread's next call.
 */
__attribute__((visibility("default"))) int GpuExactLastRun(char const** out_json);

/**
 * @brief Estimate the device memory that a table takes at most, if all its numerical values are distinct.
 *
 * @param rows, columns, entries The table's sizes; entries are its present values.
 * @param max_depth              The depth of the trees; 0: no limit.
 * @param categories             How many categories each categorical column has: one more than its
 *                               greatest code. Shape: (n_categorical); NULL if there is none.
 * @param out_json               An object by strategy: bytes "peak" and "least", with as much as can be
 *                               in the host's memory, and "stages": of "reading", "sorting" and "growing" the bytes
 *                               of each array. Valid until the thread's next call.
 */
__attribute__((visibility("default"))) int GpuExactMemoryEstimate(uint64_t rows, uint64_t columns,
                                                                  uint64_t entries, int max_depth,
                                                                  uint32_t const* categories,
                                                                  uint64_t n_categorical,
                                                                  char const** out_json);

/** @brief Give the hash of the sources that this module was built of: of all that is compiled. */
__attribute__((visibility("default"))) char const* GpuExactSourceHash(void);

#if defined(__cplusplus)
}  // extern "C"
#endif
