/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The entries of a node in the order of a column's values, by a block and by a warp, against
 *        the values of the table.
 */
#include <algorithm>
#include <type_traits>
#include <vector>

#include "device/histogram/small_nodes/node_sort.cuh"
#include "tests/device/histogram/stored_bins.cuh"

namespace gpu_exact {
namespace {
struct ReadEntry {
  std::uint32_t row;  // of the node
  std::uint32_t bin;
  std::uint32_t begins;
  float value;
};

// one block, or warp
template <typename AgentT>
__global__ void SortKernel(__grid_constant__ BinnedTableRef const table, RowsRef rows,
                           SearchedNode node, std::uint32_t c, ReadEntry* out,
                           std::uint32_t* out_n) {
  WaitForPreviousKernel();
  __shared__ typename AgentT::Storage storage;
  NodeColumn const column{table, rows, node, table.finest.columns[c]};
  std::uint32_t const n = AgentT{&storage}.Sort(column);
  for (std::uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
    SortedEntry const entry = storage.entries[i];
    out[i] = {entry.Row(), entry.Bin(), entry.Begins() ? 1u : 0u, column.Value(entry)};
  }
  out_n[threadIdx.x] = n;
}

class NodeSortTest : public DeviceTest {
 protected:
  static constexpr RowIdx kTableRows = 6000;
  static constexpr RowIdx kFirst = 3;  // slot

  template <typename AgentT, unsigned kThreads>
  void Check() {
    Random random{AgentT::kRows};
    // By number of bins, few and many; by value, and of bins that too many entries share.
    Table const table = MakeBinnedTable({{1, 0.0},
                                         {3, 0.2},
                                         {380, 0.0},
                                         {350, 0.6},
                                         {0, 0.0},
                                         {0, 0.7},
                                         {0, 0.1, 0.5, 0.25f},
                                         {0, 0.999}},
                                        kTableRows, &random);
    BinnedTable const binned{table.View(), {401}, HistogramMemory{}};
    HostBins const bins{binned.Resolutions().front()->bins, table.n_features};
    auto const values = ValuesByRow(table);
    SlotsProblem const slots{kFirst + AgentT::kRows, kTableRows, &random};
    for (RowIdx n :
         {RowIdx{0}, RowIdx{1}, RowIdx{31}, RowIdx{32}, AgentT::kRows - 1, AgentT::kRows}) {
      for (std::uint32_t c = 0; c < binned.Ref().finest.n_columns; ++c) {
        SearchedNode const node{{kFirst, kFirst + n}, 0, SearchedNode::kNoHistogram};
        Launch("Sort", SortKernel<AgentT>, 1, kThreads, binned.Ref(), slots.Ref(), node, c,
               entries_.Reserve(AgentT::kRows), counts_.Reserve(kThreads));
        FeatureIdx const f = binned.Resolutions().front()->matrix->Columns()[c].feature;
        this->Compare(slots, values[f], bins, f, n, kThreads);
        ASSERT_FALSE(HasFailure()) << n << " rows, feature " << f << ", " << kThreads << " threads";
      }
    }
  }

 private:
  void Compare(SlotsProblem const& slots, std::map<RowIdx, float> const& values,
               HostBins const& bins, FeatureIdx f, RowIdx n, unsigned n_threads) {
    std::vector<std::uint32_t> want;  // rows of the node with a value
    for (RowIdx i = 0; i < n; ++i) {
      if (values.count(slots.rows[kFirst + i]) != 0) {
        want.push_back(i);
      }
    }
    ASSERT_EQ(ToHost(counts_.Data(), n_threads),
              std::vector<std::uint32_t>(n_threads, static_cast<std::uint32_t>(want.size())));
    auto const got = ToHost(entries_.Data(), want.size());
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < got.size(); ++i) {
      float const value = values.at(slots.rows[kFirst + got[i].row]);
      ASSERT_EQ(got[i].value, value) << "entry " << i;
      ASSERT_EQ(got[i].bin, bins.BinOf(f, value)) << "entry " << i;
      ASSERT_TRUE(i == 0 || got[i - 1].value <= value) << "entry " << i;
      ASSERT_EQ(got[i].begins != 0, i == 0 || got[i - 1].value != value) << "entry " << i;
      rows.push_back(got[i].row);
    }
    std::sort(rows.begin(), rows.end());
    ASSERT_EQ(rows, want);
  }

  DeviceBuffer<ReadEntry> entries_{"sorted entries"};
  DeviceBuffer<std::uint32_t> counts_{"their number"};
};

TEST_F(NodeSortTest, ByAWarp) {
  this->Check<WarpSortAgent<1>, 32>();
  this->Check<WarpSortAgent<4>, 32>();
}

TEST_F(NodeSortTest, ByABlock) {
  this->Check<BlockSortAgent<256, 4>, 256>();
  this->Check<BlockSortAgent<512, 8>, 512>();
}
}  // namespace
}  // namespace gpu_exact
