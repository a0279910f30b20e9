/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implementation of histogram_plan.h.
 */
#include "plan/histogram_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/platform.h"

namespace gpu_exact {
namespace {
// Costs of slices count eighths of an element's addition.
constexpr std::uint64_t kElementCost = 8;
constexpr std::uint64_t kRowCost = 8;
constexpr std::uint64_t kBinCost = 4;  // to clear it and to write it
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/** @brief Of a level that is searched in a resolution. */
double LevelCost(ResolutionShape const& shape) {
  return HistogramCost::kSearchLevel + (!shape.has_ranges ? 0.0
                                        : shape.scans     ? HistogramCost::kScanLevel
                                                          : HistogramCost::kGatherLevel);
}
}  // namespace

std::vector<HistogramMemory> HistogramMemory::All() {
  constexpr auto kHost = Memory::kHost;
  constexpr auto kDevice = Memory::kDevice;
  return {{true, kDevice, kDevice, kDevice, false, false},
          {true, kDevice, kDevice, kDevice, true, false},
          {true, kDevice, kDevice, kDevice, true, true, 1},
          {true, kHost, kDevice, kDevice, true, true, 1},
          {true, kHost, kHost, kDevice, true, true, 1},
          {true, kHost, kHost, kHost, true, true, 1}};
}

std::uint64_t HistogramMemory::HistogramBytes(EntryIdx n_entries) const {
  std::uint64_t const room =
      n_entries / 2 + std::min<std::uint64_t>(16 * kMiB, n_entries / 4 + 8 * kMiB);
  return room / kAllHistograms * histograms;
}

std::uint64_t HistogramMemory::FirstHistogramBytes(EntryIdx n_entries) const {
  return std::min(this->HistogramBytes(n_entries) / 2, 8 * n_entries + kMiB);
}

std::uint64_t HistogramMemory::CertainRanges() const { return (is_lean ? 1 : 4) * kFirstRanges; }

std::uint64_t HistogramMemory::OpenEntries(EntryIdx n_entries) const {
  return std::min(n_entries, std::max(EntryIdx{1} << 19, n_entries / 256) / (is_lean ? 2 : 1));
}

EntryIdx HistogramMemory::BinnedAtOnce(EntryIdx n_entries, bool is_dense) const {
  EntryIdx const least = EntryIdx{1} << (is_dense && !is_lean ? 21 : 22);
  constexpr EntryIdx kMost = EntryIdx{1} << 31;  // they are numbered in 32 bits
  return std::clamp(n_entries / 16, least, kMost) / (is_lean ? 8 : is_dense ? 1 : 4);
}

EntryIdx HistogramMemory::ReadAtOnce(EntryIdx n_entries) const {
  constexpr EntryIdx kLeast = EntryIdx{1} << 22;
  constexpr EntryIdx kMost = EntryIdx{1} << 25;
  return is_lean ? kLeast : std::clamp(n_entries / 16, kLeast, kMost);
}

double HistogramCost::OpenShare(double n_entries, double n_bins) {
  // In single precision: glibc 2.28 has no other version of the function that is called here.
  return kOpenShare * std::pow(static_cast<float>(n_entries / (n_bins * n_bins)), kOpenPower);
}

double HistogramCost::ExpectedOpen(double n_rows, ResolutionShape const& shape) {
  double const n_entries = n_rows * shape.present;
  return shape.has_ranges ? n_entries * OpenShare(n_entries, shape.n_bins) : 0.0;
}

double HistogramCost::Read(double n_rows, double density, ResolutionShape const& shape) {
  constexpr double kSector = 32.0;
  constexpr double kRowBytes = 12.0;  // row and gradients, which the columns of a group share
  // Where bins are looked up: what tells where a row's are, and the time of as many bytes to do so.
  constexpr double kPlaceBytes = 1.2;
  constexpr double kLookUpBytes = 10.0;
  auto const scattered = [&](double bytes) {
    return std::max(bytes, std::min(kSector, bytes / density));
  };
  double const bytes = (shape.in_bytes ? 1.0 : 2.0) * shape.n_group_columns * shape.present;
  double const look_up = shape.present < 1.0 ? scattered(kPlaceBytes) + kLookUpBytes : 0.0;
  return kByte * n_rows * (scattered(bytes) + kRowBytes + look_up) / shape.n_group_columns;
}

double HistogramCost::Node(double n_rows, double density, ResolutionShape const& shape) {
  // The expected share may be more than one: then the more bins the better all the same.
  double const n_entries = n_rows * shape.present;
  double const expected = ExpectedOpen(n_rows, shape);
  double const n_open = std::min(expected * shape.open_factor, std::max(expected, n_entries));
  double const scanned = ScannedEntry(shape) / density + FoundEntry(n_rows / density);
  double const open = shape.scans ? std::min(OpenEntry(shape), scanned) : OpenEntry(shape);
  return kBin * shape.n_bins + open * n_open + Read(n_rows, density, shape);
}

double HistogramCost::FoundEntry(double n_table_rows) {
  constexpr double kCachedRows = 8e6;  // whose gradients do not fit the cache any more
  return kFoundEntry * std::min(n_table_rows / kCachedRows, 1.0);
}

OpenShareHistory::Seen const* OpenShareHistory::Nearest(std::size_t depth, std::size_t resolution,
                                                        bool used) const {
  for (std::size_t distance = 0; distance < n_resolutions_; ++distance) {
    for (std::size_t r : {resolution - distance, resolution + distance}) {  // the finer one first
      if (r < n_resolutions_) {
        Seen const& seen = seen_[depth * n_resolutions_ + r];
        if (used ? seen.used : seen.factor != kNotSeen) {
          return &seen;
        }
      }
    }
  }
  return nullptr;
}

double OpenShareHistory::Factor(std::size_t depth, std::size_t resolution) const {
  for (std::size_t d = std::min(depth + 1, seen_.size() / n_resolutions_); d-- > 0;) {
    if (Seen const* seen = this->Nearest(d, resolution, false); seen != nullptr) {
      return seen->factor;
    }
  }
  return 1.0;
}

void OpenShareHistory::Record(std::size_t depth, std::size_t resolution, double n_open,
                              double expected) {
  constexpr double kLeast = 0.01;
  constexpr double kMost = 1000.0;  // so that it ages within some hundred trees
  constexpr double kLess = 0.8;     // at once: one tree may be unlike the next
  double const factor = std::clamp(n_open / expected, kLeast, kMost);
  seen_.resize(std::max(seen_.size(), (depth + 1) * n_resolutions_));
  Seen& seen = seen_[depth * n_resolutions_ + resolution];
  seen = {std::max(factor, kLess * seen.factor), true};
}

void OpenShareHistory::Decay() {
  constexpr float kPower = 0.965f;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].factor != kNotSeen && !seen_[i].used) {
      Seen const* other = this->Nearest(i / n_resolutions_, i % n_resolutions_, true);
      double const to = other == nullptr ? 1.0 : other->factor;
      seen_[i].factor = to * std::pow(static_cast<float>(seen_[i].factor / to), kPower);
    }
  }
  for (Seen& seen : seen_) {
    seen.used = false;
  }
}

