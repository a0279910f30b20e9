/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The bin of every row and feature against the table, in finer and in
 * coarser bins.
 */
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>

#include "device/histogram/bins/binned_table.cuh"
#include "tests/device/histogram/quantile_cuts_problem.cuh"

namespace gpu_exact {
namespace {
// one thread a feature and row, shape of out: (n_features, n_rows); -1 where a feature is not binned
__global__ void ReadBinsKernel(BinMatrixRef binned, RowIdx n_rows, std::uint64_t n, int* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    auto const f = static_cast<FeatureIdx>(i / n_rows);
    bool const is_binned = binned.column_of[f] != BinMatrixRef::kNotBinned;
    out[i] = is_binned ? binned.BinOf(static_cast<RowIdx>(i % n_rows), f) : -1;
  }
}

// one thread a feature and row, shape of out: (n_features, n_rows)
__global__ void ReadValuesKernel(BinnedTableRef table, RowIdx n_rows, std::uint64_t n, float* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    out[i] = table.ValueOf(static_cast<RowIdx>(i % n_rows), static_cast<FeatureIdx>(i / n_rows));
  }
}

// one thread a row and column of a strided group; places without a column are left out
__global__ void ReadCellsKernel(FeatureGroup group, std::uint64_t n, GroupBin* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    out[i] = group.elements[i / group.n_columns * group.stride + i % group.n_columns];
  }
}

class BinMatrixTest : public DeviceTest {
 protected:
  /** @brief Resolutions of a table whose features ascend within rows: each stored, and the coarser
   *         ones read from the finest. */
  void Check(Table const& table, std::uint32_t max_bins, std::uint32_t max_group_bins) {
    auto const n_entries = CountEntries(table);
    QuantileCuts const bins = MakeQuantileCuts(table, std::min(max_bins, BinMatrix::MaxBins()));
    QuantileCuts const half{bins, std::max(max_bins / 2, 4u)};
    QuantileCuts const eighth{bins, std::max(max_bins / 8, 4u)};
    this->CheckBins(table, bins, max_group_bins);
    this->CheckBins(table, half, max_group_bins);
    for (QuantileCuts const* coarsest : {&bins, &half, &eighth}) {
      for (Layout layout : {Layout::kByRow, Layout::kByColumn}) {
        SourceOnDevice const on_device{table, layout};
        BinMatrix stored = Stored(table, bins, *coarsest, max_group_bins);
        Write(on_device.Source(), &stored);
        for (QuantileCuts const* read : {&bins, &half, &eighth}) {
          HeldBytes const held;
          BinMatrix const binned{stored, *read,
                                 LayRead(stored.Layout(), n_entries, read->ByColumn(),
                                         BinMatrix::Limits(max_group_bins))};
          this->CheckBinOf(table, binned, *read);
          this->CheckGroups(table, binned, *read, max_group_bins);
          this->CheckRead(table, binned, stored);
          this->CheckBytes(binned, held);
          ASSERT_FALSE(HasFailure()) << "read from stored bins";
        }
      }
    }
  }

 private:
  static BinMatrix Stored(Table const& table, QuantileCuts const& bins,
                          QuantileCuts const& coarsest, std::uint32_t max_group_bins,
                          bool in_bytes = false) {
    return {bins, LayStored(table.n_rows, CountEntries(table), bins.ByColumn(), coarsest.ByColumn(),
                            BinMatrix::Limits(max_group_bins), in_bytes)};
  }
  static void Write(TableSource const& table, BinMatrix* out) {
    if (table.columns != nullptr) {
      out->WriteColumns(table.columns);
    } else {
      out->WriteRows(table.rows, 0);
    }
  }
  void CheckBins(Table const& table, QuantileCuts const& bins, std::uint32_t max_group_bins) {
    for (Layout layout : {Layout::kByRow, Layout::kByColumn}) {
      for (bool in_bytes : {false, true}) {
        this->CheckLayout(table, bins, max_group_bins, layout, in_bytes);
        ASSERT_FALSE(HasFailure()) << (layout == Layout::kByRow ? "by row" : "by column")
                                   << (in_bytes ? ", in bytes" : "");
      }
    }
  }
  void CheckLayout(Table const& table, QuantileCuts const& bins, std::uint32_t max_group_bins,
                   Layout layout, bool in_bytes) {
    SourceOnDevice const on_device{table, layout};
    HeldBytes const held;
    BinMatrix binned = Stored(table, bins, bins, max_group_bins, in_bytes);
    Write(on_device.Source(), &binned);
    this->CheckBinOf(table, binned, bins);
    this->CheckGroups(table, binned, bins, max_group_bins);
    this->CheckStored(table, binned);
    this->CheckWidths(binned, in_bytes);
    this->CheckElements(table, binned);
    this->CheckBytes(binned, held);
  }

