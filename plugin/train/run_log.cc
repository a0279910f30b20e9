/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/run_log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <locale>
#include <sstream>
#include <system_error>
#include <utility>

#include "gpu_exact/memory_estimate.h"
#include "train/per_process.h"

namespace gpu_exact {
namespace {
constexpr std::chrono::seconds kLong{2};
constexpr double kMiB = 1024.0 * 1024.0;

/** @brief Remembers what RecordTree() has seen. */
struct History {
  std::mutex mutex;
  TreeRecord last;
  std::uint64_t n_gpu{0};
  std::uint64_t n_cpu{0};
};

PerProcess<History> the_history;

/** @brief Quote a text as JSON wants it. */
std::string Quote(std::string const& text) {
  std::string out{'"'};
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
    }
    out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return out + '"';
}

double FinishMs(TreeRecord const& tree) {
  return std::max(0.0, tree.build_ms - tree.stats.start_ms - tree.stats.levels_ms);
}

double TreeMs(TreeRecord const& tree) { return tree.sample_ms + tree.build_ms + tree.write_ms; }
}  // namespace

std::string LineOf(TreeRecord const& tree) {
  std::ostringstream line;
  line.precision(3);
  line << "Exact tree on " << tree.device;
  if (!tree.reason.empty()) {
    return line.str() + ": " + tree.reason;
  }
  if (tree.stats.strategy != Strategy::kAuto) {
    line << ", " << NameOf(tree.stats.strategy);
  }
  line << ": " << TreeMs(tree) << " ms (sampling " << tree.sample_ms << ", start "
       << tree.stats.start_ms << ", levels " << tree.stats.levels_ms << ", finish "
       << FinishMs(tree) << ", writing " << tree.write_ms << "), table prepared in "
       << tree.set_up_ms << " ms, " << tree.device_bytes / kMiB << " MiB (at most "
       << tree.stats.peak_bytes / kMiB << ")";
  if (tree.stats.refined_share >= 0.0) {
    line << ", " << 100.0 * tree.stats.refined_share << "% of entries refined";
  }
  return line.str();
}

void RecordTree(TreeRecord tree) {
  auto& history = the_history.Get();
  std::lock_guard<std::mutex> guard{history.mutex};
  ++(tree.reason.empty() ? history.n_gpu : history.n_cpu);
  history.last = std::move(tree);
}

std::string LastRunJson() {
  auto& history = the_history.Get();
  std::lock_guard<std::mutex> guard{history.mutex};
  auto const& tree = history.last;
  auto const& stats = tree.stats;
  std::ostringstream os;
  os.imbue(std::locale::classic());  // JSON
  os << R"({"gpu_trees": )" << history.n_gpu << R"(, "cpu_trees": )" << history.n_cpu
     << R"(, "device": )" << Quote(tree.device) << R"(, "reason": )" << Quote(tree.reason)
     << R"(, "strategy": )" << Quote(NameOf(stats.strategy)) << R"(, "rows": )" << tree.rows
     << R"(, "columns": )" << tree.columns << R"(, "entries": )" << tree.entries
     << R"(, "set_up_ms": )" << tree.set_up_ms << R"(, "tree_ms": )" << TreeMs(tree)
     << R"(, "phases_ms": {"sampling": )" << tree.sample_ms << R"(, "start": )" << stats.start_ms
     << R"(, "levels": )" << stats.levels_ms << R"(, "finish": )" << FinishMs(tree)
     << R"(, "writing": )" << tree.write_ms << R"(}, "device_bytes": )" << tree.device_bytes
     << R"(, "peak_bytes": )" << stats.peak_bytes << R"(, "planned_bytes": )" << stats.planned_bytes
     << R"(, "planned_host_bytes": )" << stats.planned_host_bytes << R"(, "refined_share": )";
  if (stats.refined_share >= 0.0) {
    os << stats.refined_share;
  } else {
    os << "null";
  }
  os << "}";
  return os.str();
}

LongSetUp::LongSetUp(CsrView const& table, bool silent) {
  if (silent) {
    return;
  }
  try {
    watch_ = std::thread{[this, n_rows = table.n_rows, n_features = table.n_features] {
      std::unique_lock<std::mutex> lock{mutex_};
      // By the system's clock: waiting by another one takes glibc 2.34.
      auto const until = std::chrono::system_clock::now() + kLong;
      if (!ended_.wait_until(lock, until, [this] { return has_ended_; })) {
        std::fprintf(stderr,
                     "gpu_exact: preparing the table of %llu x %llu for the GPU, once for all its "
                     "trees ...\n",
                     static_cast<unsigned long long>(n_rows),
                     static_cast<unsigned long long>(n_features));
      }
    }};
  } catch (std::system_error const&) {  // no thread can be had: then nothing is said
  }
}

LongSetUp::~LongSetUp() {
  if (watch_.joinable()) {
    {
      std::lock_guard<std::mutex> guard{mutex_};
      has_ended_ = true;
    }
    ended_.notify_one();
    watch_.join();
  }
}
}  // namespace gpu_exact
