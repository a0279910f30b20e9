/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements bin_layout.h.
 */
#include "plan/bin_layout.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace gpu_exact {
namespace {
/** @brief Choose the elements that a lane loads at once: aligned ones, and few beyond the group's
 *         own. */
std::uint32_t ChunkOf(std::uint32_t stride, std::uint32_t first, std::uint32_t n_columns) {
  for (std::uint32_t chunk : {8u, 4u, 2u}) {
    if (stride % chunk == 0 && first % chunk == 0 && n_columns > chunk / 2) {
      return chunk;
    }
  }
  return 1;
}

std::uint64_t RoundUp(std::uint64_t n, std::uint64_t step) { return (n + step - 1) / step * step; }

/** @brief Tells whether rows have a cell for each column of a group: most values are present. */
bool HasCells(GroupLayout const& group, RowIdx n_rows) {
  return std::uint64_t{n_rows} * group.n_columns <= 2 * group.n_entries;
}

/** @brief Computes the most bins of a group of several columns. */
std::uint64_t MostBinsOfGroup(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                              std::vector<ColumnBins> const& coarsest, GroupLimits const& limits) {
  if (limits.max_group_bins != 0) {
    return std::min(limits.max_bins, limits.max_group_bins);
  }
  EntryIdx const n = std::accumulate(n_entries.cbegin(), n_entries.cend(), EntryIdx{0});
  if (std::max<EntryIdx>(n, n_rows) >= kManyEntries) {
    return limits.max_bins;
  }
  auto const add = [](std::uint64_t sum, ColumnBins const& c) { return sum + c.n_bins; };
  std::uint64_t const n_bins =
      std::accumulate(coarsest.cbegin(), coarsest.cend(), std::uint64_t{0}, add);
  std::uint64_t const n_groups = std::min<std::uint64_t>(limits.n_blocks, FillingGroups(n, n_rows));
  return std::min<std::uint64_t>(limits.max_bins, (n_bins + n_groups - 1) / n_groups);
}

/** @brief Forms groups of columns. @param stored Whose groups are read; nullptr: they are
 *         stored. */
BinLayout MakeGroups(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                     std::vector<ColumnBins> const& bins, std::vector<ColumnBins> const& coarsest,
                     GroupLimits const& limits, bool in_bytes, BinLayout const* stored) {
  BinLayout out;
  out.n_rows = n_rows;
  out.n_features = static_cast<FeatureIdx>(n_entries.size());
  out.is_stored = stored == nullptr;
  std::uint64_t const limit = MostBinsOfGroup(n_rows, n_entries, coarsest, limits);
  std::uint64_t n_coarsest{0};    // bins of the group
  std::uint32_t stored_group{0};  // that it reads
  for (FeatureIdx f = 0; f < out.n_features; ++f) {
    std::uint32_t const n_of_column = bins[f].n_bins;
    if (n_of_column == 0) {
      continue;
    }
    std::uint32_t const reads = stored == nullptr ? 0 : stored->columns[out.columns.size()].group;
    // In bytes, each column of a group has a bank. Groups without cells are not, and may be wider.
    auto const is_full = [&](GroupLayout const& group) {
      return n_coarsest + coarsest[f].n_bins > limit || reads != stored_group ||
             group.n_bins + n_of_column > kMaxStoredBins ||
             (in_bytes && group.n_columns == kMaxByteColumns && HasCells(group, n_rows)) ||
             group.n_columns == RowOffsetBlock::kMaxColumns ||
             std::uint64_t{n_rows} * (group.n_columns + 1) > kMaxGroupCells;
    };
    if (out.groups.empty() || is_full(out.groups.back())) {
      GroupLayout group;
      group.first_bin = out.n_bins;
      group.first_column = static_cast<std::uint32_t>(out.columns.size());
      out.groups.push_back(group);
      n_coarsest = 0;
      stored_group = reads;
    }
    GroupLayout& group = out.groups.back();
    out.columns.push_back(
        {f, static_cast<std::uint32_t>(out.groups.size() - 1), group.n_bins, n_of_column});
    n_coarsest += coarsest[f].n_bins;
    ++group.n_columns;
    group.n_bins += n_of_column;
    group.n_entries += n_entries[f];
    group.has_ranges = group.has_ranges || bins[f].has_ranges;
    out.has_ranges = out.has_ranges || bins[f].has_ranges;
    out.n_bins += n_of_column;
    out.n_entries += n_entries[f];
  }
  for (GroupLayout& group : out.groups) {
    group.has_missing = group.n_entries != std::uint64_t{n_rows} * group.n_columns;
  }
  return out;
}

/** @brief Gives a group whose rows have cells its stride, and bytes in place of words if they
 *         fit. */
void GiveCells(GroupLayout* group, BinLayout* out, std::uint32_t max_bins, bool in_bytes) {
  auto const first = out->columns.cbegin() + group->first_column;
  auto const last = first + group->n_columns;
  auto const fewer = [](BinColumn const& a, BinColumn const& b) { return a.n_bins < b.n_bins; };
  std::uint32_t const longest = std::max_element(first, last, fewer)->n_bins;
  std::uint32_t const n_bytes =
      in_bytes && group->n_columns <= kMaxByteColumns ? NumByteCells(group->n_columns) : 0;
  if (n_bytes == 0 || longest > kMaxByteBins || longest * kMaxByteColumns > max_bins) {
    group->stride = NumCells(group->n_columns);
    group->chunk = ChunkOf(group->stride, 0, group->n_columns);
    return;
  }
  group->stride = n_bytes;
  group->chunk = 8;
  group->longest = longest;
  group->first_bins = out->first_bins.size();
  std::transform(first, last, std::back_inserter(out->first_bins),
                 [](BinColumn const& c) { return static_cast<GroupBin>(c.first_bin); });
  out->first_bins.resize(group->first_bins + group->stride, 0);
}

/** @brief Says for each column of a group how stored bins become its own. */
void AddCellMaps(BinLayout const& stored, std::vector<ColumnBins> const& bins, GroupLayout* group,
                 BinLayout* out) {
  group->by_column = true;
  group->cell_maps = out->cell_maps.size();
  group->first_bins = out->first_bins.size();
  for (std::uint32_t k = 0; k < group->n_columns; ++k) {
    BinColumn const& own = out->columns[group->first_column + k];
    std::uint32_t const first_stored = stored.columns[group->first_column + k].first_bin;
    out->cell_maps.push_back(CellMap::Make(bins[own.feature].shift, own.first_bin, first_stored));
    if (!group->Strided()) {
      out->first_bins.push_back(static_cast<GroupBin>(first_stored));
    }
  }
  out->cell_maps.resize(RoundUp(out->cell_maps.size(), kAlignedElements), CellMap::None());
}
}  // namespace

