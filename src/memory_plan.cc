/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of memory_plan.h.
 */
#include "src/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "src/histogram_plan.h"

namespace gpu_exact {
namespace {
std::uint64_t Sum(std::vector<MemoryItem> const& items) {
  return std::accumulate(items.cbegin(), items.cend(), std::uint64_t{0},
                         [](std::uint64_t sum, MemoryItem const& i) { return sum + i.bytes; });
}

void Describe(std::ostream& os, char const* when, std::vector<MemoryItem> const& items) {
  constexpr double kMiB = 1024.0 * 1024.0;
  os << when << " " << static_cast<std::uint64_t>(Sum(items) / kMiB) << " MiB (";
  for (std::size_t i = 0; i < items.size(); ++i) {
    os << (i == 0 ? "" : ", ") << items[i].what << " "
       << static_cast<std::uint64_t>(items[i].bytes / kMiB);
  }
  os << ")";
}
}  // namespace

MemoryPlan MemoryPlan::Make(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                            Strategy strategy, bool sorts_rows) {
  std::uint64_t const rows = n_rows;
  std::uint64_t const n_offsets = std::uint64_t{n_features} + 1;
  MemoryPlan plan;
  plan.reading = {{"table by row", 8 * n_entries + 8 * rows},
                  {"sort keys", 8 * n_entries},
                  {"row ids", 4 * n_entries}};
  if (strategy == Strategy::kHistogram) {
    constexpr std::uint64_t kBinBytes = 9;       // of a bin, beside its sums
    constexpr std::uint64_t kSumBytes = 20;      // of a bin in a histogram
    constexpr std::uint64_t kListedBytes = 112;  // of a range that is listed
    auto const resolutions =
        ChooseResolutions(n_rows, n_features, kMaxGroupBins, kMaxSortedRows, sorts_rows);
    std::uint64_t const n_resolutions = resolutions.size();
    // Where most values are present they have places by row or column, which are a quarter more.
    std::uint64_t const places = std::min(rows * n_features, 2 * n_entries);
    std::uint64_t bins = n_resolutions * (2 * (places + places / 4) + 13 * n_offsets) +
                         RowOffsetBytes(n_entries, n_rows, n_features, sorts_rows);
    std::uint64_t histograms{0};
    for (std::size_t i = 0; i < resolutions.size(); ++i) {
      std::uint64_t const n_bins = MostBins(n_entries, n_features, resolutions[i], i == 0);
      bins += kBinBytes * n_bins;
      histograms += std::max(HistogramBudget(n_entries), kSumBytes * n_bins);
    }
    bool const dense = rows * n_features <= 2 * n_entries;
    std::uint64_t const values = dense ? 4 * rows * n_features : 8 * n_entries + 8 * rows;
    std::uint64_t const sorted =
        std::min(n_entries, std::max(BinnedAtOnce(n_entries), std::uint64_t{rows}));
    std::uint64_t const open = std::min(n_entries, OpenEntriesAtOnce(n_entries));
    std::uint64_t const kept = sorts_rows ? 4 * n_entries : 0;
    plan.reading = {{"table by row", 8 * n_entries + 8 * rows},
                    {"bins", bins},
                    {"sorted rows", kept},
                    {"sort keys", (sorts_rows ? 44 : 36) * sorted + 8 * rows}};
    plan.sorting = {
        {"bins", bins},
        {"sorted rows", kept},
        {"values by row", values},
        {"table by row", dense ? 8 * n_entries / 16 + 8 * rows : 8 * n_entries + 8 * rows}};
    plan.growing = {{"bins", bins},
                    {"sorted rows", kept},
                    {"values by row", values},
                    {"rows by node", 48 * rows},
                    {"histograms", histograms},
                    {"open ranges", n_resolutions * (40 * open + kListedBytes * kCertainRanges)}};
    return plan;
  }
  plan.reading.push_back({"offsets", 8 * rows});
  // Second halves are as long as the part that is sorted, one column at least. Columns are made
  // when they are gone, and take less than trees do.
  EntryIdx const longest = std::min(n_entries, std::max(SortedAtOnce(n_entries), EntryIdx{rows}));
  plan.sorting = {{"sort keys", 8 * n_entries + 8 * longest},
                  {"row ids", 4 * n_entries + 4 * longest}};
  std::uint64_t const columns = (n_entries <= kHostValues ? 8 : 12) * n_entries + 8 * n_offsets;
  // Interleaved levels, up to 64 nodes at once, keep 48 B a node for each tile of 2,048 entries,
  // and are chosen where columns are longer than a few tiles; sorted ones 120 B a tile of 1,024.
  std::uint64_t const sums =
      3072 * (n_entries / 2048 + n_entries / 8192) + 120 * (n_entries / 1024);
  // Two halves; the second one of entries without gradients comes with levels of many nodes.
  std::uint64_t const by_node = (n_rows <= kGatheredRows ? 16 : 32) * n_entries;
  // How each feature is searched, 1 B; the feature of every kHintValues-th value and of the last.
  std::uint64_t const searched = n_features + 4 * (n_entries / kHintValues + 2);
  plan.growing = {{"columns", columns + searched},
                  {"entries sorted by node", by_node},
                  {"sort keys", 2 * n_entries},
                  {"rows", 18 * rows},
                  {"sums of tiles", sums}};
  return plan;
}

MemoryPlan MemoryPlan::WithNodes(RowIdx n_rows, FeatureIdx n_features, Strategy strategy,
                                 std::int32_t max_depth) const {
  constexpr std::uint64_t kNode = 300;
  constexpr std::uint64_t kSortedColumn = 16;  // of a node whose rows are sorted by every column
  std::uint64_t nodes = n_rows;
  if (max_depth > 0 && max_depth < 32) {
    nodes = std::min(nodes, std::uint64_t{1} << max_depth);
  }
  // Nodes of the last level are leaves: only their parents are searched.
  std::uint64_t const searched = nodes / 2 + nodes % 2;
  constexpr double kMost = 1e18;  // more than any device has
  double const columns =
      strategy == Strategy::kHistogram
          ? static_cast<double>(kSortedColumn * n_features) * static_cast<double>(searched)
          : 0.0;
  auto plan = *this;
  plan.growing.push_back(
      {"open nodes", kNode * nodes + static_cast<std::uint64_t>(std::min(columns, kMost))});
  return plan;
}

EntryIdx MemoryPlan::SortedAtOnce(EntryIdx n_entries) {
  constexpr EntryIdx kSmallTable = EntryIdx{1} << 20;
  return std::max(kSmallTable, n_entries / 2 + n_entries % 2);
}

std::uint64_t MemoryPlan::Peak() const {
  return std::max({Sum(reading), Sum(sorting), Sum(growing)});
}

std::string MemoryPlan::Describe() const {
  std::ostringstream os;
  gpu_exact::Describe(os, "reading the table", reading);
  gpu_exact::Describe(os, ", sorting the table", sorting);
  gpu_exact::Describe(os, ", growing trees", growing);
  return os.str();
}
}  // namespace gpu_exact