  void CheckBinOf(Table const& table, BinMatrix const& binned, QuantileCuts const& bins) {
    std::vector<std::uint32_t> const n_entries = CountEntries(table);
    HostBins const host_bins{bins, table.n_features};
    auto const values = ValuesByRow(table);
    std::size_t const n = std::size_t{table.n_features} * table.n_rows;
    DeviceBuffer<int> read{"bins"};
    LaunchN("ReadBins", ReadBinsKernel, n, binned.Ref(), table.n_rows, n, read.Reserve(n));
    auto const got = ToHost(read.Data(), n);
    auto const column_of = ToHost(binned.Ref().column_of, table.n_features);
    bool has_ranges{false};
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      ASSERT_EQ(column_of[f] != BinMatrixRef::kNotBinned, n_entries[f] != 0) << "feature " << f;
      if (n_entries[f] == 0) {
        continue;
      }
      has_ranges = has_ranges || bins.HasRanges(f);
      for (RowIdx r = 0; r < table.n_rows; ++r) {
        auto const at = values[f].find(r);
        int const want =
            at == values[f].end() ? -1 : static_cast<int>(host_bins.BinOf(f, at->second));
        ASSERT_EQ(got[std::size_t{f} * table.n_rows + r], want) << "row " << r << ", feature " << f;
      }
    }
    EXPECT_EQ(binned.HasRanges(), has_ranges);
    EXPECT_EQ(binned.NumRows(), table.n_rows);
    EXPECT_EQ(binned.NumEntries(), table.entries.size());
    EXPECT_EQ(binned.Ref().n_bins, host_bins.offsets.back());
  }

  /** @brief Bins of groups and columns follow each other without a gap, in the
   * order of features. */
  static void CheckGroups(Table const& table, BinMatrix const& binned, QuantileCuts const& bins,
                          std::uint32_t max_group_bins) {
    std::vector<std::uint32_t> const n_entries = CountEntries(table);
    std::uint64_t n_bins{0};
    std::uint32_t n_columns{0};
    FeatureIdx next{0};
    for (std::uint32_t g = 0; g < binned.Groups().size(); ++g) {
      FeatureGroup const& group = binned.Groups()[g];
      ASSERT_GT(group.n_columns, 0u);
      ASSERT_EQ(group.first_bin, n_bins);
      ASSERT_EQ(group.first_column, n_columns);
      ASSERT_LE(group.n_bins, std::numeric_limits<GroupBin>::max());
      ASSERT_TRUE(max_group_bins == 0 || group.n_columns == 1 || group.n_bins <= max_group_bins);
      std::uint32_t of_group{0};
      std::uint64_t n_elements{0};
      bool has_ranges{false};
      for (std::uint32_t c = n_columns; c < n_columns + group.n_columns; ++c) {
        BinColumn const& column = binned.Columns()[c];
        ASSERT_GE(column.feature, next);
        next = column.feature + 1;
        ASSERT_EQ(column.group, g);
        ASSERT_EQ(column.first_bin, of_group);
        ASSERT_EQ(column.n_bins, bins.NumBins(column.feature));
        of_group += column.n_bins;
        n_elements += n_entries[column.feature];
        has_ranges = has_ranges || bins.HasRanges(column.feature);
      }
      ASSERT_EQ(group.n_bins, of_group);
      ASSERT_EQ(group.has_ranges, has_ranges ? 1 : 0);
      std::uint64_t const n_places = std::uint64_t{table.n_rows} * group.n_columns;
      ASSERT_EQ(group.has_missing, n_elements != n_places ? 1 : 0);
      n_bins += of_group;
      n_columns += group.n_columns;
    }
    ASSERT_EQ(n_columns, binned.Columns().size());
  }

  /** @brief Of groups that store their bins: how elements lie. */
  static void CheckStored(Table const& table, BinMatrix const& binned) {
    std::vector<std::uint32_t> const n_entries = CountEntries(table);
    for (FeatureGroup const& group : binned.Groups()) {
      std::uint64_t n_elements{0};
      for (std::uint32_t c = 0; c < group.n_columns; ++c) {
        n_elements += n_entries[binned.Columns()[group.first_column + c].feature];
      }
      ASSERT_EQ(group.n_elements,
                group.Strided() ? std::uint64_t{table.n_rows} * group.stride : n_elements);
      ASSERT_EQ(group.Strided(), std::uint64_t{table.n_rows} * group.n_columns <= 2 * n_elements);
      ASSERT_EQ(group.cell_maps, nullptr);
      ASSERT_EQ(group.reads_part, 0u);
      n_strided_ += group.Strided() ? 1 : 0;
      n_listed_ += group.Strided() ? 0 : 1;
    }
  }

  /** @brief Takes the bytes that the layout says, by which memory is planned. */
  static void CheckBytes(BinMatrix const& binned, HeldBytes const& held) {
    BinLayout const& layout = binned.Layout();
    ASSERT_EQ(held.Count(), layout.DescriptionBytes() + layout.ElementBytes());
  }

  /** @brief Of groups that read stored bins. */
  static void CheckRead(Table const& table, BinMatrix const& binned, BinMatrix const& stored) {
    for (FeatureGroup const& group : binned.Groups()) {
      BinColumn const& first = stored.Columns()[group.first_column];
      FeatureGroup const& from = stored.Groups()[first.group];
      ASSERT_EQ(group.stride, from.stride);
      ASSERT_EQ(group.row_offsets, from.row_offsets);
      ASSERT_EQ(group.is_narrow, from.is_narrow);
      ASSERT_LE(group.first_column + group.n_columns, from.first_column + from.n_columns);
      ASSERT_EQ(group.elements - from.elements,
                group.Strided() ? group.first_column - from.first_column : 0);
      ASSERT_TRUE(group.cell_maps != nullptr || group.n_bins << group.shift == group.n_stored);
      ASSERT_EQ(group.reads_part != 0, group.n_columns != from.n_columns);
      ASSERT_EQ(group.n_elements,
                group.Strided() ? std::uint64_t{table.n_rows} * group.n_columns : from.n_elements);
      n_mapped_ += group.cell_maps != nullptr ? 1 : 0;
      n_shifted_ += group.cell_maps == nullptr && group.shift != 0 ? 1 : 0;
      n_parts_ += static_cast<int>(group.reads_part);
    }
  }

  /** @brief Groups of whole chunks of columns with few bins are in bytes, if that is wanted. */
  static void CheckWidths(BinMatrix const& binned, bool in_bytes) {
    for (FeatureGroup const& group : binned.Groups()) {
      bool few{true};
      for (std::uint32_t c = 0; c < group.n_columns; ++c) {
        few = few && binned.Columns()[group.first_column + c].n_bins <= 255;
      }
      ASSERT_EQ(group.InBytes(), in_bytes && few && group.Strided() &&
                                     group.n_columns <= kMaxByteColumns &&
                                     NumByteCells(group.n_columns) != 0);
      n_bytes_ += group.InBytes() ? 1 : 0;
    }
  }

  /** @brief The bins of each row in a group, as they lie side by side. */
  static std::vector<std::vector<GroupBin>> ReadElements(FeatureGroup const& group, RowIdx n_rows) {
    std::vector<std::vector<GroupBin>> rows(n_rows);
    if (group.InBytes()) {
      auto const first_bins = ToHost(group.first_bins, group.stride);
      std::size_t const n = std::size_t{n_rows} * group.stride;
      auto const bins = ToHost(reinterpret_cast<ColumnBin const*>(group.elements), n);
      for (std::size_t i = 0; i < n; ++i) {
        if (bins[i] != FeatureGroup::kNoColumnBin) {
          auto const first_bin = first_bins[i % group.stride];
          rows[i / group.stride].push_back(static_cast<GroupBin>(first_bin + bins[i]));
        }
      }
      return rows;
    }
    if (group.Strided()) {
      std::size_t const n = std::size_t{n_rows} * group.n_columns;
      DeviceBuffer<GroupBin> cells{"cells"};
      LaunchN("ReadCells", ReadCellsKernel, n, group, n, cells.Reserve(n));
      auto const bins = ToHost(cells.Data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        if (bins[i] != FeatureGroup::kNoBin) {
          rows[i / group.n_columns].push_back(bins[i]);
        }
      }
      return rows;
    }
    auto const n_bytes = RowOffsetBlock::Bytes(n_rows, group.is_narrow != 0);
    auto const offsets = ToHost(group.row_offsets, n_bytes / sizeof(std::uint32_t));
    FeatureGroup of_host{group};
    of_host.row_offsets = offsets.data();
    auto const elements = ToHost(group.elements, group.n_elements);
    std::uint32_t before{0};
    for (RowIdx r = 0; r < n_rows; ++r) {
      RowElements const e = BinMatrixRef::Row(of_host, r);
      EXPECT_EQ(e.begin, before) << "row " << r;
      rows[r].assign(elements.cbegin() + e.begin, elements.cbegin() + e.end);
      before = e.end;
    }
    EXPECT_EQ(before, group.n_elements);
    (group.is_narrow != 0 ? n_narrow_ : n_wide_) += 1;
    return rows;
  }

  /** @brief A row's elements in a group are bins of its values, one each, ascending by column. */
  static void CheckElements(Table const& table, BinMatrix const& binned) {
    for (FeatureGroup const& group : binned.Groups()) {
      auto const rows = ReadElements(group, table.n_rows);
      auto const first = binned.Columns().cbegin() + group.first_column;
      auto const last = first + group.n_columns;
      for (RowIdx r = 0; r < table.n_rows; ++r) {
        std::vector<FeatureIdx> got;
        for (GroupBin bin : rows[r]) {
          auto const past = std::upper_bound(
              first, last, bin,
              [](GroupBin b, BinColumn const& column) { return b < column.first_bin; });
          got.push_back((past - 1)->feature);
        }
        std::vector<FeatureIdx> want;
        for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
          FeatureIdx const f = table.entries[i].feature;
          if (f >= first->feature && f <= (last - 1)->feature) {
            want.push_back(f);
          }
        }
        ASSERT_EQ(got, want) << "row " << r;
      }
    }
  }

 protected:
  /** @brief A sparse table that is read in parts has the bins of one that is read at once. */
  void CheckParts(Table const& table, HistogramMemory const& memory, std::uint32_t group_bins) {
    EntryIdx const n = table.entries.size();
    ASSERT_FALSE(IsDense(n, table.n_rows, table.n_features));
    TableOnDevice const on_device{table};
    std::vector<std::uint32_t> const max_bins{32, 26, 20};
    BinnedTable const whole{table.View(), max_bins, memory, group_bins};
    this->CheckValues(table, whole);
    for (EntryIdx at_once : Scaled(std::vector{n / 40, n / 7}, {n / 7})) {
      TablePages const pages{table, {0, table.n_rows / 3, table.n_rows - table.n_rows / 4}};
      for (CsrView const& view : {table.View(), on_device.view, pages.View()}) {
        BinnedTable const in_parts{view, max_bins, memory, group_bins, at_once};
        this->CheckValues(table, in_parts);
        this->CheckSame(in_parts, whole, table.n_rows);
        ASSERT_FALSE(HasFailure()) << at_once << " of " << n << " entries at once";
      }
      EXPECT_EQ(pages.NumReadings(), 3) << "to sort its columns, for bins, for values";
    }
  }

  /** @brief Rows as they were but some, which lose their entries; these are in any order. */
  static Table OutOfOrder(Table const& table) {
    Table out;
    out.n_rows = table.n_rows;
    out.n_features = table.n_features;
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      if (r % 5 != 0 && (r < 50 || r >= 90)) {
        std::vector<CsrEntry> row(
            table.entries.cbegin() + static_cast<std::ptrdiff_t>(table.offsets[r]),
            table.entries.cbegin() + static_cast<std::ptrdiff_t>(table.offsets[r + 1]));
        std::shuffle(row.begin(), row.end(), std::mt19937{r});
        out.entries.insert(out.entries.end(), row.cbegin(), row.cend());
      }
      out.offsets.push_back(out.entries.size());
    }
    return out;
  }

  /** @brief Every value, of bins or kept. */
  static void CheckValues(Table const& table, BinnedTable const& binned) {
    auto const want = ValuesByRow(table);
    std::size_t const n = std::size_t{table.n_features} * table.n_rows;
    DeviceBuffer<float> read{"values"};
    LaunchN("ReadValues", ReadValuesKernel, n, binned.Ref(), table.n_rows, n, read.Reserve(n));
    auto const got = ToHost(read.Data(), n);
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      float const* const of_feature = got.data() + std::size_t{f} * table.n_rows;
      ASSERT_NO_FATAL_FAILURE(ExpectValues(want[f], of_feature, table.n_rows, f));
    }
  }

  /** @brief The bins of each row in each group of each resolution. */
  static void CheckSame(BinnedTable const& got, BinnedTable const& want, RowIdx n_rows) {
    ASSERT_EQ(got.Resolutions().size(), want.Resolutions().size());
    for (std::size_t i = 0; i < want.Resolutions().size(); ++i) {
      auto const& groups = got.Resolutions()[i]->matrix->Groups();
      auto const& want_groups = want.Resolutions()[i]->matrix->Groups();
      ASSERT_EQ(groups.size(), want_groups.size());
      for (std::size_t g = 0; g < groups.size(); ++g) {
        ASSERT_EQ(ReadElements(groups[g], n_rows), ReadElements(want_groups[g], n_rows))
            << "resolution " << i << ", group " << g;
        n_strided_ += groups[g].Strided() ? 1 : 0;
        n_listed_ += groups[g].Strided() ? 0 : 1;
        n_bytes_ += groups[g].InBytes() ? 1 : 0;
      }
    }
  }

  static inline int n_strided_{0};  // groups that were met
  static inline int n_listed_{0};
  static inline int n_bytes_{0};
  static inline int n_mapped_{0};   // whose columns are shifted each by itself
  static inline int n_shifted_{0};  // whose columns are shifted alike
  static inline int n_parts_{0};    // that read some of the stored columns
  static inline int n_narrow_{0};   // that have a byte for each row
  static inline int n_wide_{0};     // that have two
};

