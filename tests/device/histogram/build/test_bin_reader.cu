/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The bins that a walk hands to the lanes, against the values of the table: any number of rows
 *        and columns, in every way that bins are stored.
 */
#include <algorithm>
#include <set>
#include <tuple>

#include "device/histogram/build/bin_reader.cuh"
#include "tests/device/histogram/stored_bins.cuh"

namespace gpu_exact {
namespace {
/** @brief A bin that a lane was handed. */
struct MetBin {
  RowIdx slot;
  std::uint32_t bin;  // counted in the group
  GradientUnits units;

  [[nodiscard]] auto Tie() const { return std::tie(slot, bin, units.grad, units.hess); }
  bool operator==(MetBin const& that) const { return this->Tie() == that.Tie(); }
  bool operator<(MetBin const& that) const { return this->Tie() < that.Tie(); }
};

/** @brief What a walk has met, and whether lanes of a warp were handed chunks different times. */
struct MetRef {
  MetBin* bins;
  std::uint32_t room;
  std::uint32_t* n;
  std::uint32_t* n_uneven;
};

struct OfRow {
  RowIdx slot;
  GradientUnits units;
};
__device__ OfRow FromLane(OfRow const& row, int lane) {
  return {gpu_exact::FromLane(row.slot, lane), gpu_exact::FromLane(row.units, lane)};
}

// one block
template <bool kGradients>
__global__ void WalkKernel(__grid_constant__ BinMatrixRef const binned, std::uint32_t g,
                           RowsRef rows, RowIdx begin, RowIdx end, MetRef met) {
  WaitForPreviousKernel();
  __shared__ BinReader::Queue queues[32];
  FeatureGroup const group = binned.groups[g];
  std::uint32_t n_calls{0};
  BinReader{group, rows, queues + threadIdx.x / 32}.Walk<kGradients>(
      begin, end, blockDim.x / 32,
      [](RowIdx slot, GradientUnits const& units) {
        return OfRow{slot, units};
      },
      [&](auto const& chunk, OfRow const& row) {
        using Chunk = std::decay_t<decltype(chunk)>;
        ++n_calls;
        for (int i = 0; i < Chunk::kSize; ++i) {
          std::uint32_t bin = chunk.Bin(i);
          if (bin == Chunk::kNone) {
            continue;
          }
          if constexpr (std::is_same_v<Chunk, BankedChunk>) {  // of which column its bank tells
            std::uint32_t const place = (chunk.bank ^ i) % group.stride;
            bin += binned.columns[group.first_column + place].first_bin;
          }
          std::uint32_t const at = atomicAdd(met.n, 1u);
          if (at < met.room) {
            met.bins[at] = {row.slot, bin, row.units};
          }
        }
      });
  if (WarpMin(n_calls) != WarpMax(n_calls)) {
    atomicAdd(met.n_uneven, 1u);
  }
}

class BinReaderTest : public DeviceTest {
 protected:
  static constexpr RowIdx kFirst = 3;  // slot of the walks
  static constexpr RowIdx kTableRows = 320;

  void Check(Table const& table, SlotsProblem const& slots, std::vector<RowIdx> const& n_rows) {
    ForEachStorage(table, [&](BinMatrix const& binned, QuantileCuts const& bins) {
      BinsOfTable const of_table{table, binned, bins};
      for (std::uint32_t g = 0; g < binned.Groups().size() && !HasFailure(); ++g) {
        for (RowIdx n : n_rows) {
          for (unsigned n_warps : {1u, 4u}) {
            this->CheckWalk<true>(binned, of_table, g, slots, n, n_warps);
            this->CheckWalk<false>(binned, of_table, g, slots, n, n_warps);
          }
        }
        met_.insert(StorageOf(binned.Groups()[g]));
      }
    });
  }

  std::set<std::string> met_;  // StorageOf() of the groups

