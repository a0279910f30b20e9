/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements memory_plan.h.
 */
#include "plan/memory_plan.h"

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "core/quantise.h"
#include "gpu_exact/device.h"

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

/** @brief Counts the nodes of a tree whose sets of categories every plan has room for: of depth 13. */
constexpr RowIdx kNodesWithSets = 1 << 13;

/** @brief Counts the bytes of a node's set, in its level and among those of its tree. */
std::uint64_t SetBytes(CategoricalColumns const& categorical) {
  constexpr std::uint32_t kListed = 64;  // the default of max_cat_threshold, and how many there are
  std::uint32_t n_words{0};
  for (std::uint32_t n : categorical.n_categories) {
    n_words = std::max(n_words, n > kMaxGroupBins ? kListed : (n + 31) / 32);
  }
  return 2 * sizeof(std::uint32_t) * std::uint64_t{n_words};
}

/** @brief Bounds what categorical columns take while trees grow, beside their bins. */
std::vector<MemoryItem> PlanCategories(RowIdx n_rows, std::uint64_t histograms,
                                       std::size_t n_resolutions, HistogramMemory const& memory,
                                       std::uint32_t max_bins,
                                       CategoricalColumns const& categorical) {
  std::vector<MemoryItem> items;
  if (categorical.Size() == 0) {
    return items;
  }
  std::uint64_t n_words{0}, n_bins{0};
  for (std::uint32_t n : categorical.n_categories) {
    n_words += n > max_bins ? 0 : (n + 31) / 32;
    n_bins += n > max_bins ? 0 : n;
  }
  // Of the nodes of a resolution that are searched at a time, by histograms or sorted.
  std::uint64_t const by_histograms =
      2 * histograms / (HistogramMemory::kBinBytes * std::max<std::uint64_t>(n_bins, 1)) + 2;
  std::uint64_t const sorted =
      std::min(std::max(HistogramMemory::kSetWordsAtOnce, n_words), n_words * n_rows);
  items.push_back(
      {"sets of categories",
       sizeof(std::uint32_t) *
               (n_words * std::min<std::uint64_t>(by_histograms, n_rows) * n_resolutions +
                (memory.SortsNodes() ? sorted : 0)) +
           SetBytes(categorical) * std::min(n_rows, kNodesWithSets)});
  if (RowIdx const longest = categorical.Longest(); longest > max_bins) {
    RowIdx const at_once = memory.rows_by_category;
    bool const is_long = n_rows > at_once;  // whether nodes may have a sum for each category
    RowIdx const listed = std::min(n_rows, is_long ? std::max(at_once, longest) : at_once);
    items.push_back(
        {"sums of wide columns", HistogramMemory::kListedCategoryBytes * listed +
                                     (is_long ? sizeof(FixedSum) * std::uint64_t{longest} : 0)});
  }
  return items;
}

