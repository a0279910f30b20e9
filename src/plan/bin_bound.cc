/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements bin_bound.h.
 */
#include "plan/bin_bound.h"

#include <algorithm>

#include "plan/search_cost.h"

namespace gpu_exact {
namespace {
/** @brief Counts the bins of categorical columns, the same in every resolution. */
struct CategoryBins {
  std::uint64_t n{0};
  std::uint32_t longest{0};  // of the column that has most
  FeatureIdx n_long{0};      // columns whose bins do not fit bytes

  CategoryBins(CategoricalColumns const& columns, std::uint32_t max_bins) {
    for (std::uint32_t const n_categories : columns.n_categories) {
      std::uint32_t const n_bins = n_categories > max_bins ? 1 : n_categories;
      n += n_bins;
      longest = std::max(longest, n_bins);
      n_long += n_bins > std::min(kMaxByteBins, max_bins / kMaxByteColumns) ? 1 : 0;
    }
  }
};

/**
 * @brief Sum fn(n_groups) over all arrays of bins, of at most as many groups as have row
 *        offsets; 1e18 at most, more than any device has.
 */
template <typename FnT>
std::uint64_t OfSparseGroups(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                             HistogramMemory const& memory, std::uint32_t max_bins,
                             CategoricalColumns const& categorical, FnT&& fn) {
  std::uint64_t const rows = std::max(n_rows, 1u);
  std::uint64_t const n_missing = std::uint64_t{n_rows} * n_features - n_entries;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  if (is_dense && n_missing == 0) {  // as it is without features
    return 0;
  }
  bool const is_small = std::max<EntryIdx>(n_entries, rows) < kManyEntries;
  auto n_groups_of = [&](GroupBound const& groups) {
    std::uint64_t n_groups = groups.Num(n_features);
    if (is_small) {
      // Two that follow each other have more bins than an even share.
      std::uint64_t const filling = 2 * FillingGroups(n_entries, n_rows) + 1;
      n_groups = std::max(n_groups, std::min<std::uint64_t>(n_features, filling));
    }
    if (is_dense) {  // as most of its values are missing; the last one may be of a column
      std::uint64_t const n_columns = 2 * n_missing / rows;
      std::uint64_t const of_group = is_small ? 1 : groups.of_group;
      n_groups = std::min({n_groups, n_columns, n_columns / of_group + 1});
    }
    return n_groups;
  };
  auto const resolutions =
      ChooseResolutions(n_rows, n_features, max_bins, kMaxSortedRows, memory, n_missing);
  CategoryBins const categories{categorical, max_bins};
  FeatureIdx const n_numerical = n_features - categorical.Size();
  EntryIdx const numerical = n_entries - categorical.n_entries;  // entries
  std::vector<ResolutionBins> bins;
  for (std::uint32_t const n : resolutions) {
    auto const of_column = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(numerical / std::max(n_numerical, 1u), 1, n));
    bins.push_back({std::uint64_t{of_column} * n_numerical + categories.n,
                    std::max(of_column, categories.longest)});
  }
  double sum{0.0};
  for (GroupBound const& groups : StoredResolutions{n_features, resolutions}.Groups(
           n_rows, n_features, bins, memory, max_bins)) {
    sum += fn(n_groups_of(groups));
  }
  return static_cast<std::uint64_t>(std::min(sum, 1e18));
}
}  // namespace

void GroupBound::Limit(ResolutionBins const& bins, std::uint32_t most) {
  std::uint32_t const longest = std::clamp(bins.longest, 1u, most);
  of_group = std::min(of_group, most / longest);
  n_full += std::min(bins.n / (most - longest + 1), 2 * bins.n / most);
}

StoredResolutions::StoredResolutions(FeatureIdx n_features, std::vector<std::uint32_t> const& bins)
    : n_reading{static_cast<std::uint32_t>(bins.size())},
      last{LastTakesBytes(n_features, bins) ? bins.back() : 0} {
  n_reading -= last != 0 ? 1 : 0;
}

std::vector<GroupBound> StoredResolutions::Groups(RowIdx n_rows, FeatureIdx n_features,
                                                  std::vector<ResolutionBins> const& bins,
                                                  HistogramMemory const& memory,
                                                  std::uint32_t max_bins) const {
  std::vector<GroupBound> arrays;
  for (std::uint32_t i = memory.reads_finest ? n_reading - 1 : 0; i < bins.size(); ++i) {
    arrays.emplace_back(n_rows, n_features);
    arrays.back().Limit(bins[i], max_bins);
    if (memory.reads_finest && i + 1 == n_reading) {
      arrays.back().Limit(bins.front(), kMaxStoredBins);
    }
  }
  return arrays;
}

