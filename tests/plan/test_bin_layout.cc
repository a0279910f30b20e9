/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests where bins lie.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "plan/bin_layout.h"
#include "tests/support/random_columns.h"

namespace gpu_exact {
namespace {
TEST(IsDense, WhereHalfOfTheValuesArePresent) {
  EXPECT_TRUE(IsDense(50, 10, 10));
  EXPECT_FALSE(IsDense(49, 10, 10));
}

TEST(SortedColumnHighBytes, OneUpTo24Bits) {
  EXPECT_EQ(SortedColumnHighBytes(1u << 24), 1u);
  EXPECT_EQ(SortedColumnHighBytes((1u << 24) + 1), 2u);
}

TEST(NumStoredBins, APlaceForEachRowOfADenseTable) {
  EXPECT_EQ(NumStoredBins(50, 10, 10), 100u);
  EXPECT_EQ(NumStoredBins(49, 10, 10), 49u);
}

TEST(ReadsFinest, LargeTables) {
  EXPECT_TRUE(ReadsFinest(1 << 26, true));
  EXPECT_FALSE(ReadsFinest(1 << 26, false)) << "the column of each bin is to be found";
  EXPECT_FALSE(ReadsFinest(1 << 22, true)) << "the cache holds them";
}

/** @brief Every stored bin of a column, wherever it lies among the stored ones and the group's. */
TEST(CellMap, StoredBinsBecomeTheGroups) {
  for (std::uint32_t shift = 0; shift <= 11; ++shift) {
    for (std::uint32_t first_stored : {0u, 1u, 77u, 2048u, 30'001u}) {
      for (std::uint32_t first_bin : {0u, 5u, 10'000u}) {
        CellMap const map = CellMap::Make(shift, first_bin, first_stored);
        for (std::uint32_t k = 0; k < 10'240; ++k) {
          ASSERT_EQ(map.BinOf(first_stored + k), first_bin + (k >> shift))
              << k << " of " << first_stored << " shifted by " << shift;
        }
        ASSERT_EQ(map.BinOf(CellMap::kNoBin), CellMap::kNoBin);
      }
    }
  }
  for (std::uint32_t stored : {0u, 1u, kMaxStoredBins - 1, CellMap::kNoBin}) {
    EXPECT_EQ(CellMap::None().BinOf(stored), CellMap::kNoBin);
  }
}

TEST(NumCells, WholeChunksWhereLittleIsLost) {
  EXPECT_EQ(NumCells(8), 8u);
  EXPECT_EQ(NumCells(28), 28u);  // in chunks of four
  EXPECT_EQ(NumCells(31), 32u);
  EXPECT_EQ(NumCells(5), 5u);
  EXPECT_EQ(NumByteCells(4), 0u);  // would take as much as two bytes each
  EXPECT_EQ(NumByteCells(5), 8u);
  EXPECT_EQ(NumByteCells(40), 40u);
  for (std::uint32_t n = 1; n < 300; ++n) {
    EXPECT_GE(NumCells(n), n);
    EXPECT_LE(8 * NumCells(n), 9 * n);
    EXPECT_TRUE(NumByteCells(n) == 0 || (NumByteCells(n) >= n && NumByteCells(n) % 8 == 0));
  }
}
/** @brief Checks what is laid out against the columns, and that no two things share room. */
class LayoutCheck {
 public:
  LayoutCheck(RandomColumns const& table, std::vector<ColumnBins> const& bins,
              BinLayout const& layout)
      : table_{table}, bins_{bins}, layout_{layout} {}

  /** @brief Bins of groups and columns follow each other without a gap, in the order of
   *         features. */
  void Groups() const {
    std::uint64_t n_bins{0}, n_entries{0};
    std::uint32_t n_columns{0};
    FeatureIdx next{0};
    for (std::uint32_t g = 0; g < layout_.groups.size(); ++g) {
      GroupLayout const& group = layout_.groups[g];
      ASSERT_GT(group.n_columns, 0u);
      ASSERT_EQ(group.first_bin, n_bins);
      ASSERT_EQ(group.first_column, n_columns);
      std::uint32_t of_group{0};
      std::uint64_t n_present{0};
      bool has_ranges{false};
      for (; n_columns < group.first_column + group.n_columns; ++n_columns) {
        BinColumn const& column = layout_.columns.at(n_columns);
        for (; next < column.feature; ++next) {
          ASSERT_EQ(bins_[next].n_bins, 0u) << "left out";
        }
        ++next;
        ASSERT_EQ(column.group, g);
        ASSERT_EQ(column.first_bin, of_group);
        ASSERT_EQ(column.n_bins, bins_[column.feature].n_bins);
        of_group += column.n_bins;
        n_present += table_.n_entries[column.feature];
        has_ranges = has_ranges || bins_[column.feature].has_ranges;
      }
      ASSERT_EQ(group.n_bins, of_group);
      ASSERT_EQ(group.n_entries, n_present);
      ASSERT_EQ(group.has_ranges, has_ranges);
      ASSERT_EQ(group.has_missing, n_present != std::uint64_t{table_.n_rows} * group.n_columns);
      n_bins += of_group;
      n_entries += n_present;
    }
    ASSERT_EQ(n_columns, layout_.columns.size());
    ASSERT_EQ(layout_.n_bins, n_bins);
    ASSERT_EQ(layout_.n_entries, n_entries);
  }

  /** @brief A group has as many bins, columns and cells as a block can take. */
  void Limits(std::vector<ColumnBins> const& coarsest, GroupLimits const& limits) const {
    std::uint32_t const most = limits.max_group_bins == 0
                                   ? limits.max_bins
                                   : std::min(limits.max_bins, limits.max_group_bins);
    for (GroupLayout const& group : layout_.groups) {
      std::uint64_t n_coarsest{0};
      for (std::uint32_t c = 0; c < group.n_columns; ++c) {
        n_coarsest += coarsest[layout_.columns[group.first_column + c].feature].n_bins;
      }
      ASSERT_TRUE(group.n_columns == 1 || n_coarsest <= most);
      ASSERT_LE(group.n_bins, kMaxStoredBins);
      ASSERT_LE(group.n_columns, RowOffsetBlock::kMaxColumns);
    }
  }

  /** @brief Of stored bins: arrays of groups follow each other, aligned, within what is
   *         allocated. */
  void Stored(bool in_bytes, std::uint32_t max_bins) const {
    std::uint64_t elements{0}, row_offsets{0}, first_bins{0};
    for (GroupLayout const& group : layout_.groups) {
      std::uint64_t const n_cells = std::uint64_t{table_.n_rows} * group.n_columns;
      auto const first = layout_.columns.cbegin() + group.first_column;
      std::uint32_t longest{0};
      for (auto c = first; c != first + group.n_columns; ++c) {
        longest = std::max(longest, c->n_bins);
      }
      ASSERT_EQ(group.Strided(), n_cells <= 2 * group.n_entries);
      ASSERT_EQ(group.InBytes(), in_bytes && group.Strided() && longest <= kMaxByteBins &&
                                     longest * kMaxByteColumns <= max_bins &&
                                     group.n_columns <= kMaxByteColumns &&
                                     NumByteCells(group.n_columns) != 0);
      ASSERT_TRUE(!group.InBytes() || group.longest == longest);
      ASSERT_EQ(group.elements, elements);
      ASSERT_EQ(group.elements % kAlignedElements, 0u);
      ASSERT_EQ(group.shift, 0u);
      ASSERT_EQ(group.n_stored, group.n_bins);
      ASSERT_EQ(group.n_elements,
                group.Strided() ? std::uint64_t{table_.n_rows} * group.stride : group.n_entries);
      ASSERT_TRUE(!group.Strided() || group.stride >= group.n_columns);
      std::uint64_t const n_bytes = group.n_elements * (group.InBytes() ? 1 : sizeof(GroupBin));
      elements += (n_bytes + sizeof(GroupBin) * kAlignedElements - 1) /
                  (sizeof(GroupBin) * kAlignedElements) * kAlignedElements;
      if (!group.Strided()) {
        ASSERT_EQ(group.row_offsets, row_offsets);
        row_offsets += RowOffsetBlock::Bytes(table_.n_rows, group.is_narrow) / 4;
      }
      if (group.InBytes()) {
        ASSERT_EQ(group.first_bins, first_bins);
        for (std::uint32_t c = 0; c < group.n_columns; ++c) {
          ASSERT_EQ(layout_.first_bins.at(first_bins + c), first[c].first_bin);
        }
        first_bins += group.stride;
      }
    }
    ASSERT_EQ(layout_.n_elements, elements + kElementsBeyond);
    ASSERT_EQ(layout_.n_row_offsets, row_offsets);
    ASSERT_EQ(layout_.first_bins.size(), first_bins);
    ASSERT_EQ(layout_.DescriptionBytes(), 96 * layout_.groups.size() + 16 * layout_.columns.size() +
                                              4 * (table_.n_entries.size() + row_offsets) +
                                              2 * first_bins);
    ASSERT_TRUE(layout_.cell_maps.empty());
  }

  /** @brief Of bins that are read: each group reads some columns of one stored group, in their
   *         cells. */
  void Read(BinLayout const& stored) const {
    std::uint64_t n_maps{0}, n_first{0};
    for (GroupLayout const& group : layout_.groups) {
      BinColumn const& first = stored.columns.at(group.first_column);
      GroupLayout const& from = stored.groups.at(first.group);
      ASSERT_EQ(group.stride, from.stride);
      ASSERT_EQ(group.is_narrow, from.is_narrow);
      ASSERT_EQ(group.row_offsets, from.row_offsets);
      ASSERT_LE(group.first_column + group.n_columns, from.first_column + from.n_columns);
      ASSERT_EQ(group.elements - from.elements,
                group.Strided() ? group.first_column - from.first_column : 0);
      ASSERT_TRUE(!group.Strided() || (group.elements - from.elements) % group.chunk == 0);
      ASSERT_EQ(group.reads_part, group.n_columns != from.n_columns);
      ASSERT_EQ(group.n_elements,
                group.Strided() ? std::uint64_t{table_.n_rows} * group.n_columns : from.n_elements);
      std::uint32_t n_stored{0};
      bool alike{true};
      for (std::uint32_t c = 0; c < group.n_columns; ++c) {
        BinColumn const& column = layout_.columns[group.first_column + c];
        n_stored += stored.columns[group.first_column + c].n_bins;
        std::uint32_t const shift = bins_[column.feature].shift;
        alike = alike && shift == bins_[first.feature].shift &&
                stored.columns[group.first_column + c].n_bins % (1u << shift) == 0;
        if (group.by_column) {
          BinColumn const& from_column = stored.columns[group.first_column + c];
          CellMap const& map = layout_.cell_maps.at(group.cell_maps + c);
          ASSERT_EQ(map.BinOf(from_column.first_bin), column.first_bin);
          ASSERT_EQ(map.BinOf(from_column.first_bin + from_column.n_bins - 1),
                    column.first_bin + column.n_bins - 1);
          ASSERT_TRUE(group.Strided() ||
                      layout_.first_bins.at(group.first_bins + c) == from_column.first_bin);
        }
      }
      ASSERT_EQ(group.first_stored, first.first_bin);
      ASSERT_EQ(group.n_stored, n_stored);
      bool const others = group.Strided() && group.reads_part && group.n_columns % group.chunk != 0;
      ASSERT_EQ(group.by_column, !alike || others);
      ASSERT_TRUE(!alike || group.n_bins << group.shift == group.n_stored);
      if (group.by_column) {
        ASSERT_EQ(group.cell_maps, n_maps);
        n_maps += (group.n_columns + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
        n_first += group.Strided() ? 0 : group.n_columns;
        for (auto i = group.cell_maps + group.n_columns; i < n_maps; ++i) {
          ASSERT_EQ(layout_.cell_maps.at(i).word, CellMap::None().word);
        }
      }
    }
    ASSERT_EQ(layout_.cell_maps.size(), n_maps);
    ASSERT_EQ(layout_.first_bins.size(), n_first);
    ASSERT_EQ(layout_.n_elements + layout_.n_row_offsets, 0u);
    ASSERT_EQ(layout_.DescriptionBytes(), 96 * layout_.groups.size() + 16 * layout_.columns.size() +
                                              4 * table_.n_entries.size() + 4 * n_maps +
                                              2 * n_first);
  }

 private:
  RandomColumns const& table_;
  std::vector<ColumnBins> const& bins_;
  BinLayout const& layout_;
};

RandomColumns MakeColumns(unsigned seed, std::mt19937* engine) {
  constexpr RowIdx kRows[] = {0, 1, 33, 300, 20'000, 3'000'000, 400'000'000};
  constexpr FeatureIdx kColumns[] = {1, 2, 9, 40, 300, 7000};
  RandomColumns table{kRows[seed % 7], kColumns[(*engine)() % 6], engine};
  table.Bin({(*engine)() % 2 == 0 ? 2560u : 401u, 200, 20}, 3932, engine);
  return table;
}

TEST(BinLayout, StoredAndReadOfRandomColumns) {
  std::mt19937 engine{1};
  for (unsigned seed = 0; seed < 200; ++seed) {
    RandomColumns const table = MakeColumns(seed, &engine);
    constexpr std::uint32_t kGroupBins[] = {0, 1, 500, 20'000};
    GroupLimits const limits{3932, 108, kGroupBins[engine() % 4]};
    for (auto const& bins : table.resolutions) {
      for (bool in_bytes : {false, true}) {
        auto const own = LayStored(table.n_rows, table.n_entries, bins, bins, limits, in_bytes);
        LayoutCheck const check{table, bins, own};
        check.Groups();
        check.Limits(bins, limits);
        check.Stored(in_bytes, limits.max_bins);
        ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", in bytes " << in_bytes;
      }
    }
    for (auto const& coarsest : table.resolutions) {
      auto const& finest = table.resolutions.front();
      auto const stored = LayStored(table.n_rows, table.n_entries, finest, coarsest, limits);
      LayoutCheck{table, finest, stored}.Groups();
      LayoutCheck{table, finest, stored}.Limits(coarsest, limits);
      LayoutCheck{table, finest, stored}.Stored(false, limits.max_bins);
      for (auto const& bins : table.resolutions) {
        BinLayout const read = LayRead(stored, table.n_entries, bins, limits);
        LayoutCheck{table, bins, read}.Groups();
        LayoutCheck{table, bins, read}.Limits(bins, limits);
        LayoutCheck{table, bins, read}.Read(stored);
        ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
      }
    }
  }
}

/** @brief A small table has a group for each multiprocessor, as far as its rows are worth it. */
TEST(BinLayout, ASmallTableFillsTheDevice) {
  std::vector<ColumnBins> const bins(50, {100});
  auto n_groups = [&](RowIdx n_rows, std::uint32_t n_blocks) {
    std::vector<std::uint32_t> const n_entries(bins.size(), n_rows);
    return LayStored(n_rows, n_entries, bins, bins, {kMaxGroupBins, n_blocks}).groups.size();
  };
  EXPECT_EQ(n_groups(1000, 10), 10u);
  EXPECT_EQ(n_groups(1000, 132), 50u) << "a group for each column";
  EXPECT_EQ(n_groups(kManyEntries, 10), 1u) << "enough to do as it is";
}

TEST(BinLayout, RowsOfAGroupAreNumberedIn32Bits) {
  constexpr RowIdx kRows = RowIdx{1} << 28;
  std::vector<ColumnBins> const bins(9, {100});
  std::vector<std::uint32_t> const n_entries(bins.size(), kRows);
  auto const layout = LayStored(kRows, n_entries, bins, bins, {kMaxGroupBins, 132});
  ASSERT_EQ(layout.groups.size(), 3u);
  EXPECT_EQ(layout.groups[0].n_columns, 4u);
  EXPECT_EQ(layout.groups[2].n_columns, 1u);
  EXPECT_EQ(layout.ElementBytes(), (std::uint64_t{18} << 28) + 2 * kElementsBeyond);
}

/** @brief Lays out 40 columns, some of which have few values and are not shifted. */
TableLayout LayColumns(RowIdx n_rows, std::uint32_t of_column, std::uint32_t n_few, bool in_bytes,
                       bool reads_finest) {
  std::vector<ColumnBins> finest(40, {400, true});
  std::vector<ColumnBins> coarser(40, {200, true, 1});
  std::vector<ColumnBins> last(40, {25, true, 4});
  for (auto* bins : {&finest, &coarser, &last}) {
    std::fill_n(bins->begin(), n_few, ColumnBins{20});
  }
  return LayTable(n_rows, std::vector<std::uint32_t>(40, of_column), {finest, coarser, last},
                  in_bytes, reads_finest, {kMaxGroupBins, 132});
}

/** @brief Where memory leaves the choice, large tables share bins: dense ones all, others where all
 *         columns of a group are shifted alike. */
TEST(TableLayout, WhichResolutionsReadTheFinest) {
  auto n_stored = [](TableLayout const& table) {
    EXPECT_FALSE(table.resolutions.front().is_stored) << "the finest is read from what is stored";
    return std::count_if(table.resolutions.cbegin(), table.resolutions.cend(),
                         [](BinLayout const& r) { return r.is_stored; });
  };
  constexpr RowIdx kRows = 10'000'000;
  EXPECT_EQ(n_stored(LayColumns(1500, 1500, 0, true, false)), 2) << "the cache holds them";
  EXPECT_EQ(n_stored(LayColumns(1500, 1500, 0, true, true)), 1) << "bytes are its own";
  EXPECT_EQ(n_stored(LayColumns(1500, 1500, 0, false, true)), 0);
  EXPECT_EQ(n_stored(LayColumns(kRows, kRows, 20, true, false)), 1) << "most values are present";
  EXPECT_EQ(n_stored(LayColumns(kRows, kRows / 10, 0, false, false)), 0);
  EXPECT_EQ(n_stored(LayColumns(kRows, kRows / 10, 20, false, false)), 2) << "columns differ";
  EXPECT_EQ(n_stored(LayColumns(kRows, kRows / 10, 20, false, true)), 0);
  auto const unshared = LayColumns(kRows, kRows / 10, 20, false, false);
  EXPECT_EQ(unshared.stored.groups.size(), unshared.resolutions[0].groups.size())
      << "nobody else reads them";
  auto const shared = LayColumns(kRows, kRows, 0, true, true);
  EXPECT_LT(shared.stored.groups.size(), shared.resolutions[0].groups.size())
      << "groups are those of the coarsest that reads them";
  EXPECT_EQ(shared.stored.groups.size(), shared.resolutions[1].groups.size());
  EXPECT_TRUE(shared.resolutions[2].groups.front().InBytes());
}
}  // namespace
}  // namespace gpu_exact
