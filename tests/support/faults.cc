/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implementation of faults.h, what tests ask of it, and operator new as a call that may fail.
 */
#include "tests/support/faults.h"

#include <execinfo.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

extern "C" {
extern char const __ehdr_start[]
    __attribute__((visibility("hidden")));  // of this module: the linker
extern char const _end[] __attribute__((visibility("hidden")));
}

namespace gpu_exact::faults {
namespace {
/** @brief A place of the code that makes a call, told by the functions that lead there. */
struct Site {
  std::uint64_t hash;
  char const* name;
  long long first;  // number of its first call, from 1
  long long last;
};

/** @brief Under the mutex; fixed sizes, as operator new is one of the calls. */
struct Plan {
  static constexpr std::size_t kMaxSites = 1 << 14;
  static constexpr std::size_t kMaxHeld = 1 << 14;

  Kind kind{Kind::kDevice};
  bool counts{false};
  long long fail_at{0};  // 0: none fails, sites are noted
  int status{0};
  bool sticks{false};
  long long n_calls{0};
  char const* failed{""};  // the call that was made to fail
  Site sites[kMaxSites];
  std::size_t n_sites{0};
  struct {
    void const* p;
    long long amount;
    Held what;
  } held[kMaxHeld];
  std::size_t n_held{0};
};

std::mutex mutex;
Plan plan;
std::atomic<int> sticking{0};
thread_local bool noting{false};  // calls of the hook itself are not counted

void NoteSite(char const* name) {
  constexpr int kFrames = 24;
  void* frames[kFrames];
  int const n = backtrace(frames, kFrames);
  std::uint64_t hash = 14695981039346656037u;
  for (int i = 0; i < n; ++i) {
    auto const* address = static_cast<char const*>(frames[i]);
    if (address >= __ehdr_start && address < _end) {
      hash = (hash ^ static_cast<std::uint64_t>(address - __ehdr_start)) * 1099511628211u;
    }
  }
  for (std::size_t i = 0; i < plan.n_sites; ++i) {
    if (plan.sites[i].hash == hash) {
      plan.sites[i].last = plan.n_calls;
      return;
    }
  }
  if (plan.n_sites == Plan::kMaxSites) {
    std::abort();
  }
  plan.sites[plan.n_sites++] = {hash, name, plan.n_calls, plan.n_calls};
}
}  // namespace

int Next(Kind kind, char const* name) noexcept {
  if (noting) {
    return 0;
  }
  std::lock_guard<std::mutex> guard{mutex};
  if (!plan.counts || plan.kind != kind) {
    return 0;
  }
  ++plan.n_calls;
  if (plan.fail_at == 0) {
    noting = true;
    NoteSite(name);
    noting = false;
    return 0;
  }
  if (plan.n_calls != plan.fail_at) {
    return 0;
  }
  plan.failed = name;
  sticking = plan.sticks ? plan.status : 0;
  return plan.status;
}

int Sticking() noexcept { return sticking; }

void Hold(Held what, void const* p, long long amount) noexcept {
  std::lock_guard<std::mutex> guard{mutex};
  if (plan.n_held == Plan::kMaxHeld) {
    std::abort();
  }
  plan.held[plan.n_held++] = {p, amount, what};
}

void Release(Held what, void const* p) noexcept {
  std::lock_guard<std::mutex> guard{mutex};
  for (std::size_t i = 0; i < plan.n_held; ++i) {
    if (plan.held[i].p == p && plan.held[i].what == what) {
      plan.held[i] = plan.held[--plan.n_held];
      return;
    }
  }
}
}  // namespace gpu_exact::faults

using gpu_exact::faults::Held;
using gpu_exact::faults::Kind;

extern "C" {
#define EXACT_EXPORT __attribute__((visibility("default")))
EXACT_EXPORT void GpuExactFaultBegin(int kind, long long fail_at, int status, int sticks) {
  using namespace gpu_exact::faults;  // NOLINT
  std::lock_guard<std::mutex> guard{mutex};
  plan.kind = static_cast<Kind>(kind);
  plan.counts = true;
  plan.fail_at = fail_at;
  plan.status = status;
  plan.sticks = sticks != 0;
  plan.n_calls = 0;
  plan.n_sites = 0;
  plan.failed = "";
  sticking = 0;
}

EXACT_EXPORT char const* GpuExactFaultEnd() {
  using namespace gpu_exact::faults;  // NOLINT
  std::lock_guard<std::mutex> guard{mutex};
  plan.counts = false;
  sticking = 0;
  return plan.failed;
}

EXACT_EXPORT char const* GpuExactFaultSite(std::size_t index, long long* first, long long* last) {
  using namespace gpu_exact::faults;  // NOLINT
  std::lock_guard<std::mutex> guard{mutex};
  if (index >= plan.n_sites) {
    return nullptr;
  }
  auto const& site = plan.sites[index];
  *first = site.first;
  *last = site.last;
  return site.name;
}

EXACT_EXPORT long long GpuExactFaultHeld(int what) {
  using namespace gpu_exact::faults;  // NOLINT
  std::lock_guard<std::mutex> guard{mutex};
  long long sum{0};
  for (std::size_t i = 0; i < plan.n_held; ++i) {
    sum += static_cast<int>(plan.held[i].what) == what ? plan.held[i].amount : 0;
  }
  return sum;
}

/** @brief operator new, as this module calls it. */
void* __real__Znwm(std::size_t bytes);
void* __wrap__Znwm(std::size_t bytes) {
  if (gpu_exact::faults::Next(Kind::kHost, "operator new") != 0) {
    throw std::bad_alloc{};
  }
  return __real__Znwm(bytes);
}
}
