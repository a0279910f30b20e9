/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements search_cost.h.
 */
#include "plan/search_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gpu_exact {
namespace {
/** @brief Sums the costs of a level that is searched in a resolution. */
double LevelCost(ResolutionShape const& shape) {
  return CostTable::kSearchLevel + (!shape.has_ranges ? 0.0
                                    : shape.scans     ? CostTable::kScanLevel
                                                      : CostTable::kGatherLevel);
}
}  // namespace

ResolutionShape ShapeOf(BinLayout const& layout, bool scans) {
  auto const at_least_one = [](std::size_t n) {
    return static_cast<double>(std::max<std::size_t>(1, n));
  };
  double const n_columns = at_least_one(layout.columns.size());
  ResolutionShape shape{layout.MeanBins(), n_columns / at_least_one(layout.groups.size()),
                        layout.has_ranges, scans};
  shape.in_bytes = std::all_of(layout.groups.cbegin(), layout.groups.cend(),
                               [](GroupLayout const& group) { return group.InBytes(); });
  auto const n_looked_up = std::count_if(
      layout.columns.cbegin(), layout.columns.cend(),
      [&](BinColumn const& column) { return !layout.groups[column.group].Strided(); });
  double const present =
      static_cast<double>(layout.n_entries) / (at_least_one(layout.n_rows) * n_columns);
  if (2 * static_cast<std::size_t>(n_looked_up) > layout.columns.size() && LooksUp(present)) {
    shape.present = present;
  }
  return shape;
}

double HistogramCost::OpenShare(double n_entries, double n_bins) {
  // In single precision: glibc 2.28 has no other version of the function that is called here.
  return CostTable::kOpenShare *
         std::pow(static_cast<float>(n_entries / (n_bins * n_bins)), CostTable::kOpenPower);
}

double HistogramCost::ExpectedOpen(double n_rows, ResolutionShape const& shape) {
  double const n_entries = n_rows * shape.present;
  return shape.has_ranges ? n_entries * OpenShare(n_entries, shape.n_bins) : 0.0;
}

double HistogramCost::Read(double n_rows, double density, ResolutionShape const& shape) {
  auto const scattered = [&](double bytes) {
    return std::max(bytes, std::min(CostTable::kSector, bytes / density));
  };
  double const bytes = (shape.in_bytes ? 1.0 : 2.0) * shape.n_group_columns * shape.present;
  double const look_up =
      shape.present < 1.0 ? scattered(CostTable::kPlaceBytes) + CostTable::kLookUpBytes : 0.0;
  // The columns of a group share a row's number and gradients.
  return CostTable::kByte * n_rows * (scattered(bytes) + CostTable::kRowBytes + look_up) /
         shape.n_group_columns;
}

double HistogramCost::Walk(double n_rows, double density, ResolutionShape const& shape) {
  return std::max(CostTable::kWalkedEntry * n_rows * shape.present, Read(n_rows, density, shape));
}

double HistogramCost::Node(double n_rows, double density, ResolutionShape const& shape) {
  // The expected share may be more than one: then the more bins the better all the same.
  double const n_entries = n_rows * shape.present;
  double const expected = ExpectedOpen(n_rows, shape);
  double const n_open = std::min(expected * shape.open_factor, std::max(expected, n_entries));
  double const scanned = ScannedEntry(shape) / density + FoundEntry(n_rows / density);
  double const open = shape.scans ? std::min(OpenEntry(shape), scanned) : OpenEntry(shape);
  return CostTable::kBin * shape.n_bins + open * n_open + Read(n_rows, density, shape);
}

double HistogramCost::FoundEntry(double n_table_rows) {
  return CostTable::kFoundEntry * std::min(n_table_rows / CostTable::kCachedRows, 1.0);
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
  double const factor =
      std::clamp(n_open / expected, CostTable::kLeastFactor, CostTable::kMostFactor);
  seen_.resize(std::max(seen_.size(), (depth + 1) * n_resolutions_));
  Seen& seen = seen_[depth * n_resolutions_ + resolution];
  seen = {std::max(factor, CostTable::kFallsTo * seen.factor), true};
}

void OpenShareHistory::Decay() {
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].factor != kNotSeen && !seen_[i].used) {
      Seen const* other = this->Nearest(i / n_resolutions_, i % n_resolutions_, true);
      double const to = other == nullptr ? 1.0 : other->factor;
      seen_[i].factor =
          to * std::pow(static_cast<float>(seen_[i].factor / to), CostTable::kAgePower);
    }
  }
  for (Seen& seen : seen_) {
    seen.used = false;
  }
}

bool RefineCost::ScansAnyway() const {
  double const of_node = CostTable::kMoreOpen * std::max(shape.open_factor, 1.0) *
                         HistogramCost::ExpectedOpen(n_rows / n_nodes, shape);
  // Of each row.
  double const n_open = n_columns * std::min(of_node * n_nodes / n_rows, shape.present);
  return n_open * (HistogramCost::ScannedEntry(shape) * n_nodes * n_table_rows +
                   HistogramCost::FoundEntry(n_table_rows) * n_rows) <=
         CostTable::kGatherLevel;
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
         CostTable::kGatherLevel + HistogramCost::OpenEntry(shape) * n_gathered +
             n_walks * n_columns * HistogramCost::Walk(n_rows, density, shape);
}

