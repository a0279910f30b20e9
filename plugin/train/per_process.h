/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief State of a process that others are forked from.
 */
#pragma once

#include <unistd.h>

#include <atomic>

namespace gpu_exact {
/**
 * @brief Holds a T for each process, for a static object: a forked one begins with a new T.
 *
 * The parent's would not do. A lock in it that another thread held at that moment stays locked for
 * ever: its thread does not live in the child.
 */
template <typename T>
class PerProcess {
 public:
  [[nodiscard]] T& Get() {
    auto* known = newest_.load();
    if (known && known->process == getpid()) {
      return known->state;
    }
    auto* made = new Of{known, {}};
    if (newest_.compare_exchange_strong(known, made)) {
      return made->state;
    }
    delete made;  // another thread was faster
    return known->state;
  }

 private:
  struct Of {
    Of* parent;  // kept, as it cannot be known what is locked in there
    T state;
    pid_t process{getpid()};
  };
  std::atomic<Of*> newest_{nullptr};  // never freed: threads may live on while the process ends
};
}  // namespace gpu_exact
