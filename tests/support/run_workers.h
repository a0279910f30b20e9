/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief A group of workers, and what became of each.
 */
#pragma once

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "host/thread_communicator.h"

namespace gpu_exact::reference {
/**
 * @brief Run fn(Communicator*) as each worker of a group. One that throws is gone for the others.
 * @return shape: (size), what each worker threw.
 */
template <typename Fn>
std::vector<std::exception_ptr> RunWorkers(std::int32_t size, Fn const& fn) {
  ThreadGroup group{size};
  std::vector<std::exception_ptr> errors(size);
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator comm{&group, rank};
        fn(&comm);
      } catch (...) {
        errors[rank] = std::current_exception();
        group.Leave(rank);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return errors;
}
}  // namespace gpu_exact::reference