bool RefineCost::ScansAnyway() const {
  constexpr double kMore = 4.0;
  double const of_node = kMore * std::max(shape.open_factor, 1.0) *
                         HistogramCost::ExpectedOpen(n_rows / n_nodes, shape);
  // Of each row.
  double const n_open = n_columns * std::min(of_node * n_nodes / n_rows, shape.present);
  return n_open * (HistogramCost::ScannedEntry(shape) * n_nodes * n_table_rows +
                   HistogramCost::FoundEntry(n_table_rows) * n_rows) <=
         HistogramCost::kGatherLevel;
}

bool RefineCost::Scans(double n_scanned, double n_gathered) const {
  double const density = n_rows / (n_nodes * n_table_rows);
  // Where there is room for a part of the entries, ranges are halved, and rows read for each half,
  // until it has room for a half's.
  double n_parts{1.0};
  while (n_parts * std::max(at_once, 1.0) < n_gathered) {
    n_parts *= 2.0;
  }
  double const n_walks = 2.0 * n_parts - 1.0;
  return HistogramCost::ScannedEntry(shape) * n_scanned +
             HistogramCost::FoundEntry(n_table_rows) * n_gathered <=
         HistogramCost::kGatherLevel + HistogramCost::OpenEntry(shape) * n_gathered +
             n_walks * n_columns * HistogramCost::Read(n_rows, density, shape);
}

