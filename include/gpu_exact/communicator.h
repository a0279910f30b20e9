/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Joins the workers that grow one tree together.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

namespace gpu_exact {
/** @brief Give an error's text for users. */
[[nodiscard]] inline char const* WordsOf(std::exception const& error) {
  return dynamic_cast<std::bad_alloc const*>(&error) == nullptr
             ? error.what()
             : "Out of host memory while an exact tree was grown. Free memory of the host, or "
               "train with fewer rows or columns.";
}

/** @brief Cut a text in UTF-8 to the beginning that fits into n_bytes, without half a character. */
[[nodiscard]] inline std::string_view WholeCharacters(std::string_view text, std::size_t n_bytes) {
  if (text.size() <= n_bytes) {
    return text;
  }
  auto const continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  while (n_bytes != 0 && continues(n_bytes)) {
    --n_bytes;
  }
  return text.substr(0, n_bytes);
}

/** @brief Tells that a worker is gone, stuck or of another mind: which rank, and the remedy. */
struct WorkerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/**
 * @brief Connects a group of workers, of one process or of many. Each holds some rows of the table:
 *        rank 0 the first ones, and so on. All calls are collective: every worker makes the same
 *        ones in the same order, each on the thread that grows its trees; they wait for all. Host
 *        memory.
 *
 * Errors: WorkerError, on every worker, where one is gone or stuck; the group is of no use
 * afterwards.
 */
class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual std::int32_t Rank() const = 0;
  [[nodiscard]] virtual std::int32_t Size() const = 0;

  /**
   * @brief Send every part to every worker.
   * @param inout shape: (Size() * bytes); own part, at Rank() * bytes, is read, the rest is written.
   * @param bytes The size of one part, the same for all workers; may be zero.
   */
  virtual void AllGather(void* inout, std::size_t bytes) = 0;

  /** @brief Sum over workers, modulo 2^64. @param inout shape: (n); n is the same for all. */
  virtual void AllReduce(std::uint64_t* inout, std::size_t n) = 0;
};
}  // namespace gpu_exact
