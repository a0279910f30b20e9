/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What is chosen for tables of the benchmark, so that a diff of known_plans.inc shows what a tuning
 *        changes. After a change that is meant, let this test write the file:
 *
 *            GPU_EXACT_REWRITE=1 build/tests/gpu_exact_host_tests --gtest_filter=KnownPlans.*
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gpu_exact/device.h"
#include "plan/bin_bound.h"
#include "plan/memory_plan.h"
#include "plan/search_cost.h"

namespace gpu_exact {
namespace {
constexpr char const* kKnown =
#include "tests/plan/known_plans.inc"
    ;

struct Table {
  char const* name;
  RowIdx n_rows;
  FeatureIdx n_features;
  std::uint64_t n_missing;
};
constexpr Table kTables[]{{"small-1000", 1'000, 28, 0},
                          {"small-100000", 100'000, 28, 0},
                          {"year", 463'715, 90, 0},
                          {"covtype", 581'012, 54, 0},
                          {"wide", 6'000, 5'000, 0},
                          {"epsilon", 400'000, 2'000, 0},
                          {"yltr", 473'134, 700, 0},
                          {"bosch", 1'070'000, 968, 838'954'303},
                          {"news20", 19'996, 1'355'191, 27'089'336'568},
                          {"criteo", 10'000'000, 39, 0},
                          {"tall", 50'000'000, 10, 0}};

template <typename Numbers>
std::string Listed(Numbers const& numbers) {
  std::ostringstream out;
  for (auto n : numbers) {
    out << ' ' << n;
  }
  return out.str();
}

/** @brief For families of 4^12, 4^11, ... rows in two nodes, as far as the table has so many. */
std::vector<std::size_t> Ways(Table const& t, std::vector<std::uint32_t> const& bins) {
  SearchWays ways{t.n_rows, static_cast<double>(t.n_features), {}, kMaxSortedRows};
  StoredResolutions const stored{t.n_features, bins};
  for (std::uint32_t n : bins) {
    auto const n_columns =
        static_cast<double>(std::min<FeatureIdx>(t.n_features, kMaxGroupBins / n));
    ResolutionShape shape{static_cast<double>(n), n_columns, true, true};
    shape.in_bytes = n == stored.last;
    ways.resolutions.push_back(shape);
  }
  std::vector<std::size_t> chosen;
  for (RowIdx n = 1u << 24; n >= 1u << 8; n /= 4) {
    if (n <= t.n_rows) {
      std::vector<Family> const families(std::min(t.n_rows / n, 400u),
                                         {0, 2, 0, {n / 3, n - n / 3}});
      auto const found = ChooseSearchWays(families, ways);
      EXPECT_EQ(found, std::vector<std::size_t>(families.size(), found.front())) << t.name;
      chosen.push_back(found.front());
    }
  }
  return chosen;
}

std::uint64_t PeakMiB(Table const& t, Strategy strategy, HistogramMemory const& memory) {
  EntryIdx const n_entries = EntryIdx{t.n_rows} * t.n_features - t.n_missing;
  auto const plan = MemoryPlan::Make(n_entries, t.n_rows, t.n_features, strategy, memory)
                        .WithNodes(t.n_rows, t.n_features, strategy, 8);
  return plan.Peak() >> 20;
}

std::string Found() {
  std::ostringstream out;
  for (Table const& t : kTables) {
    HistogramMemory without;
    without.sorts_columns = false;
    auto const choose = [&](HistogramMemory const& memory) {
      return ChooseResolutions(t.n_rows, t.n_features, kMaxGroupBins, kMaxSortedRows, memory,
                               t.n_missing);
    };
    std::vector<std::uint64_t> peaks;
    for (HistogramMemory const& memory : HistogramMemory::All()) {
      peaks.push_back(PeakMiB(t, Strategy::kHistogram, memory));
    }
    out << t.name << ": " << t.n_rows << " x " << t.n_features << ", missing " << t.n_missing
        << "\n  bins" << Listed(choose({})) << "\n  bins without sorted rows"
        << Listed(choose(without)) << "\n  ways" << Listed(Ways(t, choose({})))
        << "\n  peak MiB, histogram" << Listed(peaks) << "\n  peak MiB, sort "
        << PeakMiB(t, Strategy::kSort, {}) << '\n';
  }
  return out.str();
}

TEST(KnownPlans, AreThoseOfTheFile) {
  auto const found = Found();
  if (std::getenv("GPU_EXACT_REWRITE") != nullptr) {
    auto const file = std::filesystem::path{__FILE__}.parent_path() / "known_plans.inc";
    std::ofstream{file} << "R\"(" << found << ")\"\n";
    FAIL() << file << " is written: build again, and look at the diff.";
  }
  EXPECT_EQ(found, kKnown);
}
}  // namespace
}  // namespace gpu_exact