std::vector<std::uint32_t> ChooseResolutions(RowIdx n_rows, FeatureIdx n_features,
                                             std::uint32_t max_bins, RowIdx max_sorted,
                                             HistogramMemory const& memory,
                                             std::uint64_t n_missing) {
  constexpr std::uint32_t kLeastBins = CostTable::kLeastBins;
  EntryIdx const n_entries = std::uint64_t{n_rows} * n_features - n_missing;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  if (n_rows <= max_bins && SortsTable(n_rows, n_features, max_sorted)) {
    return {std::max(n_rows, kLeastBins)};  // sorting by bins of 14 bits is faster than by values
  }
  // Columns that share a block's reading of rows; a power of two, so that several bins of a row are
  // loaded at once. Late trees, with less to find, leave some times more open; where that may be
  // scanned, memory for more bins is well spent. Where rows are looked up all is taken to be
  // gathered.
  double const present = static_cast<double>(n_entries) / n_rows / n_features;
  bool const looks_up = !is_dense && LooksUp(present);
  bool const scans = memory.sorts_columns && !looks_up;
  ResolutionShape shape{0.0, 0.0, true, scans, false, false, 1.0, false};
  shape.open_factor = looks_up ? 3.0 : scans ? 4.0 : 1.0;
  shape.present = looks_up ? present : 1.0;
  auto cost = [&](std::uint32_t n) {
    shape.n_bins = max_bins / n;
    shape.n_group_columns = n;
    return HistogramCost::Node(n_rows, 1.0, shape);
  };
  std::uint32_t const least = looks_up ? CostTable::kLeastFinest : kLeastBins;
  std::uint32_t n_columns{1};
  while (max_bins / (2 * n_columns) >= least && cost(2 * n_columns) < cost(n_columns)) {
    n_columns *= 2;
  }
  std::uint32_t const finest = max_bins / n_columns;
  std::vector<std::uint32_t> bins{finest};
  if (n_rows <= max_sorted && memory.SortsNodes()) {  // those of too few rows for as many bins
    return bins;
  }
  // Nodes of half the rows are best searched in half the bins, where these take no memory. Reading
  // rows for one column alone costs the most: then such bins are worth it anyway.
  bool const is_shared =
      is_dense && ReadsFinest(NumStoredBins(n_entries, n_rows, n_features), is_dense);
  bool const has_second = n_columns == 1 || is_shared;
  // Bins of one byte take a block's room for as many columns as there are banks, however few they
  // are: then there are as many as a byte holds.
  std::uint32_t const of_bytes = std::min(max_bins / kMaxByteColumns, kMaxByteBins);
  // The next one has a quarter of the bins. Where rows are looked up, most nodes are best searched
  // in the least of what may be the finest.
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

std::uint32_t MaxValues(std::uint32_t n_entries, std::uint32_t max_bins, std::uint32_t most) {
  return std::max(max_bins, std::min(most, n_entries / CostTable::kEntriesPerBin));
}

SortedColumnsRule::SortedColumnsRule(std::vector<std::uint32_t> const& max_bins, bool is_dense) {
  std::size_t const n = max_bins.size();
  bool const leaves_out_last = n > 2 && !is_dense;
  std::uint32_t const last = max_bins[leaves_out_last ? n - 2 : n - 1];
  least_scanned_ = n == 1 ? ~0u : last;
  max_bins_without_rows_ = leaves_out_last ? last + last / 2 : 0;
}

bool SortedColumnsRule::KeepsEveryColumnAbove(std::vector<ColumnBins> const& finest,
                                              std::uint32_t n_bins) const {
  return std::all_of(finest.cbegin(), finest.cend(), [&](ColumnBins const& column) {
    return this->Keeps(column) || column.is_categorical || column.n_bins <= n_bins;
  });
}

bool SortsTable(RowIdx n_rows, FeatureIdx n_features, RowIdx max_sorted) {
  return n_rows <= max_sorted &&
         CostTable::kSortedEntry * static_cast<double>(std::uint64_t{n_rows} * n_features) <
             CostTable::kSearchLevel + CostTable::kScanLevel;
}

std::vector<std::size_t> ChooseSearchWays(std::vector<Family> const& families,
                                          SearchWays const& ways) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::size_t const n_resolutions = ways.resolutions.size();
  std::size_t const n_ways = n_resolutions + 1;
  double const n_all = std::max(ways.n_rows, 1u);
  auto cost = [&](Family const& family, std::size_t way) {
    if (way == n_resolutions && std::max(family.n_rows[0], family.n_rows[1]) > ways.max_sorted) {
      return kNever;
    }
    double sum{0.0}, longest_read{0.0};
    for (RowIdx const n : family.n_rows) {
      double const rows = std::max(n, 1u);
      if (way == n_resolutions) {
        sum += CostTable::kSortedColumn + CostTable::kSortedEntry * rows;
        continue;
      }
      ResolutionShape const& shape = ways.resolutions[way];
      sum += HistogramCost::Node(rows, rows / n_all, shape);
      longest_read = std::max(longest_read, HistogramCost::Read(rows, rows / n_all, shape));
    }
    // The larger child's histogram is what the smaller one leaves of the parent's.
    return (sum - (way == family.parent_way ? longest_read : 0.0)) * ways.n_columns;
  };
  std::vector<double> costs;  // shape: (families, ways)
  for (Family const& family : families) {
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
  for (std::uint32_t set = 1; families.size() <= CostTable::kFewFamilies && set <= all; ++set) {
    double sum{0.0};
    for (std::size_t way = 0; set >> way != 0; ++way) {
      if ((set >> way & 1u) != 0) {
        sum += way == n_resolutions ? CostTable::kSortLevel : LevelCost(ways.resolutions[way]);
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
}  // namespace gpu_exact
