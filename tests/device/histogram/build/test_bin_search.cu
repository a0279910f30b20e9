/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The best candidate at the ends of bins, by one block and by clusters, against every candidate
 *        tried one by one; and that each bin is handed back once, when it is not needed any more.
 */
#include <vector>

#include "device/histogram/build/bin_search.cuh"
#include "tests/device/histogram/histogram_problem.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;

/** @brief What became of a bin. */
struct Kept {
  std::uint32_t n;        // times
  std::uint32_t n_later;  // loads after it was kept
};

// grid: one cluster; sums and kept: of the tile
template <bool kLimited>
__global__ __launch_bounds__(kThreads) void SearchTileKernel(
    __grid_constant__ LevelRef const lv, __grid_constant__ BinMatrixRef const binned, BinTile tile,
    BinSum const* sums, Kept* kept) {
  WaitForPreviousKernel();
  __shared__ typename BinSearchAgent<kThreads, kLimited>::TempStorage temp;
  OpenRangesRef const open{};  // there are no ranges
  BinSearchAgent<kThreads, kLimited> agent{&temp, lv, binned, open, tile};
  agent.Search(
      {0, 0},
      [&](std::uint32_t bin) {
        atomicAdd(&kept[bin].n_later, *static_cast<std::uint32_t volatile*>(&kept[bin].n));
        return sums[bin];
      },
      [&](std::uint32_t bin, BinSum const&) { atomicAdd(&kept[bin].n, 1u); });
}

class BinSearchTest : public DeviceTest {
 protected:
  /** @brief Columns of a group together where they fit a tile, else each by itself. */
  static std::vector<BinTile> Tiles(BinMatrix const& matrix) {
    std::vector<BinTile> tiles;
    for (std::uint32_t g = 0; g < matrix.Groups().size(); ++g) {
      FeatureGroup const& group = matrix.Groups()[g];
      if (group.n_bins <= kTileBins && group.n_columns <= kTileColumns) {
        tiles.push_back({g, group.first_column, group.n_columns, 0, group.n_bins});
        continue;
      }
      for (auto c = group.first_column; c < group.first_column + group.n_columns; ++c) {
        BinColumn const& column = matrix.Columns()[c];
        tiles.push_back({g, c, 1, column.first_bin, column.n_bins});
      }
    }
    return tiles;
  }

  void Check(Table const& table, std::uint32_t max_bins, Random* random) {
    HistogramProblem const problem{table, {max_bins}, 20000};
    TestResolution const& r = problem.At(0);
    ASSERT_FALSE(r.matrix.HasRanges());
    GrowParam const param = MakeParam(table.n_features, random);
    auto const gpair = MakeWeights(table.n_rows, random->Pick({0.0, 0.4}), random);
    LevelRows const nodes = MakeRoot(table.n_rows, 0.3, random);
    HistogramLevel level{r, param, gpair, nodes};
    level.Mask(table.n_features, static_cast<unsigned>(random->Int(0, 1000)));
    AllCandidates const all{table, r.of_bins, gpair, nodes, level.lv};
    std::vector<BinSum> sums(r.of_bins.Size());
    for (std::size_t p = 0; p < sums.size(); ++p) {
      sums[p] = {all.sums.through[p] - all.sums.before[p], 0};
    }
    auto const d_sums = ToDevice(sums);
    for (unsigned size = 1; size <= BlockCluster::kMost; size *= 2) {
      if (size != 1 && MaxClusters(SearchTileKernel<true>, size, kThreads) == 0) {
        continue;
      }
      level.SetBest({0});
      for (BinTile const& tile : Tiles(r.matrix)) {
        ASSERT_NO_FATAL_FAILURE(this->Search(r.matrix, level.lv, tile, size, d_sums.Data()));
      }
      ASSERT_EQ(level.Best()[0], all.Best(0)) << size << " blocks";
    }
    n_found_ += all.Best(0) != 0 ? 1 : 0;
  }

  int n_found_{0};

 private:
  void Search(BinMatrix const& matrix, LevelRef const& lv, BinTile const& tile, unsigned size,
              BinSum const* sums) {
    std::uint64_t const first = matrix.Groups()[tile.group].first_bin + tile.first_bin;
    ZeroAsync(kept_.Reserve(tile.n_bins), tile.n_bins);
    LaunchClusters("SearchTile",
                   lv.bound.limited ? SearchTileKernel<true> : SearchTileKernel<false>, 1, size,
                   kThreads, lv, matrix.Ref(), tile, sums + first, kept_.Data());
    auto const kept = ToHost(kept_.Data(), tile.n_bins);
    for (std::uint32_t bin = 0; bin < tile.n_bins; ++bin) {
      ASSERT_EQ(kept[bin].n, 1u) << "bin " << bin << " of " << tile.n_bins;
      ASSERT_EQ(kept[bin].n_later, 0u) << "bin " << bin << " of " << tile.n_bins;
    }
  }

  DeviceBuffer<Kept> kept_{"what became of bins"};
};

/** @brief Columns of about as many bins as a tile, and as the tiles of a cluster, have. */
TEST_F(BinSearchTest, LongColumns) {
  for (int n_bins :
       Scaled(std::vector<int>{1023, 1024, 1025, 2048, 2049, 8191, 8193}, {1025, 2049})) {
    for (double missing : {0.0, 0.3}) {
      Random random{static_cast<unsigned>(n_bins)};
      auto const n_rows = static_cast<RowIdx>(n_bins + n_bins / 3);
      this->Check(MakeBinnedTable({{n_bins, 0.0}, {n_bins, missing}}, n_rows, &random), 10000,
                  &random);
      ASSERT_FALSE(HasFailure()) << n_bins << " bins, " << missing << " missing";
    }
  }
  EXPECT_GT(n_found_, 0);
}

TEST_F(BinSearchTest, ManyColumnsInATile) {
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    std::vector<ColumnShape> columns(random.Int(1, 200));
    for (ColumnShape& column : columns) {
      column = {random.Int(1, 9), random.Pick({0.0, 0.0, 0.4, 1.0})};
    }
    this->Check(MakeBinnedTable(columns, static_cast<RowIdx>(random.Int(1, 200)), &random), 10,
                &random);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_found_, 0);
}
}  // namespace
}  // namespace gpu_exact
