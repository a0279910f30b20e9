/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements memory_plan.h.
 */
#include "plan/memory_plan.h"

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "gpu_exact/device.h"
#include "plan/bin_bound.h"

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

/** @brief Print as a user writes it: bytes in full. */
std::string LimitText(double limit) {
  std::ostringstream os;
  os << std::setprecision(17) << limit;
  return limit > 1.0 && limit < 1e18 ? std::to_string(static_cast<std::uint64_t>(limit)) : os.str();
}

/** @brief Plans the histogram strategy. */
MemoryPlan PlanHistograms(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                          HistogramMemory const& memory, std::uint32_t max_bins,
                          FeatureIdx n_categorical) {
  std::uint64_t const rows = n_rows;
  bool const dense = IsDense(n_entries, n_rows, n_features);
  BinBound const bound{n_entries, n_rows, n_features, memory, max_bins, n_categorical};

  // What may be of the host.
  MemoryPlan plan;
  auto place = [&](MemoryItem item, Memory at) {
    if (at == Memory::kHost) {
      plan.of_host.push_back(item);
      item.bytes = 0;
    }
    return item;
  };
  auto const values = place(
      {"values by row", dense ? 4 * rows * n_features : SparseValueBytes(n_features) * n_entries},
      memory.values_at);
  auto const sorted_columns =
      memory.sorts_columns
          ? place({"sorted rows", MostSortedColumnBytes(n_entries, n_rows, n_features)},
                  memory.rows_at)
          : MemoryItem{"sorted rows", 0};
  auto const bins = place({"bins", bound.elements}, memory.bins_at);
  MemoryItem const limits{"limits of bins and offsets of rows", bound.descriptions};
  MemoryItem const finest_limits{"limits of bins", bound.finest_limits};
  std::uint64_t const n_sorted = std::min(NumStoredBins(n_entries, n_rows, n_features),
                                          std::max(memory.BinnedAtOnce(n_entries, dense), rows));
  std::uint64_t const sort_keys = HistogramMemory::kSortedEntryBytes * n_sorted;
  EntryIdx const read =
      std::min(n_entries, std::max(memory.ReadAtOnce(n_entries), EntryIdx{n_features}));
  if (dense) {
    plan.reading = {values, {"rows of the table", 9 * read + 8 * std::min(rows, read)}};
    plan.sorting = {values, sorted_columns, finest_limits, {"sort keys", sort_keys}};
  } else {
    plan.reading = {{"table by row", 8 * n_entries + 8 * rows},
                    sorted_columns,
                    finest_limits,
                    {"sort keys", sort_keys + 8 * rows}};
    // A part may have nearly all rows. Where they are not sorted, an eighth of it is at a time.
    plan.sorting = {bins,
                    limits,
                    sorted_columns,
                    values,
                    {"offsets of rows", 8 * rows},
                    {"rows of the table", 9 * read + 8 * rows}};
  }
  std::uint64_t const histograms =
      std::max(memory.HistogramBytes(n_entries), HistogramMemory::kBinBytes * bound.most_bins);
  plan.growing = {
      bins,
      limits,
      sorted_columns,
      values,
      {"rows by node", (dense ? 52 : 60) * rows},
      {"histograms", histograms},
      {"open ranges", HistogramMemory::kOpenEntryBytes * memory.OpenEntries(n_entries) +
                          (HistogramMemory::kListedRangeBytes * bound.resolutions.size() +
                           HistogramMemory::kOpenRangeBytes) *
                              memory.CertainRanges()}};
  if (n_categorical != 0) {  // a bit for each bin of the histograms that are searched at a time
    plan.growing.push_back(
        {"sets of categories", histograms / (8 * HistogramMemory::kBinBytes / 2)});
  }
  return plan;
}
}  // namespace

MemoryPlan MemoryPlan::Make(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                            Strategy strategy, HistogramMemory const& memory,
                            std::uint32_t max_bins, FeatureIdx n_categorical) {
  if (strategy == Strategy::kHistogram) {
    return PlanHistograms(n_entries, n_rows, n_features, memory, max_bins, n_categorical);
  }
  std::uint64_t const rows = n_rows;
  std::uint64_t const n_offsets = std::uint64_t{n_features} + 1;
  MemoryPlan plan;
  plan.reading = {{"table by row", 8 * n_entries + 8 * rows},
                  {"sort keys", 8 * n_entries},
                  {"row ids", 4 * n_entries}};
  plan.reading.push_back({"offsets", 8 * rows});
  // Second halves are as long as the part that is sorted, one column at least. Columns are made
  // when they are gone, and take less than trees do.
  EntryIdx const longest = std::min(n_entries, std::max(SortedAtOnce(n_entries), EntryIdx{rows}));
  plan.sorting = {{"sort keys", 8 * n_entries + 8 * longest},
                  {"row ids", 4 * n_entries + 4 * longest}};
  std::uint64_t const column_bytes =
      (n_entries <= kHostValues ? 8 : 12) * n_entries + 8 * n_offsets;
  // A column longer than kBlockColumn has a tile for each 2,048 entries, and one more for the rest; each
  // keeps 48 B a node, of 64 nodes at a time. Of the tiles that have several shorter ones, two neighbours
  // have more entries than fit one, or a longer column is between them: of 1,024 for blocks, of 32 for
  // warps.
  std::uint64_t const columns = n_features;
  auto const joined = [&](std::uint64_t size) {
    return std::min(columns, 3 * (n_entries / size) + 1);
  };
  std::uint64_t const long_tiles = n_entries / 2048 + std::min(columns, n_entries / kBlockColumn);
  std::uint64_t const tiles =
      (3072 + 32) * long_tiles + 144 * joined(kBlockColumn) + 16 * joined(32);
  // How each feature is searched, 1 B; the feature of every kHintValues-th value and of the last.
  std::uint64_t const searched = n_features + 4 * (n_entries / kHintValues + 2);
  plan.growing = {{"columns", column_bytes + searched}, {"rows", 25 * rows}, {"tiles", tiles}};
  return plan;
}