std::uint64_t RowOffsetBytes(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                             HistogramMemory const& memory, std::uint32_t max_bins,
                             CategoricalColumns const& categorical) {
  auto const bytes = [&](bool is_narrow, std::uint64_t n) {
    return static_cast<double>(RowOffsetBlock::Bytes(n_rows, is_narrow)) * static_cast<double>(n);
  };
  return OfSparseGroups(
      n_entries, n_rows, n_features, memory, max_bins, categorical, [&](std::uint64_t n_groups) {
        // Groups of many columns take more; each has so many beside the one that any group has.
        std::uint64_t const n_wide =
            std::min(n_groups, (n_features - n_groups) / RowOffsetBlock::kNarrowColumns);
        return bytes(true, n_groups - n_wide) + bytes(false, n_wide);
      });
}

std::uint64_t NumRowOffsets(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                            HistogramMemory const& memory, std::uint32_t max_bins) {
  return OfSparseGroups(n_entries, n_rows, n_features, memory, max_bins, {},
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
  // The analyzer supposes groups of no resolution.
  return n_features / of_group * bytes(of_group) + bytes(n_features % of_group);  // NOLINT
}

std::uint64_t MostBins(EntryIdx n_entries, FeatureIdx n_features, std::uint32_t max_bins,
                       bool finest, std::uint32_t most) {
  std::uint64_t const features = std::max(n_features, 1u);
  std::uint64_t const n = (n_entries + features - 1) / features;  // entries of a column
  auto const n_values = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, ~0u));
  return features *
         std::min<std::uint64_t>(n, finest ? MaxValues(n_values, max_bins, most) : max_bins);
}

BinBound::BinBound(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features, HistogramMemory memory,
                   std::uint32_t max_bins, CategoricalColumns const& categorical) {
  std::uint64_t const rows = n_rows;
  std::uint64_t const features = n_features;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  memory.reads_finest =
      memory.reads_finest || ReadsFinest(NumStoredBins(n_entries, n_rows, n_features), is_dense);
  resolutions = ChooseResolutions(n_rows, n_features, max_bins, kMaxSortedRows, memory,
                                  rows * n_features - n_entries);
  CategoryBins const categories{categorical, max_bins};
  FeatureIdx const n_numerical = n_features - categorical.Size();
  std::vector<ResolutionBins> bins;
  for (std::size_t i = 0; i < resolutions.size(); ++i) {
    std::uint64_t const n =
        MostBins(n_entries - categorical.n_entries, n_numerical, resolutions[i], i == 0, max_bins);
    auto const of_column = static_cast<std::uint32_t>(n / std::max(n_numerical, 1u));
    bins.push_back({n + categories.n, std::max(of_column, categories.longest)});
    most_bins = std::max(most_bins, bins.back().n);
    constexpr std::uint64_t kFeature =
        BinBytes::kColumn + BinBytes::kCell + BinBytes::kOffset + BinBytes::kCandidates;
    // Two groups that follow each other have more bins than a block has room for.
    descriptions += BinBytes::kBin * bins.back().n + kFeature * (features + 1) +
                    (BinBytes::kGroup + BinBytes::kCells) * (bins.back().n / (max_bins / 2) + 1);
  }
  finest_limits =
      BinBytes::kBin * bins.front().n + (BinBytes::kOffset + BinBytes::kCandidates) * features;
  descriptions += BinBytes::kColumn * features +  // of what others read
                  RowOffsetBytes(n_entries, n_rows, n_features, memory, max_bins, categorical);
  StoredResolutions const stored{n_features, resolutions};
  std::vector<GroupBound> const arrays = stored.Groups(n_rows, n_features, bins, memory, max_bins);
  for (GroupBound const& array : arrays) {
    if (!is_dense) {
      // Groups of which half is present have cells all the same, and an eighth fills them up.
      elements += sizeof(GroupBin) * std::min(9 * n_entries / 4, categorical.n_elements);
      continue;
    }
    bool const in_bytes = stored.last != 0 && &array == &arrays.back();
    std::uint64_t const n_groups = std::max<std::uint64_t>(array.Num(n_features), 1);
    auto const of_group =
        static_cast<std::uint32_t>(std::max(std::uint64_t{array.of_group}, features / n_groups));
    // A column that does not fit bytes has none in its group fit them.
    auto const n_words = static_cast<FeatureIdx>(
        std::min(features, in_bytes ? std::uint64_t{categories.n_long} * kMaxByteColumns : 0));
    elements += rows * (RowBytes(n_words, of_group, false) +
                        RowBytes(n_features - n_words, of_group, in_bytes));
  }
}
}  // namespace gpu_exact