TEST_F(BinMatrixTest, RandomTables) {
  n_strided_ = n_listed_ = n_mapped_ = n_shifted_ = n_parts_ = 0;
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table const table = MakeBinnedTable(static_cast<RowIdx>(random.Int(1, 300)),
                                        static_cast<FeatureIdx>(random.Int(1, 40)), &random);
    this->Check(table, static_cast<std::uint32_t>(random.Pick({4, 21, 101, 10240})),
                static_cast<std::uint32_t>(random.Pick({0, 1, 100, 5000})));
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_strided_ + n_listed_, 0);
  EXPECT_GT(n_mapped_, 0);
  EXPECT_GT(n_shifted_, 0);
  EXPECT_GT(n_parts_, 0);
}

TEST_F(BinMatrixTest, DenseAndWithMissingValues) {
  for (double missing : {0.0, 0.2, 0.8}) {
    n_strided_ = n_listed_ = 0;
    Random random{5};
    Table const table =
        MakeBinnedTable({{0, missing}, {3, missing}, {0, missing}, {0, missing, 0.8, 0.25f}},
                        Scaled(9000u, 1500u), &random);
    for (std::uint32_t max_group_bins : {0u, 300u}) {
      this->Check(table, 200, max_group_bins);
    }
    EXPECT_EQ(n_strided_ != 0, missing < 0.5);
    EXPECT_EQ(n_listed_ != 0, missing > 0.5);
  }
}

