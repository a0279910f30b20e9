/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tests that no layout takes more than its bound.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "plan/bin_bound.h"
#include "plan/memory_plan.h"
#include "plan/search_cost.h"
#include "tests/support/random_columns.h"

namespace gpu_exact {
namespace {
TEST(RowOffsetBytes, AreManyOfVerySparseTablesOnly) {
  EXPECT_EQ(RowOffsetBytes(294'000'000, 10'500'000, 28, {false}), 0u);
  EXPECT_EQ(RowOffsetBytes(0, 0, 0, {false}), 0u);
  EXPECT_LE(RowOffsetBytes(197'000'000, 1'070'000, 968, {false}), 8 * EntryIdx{197'000'000});
  // One group of columns at least, in each resolution, and more of them where rows are many.
  EXPECT_GE(RowOffsetBytes(1'000'000'000, 100'000'000, 1'000, {false}), std::uint64_t{60} << 30);
  EXPECT_GE(RowOffsetBytes(100'000'000, 10'000'000, 100'000, {false}), std::uint64_t{50} << 30);
}

TEST(RowOffsetBytes, ColumnsOfOneEntryShareAGroup) {
  constexpr RowIdx kRows = 100'000;
  constexpr FeatureIdx kColumns = 22 * RowOffsetBlock::kMaxColumns;
  constexpr std::uint64_t kGroup = RowOffsetBlock::Bytes(kRows, false);
  auto const n_resolutions =
      ChooseResolutions(kRows, kColumns, kMaxGroupBins, kMaxSortedRows).size();
  EXPECT_EQ(RowOffsetBytes(kColumns, kRows, kColumns), n_resolutions * 22 * kGroup);
  EXPECT_EQ(NumRowOffsets(kColumns, kRows, kColumns), n_resolutions * 22 * kRows);
  HistogramMemory memory;
  memory.reads_finest = true;  // those of the finest and those of the last
  EXPECT_EQ(RowOffsetBytes(kColumns, kRows, kColumns, memory), 2 * 22 * kGroup);
}

/** @brief Of 10,240 bins a group has 64 columns of 160, of 3,932 it has 24. */
TEST(RowOffsetBytes, AreMoreWhereABlockHasLessRoom) {
  constexpr RowIdx kRows = 37'500;
  constexpr FeatureIdx kColumns = 100'000;
  constexpr EntryIdx kEntries = 60'000'000;
  auto const wide = RowOffsetBytes(kEntries, kRows, kColumns, {}, kMaxGroupBinsOf[0]);
  auto const narrow = RowOffsetBytes(kEntries, kRows, kColumns, {}, kMaxGroupBinsOf[2]);
  EXPECT_EQ(wide, RowOffsetBytes(kEntries, kRows, kColumns));
  EXPECT_LT(wide, std::uint64_t{600} << 20);
  EXPECT_GE(narrow, std::uint64_t{630} << 20);
}

/** @brief A table of few entries has a group for each multiprocessor, so that all have work. */
TEST(RowOffsetBytes, ASmallTableHasGroupsThatFillTheDevice) {
  constexpr RowIdx kRows = 246'000;
  constexpr EntryIdx kEntries = 4'190'000;
  constexpr std::uint64_t kGroup = RowOffsetBlock::Bytes(kRows, true);
  constexpr std::uint64_t kArrays = 3;
  constexpr std::uint64_t kArraysOfFew = 2;
  EXPECT_EQ(RowOffsetBytes(kEntries, kRows, 66), kArrays * 66 * kGroup)
      << "a group for each column";
  EXPECT_LE(RowOffsetBytes(kManyEntries, kRows, 66), 8 * kArrays * kGroup) << "many entries";
  // The bins of so few entries fit one group: it may become twice as many as fill the device, and
  // one.
  EXPECT_EQ(RowOffsetBytes(2460, kRows, 20), (3 + 1) * kArraysOfFew * kGroup)
      << "ten columns take two";
  EXPECT_EQ(RowOffsetBytes(2460, kRows, 2), 2 * kArraysOfFew * kGroup) << "no more than columns";
  EXPECT_EQ(FillingGroups(kRows, kRows), 2u);
  EXPECT_EQ(FillingGroups(0, 0), 1u);
}

/** @brief Groups of a dense table most of whose values are missing: not more than miss half of
 *         them. */
TEST(RowOffsetBytes, OfColumnsMostlyMissingInADenseTable) {
  constexpr RowIdx kRows = 1'000'000;
  constexpr std::uint64_t kGroup = RowOffsetBlock::Bytes(kRows, true);
  EXPECT_EQ(RowOffsetBytes(EntryIdx{40} * kRows, kRows, 40), 0u);
  EXPECT_EQ(NumRowOffsets(EntryIdx{40} * kRows, kRows, 40), 0u);
  EXPECT_EQ(RowOffsetBytes(EntryIdx{40} * kRows - kRows / 2 + 1, kRows, 40), 0u)
      << "less than half";
  auto const half = RowOffsetBytes(EntryIdx{20} * kRows, kRows, 40);
  EXPECT_GE(half, 10 * kGroup) << "all groups of columns that share a block";
  auto const few = RowOffsetBytes(EntryIdx{37} * kRows, kRows, 40);
  EXPECT_GE(few, 1 * kGroup);
  EXPECT_LT(few, half / 2);
}

/** @brief A small dense table has groups that fill the device: each column that is mostly missing may be one,
 *         as these four of five are. */
TEST(RowOffsetBytes, OfColumnsMostlyMissingInASmallDenseTable) {
  constexpr RowIdx kRows = 400'000;
  std::vector<std::uint32_t> const n_entries{kRows, 157'126, 157'126, 157'126, 157'126};
  constexpr EntryIdx kEntries = 1'028'504;
  static_assert(IsDense(kEntries, kRows, 5));
  BinBound const bound{kEntries, kRows, 5, {}, kMaxGroupBins};
  std::vector<std::vector<ColumnBins>> resolutions;
  for (std::uint32_t const n : bound.resolutions) {
    resolutions.emplace_back(5, ColumnBins{n, true});
  }
  TableLayout const layout =
      LayTable(kRows, n_entries, resolutions, LastTakesBytes(5, bound.resolutions), false,
               {kMaxGroupBins, 132});
  std::uint64_t taken = layout.stored.DescriptionBytes();
  for (BinLayout const& r : layout.resolutions) {
    taken += r.is_stored ? r.DescriptionBytes() : 0;
  }
  EXPECT_GE(taken, 2 * 4 * RowOffsetBlock::Bytes(kRows, true));
  EXPECT_LE(taken, bound.descriptions);
}

/** @brief Of more rows and columns than any machine has, too: 64 bits would wrap. */
TEST(RowOffsetBytes, DoNotWrap) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  constexpr EntryIdx kEntries = EntryIdx{1} << 33;
  for (RowIdx n_rows : {RowIdx{1} << 31, kMost}) {
    std::uint64_t before{0};
    for (FeatureIdx n_features : {1u << 12, 1u << 20, 1u << 30, 1u << 31, kMost}) {
      auto const bytes = RowOffsetBytes(kEntries, n_rows, n_features);
      EXPECT_GT(bytes, std::uint64_t{1} << 43) << n_features;
      EXPECT_GE(bytes, before) << n_features;
      before = bytes;
    }
  }
}

/** @brief The last one has its own bins where bytes hold them and take less; all others may
 *         share. */
TEST(StoredResolutions, WhichMayBeReadAndWhichAreNot) {
  using Columns = std::vector<std::uint32_t>;
  HistogramMemory own;
  HistogramMemory shared;
  shared.reads_finest = true;
  auto const of_group = [](FeatureIdx n_features, Columns const& bins,
                           HistogramMemory const& memory) {
    std::vector<ResolutionBins> of_resolution;
    for (std::uint32_t const n : bins) {
      of_resolution.push_back({std::uint64_t{n} * n_features, n});
    }
    Columns columns;
    for (GroupBound const& groups :
         StoredResolutions{n_features, bins}.Groups(1000, n_features, of_resolution, memory)) {
      columns.push_back(groups.of_group);
    }
    return columns;
  };
  Columns const four{10240, 5120, 2560, 255};
  EXPECT_EQ((StoredResolutions{28, four}).last, 255u);
  EXPECT_EQ(of_group(28, four, own), (Columns{1, 2, 4, 40}));
  EXPECT_EQ(of_group(28, four, shared), (Columns{4, 40}));
  EXPECT_EQ((StoredResolutions{4, four}).last, 0u);
  EXPECT_EQ(of_group(4, four, own), (Columns{1, 2, 4, 40}));
  EXPECT_EQ(of_group(4, four, shared), (Columns{4})) << "as many stored bins as a group may have";
  EXPECT_EQ((StoredResolutions{28, {2560, 640}}).last, 0u);
  EXPECT_EQ(of_group(28, {2560, 640}, shared), (Columns{16}));
  EXPECT_EQ(of_group(28, {100}, own), (Columns{102}));
  EXPECT_EQ((StoredResolutions{0, {0, 0}}).last, 0u);
}

/** @brief One long column fills a group, others share one; each lacks room for the next column. */
TEST(GroupBound, ByColumnsOrByBins) {
  GroupBound alike{1000, 100};
  alike.Limit({100 * 1000, 1000}, 10'000);
  EXPECT_EQ(alike.of_group, 10u);
  EXPECT_EQ(alike.Num(100), 10u);
  GroupBound mixed{1000, 100};
  mixed.Limit({10'000 + 99 * 10, 10'000}, 10'000);
  EXPECT_EQ(mixed.of_group, 1u);
  EXPECT_EQ(mixed.Num(100), 1u + 2);
  mixed.Limit({99 * 1000 + 4000, 4000}, 40'000);
  EXPECT_EQ(mixed.Num(100), 1u + 2 + 2);
  GroupBound const of_many_rows{kMaxGroupCells / 4, 100};
  EXPECT_EQ(of_many_rows.of_group, 4u) << "cells of a group are limited";
  EXPECT_EQ(of_many_rows.Num(100), 25u);
}

/** @brief Of a group that is half full each column has cells for all rows, filled up by an eighth. */
TEST(MostElements, EntriesOrCells) {
  constexpr RowIdx kRows = 800;
  EXPECT_EQ(MostElements(0, kRows), 0u);
  EXPECT_EQ(MostElements(200, kRows), 200u);
  EXPECT_EQ(MostElements(kRows / 2, kRows), 900u) << "a group of such columns: 9/8 of its cells";
  // A full column lets others of a quarter have cells: with three of them there are 9/8 cells of four.
  EXPECT_GE(MostElements(kRows, kRows) + 2 * MostElements(kRows / 4, kRows), 9 * 3 * kRows / 8);
  EXPECT_EQ(MostElements(kRows, kRows), 2700u);
  constexpr RowIdx kMost = ~RowIdx{0};
  EXPECT_EQ(MostElements(kMost, kMost), std::uint64_t{kMost} * 27 / 8) << "does not wrap";
}

TEST(RowBytes, GroupsAndTheRest) {
  EXPECT_EQ(RowBytes(2000, 8, false), 2 * 2000u);               // 250 groups
  EXPECT_EQ(RowBytes(2000, 256, false), 2 * (7 * 256 + 208u));  // 7 groups, and the rest
  EXPECT_EQ(RowBytes(2000, 256, true), 2000u);
  EXPECT_EQ(RowBytes(34, 40, true), 32 + 2 * 2u) << "a bank for each column";
  EXPECT_EQ(RowBytes(10, 64, true), 16u);
  EXPECT_EQ(RowBytes(9, 4, true), 2 * (4 + 4 + 1u)) << "of so few columns bytes take no less";
  EXPECT_EQ(RowBytes(0, 256, true), 0u);
}
/** @brief Bytes of a table's bins, and of what describes them. */
struct Taken {
  std::uint64_t elements{0};
  std::uint64_t descriptions{0};

  /** @param n_categories How many each column has; 0: it is numerical; empty: all are. */
  Taken(RandomColumns const& table, TableLayout const& layout, std::uint32_t finest,
        std::uint32_t most, std::vector<std::uint32_t> const& n_categories = {}) {
    this->Add(layout.stored);
    for (std::size_t i = 0; i < layout.resolutions.size(); ++i) {
      this->Add(layout.resolutions[i]);
      std::uint64_t n_bins{layout.resolutions[i].n_bins};
      if (i == 0) {  // has room for as many as there may be
        n_bins = 0;
        for (FeatureIdx f = 0; f < table.n_entries.size(); ++f) {
          std::uint32_t const n = table.n_entries[f];
          n_bins += !n_categories.empty() && n_categories[f] != 0
                        ? n_categories[f]
                        : std::min(n, MaxValues(n, finest, most));
        }
      }
      descriptions += BinBytes::kBin * n_bins +
                      (BinBytes::kOffset + BinBytes::kCandidates) * (table.n_entries.size() + 1);
    }
  }

 private:
  void Add(BinLayout const& layout) {
    elements += layout.ElementBytes();
    descriptions += layout.DescriptionBytes();
  }
};

/**
 * @brief Holds what is laid out to what is planned, for columns that differ in all ways.
 *
 * The plan takes columns to be alike. Where they differ, rows may be filled up by an eighth; in a
 * small table, whose groups fill the device, bins may take two bytes in place of one.
 */
TEST(BinBound, LayoutsTakeNoMoreButForRowsThatAreFilledUp) {
  constexpr std::uint64_t kOfArrays = 1 << 17;
  std::mt19937 engine{2};
  for (unsigned seed = 0; seed < 300; ++seed) {
    constexpr RowIdx kRows[] = {100, 3000, 20'000, 400'000, 3'000'000, 100'000'000};
    constexpr FeatureIdx kColumns[] = {1, 5, 40, 300, 3000};
    RandomColumns table{kRows[engine() % 6], kColumns[engine() % 5], &engine};
    EntryIdx const n = table.NumEntries();
    FeatureIdx const n_columns = table.NumColumns();
    bool const is_small = std::max<EntryIdx>(n, table.n_rows) < kManyEntries;
    for (std::uint32_t const max_bins : {kMaxGroupBinsOf[0], kMaxGroupBinsOf[1], kMaxGroupBinsOf[2],
                                         kMaxGroupBinsOf[2], kMaxGroupBinsOf[3]}) {
      for (HistogramMemory const& memory : HistogramMemory::All()) {
        BinBound const bound{n, table.n_rows, n_columns, memory, max_bins};
        table.Bin(bound.resolutions, max_bins, &engine);
        TableLayout const layout = LayTable(table.n_rows, table.n_entries, table.resolutions,
                                            LastTakesBytes(n_columns, bound.resolutions),
                                            memory.reads_finest, {max_bins, 132});
        Taken const taken{table, layout, bound.resolutions.front(), max_bins};
        EXPECT_LE(taken.elements, bound.elements + bound.elements / (is_small ? 1 : 8) + kOfArrays)
            << seed << ": " << table.n_rows << " x " << n_columns << ", " << n;
        EXPECT_LE(taken.descriptions, bound.descriptions + (is_small ? kOfArrays : 0))
            << seed << ": " << table.n_rows << " x " << n_columns << ", " << n;
      }
    }
  }
}

/** @brief A column has a bin for each category in every resolution, however few entries it has. */
TEST(BinBound, CategoriesTakeNoMore) {
  constexpr std::uint64_t kOfArrays = 1 << 17;
  std::mt19937 engine{3};
  for (unsigned seed = 0; seed < 100; ++seed) {
    constexpr RowIdx kRows[] = {100, 20'000, 3'000'000};
    constexpr FeatureIdx kColumns[] = {1, 5, 40, 300};
    RandomColumns table{kRows[engine() % 3], kColumns[engine() % 4], &engine};
    EntryIdx const n = table.NumEntries();
    FeatureIdx const n_columns = table.NumColumns();
    std::vector<std::uint32_t> n_categories(n_columns, 0);
    CategoricalColumns categorical;
    std::uint32_t const most = engine() % 2 == 0 ? 5 : kMaxGroupBins;
    for (FeatureIdx f = 0; f < n_columns; ++f) {
      if (table.n_entries[f] != 0 && engine() % 2 == 0) {
        n_categories[f] = engine() % 2 == 0 ? most : 1 + engine() % most;
        // A column of more than fit has one bin.
        bool const is_wide = engine() % 8 == 0;
        categorical.n_categories.push_back(is_wide ? kMaxGroupBins + 1 : n_categories[f]);
        categorical.n_entries += table.n_entries[f];
        n_categories[f] = is_wide ? 1 : n_categories[f];
      }
    }
    if (engine() % 2 == 0) {  // entries have been counted
      categorical.n_elements = 0;
      for (std::uint32_t const n_of_column : table.n_entries) {
        categorical.n_elements += MostElements(n_of_column, table.n_rows);
      }
    }
    bool const is_small = std::max<EntryIdx>(n, table.n_rows) < kManyEntries;
    for (HistogramMemory const& memory : HistogramMemory::All()) {
      BinBound const bound{n, table.n_rows, n_columns, memory, kMaxGroupBins, categorical};
      table.Bin(bound.resolutions, kMaxGroupBins, &engine);
      for (FeatureIdx f = 0; f < n_columns; ++f) {
        for (auto& resolution : table.resolutions) {
          if (n_categories[f] != 0) {
            resolution[f] = {n_categories[f], false, 0, true};
          }
        }
      }
      TableLayout const layout = LayTable(table.n_rows, table.n_entries, table.resolutions,
                                          LastTakesBytes(n_columns, bound.resolutions),
                                          memory.reads_finest, {kMaxGroupBins, 132});
      Taken const taken{table, layout, bound.resolutions.front(), kMaxGroupBins, n_categories};
      auto const what = std::to_string(seed) + ": " + std::to_string(table.n_rows) + " x " +
                        std::to_string(n_columns) + ", " + std::to_string(n);
      EXPECT_LE(layout.resolutions.front().n_bins, bound.most_bins) << what;
      EXPECT_LE(taken.elements, bound.elements + bound.elements / (is_small ? 1 : 8) + kOfArrays)
          << what;
      EXPECT_LE(taken.descriptions, bound.descriptions + (is_small ? kOfArrays : 0)) << what;
    }
  }
}

/** @brief Of alike columns without missing values the bound is what they take, but for what follows the
 *         last one. */
TEST(BinBound, OfAlikeColumnsIsWhatTheyTake) {
  for (RowIdx n_rows : {50'000u, 3'000'000u}) {
    for (FeatureIdx n_columns : {1u, 5u, 40u, 300u}) {
      for (HistogramMemory const& memory : HistogramMemory::All()) {
        BinBound const bound{EntryIdx{n_rows} * n_columns, n_rows, n_columns, memory,
                             kMaxGroupBins};
        std::vector<std::vector<ColumnBins>> resolutions;
        for (std::uint32_t n : bound.resolutions) {
          resolutions.emplace_back(n_columns, ColumnBins{n, true});
        }
        // Columns of few values have a bin for each in the finest one.
        std::uint32_t const most = MaxValues(n_rows, bound.resolutions.front(), kMaxGroupBins);
        resolutions.front().assign(n_columns, ColumnBins{most});
        TableLayout const layout = LayTable(
            n_rows, std::vector<std::uint32_t>(n_columns, n_rows), resolutions,
            LastTakesBytes(n_columns, bound.resolutions), memory.reads_finest, {kMaxGroupBins, 1});
        std::uint64_t taken = layout.stored.ElementBytes() - sizeof(GroupBin) * kElementsBeyond;
        for (BinLayout const& r : layout.resolutions) {
          taken += r.is_stored ? r.ElementBytes() - sizeof(GroupBin) * kElementsBeyond : 0;
        }
        EXPECT_EQ(taken, bound.elements) << n_rows << " x " << n_columns;
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
