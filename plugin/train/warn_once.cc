/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/warn_once.h"

#include <xgboost/logging.h>

#include <mutex>
#include <set>

#include "train/per_process.h"

namespace gpu_exact {
namespace {
/** @brief Remembers what WarnOnce() has told. */
struct Told {
  std::mutex mutex;
  std::set<std::string> kinds;
};

PerProcess<Told> the_told;
}  // namespace

void WarnOnce(std::string const& kind, std::string const& text) {
  using Logger = xgboost::ConsoleLogger;
  if (text.empty() || !Logger::ShouldLog(Logger::LV::kWarning)) {
    return;
  }
  {
    auto& told = the_told.Get();
    std::lock_guard<std::mutex> guard{told.mutex};
    if (!told.kinds.insert(kind).second) {
      return;
    }
  }
  LOG(WARNING) << text;
}
}  // namespace gpu_exact