TEST_F(BinMatrixTest, AsManyBinsAsFit) {
  Random random{1};
  auto const most = static_cast<int>(BinMatrix::MaxBins());
  Table const table = MakeBinnedTable({{most, 0.0}, {2, 0.0}, {most, 0.1}, {0, 0.0}},
                                      static_cast<RowIdx>(2 * most), &random);
  this->Check(table, BinMatrix::MaxBins(), 0);
}

TEST_F(BinMatrixTest, GroupsWithinRowsOfManyWarps) {
  Random random{3};
  for (double missing : Scaled(std::vector{0.0, 0.3}, {0.3})) {
    std::vector<ColumnShape> columns;
    for (FeatureIdx f = 0; f < 150; ++f) {
      columns.push_back({random.Int(1, 5), f % 7 == 0 ? 1.0 : missing});
    }
    Table const table = MakeBinnedTable(columns, 40, &random);
    this->Check(table, 10, 150);  // groups of about 50 columns
    this->Check(table, 10, 20000);
  }
}

/** @brief As many bins as a byte can tell from none, and one more; columns in chunks and beyond. */
TEST_F(BinMatrixTest, BinsOfOneByte) {
  n_bytes_ = 0;
  Random random{6};
  for (std::size_t n_columns : Scaled(std::vector<std::size_t>{4, 5, 7, 8, 9, 23, 40}, {5, 23})) {
    for (double missing : {0.0, 0.3}) {
      for (int most : Scaled(std::vector{200, 255, 256}, {255, 256})) {
        std::vector<ColumnShape> columns(n_columns, {3, missing});
        columns[n_columns / 2] = {most, 0.0};
        this->Check(MakeBinnedTable(columns, 300, &random), 256, 20000);
        ASSERT_FALSE(this->HasFailure()) << n_columns << " columns, " << most << " bins";
      }
    }
  }
  EXPECT_GT(n_bytes_, 0);
}

