/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Records what happens, for people and for tests that want proof: the last tree of the
 *        process, how many there were and where they grew.
 */
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief Records a tree that was grown. */
struct TreeRecord {
  std::string device;  // its name; "CPU" where XGBoost's own builder grew the tree
  std::string reason;  // why it was the CPU; empty where it was not
  std::uint64_t rows{0};
  std::uint64_t columns{0};
  std::uint64_t entries{0};
  // of the GPU only
  double set_up_ms{0.0};  // of the table, once
  double sample_ms{0.0};  // drawing rows
  double build_ms{0.0};
  double write_ms{0.0};  // the tree and the rows' positions, to XGBoost
  TreeStats stats;       // of what is in build_ms
  std::uint64_t device_bytes{0};
};

/** @brief Count the tree, and remember it as the last one. */
void RecordTree(TreeRecord tree);

/** @brief Describe a tree in a line without an end. */
[[nodiscard]] std::string LineOf(TreeRecord const& tree);

/** @brief Give as JSON the last tree, and numbers of trees of this process: "gpu_trees",
 *         "cpu_trees". */
[[nodiscard]] std::string LastRunJson();

/**
 * @brief Says a line on standard error if it lives for longer than two seconds: a table is being
 *        prepared.
 */
class LongSetUp {
 public:
  /** @param silent Says nothing. */
  LongSetUp(CsrView const& table, bool silent);
  ~LongSetUp();
  LongSetUp(LongSetUp const&) = delete;
  LongSetUp& operator=(LongSetUp const&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_{false};
  std::thread watch_;  // XGBoost's logger is the caller's own, who is busy
};
}  // namespace gpu_exact