std::vector<std::uint32_t> ChooseResolutions(RowIdx n_rows, FeatureIdx n_features,
                                             std::uint32_t max_bins, RowIdx max_sorted,
                                             HistogramMemory const& memory,
                                             std::uint64_t n_missing) {
  constexpr std::uint32_t kLeastBins = 32;
  constexpr std::uint32_t kLeastFinest = 160;  // where rows are looked up
  EntryIdx const n_entries = std::uint64_t{n_rows} * n_features - n_missing;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  if (n_rows <= max_bins && SortsTable(n_rows, n_features, max_sorted)) {
    return {std::max(n_rows, kLeastBins)};  // sorting by bins of 14 bits is faster than by values
  }
  // Columns that share a block's reading of rows; a power of two, so that several bins of a row are
  // loaded at once. Late trees, with less to find, leave some times more open; where that may be
  // scanned, memory for more bins is well spent. Where rows are looked up all is taken to be gathered.
  double const present = static_cast<double>(n_entries) / n_rows / n_features;
  bool const looks_up = !is_dense && present < kLookedUp;
  bool const scans = memory.sorts_columns && !looks_up;
  ResolutionShape shape{0.0, 0.0, true, scans, false, false, 1.0, false};
  shape.open_factor = looks_up ? 3.0 : scans ? 4.0 : 1.0;
  shape.present = looks_up ? present : 1.0;
  auto cost = [&](std::uint32_t n) {
    shape.n_bins = max_bins / n;
    shape.n_group_columns = n;
    return HistogramCost::Node(n_rows, 1.0, shape);
  };
  std::uint32_t const least = looks_up ? kLeastFinest : kLeastBins;
  std::uint32_t n_columns{1};
  while (max_bins / (2 * n_columns) >= least && cost(2 * n_columns) < cost(n_columns)) {
    n_columns *= 2;
  }
  std::uint32_t const finest = max_bins / n_columns;
  std::vector<std::uint32_t> bins{finest};
  if (n_rows <= max_sorted && memory.SortsNodes()) {  // those of too few rows for as many bins
    return bins;
  }
  // Reading rows for one column alone costs the most: then another resolution stands beside it.
  bool const has_second = n_columns == 1;
  // Bins of one byte take a block's room for as many columns as there are banks, however few they
  // are: then there are as many as a byte holds.
  std::uint32_t const of_bytes = std::min(max_bins / kMaxByteColumns, kMaxByteBins);
  // The next one has a quarter of the bins. Where rows are looked up, most nodes are best searched in
  // the least of what may be the finest.
  std::uint32_t const next =
      looks_up && finest >= 2 * least ? std::max(finest / 4, least) : finest / 4;
  std::uint32_t const last = is_dense && finest >= 2 * of_bytes
                                 ? of_bytes
                                 : std::min(looks_up ? next / 4 : finest / 32, kMaxByteBins);
  for (std::uint32_t coarser : {has_second ? finest / 2 : 0, next}) {
    if (coarser >= std::max(2 * last, kLeastBins)) {
      bins.push_back(coarser);
    }
  }
  if (last >= kLeastBins) {
    bins.push_back(last);
  }
  return bins;
}

StoredResolutions::StoredResolutions(FeatureIdx n_features, std::vector<std::uint32_t> const& bins)
    : reading{bins},
      last{bins.size() > 1 && TakesBytes(n_features, bins.back()) ? bins.back() : 0} {
  if (last != 0) {
    reading.pop_back();
  }
}

std::vector<std::uint32_t> StoredResolutions::GroupColumns(HistogramMemory const& memory,
                                                           std::uint32_t max_bins) const {
  std::vector<std::uint32_t> columns;
  auto add = [&](std::uint32_t n_bins) {
    columns.push_back(std::max(1u, max_bins / std::max(1u, n_bins)));
  };
  if (memory.shares_bins) {
    add(reading.back());
    columns.back() =
        std::min(columns.back(), std::max(1u, kMaxStoredBins / std::max(1u, reading.front())));
  } else {
    std::for_each(reading.cbegin(), reading.cend(), add);
  }
  if (last != 0) {
    add(last);
  }
  return columns;
}

bool ReadsFinest(std::uint64_t n_stored, bool is_dense, double looked_up_share) {
  constexpr std::uint64_t kCached = std::uint64_t{1}
                                    << 24;  // at 2 B each, half of an H200's L2 cache
  constexpr double kMostLookedUp = 0.125;
  return n_stored > kCached && (is_dense || looked_up_share <= kMostLookedUp);
}