/** @brief Groups with places, in bytes or not, and groups without; rows out of order, and rows
 *         without entries, some of them side by side. */
TEST_F(BinMatrixTest, ASparseTableIsReadAgainInParts) {
  Random random{9};
  std::vector<ColumnShape> columns(16, {0, 0.1});
  columns.resize(60, {0, 0.9});
  columns[3] = {5, 0.2};
  columns[40] = {3, 0.8};
  Table const table = OutOfOrder(MakeBinnedTable(columns, Scaled(700u, 250u), &random));
  n_strided_ = n_listed_ = n_bytes_ = 0;
  auto const all = HistogramMemory::All();
  for (HistogramMemory const& memory : Scaled(all, {all.front(), all.back()})) {
    ASSERT_NO_FATAL_FAILURE(this->CheckParts(table, memory, 320));
  }
  EXPECT_GT(n_strided_, n_bytes_);
  EXPECT_GT(n_bytes_, 0);
  EXPECT_GT(n_listed_, 0);
}

/** @brief Blocks of 28 rows with a byte each and of 14 with two, more of them than threads sum at a
 *         time; rows whose entries in a group are read by more than one turn of a warp. */
TEST_F(BinMatrixTest, RowOffsetsInBlocks) {
  Random random{11};
  constexpr std::uint32_t kBins = 32;  // of a column in the finest resolution
  Table const long_one =
      MakeBinnedTable(std::vector<ColumnShape>(10, {0, 0.9}), Scaled(60'000u, 500u), &random);
  Table const wide_one =
      MakeBinnedTable(std::vector<ColumnShape>(100, {0, 0.6}), Scaled(200u, 60u), &random);
  for (std::uint32_t of_group : Scaled(std::vector{1u, 9u, 10u}, {10u})) {
    n_narrow_ = n_wide_ = 0;
    ASSERT_NO_FATAL_FAILURE(this->CheckParts(long_one, {}, of_group * kBins));
    EXPECT_EQ(n_narrow_ != 0, of_group < 10) << of_group;
    EXPECT_EQ(n_wide_ != 0, of_group > 1) << of_group << ": coarser ones have more columns";
    this->Check(wide_one, kBins, of_group * kBins);
    ASSERT_FALSE(this->HasFailure()) << of_group << " columns a group";
  }
}

/** @brief Coarser bins of a small table are its own unless they must be read from the finest. */
TEST_F(BinMatrixTest, WhichResolutionsReadTheFinest) {
  Random random{7};
  Table const table = MakeBinnedTable(std::vector<ColumnShape>(8, {0, 0.0}), 1500, &random);
  for (bool shares : {false, true}) {
    HistogramMemory memory;
    memory.reads_finest = shares;
    BinnedTable const binned{table.View(), {401, 200, 20}, memory};
    auto elements = [&](std::size_t i) {
      return binned.Resolutions().at(i)->matrix->Groups().front().elements;
    };
    EXPECT_EQ(elements(1) == elements(0), shares);
    EXPECT_NE(elements(2), elements(0)) << "bytes are its own";
  }
}

/** @brief Of a sparse table, ranges that the last resolution alone has are not looked up in sorted
 *         columns. */
TEST_F(BinMatrixTest, WhichResolutionsScan) {
  Random random{8};
  constexpr RowIdx kRows = 4000;
  auto scans = [&](double missing, std::vector<int> const& n_distinct) {
    std::vector<ColumnShape> columns;
    for (int n : n_distinct) {
      columns.push_back({n, missing});
    }
    Table const table = MakeBinnedTable(columns, kRows, &random);
    BinnedTable const binned{table.View(), {401, 100, 20}, HistogramMemory{}};
    std::vector<bool> of_resolutions;
    for (auto const& r : binned.Resolutions()) {
      of_resolutions.push_back(r->scans);
    }
    return of_resolutions;
  };
  using Scans = std::vector<bool>;
  EXPECT_EQ(scans(0.9, {0, 0}), (Scans{true, true, true}));
  EXPECT_EQ(scans(0.9, {50, 50}), (Scans{false, false, false})) << "none are kept";
  EXPECT_EQ(scans(0.9, {50, 110}), (Scans{false, false, false})) << "hardly two values a range";
  EXPECT_EQ(scans(0.9, {50, 180}), (Scans{true, true, false}));
  EXPECT_EQ(scans(0.9, {110, 0}), (Scans{true, true, true})) << "others have more";
  EXPECT_EQ(scans(0.0, {50, 110}), (Scans{true, true, true})) << "most values are present";
  EXPECT_EQ(scans(0.9, {50, 0}), (Scans{true, true, false})) << "the first column has ranges there";
  EXPECT_EQ(scans(0.9, {15, 0}), (Scans{true, true, true}));
  EXPECT_EQ(scans(0.0, {50, 0}), (Scans{true, true, true})) << "most values are present";
}

TEST_F(BinMatrixTest, ColumnsWithoutValues) {
  Random random{2};
  this->Check(MakeBinnedTable({{3, 1.0}, {3, 0.5}, {3, 1.0}}, 50, &random), 10, 0);
  this->Check(MakeBinnedTable({{3, 1.0}, {3, 1.0}}, 50, &random), 10, 0);
  this->Check(MakeBinnedTable({{3, 0.0}, {0, 0.0}}, 0, &random), 10, 0);
}

TEST_F(BinMatrixTest, ZerosOfBothSignsHaveOneBin) {
  Table table;
  table.n_rows = 64;
  table.n_features = 1;
  for (RowIdx r = 0; r < table.n_rows; ++r) {
    table.entries.push_back({0, r % 3 == 0   ? -0.0f
                                : r % 3 == 1 ? 0.0f
                                : r % 2 == 0 ? 1.0f
                                             : -1.0f});
    table.offsets.push_back(table.entries.size());
  }
  this->Check(table, 10, 0);
  EXPECT_EQ(MakeQuantileCuts(table, 10).NumBins(0), 3u);
}
}  // namespace
}  // namespace gpu_exact