MemoryPlan MemoryPlan::WithNodes(RowIdx n_rows, FeatureIdx n_features, Strategy strategy,
                                 std::int32_t max_depth, HistogramMemory const& memory) const {
  constexpr std::uint64_t kNode = 400;
  constexpr std::uint64_t kSortedColumn = 16;  // of a node whose rows are sorted by every column
  // No node's are where values, or their bins, are of the host: open ones of 255 bins are marked, 8 B
  // for each 32.
  constexpr std::uint64_t kMarkedColumn = 64;
  std::uint64_t nodes = n_rows;
  if (max_depth > 0 && max_depth < 32) {
    nodes = std::min(nodes, std::uint64_t{1} << max_depth);
  }
  // Nodes of the last level are leaves: only their parents are searched.
  std::uint64_t const searched = nodes / 2 + nodes % 2;
  constexpr double kMost = 1e18;  // more than any device has
  std::uint64_t const column = memory.SortsNodes() ? kSortedColumn : kMarkedColumn;
  double const columns =
      strategy == Strategy::kHistogram
          ? static_cast<double>(column * n_features) * static_cast<double>(searched)
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

std::uint64_t MemoryPlan::HostBytes() const { return Sum(of_host); }

std::string MemoryPlan::Describe() const {
  std::ostringstream os;
  gpu_exact::Describe(os, "reading the table", reading);
  gpu_exact::Describe(os, ", sorting the table", sorting);
  gpu_exact::Describe(os, ", growing trees", growing);
  if (!of_host.empty()) {
    gpu_exact::Describe(os, ", of the host", of_host);
  }
  return os.str();
}

FeatureIdx NumCategorical(CsrView const& table) {
  auto const* types = table.feature_types;
  return types == nullptr ? 0
                          : static_cast<FeatureIdx>(std::count(types, types + table.n_features,
                                                               FeatureType::kCategorical));
}

std::uint64_t MemoryRoom::Most() const {
  constexpr double kTaken = 15.0 / 16.0;  // of what is free: not all is planned, such as nodes
  double const most = limit == 0.0 ? kTaken : limit;
  return most <= 1.0 ? static_cast<std::uint64_t>(most * static_cast<double>(free))
                     : std::min(free, static_cast<std::uint64_t>(std::min(most, 1e18)));
}

ChosenMemory ChooseMemory(CsrView const& table, Strategy strategy, MemoryRoom const& room) {
  ChosenMemory chosen;
  std::vector<HistogramMemory> const choices =
      strategy == Strategy::kHistogram ? HistogramMemory::All() : std::vector<HistogramMemory>(1);
  // Rows that other workers sent: of a dense table they go when they are read, else with the sorting.
  bool const leaves_rows =
      strategy == Strategy::kHistogram && IsDense(table.n_entries, table.n_rows, table.n_features);
  auto choose = [&](HistogramMemory const& memory) {
    ChosenMemory made{
        memory, MemoryPlan::Make(table.n_entries, table.n_rows, table.n_features, strategy, memory,
                                 room.max_bins, NumCategorical(table))};
    if (room.rows_bytes != 0) {
      (leaves_rows ? made.plan.reading : made.plan.sorting)
          .push_back({"rows of the own columns", room.rows_bytes});
    }
    return made;
  };
  for (HistogramMemory const& memory : choices) {
    chosen = choose(memory);
    if (chosen.plan.Peak() > room.Most()) {
      continue;
    }
    // Histograms take what is left.
    for (auto more = memory; more.histograms < HistogramMemory::kAllHistograms;) {
      ++more.histograms;
      if (ChosenMemory with_more = choose(more); with_more.plan.Peak() <= room.Most()) {
        chosen = with_more;
      }
    }
    return chosen;
  }
  bool const limited = room.limit != 0.0;
  std::ostringstream msg;
  msg << "The table does not fit on the GPU: " << table.n_rows << " rows with " << table.n_entries
      << " present values take " << (choices.size() > 1 ? "at least " : "up to ")
      << chosen.plan.Peak() << " bytes, " << room.free << " of " << room.total << " are free"
      << (room.rows_bytes != 0 ? " (with what its own rows take)" : "") << ", and "
      << (limited ? "gpu_exact_memory_limit=" + LimitText(room.limit) + " allows "
                  : std::string{"with a margin "})
      << room.Most() << ": " << chosen.plan.Describe() << ". "
      << (limited ? "Raise gpu_exact_memory_limit, free" : "Free")
      << " memory on the GPU, or train with fewer rows or columns.";
  throw OutOfDeviceMemory{msg.str()};
}
}  // namespace gpu_exact