namespace {
/**
 * @brief The sum over all arrays of bins of fn(n_groups), of at most so many groups that have row offsets;
 *        1e18 at most, more than any device has.
 */
template <typename FnT>
std::uint64_t OfSparseGroups(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                             HistogramMemory const& memory, std::uint32_t max_bins, FnT&& fn) {
  std::uint64_t const rows = std::max(n_rows, 1u);
  std::uint64_t const n_missing = std::uint64_t{n_rows} * n_features - n_entries;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  if (is_dense && n_missing == 0) {  // as it is without features
    return 0;
  }
  auto n_groups_of = [&](std::uint64_t n_columns) {
    n_columns = std::min<std::uint64_t>(n_columns, RowOffsetBlock::kMaxColumns);
    std::uint64_t n_groups = (n_features + n_columns - 1) / n_columns;
    if (std::max<EntryIdx>(n_entries, rows) < kManyEntries) {
      // Two that follow each other have more bins than an even share.
      std::uint64_t const filling = 2 * FillingGroups(n_entries, n_rows) + 1;
      n_groups = std::max(n_groups, std::min<std::uint64_t>(n_features, filling));
    }
    if (is_dense) {  // as most of its values are missing
      n_groups = std::min(n_groups, 2 * n_missing / (rows * n_columns));
    }
    return n_groups;
  };
  auto bins = ChooseResolutions(n_rows, n_features, max_bins, kMaxSortedRows, memory, n_missing);
  for (std::uint32_t& n : bins) {
    n = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(n_entries / n_features, 1, n));
  }
  double sum{0.0};
  for (std::uint32_t of_group :
       StoredResolutions{n_features, bins}.GroupColumns(memory, max_bins)) {
    sum += fn(n_groups_of(LimitGroupColumns(of_group, n_rows)));
  }
  return static_cast<std::uint64_t>(std::min(sum, 1e18));
}
}  // namespace

std::uint64_t RowOffsetBytes(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                             HistogramMemory const& memory, std::uint32_t max_bins) {
  auto const bytes = [&](bool is_narrow, std::uint64_t n) {
    return static_cast<double>(RowOffsetBlock::Bytes(n_rows, is_narrow)) * static_cast<double>(n);
  };
  return OfSparseGroups(
      n_entries, n_rows, n_features, memory, max_bins, [&](std::uint64_t n_groups) {
        // Groups of many columns take more; each has so many beside the one that any group has.
        std::uint64_t const n_wide =
            std::min(n_groups, (n_features - n_groups) / RowOffsetBlock::kNarrowColumns);
        return bytes(true, n_groups - n_wide) + bytes(false, n_wide);
      });
}

std::uint64_t NumRowOffsets(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                            HistogramMemory const& memory, std::uint32_t max_bins) {
  return OfSparseGroups(n_entries, n_rows, n_features, memory, max_bins,
                        [&](std::uint64_t n_groups) {
                          return static_cast<double>(n_rows) * static_cast<double>(n_groups);
                        });
}

std::uint64_t RowBytes(FeatureIdx n_features, std::uint32_t of_group, bool in_bytes) {
  of_group = in_bytes ? std::min(of_group, kMaxByteColumns) : of_group;
  auto bytes = [&](std::uint32_t n_columns) -> std::uint64_t {
    std::uint32_t const n = in_bytes ? NumByteCells(n_columns) : 0;
    return n != 0 ? n : sizeof(std::uint16_t) * NumCells(n_columns);
  };
  return n_features / of_group * bytes(of_group) + bytes(n_features % of_group);
}

std::uint32_t MaxValues(std::uint32_t n_entries, std::uint32_t max_bins, std::uint32_t most) {
  constexpr std::uint32_t kEntriesPerBin = 64;  // at the root: a bin costs less than its entries
  return std::max(max_bins, std::min(most, n_entries / kEntriesPerBin));
}

std::uint64_t MostBins(EntryIdx n_entries, FeatureIdx n_features, std::uint32_t max_bins,
                       bool finest, std::uint32_t most) {
  std::uint64_t const features = std::max(n_features, 1u);
  std::uint64_t const n = (n_entries + features - 1) / features;  // entries of a column
  auto const n_values = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, ~0u));
  return features *
         std::min<std::uint64_t>(n, finest ? MaxValues(n_values, max_bins, most) : max_bins);
}

bool SortsTable(RowIdx n_rows, FeatureIdx n_features, RowIdx max_sorted) {
  return n_rows <= max_sorted &&
         HistogramCost::kSortedEntry * static_cast<double>(std::uint64_t{n_rows} * n_features) <
             HistogramCost::kSearchLevel + HistogramCost::kScanLevel;
}

