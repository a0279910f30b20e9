/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements host_copy.cuh.
 */
#include <algorithm>
#include <cstring>
#include <thread>

#include "device/runtime/host_copy.cuh"
#include "host/copy_threads.h"

namespace gpu_exact {
namespace {
std::size_t NumCores() {
  static std::size_t const n_cores = std::max(std::thread::hardware_concurrency(), 1u);
  return n_cores;
}

/** @brief Start no more threads than this allows: to start one takes as long as to copy some
 *         chunks. */
constexpr std::size_t kChunksForHelper = 16;
/** @brief Sets how many chunks are worth calling a team together. */
constexpr std::size_t kChunksForTeam = 4;

/** @brief Divides an array. */
struct Chunks {
  std::size_t n_bytes;
  std::size_t chunk_bytes;

  [[nodiscard]] std::size_t Begin(std::size_t chunk) const { return chunk * chunk_bytes; }
  [[nodiscard]] std::size_t Size(std::size_t chunk) const {
    return std::min(chunk_bytes, n_bytes - this->Begin(chunk));
  }
};
}  // namespace

std::size_t HostCopier::NumThreads() const {
  std::int32_t const n = team_.n_threads;
  return std::min(plan_.n_threads, n <= 0 ? NumCores() : static_cast<std::size_t>(n));
}

std::size_t HostCopier::NumHelpers(std::size_t n_chunks) const {
  bool const calls = team_.run != nullptr && n_chunks >= kChunksForTeam;
  return std::min(this->NumThreads() - 1, calls ? n_chunks - 1 : n_chunks / kChunksForHelper);
}

bool HostCopier::UseRing(std::size_t n_bytes) {
  // Of one chunk nothing is copied at the same time, and one thread is what CUDA's own copy takes.
  if (has_no_ring_ || n_bytes < plan_.min_bytes || std::min(NumThreads(), NumChunks(n_bytes)) < 2) {
    return false;
  }
  try {
    ring_.Reserve(plan_.n_slots * plan_.chunk_bytes);
    if (events_.empty()) {
      events_ = std::vector<StreamEvent>(plan_.n_slots);
    }
  } catch (DeviceError const&) {  // if it is not for want of memory, the next call fails as well
    ring_.Release();
    has_no_ring_ = true;
  }
  return !has_no_ring_;
}

void HostCopier::Upload(char* to, char const* from, std::size_t n_bytes) {
  if (!this->UseRing(n_bytes)) {
    CopyFromHost(to, from, n_bytes);
    return;
  }
  std::size_t const n_chunks = this->NumChunks(n_bytes);
  Chunks const chunks{n_bytes, plan_.chunk_bytes};
  SyncOnExit wait;  // nobody reads the ring after that
  auto const fill = [&](std::size_t i) {
    std::memcpy(this->Slot(i), from + chunks.Begin(i), chunks.Size(i));
  };
  CopyThreads::Run(team_, this->NumHelpers(n_chunks), n_chunks, fill, [&](CopyThreads* crew) {
    crew->Allow(plan_.n_slots);
    for (std::size_t i = 0; i < n_chunks; ++i) {
      crew->Await(i + 1);
      CopyAsync(to + chunks.Begin(i), this->Slot(i), chunks.Size(i));
      this->EventOf(i).Record();
      if (i >= this->Lag()) {
        std::size_t const read = i - this->Lag();
        this->EventOf(read).Await();
        crew->Allow(read + 1 + plan_.n_slots);
      }
    }
  });
  this->EventOf(n_chunks - 1).Await();
}

void HostCopier::Download(char* to, char const* from, std::size_t n_bytes) {
  if (!this->UseRing(n_bytes)) {
    CopyAsync(to, from, n_bytes);
    Synchronize();
    return;
  }
  std::size_t const n_chunks = this->NumChunks(n_bytes);
  Chunks const chunks{n_bytes, plan_.chunk_bytes};
  std::size_t const n_helpers = this->NumHelpers(n_chunks);
  SyncOnExit wait;  // nobody writes the ring after that
  auto const empty = [&](std::size_t i) {
    std::memcpy(to + chunks.Begin(i), this->Slot(i), chunks.Size(i));
  };
  CopyThreads::Run(team_, n_helpers, n_chunks, empty, [&](CopyThreads* crew) {
    for (std::size_t i = 0; i < n_chunks + this->Lag(); ++i) {
      if (i < n_chunks) {
        if (i >= plan_.n_slots) {
          crew->Await(i + 1 - plan_.n_slots);
        }
        CopyAsync(this->Slot(i), from + chunks.Begin(i), chunks.Size(i));
        this->EventOf(i).Record();
      }
      if (i >= this->Lag() && i - this->Lag() < n_chunks) {
        std::size_t const written = i - this->Lag();
        this->EventOf(written).Await();
        crew->Allow(written + 1);
        if (n_helpers == 0) {
          crew->Await(written + 1);
        }
      }
    }
    crew->Await(n_chunks);
  });
}
}  // namespace gpu_exact
