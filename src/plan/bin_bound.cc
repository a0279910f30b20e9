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

namespace {
/** @brief Bounds the groups of a table with categorical columns, which may be of any length. */
class MixedGroups {
 public:
  MixedGroups(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features, std::uint32_t max_bins,
              CategoricalColumns const& categorical)
      : n_entries_{n_entries}, n_rows_{std::max(n_rows, 1u)}, n_features_{n_features} {
    for (std::uint32_t n : categorical.n_categories) {
      std::uint32_t const n_bins = n > max_bins ? 1 : n;
      n_bins_ += n_bins;
      longest_ = std::max(longest_, n_bins);
      n_long_ += n_bins > std::min(kMaxByteBins, max_bins / kMaxByteColumns) ? 1 : 0;
    }
  }

  /** @brief Counts the bins of all categorical columns. */
  [[nodiscard]] std::uint64_t NumBins() const { return n_bins_; }
  /**
   * @brief Bounds the groups of a resolution: each but the last one is full, or lacks room for the next
   *        column.
   * @param n_numerical Bins of the numerical columns.
   * @param longest     Bins of the numerical column that has most.
   * @param most        Bins of a group.
   */
  [[nodiscard]] std::uint64_t Num(std::uint64_t n_numerical, std::uint32_t longest,
                                  std::uint32_t most) const {
    std::uint64_t const n = n_numerical + n_bins_;
    longest = std::min(std::max(longest, longest_), most);
    std::uint64_t n_groups = 1 + std::min<std::uint64_t>(n / (most - longest + 1), 2 * n / most);
    n_groups += n_features_ /
                std::min(RowOffsetBlock::kMaxColumns, LimitGroupColumns(n_features_, n_rows_));
    if (std::max<EntryIdx>(n_entries_, n_rows_) < kManyEntries) {
      n_groups = std::max(n_groups, 2 * FillingGroups(n_entries_, n_rows_) + 1);
    }
    return std::min<std::uint64_t>(n_groups, n_features_);
  }
  /** @brief Bounds the elements of a row in a dense table, in GroupBin. */
  [[nodiscard]] std::uint64_t RowElements(std::uint64_t n_groups, bool in_bytes) const {
    auto const filled_up = [](std::uint64_t n_columns, std::uint64_t groups) {
      return n_columns + std::min(n_columns / 8, 7 * groups);
    };
    if (!in_bytes) {
      return filled_up(n_features_, n_groups);
    }
    // A column that does not fit bytes has none in its group fit them.
    std::uint64_t const n_words =
        std::min<std::uint64_t>(n_features_, std::uint64_t{n_long_} * kMaxByteColumns);
    n_groups += n_features_ / kMaxByteColumns + 1;
    std::uint64_t const n_bytes = n_features_ - n_words;
    return filled_up(n_words, n_groups) + n_bytes / 2 + 4 * n_groups;
  }
  /** @brief Bounds the bytes of the row offsets of groups. */
  [[nodiscard]] std::uint64_t RowOffsetBytes(std::uint64_t n_groups) const {
    std::uint64_t const n_missing = n_rows_ * std::uint64_t{n_features_} - n_entries_;
    if (IsDense(n_entries_, n_rows_, n_features_)) {  // those most of whose values are missing
      n_groups = std::min(n_groups, 2 * n_missing / n_rows_);
    }
    std::uint64_t const n_wide =
        std::min(n_groups, (n_features_ - n_groups) / RowOffsetBlock::kNarrowColumns);
    return RowOffsetBlock::Bytes(n_rows_, true) * (n_groups - n_wide) +
           RowOffsetBlock::Bytes(n_rows_, false) * n_wide;
  }

 private:
  EntryIdx n_entries_;
  RowIdx n_rows_;
  FeatureIdx n_features_;
  std::uint64_t n_bins_{0};
  std::uint32_t longest_{0};
  FeatureIdx n_long_{0};  // columns that do not fit bytes
};
}  // namespace

