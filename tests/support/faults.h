/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief For tests: makes the n-th call of a kind fail. Linked into modules that no user has, by the
 *        linker's --wrap, so that the module that users have knows nothing of it.
 */
#pragma once

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
