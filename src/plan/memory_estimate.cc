/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "gpu_exact/memory_estimate.h"

#include <algorithm>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
void CheckSizes(std::uint64_t n_rows, std::uint64_t n_features, std::uint64_t n_entries,
                std::int32_t max_depth) {
  auto size = [&] { return std::to_string(n_rows) + " x " + std::to_string(n_features); };
  if (n_rows > kMostRows || n_features > std::numeric_limits<FeatureIdx>::max()) {
    throw std::invalid_argument{"A table of " + size() + " is too large: give at most " +
                                std::to_string(kMostRows) + " rows, and less than 2^32 columns."};
  }
  if (n_entries >= std::uint64_t{1} << 56) {
    throw std::invalid_argument{"A table of " + std::to_string(n_entries) +
                                " entries is too large: give less than 2^56."};
  }
  if (n_entries > n_rows * n_features) {  // less than 2^64
    throw std::invalid_argument{"A table of " + size() + " has no " + std::to_string(n_entries) +
                                " entries: give the number of its present values."};
  }
  if (max_depth < 0) {
    throw std::invalid_argument{"max_depth is " + std::to_string(max_depth) +
                                ": give the depth of the trees, or 0 for no limit."};
  }
}

void CheckCategories(std::uint64_t n_features, std::vector<std::uint32_t> const& n_categories) {
  if (n_categories.size() > n_features) {
    throw std::invalid_argument{"A table of " + std::to_string(n_features) + " columns has no " +
                                std::to_string(n_categories.size()) +
                                " categorical ones: give a number for each categorical column."};
  }
  for (std::uint32_t n : n_categories) {
    if (n > kMostCategories) {
      throw std::invalid_argument{"A column has no " + std::to_string(n) +
                                  " categories: give one more than its greatest code, at most " +
                                  std::to_string(kMostCategories) + "."};
    }
  }
}

void Write(std::ostream& os, char const* stage, std::vector<MemoryItem> const& items) {
  os << '"' << stage << R"(": {)";
  for (std::size_t i = 0; i < items.size(); ++i) {
    os << (i == 0 ? "" : ", ") << '"' << items[i].what << R"(": )" << items[i].bytes;
  }
  os << '}';
}
}  // namespace

char const* NameOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::kSort:
      return "sort";
    case Strategy::kHistogram:
      return "histogram";
    default:
      return "";
  }
}

std::string MemoryEstimate(std::uint64_t n_rows, std::uint64_t n_features, std::uint64_t n_entries,
                           std::int32_t max_depth, std::vector<std::uint32_t> const& n_categories) {
  CheckSizes(n_rows, n_features, n_entries, max_depth);
  CheckCategories(n_features, n_categories);
  // A numerical entry takes more: as many entries are numerical as there can be.
  std::uint64_t const n_numerical = (n_features - n_categories.size()) * n_rows;
  auto const rows = static_cast<RowIdx>(n_rows);
  CategoricalColumns categorical{n_categories, n_entries - std::min(n_entries, n_numerical)};
  if (!n_categories.empty()) {  // as the builder counts entries, and columns are taken to be alike
    EntryIdx const of_column = (n_entries + n_features - 1) / n_features;
    categorical.n_elements = std::max(n_entries, n_features * MostElements(of_column, rows));
  }
  auto const features = static_cast<FeatureIdx>(n_features);
  std::ostringstream os;
  os.imbue(std::locale::classic());  // JSON
  for (auto strategy : {Strategy::kSort, Strategy::kHistogram}) {
    // Of the device where it takes most.
    auto make = [&](HistogramMemory const& memory) {
      std::vector<MemoryPlan> plans;
      for (std::uint32_t const max_bins : kMaxGroupBinsOf) {
        plans.push_back(
            MemoryPlan::Make(n_entries, rows, features, strategy, memory, max_bins, categorical)
                .WithNodes(rows, features, strategy, max_depth, memory, categorical));
      }
      return *std::max_element(
          plans.cbegin(), plans.cend(),
          [](MemoryPlan const& a, MemoryPlan const& b) { return a.Peak() < b.Peak(); });
    };
    auto const plan = make({});
    os << (strategy == Strategy::kSort ? '{' : ',') << '"' << NameOf(strategy) << R"(": {"peak": )"
       << plan.Peak() << R"(, "least": )" << make(HistogramMemory::All().back()).Peak()
       << R"(, "stages": {)";
    Write(os, "reading", plan.reading);
    Write(os << ", ", "sorting", plan.sorting);
    Write(os << ", ", "growing", plan.growing);
    os << "}}";
  }
  os << '}';
  return os.str();
}
}  // namespace gpu_exact