BinBound::BinBound(EntryIdx n_entries, RowIdx n_rows, FeatureIdx n_features, HistogramMemory memory,
                   std::uint32_t max_bins, CategoricalColumns const& categorical) {
  std::uint64_t const rows = n_rows;
  bool const is_dense = IsDense(n_entries, n_rows, n_features);
  memory.shares_bins =
      memory.shares_bins || ReadsFinest(NumStoredBins(n_entries, n_rows, n_features), is_dense);
  resolutions = ChooseResolutions(n_rows, n_features, max_bins, kMaxSortedRows, memory,
                                  rows * n_features - n_entries);
  bool const is_mixed = categorical.Size() != 0;
  MixedGroups const mixed{n_entries, n_rows, n_features, max_bins, categorical};
  FeatureIdx const n_numerical = n_features - categorical.Size();
  auto const bins_of = [&](std::size_t i) {
    return MostBins(n_entries - categorical.n_entries, n_numerical, resolutions[i], i == 0,
                    max_bins);
  };
  std::uint64_t const n_finest = bins_of(0) + mixed.NumBins();
  finest_limits = BinBytes::kBin * n_finest;
  descriptions = BinBytes::kColumn * n_features;  // of what others read
  std::vector<std::uint32_t> of_column;           // bins of a numerical column
  for (std::size_t i = 0; i < resolutions.size(); ++i) {
    std::uint64_t const n_bins = bins_of(i) + mixed.NumBins();
    of_column.push_back(static_cast<std::uint32_t>(bins_of(i) / std::max(n_numerical, 1u)));
    most_bins = std::max(most_bins, n_bins);
    constexpr std::uint64_t kFeature =
        BinBytes::kColumn + BinBytes::kCell + BinBytes::kOffset + BinBytes::kCandidates;
    descriptions += BinBytes::kBin * n_bins + kFeature * (std::uint64_t{n_features} + 1);
    // Two groups that follow each other have more bins than a block has room for.
    descriptions +=
        (BinBytes::kGroup + BinBytes::kCells) *
        (is_mixed ? mixed.Num(bins_of(i), max_bins, max_bins) : n_bins / (max_bins / 2) + 1);
  }
  StoredResolutions const stored{n_features, is_mixed ? resolutions : of_column};
  std::vector<std::uint32_t> const of_groups = stored.GroupColumns(memory, max_bins);
  if (!is_mixed) {
    descriptions += RowOffsetBytes(n_entries, n_rows, n_features, memory, max_bins);
  }
  for (std::size_t i = 0; i < of_groups.size(); ++i) {
    bool const in_bytes = stored.last != 0 && i + 1 == of_groups.size();
    std::uint64_t row_bytes{0};
    if (is_mixed) {
      // The coarsest resolution that reads an array makes its groups.
      std::size_t const r = in_bytes             ? resolutions.size() - 1
                            : memory.shares_bins ? stored.reading.size() - 1
                                                 : i;
      std::uint32_t const longest = n_numerical == 0 ? 0
                                    : r == 0         ? MaxValues(n_rows, resolutions[0], max_bins)
                                                     : resolutions[r];
      std::uint64_t n_groups = mixed.Num(bins_of(r), longest, max_bins);
      if (r != 0 && !in_bytes) {  // what is stored fits elements, too
        n_groups += mixed.Num(n_finest - mixed.NumBins(), max_bins, kMaxStoredBins);
      }
      descriptions += mixed.RowOffsetBytes(std::min<std::uint64_t>(n_groups, n_features));
      row_bytes = sizeof(GroupBin) * mixed.RowElements(n_groups, in_bytes);
    } else {
      row_bytes = RowBytes(n_features, LimitGroupColumns(of_groups[i], n_rows), in_bytes);
    }
    // Where most values are missing some groups have cells all the same, of which half have a
    // value, and an eighth fills them up.
    elements += is_dense ? rows * row_bytes : sizeof(GroupBin) * (9 * n_entries / 4);
  }
}
}  // namespace gpu_exact