std::vector<std::size_t> ChooseSearchMethods(std::vector<FamilyRows> const& families,
                                             SearchMethods const& ways) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr std::size_t kFewFamilies = 256;  // that level costs matter for
  std::size_t const n_resolutions = ways.resolutions.size();
  std::size_t const n_ways = n_resolutions + 1;
  double const n_all = std::max(ways.n_rows, 1u);
  auto cost = [&](FamilyRows const& family, std::size_t way) {
    if (way == n_resolutions && std::max(family.first, family.second) > ways.max_sorted) {
      return kNever;
    }
    double sum{0.0}, longest_read{0.0};
    for (RowIdx n : {family.first, family.second}) {
      double const rows = std::max(n, 1u);
      if (way == n_resolutions) {
        sum += HistogramCost::kSortedColumn + HistogramCost::kSortedEntry * rows;
        continue;
      }
      ResolutionShape const& shape = ways.resolutions[way];
      sum += HistogramCost::Node(rows, rows / n_all, shape);
      longest_read = std::max(longest_read, HistogramCost::Read(rows, rows / n_all, shape));
    }
    // The larger child's histogram is what the smaller one leaves of the parent's.
    return (sum - (way == family.parent_method ? longest_read : 0.0)) * ways.n_columns;
  };
  std::vector<double> costs;  // shape: (families, ways)
  for (FamilyRows const& family : families) {
    for (std::size_t way = 0; way < n_ways; ++way) {
      costs.push_back(cost(family, way));
    }
  }
  auto best_of = [&](std::size_t family, std::uint32_t allowed) {
    std::size_t best{0};
    double least{kNever};
    for (std::size_t way = 0; allowed >> way != 0; ++way) {
      if ((allowed >> way & 1u) != 0 && costs[family * n_ways + way] < least) {
        least = costs[family * n_ways + way];
        best = way;
      }
    }
    return std::pair{best, least};
  };
  // Every set of ways is tried where families are few.
  std::uint32_t const all = (1u << n_ways) - 1;
  std::uint32_t chosen{all};
  double least{kNever};
  for (std::uint32_t set = 1; families.size() <= kFewFamilies && set <= all; ++set) {
    double sum{0.0};
    for (std::size_t way = 0; set >> way != 0; ++way) {
      if ((set >> way & 1u) != 0) {
        sum += way == n_resolutions ? HistogramCost::kSortLevel : LevelCost(ways.resolutions[way]);
      }
    }
    for (std::size_t f = 0; f < families.size() && sum < least; ++f) {
      sum += best_of(f, set).second;
    }
    if (sum < least) {
      least = sum;
      chosen = set;
    }
  }
  std::vector<std::size_t> out;
  for (std::size_t f = 0; f < families.size(); ++f) {
    out.push_back(best_of(f, chosen).first);
  }
  return out;
}

void LoadBalancer::AddGroup(std::uint64_t n_elements, RowIdx n_rows, std::uint32_t n_bins) {
  GroupCost const before = costs_.back();
  costs_.push_back(
      {before.row + kRowCost + kElementCost * n_elements / std::max<std::uint64_t>(n_rows, 1),
       before.segment + kBinCost * (n_bins + 64)});
}

std::uint64_t LoadBalancer::Before(std::vector<BuiltNode> const& nodes, std::size_t node,
                                   std::uint32_t group) const {
  GroupCost const& all = costs_.back();
  std::uint64_t units = nodes[node].before * all.row + node * all.segment;
  if (group != 0) {
    GroupCost const& before = costs_[group];
    units += (nodes[node + 1].before - nodes[node].before) * before.row + before.segment;
  }
  return units;
}

WorkOffset LoadBalancer::Locate(std::vector<BuiltNode> const& nodes, std::uint64_t unit,
                                std::uint32_t first) const {
  auto const n_nodes = static_cast<std::uint32_t>(nodes.size() - 1);
  auto node = first;
  while (node < n_nodes && this->Before(nodes, node + 1, 0) <= unit) {
    ++node;
  }
  if (node == n_nodes) {
    return {node, 0, 0};
  }
  auto const group = PartitionPoint(0u, this->NumGroups() - 1, [&](std::uint32_t g) {
    return this->Before(nodes, node, g + 1) > unit;
  });
  std::uint64_t const row_cost = costs_[group + 1].row - costs_[group].row;
  std::uint64_t const row = (unit - this->Before(nodes, node, group)) / row_cost;
  std::uint64_t const n_rows = nodes[node + 1].before - nodes[node].before;
  if (row < n_rows || n_rows == 0) {
    return {node, group, static_cast<RowIdx>(n_rows == 0 ? 0 : row)};
  }
  return group + 1 < this->NumGroups() ? WorkOffset{node, group + 1, 0}
                                       : WorkOffset{node + 1, 0, 0};
}

