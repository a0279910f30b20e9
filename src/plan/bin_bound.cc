/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements bin_bound.h.
 */
#include "plan/bin_bound.h"

#include <algorithm>

#include "plan/search_cost.h"

namespace gpu_exact {
StoredResolutions::StoredResolutions(FeatureIdx n_features, std::vector<std::uint32_t> const& bins)
    : reading{bins}, last{LastTakesBytes(n_features, bins) ? bins.back() : 0} {
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

namespace {
/**
 * @brief Sum fn(n_groups) over all arrays of bins, of at most as many groups as have row
 *        offsets; 1e18 at most, more than any device has.
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

std::uint64_t MostBins(EntryIdx n_entries, FeatureIdx n_features, std::uint32_t max_bins,
                       bool finest, std::uint32_t most) {
  std::uint64_t const features = std::max(n_features, 1u);
  std::uint64_t const n = (n_entries + features - 1) / features;  // entries of a column
  auto const n_values = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, ~0u));
  return features *
         std::min<std::uint64_t>(n, finest ? MaxValues(n_values, max_bins, most) : max_bins);
}

BinBound::BinBound(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features, HistogramMemory memory,
                   std::uint32_t max_bins, FeatureIdx n_categorical) {
  std::uint64_t const rows = n_rows;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  memory.shares_bins =
      memory.shares_bins || ReadsFinest(NumStoredBins(n_entries, n_rows, n_features), is_dense);
  resolutions = ChooseResolutions(n_rows, n_features, max_bins, kMaxSortedRows, memory,
                                  rows * n_features - n_entries);
  std::uint64_t const n_finest =
      MostBins(n_entries, n_features, resolutions.front(), true, max_bins);
  finest_limits = BinBytes::kBin * n_finest;
  descriptions = RowOffsetBytes(n_entries, n_rows, n_features, memory, max_bins) +
                 BinBytes::kColumn * n_features;  // of what others read
  std::vector<std::uint32_t> of_column;
  for (std::size_t i = 0; i < resolutions.size(); ++i) {
    std::uint64_t const n_bins = MostBins(n_entries, n_features, resolutions[i], i == 0, max_bins);
    of_column.push_back(static_cast<std::uint32_t>(n_bins / std::max(n_features, 1u)));
    most_bins = std::max(most_bins, n_bins);
    constexpr std::uint64_t kFeature =
        BinBytes::kColumn + BinBytes::kCell + BinBytes::kOffset + BinBytes::kCandidates;
    descriptions += BinBytes::kBin * n_bins + kFeature * (std::uint64_t{n_features} + 1);
    // Two groups that follow each other have more bins than a block has room for.
    descriptions += (BinBytes::kGroup + BinBytes::kCells) * (n_bins / (max_bins / 2) + 1);
  }
  StoredResolutions const stored{n_features, of_column};
  std::vector<std::uint32_t> const of_groups = stored.GroupColumns(memory, max_bins);
  for (std::size_t i = 0; i < of_groups.size(); ++i) {
    bool const in_bytes = stored.last != 0 && i + 1 == of_groups.size();
    // Where most values are missing some groups have cells all the same, of which half have a
    // value, and an eighth fills them up.
    elements += is_dense
                    ? rows * RowBytes(n_features, LimitGroupColumns(of_groups[i], n_rows), in_bytes)
                    : sizeof(GroupBin) * (9 * n_entries / 4);
  }
  if (n_categorical != 0) {
    this->AddCategories(n_entries, n_rows, n_features, max_bins, n_categorical, of_groups.size());
  }
}

void BinBound::AddCategories(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features,
                             std::uint32_t max_bins, FeatureIdx n_categorical,
                             std::size_t n_arrays) {
  std::uint64_t const n_bins = std::uint64_t{n_categorical} * max_bins;
  finest_limits += BinBytes::kBin * n_bins;
  most_bins += n_bins;
  // Each may fill a group, and end the one before it.
  std::uint64_t const n_groups =
      std::min<std::uint64_t>(2 * std::uint64_t{n_categorical}, n_features);
  descriptions += resolutions.size() *
                  (BinBytes::kBin * n_bins + (BinBytes::kGroup + BinBytes::kCells) * n_groups);
  std::uint64_t const n_cells = std::uint64_t{n_rows} * n_features;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  std::uint64_t const n_sparse =
      is_dense ? std::min(n_groups, 2 * (n_cells - n_entries) / std::max<std::uint64_t>(n_rows, 1))
               : n_groups;
  descriptions += n_arrays * n_sparse * RowOffsetBlock::Bytes(n_rows, false);
  if (is_dense) {  // groups are filled up by an eighth at most, and may not be in bytes
    elements = n_arrays * sizeof(GroupBin) * (9 * n_cells / 8);
  }
}
}  // namespace gpu_exact