bool ReadsFinest(std::uint64_t n_stored, bool is_alike) {
  constexpr std::uint64_t kCached = std::uint64_t{1}
                                    << 24;  // at 2 B each, half of an H200's L2 cache
  return n_stored > kCached && is_alike;
}

std::uint64_t BinLayout::DescriptionBytes() const {
  return BinBytes::kGroup * groups.size() + sizeof(BinColumn) * columns.size() +
         sizeof(std::uint32_t) * (n_features + n_row_offsets) +
         sizeof(GroupBin) * first_bins.size() + sizeof(CellMap) * cell_maps.size();
}

BinLayout LayStored(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                    std::vector<ColumnBins> const& bins, std::vector<ColumnBins> const& coarsest,
                    GroupLimits const& limits, bool in_bytes) {
  BinLayout out = MakeGroups(n_rows, n_entries, bins, coarsest, limits, in_bytes, nullptr);
  for (GroupLayout& group : out.groups) {
    group.n_stored = group.n_bins;
    group.n_elements = group.n_entries;
    group.elements = out.n_elements;
    std::uint64_t n_words{group.n_entries};  // of two bytes
    if (HasCells(group, n_rows)) {
      GiveCells(&group, &out, limits.max_bins, in_bytes);
      group.n_elements = std::uint64_t{n_rows} * group.stride;
      n_words = group.n_elements / (group.InBytes() ? sizeof(GroupBin) : 1);
    } else {
      group.is_narrow = RowOffsetBlock::IsNarrow(group.n_columns);
      group.row_offsets = out.n_row_offsets;
      out.n_row_offsets += RowOffsetBlock::Bytes(n_rows, group.is_narrow) / sizeof(std::uint32_t);
    }
    out.n_elements += RoundUp(n_words, kAlignedElements);
  }
  out.n_elements += kElementsBeyond;
  return out;
}

