/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief For tests: a library in the place of NCCL that lets the n-th call fail, or end the process.
 *
 * GPU_EXACT_NCCL names it to the module. It has the functions that src/device/workers/nccl.cuh looks for, and
 * hands each call on to the library that GPU_EXACT_REAL_NCCL names, where the loader finds it. Without
 * that variable calls do nothing. CUDA's and NCCL's headers are not needed: pointers and int will do.
 */
#include <dlfcn.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {
constexpr int kSuccess = 0;
constexpr int kKilled = -1;  // in the place of a result: the process is killed

struct UniqueId {
  char bytes[128];
};

/** @brief What was called since GpuExactNcclFaultBegin(). */
struct Calls {
  std::mutex mutex;
  std::vector<char const*> names;
  std::size_t fail_at{0};
  int result{kSuccess};
  bool by_state{false};
  char const* failed{""};
  long long n_communicators{0};  // of the process, made and not aborted
} calls;

char const* const kPoll = "ncclCommGetAsyncError";

/** @return What the call shall return, kSuccess where it shall go on. */
int Next(char const* name) {
  std::lock_guard<std::mutex> const guard{calls.mutex};
  if (name == kPoll && !calls.names.empty() && calls.names.back() == kPoll) {
    return kSuccess;  // how often it is asked depends on time; in a row it is one call
  }
  calls.names.push_back(name);
  if (calls.names.size() != calls.fail_at) {
    return kSuccess;
  }
  if (calls.result == kKilled) {
    static_cast<void>(std::raise(SIGKILL));
  }
  calls.failed = name;
  return calls.result;
}

void AddCommunicators(int n) {
  std::lock_guard<std::mutex> const guard{calls.mutex};
  calls.n_communicators += n;
}

void* Find(char const* name) {
  static void* const library = [] {
    char const* const named = std::getenv("GPU_EXACT_REAL_NCCL");
    void* const opened = named == nullptr ? nullptr : dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (named != nullptr && opened == nullptr) {
      std::fprintf(stderr, "GPU_EXACT_REAL_NCCL cannot be opened: %s\n", dlerror());
      std::abort();
    }
    return opened;
  }();
  return library == nullptr ? nullptr : dlsym(library, name);
}

template <typename... Args>
int CallReal(char const* name, Args... args) {
  auto* const real = reinterpret_cast<int (*)(Args...)>(Find(name));
  return real == nullptr ? kSuccess : real(args...);
}

/** @brief A call that does its work all the same, as what ends something has to. */
template <typename... Args>
int CallRealAndFail(char const* name, Args... args) {
  int const fault = Next(name);
  int const result = CallReal(name, args...);
  return fault != kSuccess ? fault : result;
}

template <typename... Args>
int CallRealOrFail(char const* name, Args... args) {
  int const fault = Next(name);
  return fault != kSuccess ? fault : CallReal(name, args...);
}
}  // namespace

extern "C" {
/**
 * @brief Count calls from now on.
 * @param number   Of the call that shall fail, from 1; 0: none.
 * @param result   The ncclResult_t that it returns.
 * @param by_state Of ncclCommGetAsyncError: it succeeds, and the state that it tells is the result.
 */
void GpuExactNcclFaultBegin(std::size_t number, int result, int by_state) {
  std::lock_guard<std::mutex> const guard{calls.mutex};
  calls.names.clear();
  calls.fail_at = number;
  calls.result = result;
  calls.by_state = by_state != 0;
  calls.failed = "";
}

/** @brief No call fails any more. @return The one that failed, "" if none did. */
char const* GpuExactNcclFaultEnd() {
  std::lock_guard<std::mutex> const guard{calls.mutex};
  calls.fail_at = 0;
  return calls.failed;
}

/** @brief The name of the i-th call that was counted, from 0; nullptr after the last one. */
char const* GpuExactNcclCall(std::size_t i) {
  std::lock_guard<std::mutex> const guard{calls.mutex};
  return i < calls.names.size() ? calls.names[i] : nullptr;
}

/** @brief Communicators that the process has made and not aborted. */
long long GpuExactNcclCommunicators() {
  std::lock_guard<std::mutex> const guard{calls.mutex};
  return calls.n_communicators;
}

int ncclGetUniqueId(UniqueId* id) { return CallRealOrFail("ncclGetUniqueId", id); }
int ncclGroupStart() { return CallRealOrFail("ncclGroupStart"); }

int ncclCommInitRankConfig(void** comm, int size, UniqueId id, int rank, void* config) {
  int const result = CallRealOrFail("ncclCommInitRankConfig", comm, size, id, rank, config);
  AddCommunicators(*comm != nullptr ? 1 : 0);
  return result;
}

int ncclCommGetAsyncError(void* comm, int* state) {
  int const fault = Next(kPoll);
  int const result = CallReal(kPoll, comm, state);
  if (fault != kSuccess && calls.by_state) {
    *state = fault;
    return result;
  }
  return fault != kSuccess ? fault : result;
}

// NCCL sends nothing for a communicator that is none, and then fails all calls of the group.
int ncclSend(void const* data, std::size_t n, int type, int peer, void* comm, void* stream) {
  int const fault = Next("ncclSend");
  comm = fault != kSuccess ? nullptr : comm;
  int const result = CallReal("ncclSend", data, n, type, peer, comm, stream);
  return fault != kSuccess ? fault : result;
}
int ncclRecv(void* data, std::size_t n, int type, int peer, void* comm, void* stream) {
  int const fault = Next("ncclRecv");
  comm = fault != kSuccess ? nullptr : comm;
  int const result = CallReal("ncclRecv", data, n, type, peer, comm, stream);
  return fault != kSuccess ? fault : result;
}

int ncclGroupEnd() { return CallRealAndFail("ncclGroupEnd"); }
int ncclCommAbort(void* comm) {
  AddCommunicators(-1);
  return CallRealAndFail("ncclCommAbort", comm);
}

char const* ncclGetErrorString(int result) {
  auto* const real = reinterpret_cast<char const* (*)(int)>(Find("ncclGetErrorString"));
  return real == nullptr ? "no NCCL" : real(result);
}
}