std::vector<WorkOffset> LoadBalancer::Slices(std::vector<BuiltNode> const& nodes,
                                             std::uint32_t max_slices,
                                             std::uint64_t min_slice) const {
  std::uint64_t const total = this->Before(nodes, nodes.size() - 1, 0);
  std::uint64_t const n = std::clamp<std::uint64_t>(total / min_slice, 1, std::max(max_slices, 1u));
  std::vector<WorkOffset> slices;
  for (std::uint64_t s = 0; s <= n; ++s) {
    // total * s could overflow
    // The point of a unit may be the begin of the node after the unit's.
    std::uint32_t const first = slices.empty() ? 0 : std::max(slices.back().node, 1u) - 1;
    slices.push_back(this->Locate(nodes, total / n * s + total % n * s / n, first));
  }
  return slices;
}

std::uint64_t LoadBalancer::NumParts(std::uint64_t n_blocks) const {
  constexpr std::uint64_t kMostRounds = 4;  // of more, blocks lose step with each other
  constexpr double kAlike = 0.01;
  std::uint64_t best{0};
  double filled{0.0};  // share of the rounds
  for (std::uint64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
    std::uint64_t const n = rounds * n_blocks / this->NumGroups();
    double const of_n =
        static_cast<double>(n * this->NumGroups()) / static_cast<double>(rounds * n_blocks);
    if (of_n > filled - kAlike) {
      best = n;
      filled = std::max(filled, of_n);
    }
  }
  return best;
}

std::vector<BuiltNode> LoadBalancer::Parts(std::vector<BuiltNode> const& nodes,
                                           BuildLimits const& limits) const {
  constexpr std::uint64_t kMostSegments = 8192;  // many small nodes share rows as they are
  constexpr std::uint64_t kLeastParts = 8;       // of fewer, some blocks have far more to do
  std::uint64_t const n_rows = nodes.back().before;
  std::size_t const n_nodes = nodes.size() - 1;
  if (n_rows <= limits.cached_rows || this->NumGroups() <= 1) {
    return {};
  }
  std::uint64_t const n_parts = this->NumParts(std::max(limits.n_blocks, 1u));
  if (n_parts < kLeastParts || (n_nodes + n_parts) * this->NumGroups() > kMostSegments) {
    return {};
  }
  struct CutNode {
    BuiltNode const* whole;
    std::uint64_t n_rows;
    std::uint64_t n_parts;
  };
  std::vector<CutNode> cut;
  std::uint64_t n_cut{0};
  for (std::size_t i = 0; i < n_nodes; ++i) {
    std::uint64_t const n = nodes[i + 1].before - nodes[i].before;
    cut.push_back({&nodes[i], n, std::max<std::uint64_t>(1, n_parts * n / n_rows)});
    n_cut += cut.back().n_parts;
  }
  for (; n_cut < n_parts; ++n_cut) {
    ++std::max_element(cut.begin(), cut.end(), [](CutNode const& a, CutNode const& b) {
        return a.n_rows * b.n_parts < b.n_rows * a.n_parts;
      })->n_parts;
  }
  if (n_cut == n_nodes) {
    return {};
  }
  // What takes longest begins first.
  std::stable_sort(cut.begin(), cut.end(),
                   [](CutNode const& a, CutNode const& b) { return a.n_rows > b.n_rows; });
  std::vector<BuiltNode> parts;
  std::uint64_t before{0};
  for (CutNode const& node : cut) {
    for (std::uint64_t p = 0; p < node.n_parts; ++p) {
      std::uint64_t const first = node.n_rows * p / node.n_parts;
      parts.push_back({static_cast<RowIdx>(node.whole->begin + first), node.whole->node,
                       before + first,
                       node.n_parts == 1 ? NodePart::kWhole
                       : p == 0          ? NodePart::kFirst
                                         : NodePart::kLater});
    }
    before += node.n_rows;
  }
  parts.push_back({0, 0, before});
  return parts;
}

std::vector<WorkOffset> LoadBalancer::Segments(std::uint32_t n_nodes) const {
  std::vector<WorkOffset> slices;
  for (std::uint32_t node = 0; node < n_nodes; ++node) {
    for (std::uint32_t group = 0; group < this->NumGroups(); ++group) {
      slices.push_back({node, group, 0});
    }
  }
  slices.push_back({n_nodes, 0, 0});
  return slices;
}
}  // namespace gpu_exact