BinLayout LayRead(BinLayout const& stored, std::vector<std::uint32_t> const& n_entries,
                  std::vector<ColumnBins> const& bins, GroupLimits const& limits) {
  BinLayout out = MakeGroups(stored.n_rows, n_entries, bins, bins, limits, false, &stored);
  for (GroupLayout& group : out.groups) {
    auto const own = out.columns.cbegin() + group.first_column;
    BinColumn const& first = stored.columns[group.first_column];
    BinColumn const& last = stored.columns[group.first_column + group.n_columns - 1];
    GroupLayout const& from = stored.groups[first.group];
    std::uint32_t const first_cell = group.first_column - from.first_column;
    group.first_stored = first.first_bin;
    group.n_stored = last.first_bin + last.n_bins - first.first_bin;
    group.shift = bins[first.feature].shift;
    bool const alike = std::all_of(own, own + group.n_columns, [&](BinColumn const& column) {
      std::uint32_t const n = stored.columns[&column - out.columns.data()].n_bins;
      return bins[column.feature].shift == group.shift && n % (1u << group.shift) == 0;
    });
    group.reads_part = group.n_columns != from.n_columns;
    group.row_offsets = from.row_offsets;
    group.is_narrow = from.is_narrow;
    group.stride = from.stride;
    group.elements = from.elements + (from.Strided() ? first_cell : 0);
    group.chunk = from.Strided() ? ChunkOf(group.stride, first_cell, group.n_columns) : 0;
    // Of rows without cells all elements are met.
    group.n_elements =
        from.Strided() ? std::uint64_t{stored.n_rows} * group.n_columns : from.n_elements;
    bool const loads_others =
        group.Strided() && group.reads_part && group.n_columns % group.chunk != 0;
    if (!alike || loads_others) {
      AddCellMaps(stored, bins, &group, &out);
    }
  }
  return out;
}

TableLayout LayTable(RowIdx n_rows, std::vector<std::uint32_t> const& n_entries,
                     std::vector<std::vector<ColumnBins>> const& resolutions, bool in_bytes,
                     bool reads_finest, GroupLimits const& limits) {
  EntryIdx const n = std::accumulate(n_entries.cbegin(), n_entries.cend(), EntryIdx{0});
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  bool const is_dense = IsDense(n, n_rows, n_features);
  std::uint64_t const n_stored = NumStoredBins(n, n_rows, n_features);
  auto const store = [&](std::size_t coarsest) {
    return LayStored(n_rows, n_entries, resolutions.front(), resolutions[coarsest], limits);
  };
  auto const read = [&](BinLayout const& stored, std::size_t i) {
    return LayRead(stored, n_entries, resolutions[i], limits);
  };
  auto const are_alike = [&](BinLayout const& layout) {
    return std::none_of(layout.groups.cbegin(), layout.groups.cend(),
                        [](GroupLayout const& group) { return group.by_column; });
  };
  auto const reads = [&](BinLayout const& stored, std::size_t i) {
    return reads_finest || ReadsFinest(n_stored, is_dense || are_alike(read(stored, i)));
  };
  std::size_t coarsest = resolutions.size() - (in_bytes ? 2 : 1);  // that reads them
  TableLayout out{store(coarsest), {}};
  while (coarsest > 0 && !reads(out.stored, coarsest)) {
    out.stored = store(--coarsest);
  }
  for (std::size_t i = 0; i < resolutions.size(); ++i) {
    if (i == 0 || (i <= coarsest && reads(out.stored, i))) {
      out.resolutions.push_back(read(out.stored, i));
    } else {
      bool const is_last = i + 1 == resolutions.size();
      out.resolutions.push_back(LayStored(n_rows, n_entries, resolutions[i], resolutions[i], limits,
                                          in_bytes && is_last));
    }
  }
  return out;
}
}  // namespace gpu_exact
