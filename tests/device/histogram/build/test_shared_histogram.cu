/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The sums of every bin of a group in shared memory, against those of the table's values, in
 *        every way that bins are stored.
 */
#include <vector>

#include "device/histogram/build/bin_sums.cuh"
#include "device/histogram/build/shared_histogram.cuh"
#include "tests/device/histogram/stored_bins.cuh"

namespace gpu_exact {
namespace {
struct ReadBin {
  FixedSum sum;
  std::uint32_t magnitude;
  std::uint32_t n_read;  // times
};

// one block; result: shape (n_bins) of the group, zero before
__global__ __launch_bounds__(SharedHistogram::kThreads) void AddKernel(
    __grid_constant__ BinMatrixRef const binned, std::uint32_t g, RowsRef rows, RowIdx begin,
    RowIdx end, std::int64_t hess_of_row, ReadBin* out) {
  WaitForPreviousKernel();
  extern __shared__ __align__(SharedHistogram::kAligned) unsigned char memory[];
  FeatureGroup const group = binned.groups[g];
  SharedHistogram const histogram{memory, group, hess_of_row};
  for (int turn = 0; turn < 2; ++turn) {  // what the first one leaves is cleared
    histogram.Begin();
    __syncthreads();
    histogram.AddRows(rows, begin, end);
    __syncthreads();
  }
  histogram.ForBins(binned.columns, [&](std::uint32_t bin, BinSum const& sum) {
    out[bin].sum = sum.sum;
    out[bin].magnitude = sum.magnitude;
    atomicAdd(&out[bin].n_read, 1u);
  });
}

class SharedHistogramTest : public DeviceTest {
 protected:
  static constexpr RowIdx kFirst = 3;  // slot

  void Check(Table const& table, SlotsProblem const& slots, std::vector<RowIdx> const& n_rows) {
    ForEachStorage(table, [&](BinMatrix const& binned, QuantileCuts const& bins) {
      BinsOfTable const of_table{table, binned, bins};
      for (std::uint32_t g = 0; g < binned.Groups().size(); ++g) {
        for (RowIdx n : n_rows) {
          ASSERT_NO_FATAL_FAILURE(this->CheckGroup(binned, of_table, g, slots, n));
        }
      }
    });
  }

 private:
  void CheckGroup(BinMatrix const& binned, BinsOfTable const& of_table, std::uint32_t g,
                  SlotsProblem const& slots, RowIdx n) {
    FeatureGroup const& group = binned.Groups()[g];
    std::vector<ReadBin> want(group.n_bins, {{0, 0}, 0, 1});
    for (RowIdx slot = kFirst; slot < kFirst + n; ++slot) {
      GradientUnits const& units = slots.units[slot];
      for (std::uint32_t bin : of_table.OfRow(g, slots.rows[slot])) {
        want[bin].sum = want[bin].sum + units.Fixed();
        want[bin].magnitude += group.has_ranges != 0 ? Magnitude::Of(units.grad) : 0;
      }
    }
    ZeroAsync(bins_.Reserve(group.n_bins), group.n_bins);
    Launch("Add", AddKernel, 1, {SharedHistogram::kThreads, SharedHistogram::Bytes(group)},
           binned.Ref(), g, slots.Ref(), kFirst, kFirst + n, slots.hess_of_row, bins_.Data());
    auto const got = ToHost(bins_.Data(), group.n_bins);
    for (std::uint32_t bin = 0; bin < group.n_bins; ++bin) {
      std::string const where = StorageOf(group) + ", " + std::to_string(group.n_columns) +
                                " columns, " + std::to_string(n) + " rows, bin " +
                                std::to_string(bin);
      ASSERT_EQ(got[bin].n_read, want[bin].n_read) << where;
      ASSERT_EQ(got[bin].sum.grad, want[bin].sum.grad) << where;
      ASSERT_EQ(got[bin].sum.hess, want[bin].sum.hess) << where;
      ASSERT_EQ(got[bin].magnitude, want[bin].magnitude) << where;
    }
  }

  DeviceBuffer<ReadBin> bins_{"bins"};
};

/** @brief Rows of one to four chunks of bytes, with copies of their sums or without, and of words. */
TEST_F(SharedHistogramTest, EveryStorage) {
  Random random{1};
  constexpr RowIdx kTableRows = 320;
  SlotsProblem const slots{kFirst + 2000, kTableRows, &random};
  SlotsProblem const alike{kFirst + 2000, kTableRows, &random, true};
  for (FeatureIdx n_columns :
       Scaled(std::vector<FeatureIdx>{1, 2, 5, 8, 13, 16, 17, 24, 32, 33}, {8, 17})) {
    for (double missing : {0.0, 0.3, 0.8}) {
      Table const table = MakeStoredTable(n_columns, missing, kTableRows, &random);
      this->Check(table, slots, {0, 1, 33, Scaled(2000u, 100u)});
      this->Check(table, alike, {0, 1, Scaled(2000u, 100u)});
      ASSERT_FALSE(HasFailure()) << n_columns << " columns, " << missing << " missing";
    }
  }
}

/** @brief Carries out of the low words, from many rows that add to one bin at a time. */
TEST_F(SharedHistogramTest, OneBin) {
  Random random{2};
  constexpr RowIdx kTableRows = 64;
  SlotsProblem const slots{kFirst + 5000, kTableRows, &random};
  for (std::size_t n_columns : {1, 8, 32}) {
    Table const table =
        MakeBinnedTable(std::vector<ColumnShape>(n_columns, {1, 0.0}), kTableRows, &random);
    this->Check(table, slots, {5000});
  }
}
}  // namespace
}  // namespace gpu_exact