 private:
  template <bool kGradients>
  void CheckWalk(BinMatrix const& binned, BinsOfTable const& of_table, std::uint32_t g,
                 SlotsProblem const& slots, RowIdx n, unsigned n_warps) {
    std::vector<MetBin> want;
    for (RowIdx slot = kFirst; slot < kFirst + n; ++slot) {
      for (std::uint32_t bin : of_table.OfRow(g, slots.rows[slot])) {
        want.push_back({slot, bin, kGradients ? slots.units[slot] : GradientUnits{0.0f, 0.0f}});
      }
    }
    FeatureGroup const& group = binned.Groups()[g];
    auto const room = static_cast<std::uint32_t>(want.size() + 64);
    MetRef const met{bins_.Reserve(room), room, counts_.Reserve(2), counts_.Data() + 1};
    ZeroAsync(counts_.Data(), 2);
    Launch("Walk", WalkKernel<kGradients>, 1, 32 * n_warps, binned.Ref(), g, slots.Ref(), kFirst,
           kFirst + n, met);
    auto const counts = ToHost(counts_.Data(), 2);
    std::string const where = StorageOf(group) + ", " + std::to_string(group.n_columns) +
                              " columns, " + std::to_string(n) + " rows, " +
                              std::to_string(n_warps) + " warps" +
                              (kGradients ? ", gradients" : "");
    ASSERT_EQ(counts[0], want.size()) << where;
    EXPECT_EQ(counts[1], 0u) << where << ": some lanes were handed fewer chunks than others";
    auto got = ToHost(bins_.Data(), want.size());
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    ASSERT_TRUE(got == want) << where;
  }

  DeviceBuffer<MetBin> bins_{"bins that were met"};
  DeviceBuffer<std::uint32_t> counts_{"their number"};
};

TEST_F(BinReaderTest, EveryRowAndColumnInEveryStorage) {
  Random random{1};
  SlotsProblem const slots{kFirst + 300, kTableRows, &random};
  for (FeatureIdx n_columns = 1; n_columns <= 33; ++n_columns) {
    if (UnderSanitizer() && n_columns != 1 && n_columns != 5 && n_columns != 8 && n_columns != 33) {
      continue;
    }
    for (double missing : {0.0, 0.3, 0.8}) {
      Table const table = MakeStoredTable(n_columns, missing, kTableRows, &random);
      this->Check(table, slots, Scaled(std::vector<RowIdx>{0, 1, 31, 32, 33, 300}, {0, 1, 33}));
      ASSERT_FALSE(HasFailure()) << n_columns << " columns, " << missing << " missing";
    }
  }
  std::vector<std::string> kinds{
      "bytes", "narrow",       "narrow, a part",  "narrow, shifted",        "narrow, by column",
      "wide",  "wide, a part", "wide, by column", "wide, by column, a part"};
  for (std::string const chunk : {"1", "2", "4", "8"}) {
    kinds.push_back("chunks of " + chunk);
    for (std::string const bins : {"", ", by column", ", shifted", ", shifted, a part"}) {
      kinds.push_back("chunks of " + chunk + ", several" + bins);
    }
  }
  for (std::string const& kind : kinds) {
    EXPECT_TRUE(met_.count(kind) != 0 || UnderSanitizer()) << kind << " was not met";
  }
}

/** @brief Rows that have nothing in the group, or only some of which have, among those that fill more
 *         than one turn. */
TEST_F(BinReaderTest, RowsWithoutValues) {
  Random random{2};
  SlotsProblem const slots{kFirst + 300, kTableRows, &random};
  for (double missing : {0.97, 1.0}) {
    std::vector<ColumnShape> columns(9, {0, missing});
    columns.push_back({0, 0.0});  // so that there is a group
    Table const table = MakeBinnedTable(columns, kTableRows, &random);
    this->Check(table, slots, {33, 300});
    ASSERT_FALSE(HasFailure()) << missing;
  }
}
}  // namespace
}  // namespace gpu_exact