/** @brief Plans the histogram strategy. */
MemoryPlan PlanHistograms(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                          HistogramMemory const& memory, std::uint32_t max_bins,
                          CategoricalColumns const& categorical) {
  std::uint64_t const rows = n_rows;
  bool const dense = IsDense(n_entries, n_rows, n_features);
  BinBound const bound{n_entries, n_rows, n_features, memory, max_bins, categorical};
  FeatureIdx const n_numerical = n_features - categorical.Size();
  EntryIdx const numerical = n_entries - categorical.n_entries;  // entries
  // Bins of wide columns do not tell their values.
  std::uint64_t const n_wide = categorical.NumAbove(max_bins);
  FeatureIdx const n_kept = n_numerical + static_cast<FeatureIdx>(n_wide);
  EntryIdx const kept = numerical + std::min(categorical.n_entries, n_wide * rows);

  // What may be of the host.
  MemoryPlan plan;
  auto place = [&](MemoryItem item, Memory at) {
    if (at == Memory::kHost) {
      plan.of_host.push_back(item);
      item.bytes = 0;
    }
    return item;
  };
  auto const read_values =
      place({"values by row", dense ? 4 * rows * n_features : SparseValueBytes(n_kept) * kept},
            memory.values_at);
  auto values = read_values;
  if (dense && memory.values_at == Memory::kDevice) {
    values.bytes = 4 * rows * n_kept;
  }
  auto const sorted_columns =
      memory.sorts_columns
          ? place({"sorted rows", MostSortedColumnBytes(numerical, n_rows, n_numerical)},
                  memory.rows_at)
          : MemoryItem{"sorted rows", 0};
  auto const bins = place({"bins", bound.elements}, memory.bins_at);
  MemoryItem const limits{"limits of bins and offsets of rows", bound.descriptions};
  MemoryItem const finest_limits{"limits of bins", bound.finest_limits};
  std::uint64_t const n_sorted = std::min(n_numerical == 0 ? 0
                                          : dense          ? rows * n_numerical
                                                           : numerical,
                                          std::max(memory.BinnedAtOnce(n_entries, dense), rows));
  std::uint64_t const sort_keys = HistogramMemory::kSortedEntryBytes * n_sorted;
  EntryIdx const read =
      std::min(n_entries, std::max(memory.ReadAtOnce(n_entries), EntryIdx{n_features}));
  if (dense) {
    plan.reading = {read_values, {"rows of the table", 9 * read + 8 * std::min(rows, read)}};
    plan.sorting = {read_values, sorted_columns, finest_limits, {"sort keys", sort_keys}};
    // Bins are written while all values are there; then those go that bins tell.
    std::vector<MemoryItem> const writing{read_values, sorted_columns, limits, bins};
    if (categorical.Size() != 0 && Sum(writing) > Sum(plan.sorting)) {
      plan.sorting = writing;
    }
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
  plan.growing = {bins,
                  limits,
                  sorted_columns,
                  values,
                  {"rows by node", (dense ? 52 : 60) * rows},
                  {"histograms", histograms}};
  if (n_numerical != 0) {
    plan.growing.push_back(
        {"open ranges", HistogramMemory::kOpenEntryBytes * memory.OpenEntries(n_entries) +
                            (HistogramMemory::kListedRangeBytes * bound.resolutions.size() +
                             HistogramMemory::kOpenRangeBytes) *
                                memory.CertainRanges()});
  }
  for (MemoryItem const& item : PlanCategories(n_rows, histograms, bound.resolutions.size(), memory,
                                               max_bins, categorical)) {
    plan.growing.push_back(item);
  }
  return plan;
}
}  // namespace

MemoryPlan MemoryPlan::Make(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                            Strategy strategy, HistogramMemory const& memory,
                            std::uint32_t max_bins, CategoricalColumns const& categorical) {
  if (strategy == Strategy::kHistogram) {
    return PlanHistograms(n_entries, n_rows, n_features, memory, max_bins, categorical);
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
                                 std::int32_t max_depth, HistogramMemory const& memory,
                                 CategoricalColumns const& categorical) const {
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
      strategy == Strategy::kHistogram && n_features != categorical.Size()
          ? static_cast<double>(column * n_features) * static_cast<double>(searched)
          : 0.0;
  std::uint64_t const sets =
      SetBytes(categorical) * (nodes - std::min<std::uint64_t>(nodes, kNodesWithSets));
  auto plan = *this;
  plan.growing.push_back(
      {"live nodes", kNode * nodes + static_cast<std::uint64_t>(std::min(columns, kMost)) + sets});
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

ChosenMemory ChooseMemory(CsrView const& table, Strategy strategy, MemoryRoom const& room,
                          CategoricalColumns const& categorical) {
  ChosenMemory chosen;
  std::vector<HistogramMemory> const choices =
      strategy == Strategy::kHistogram ? HistogramMemory::All() : std::vector<HistogramMemory>(1);
  // Rows that other workers sent: of a dense table they go when they are read, else with the sorting.
  bool const leaves_rows =
      strategy == Strategy::kHistogram && IsDense(table.n_entries, table.n_rows, table.n_features);
  auto choose = [&](HistogramMemory const& memory) {
    ChosenMemory made{memory, MemoryPlan::Make(table.n_entries, table.n_rows, table.n_features,
                                               strategy, memory, room.max_bins, categorical)};
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
    chosen.memory.spare = room.Most() - chosen.plan.Peak();
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
