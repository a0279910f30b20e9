/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief For tests: makes the n-th call of a kind fail. Linked into modules that no user has, by the
 *        linker's --wrap, so that the module that users have knows nothing of it.
 */
#pragma once

#include <cstddef>

namespace gpu_exact::faults {
enum class Kind { kDevice, kHost };  // a CUDA call; an allocation by operator new

/**
 * @brief Count a call. Does not allocate by operator new.
 * @param name Of the call; lives as long as the process.
 * @return The status that the call shall fail with, else 0.
 */
[[nodiscard]] int Next(Kind kind, char const* name) noexcept;

/** @brief The status that every CUDA call returns after one whose error sticks, else 0. */
[[nodiscard]] int Sticking() noexcept;

/** @brief What the module holds: device memory, page-locked memory, events, streams, IPC handles. */
enum class Held { kDevice, kPinned, kEvents, kStreams, kHandles };
void Hold(Held what, void const* p, long long amount) noexcept;
void Release(Held what, void const* p) noexcept;
}  // namespace gpu_exact::faults

extern "C" {  // what tests ask of the module
/**
 * @brief From now on count the calls of a kind, 0 (CUDA) or 1 (host allocation), and let one fail.
 * @param fail_at Its number, from 1; 0: none, and the places that make calls are noted.
 * @param status  What a CUDA call fails with, a cudaError_t.
 * @param sticks  Whether each CUDA call after it fails too, as after an illegal address.
 */
void GpuExactFaultBegin(int kind, long long fail_at, int status, int sticks);

/** @brief No call fails any more. @return The call that failed, "" if there was none. */
char const* GpuExactFaultEnd();

/** @brief A place that makes calls. @return Its call's name; nullptr after the last one. */
char const* GpuExactFaultSite(std::size_t index, long long* first, long long* last);

/** @brief What the module holds, in the order of Held: bytes of memory, numbers of the others. */
long long GpuExactFaultHeld(int what);
}
