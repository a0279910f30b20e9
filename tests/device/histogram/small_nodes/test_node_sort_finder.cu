/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Nodes whose rows are sorted: the best candidate of each, and the value
 * that it lies beside, against all candidates tried one by one.
 */
#include "device/histogram/small_nodes/node_sort_finder.cuh"
#include "tests/device/histogram/histogram_problem.cuh"

namespace gpu_exact {
namespace {
class NodeSortFinderTest : public DeviceTest {
 protected:
  /** @brief Nodes of so many rows, one after another, in any order of their
   * sizes. */
  void Check(Table const& table, std::uint32_t max_bins, std::vector<RowIdx> const& sizes,
             double without_weight, Random* random, std::uint64_t max_blocks = kMaxGrid) {
    HistogramProblem const problem{table, {max_bins}};
    TestResolution const& r = problem.At(0);
    NodeSortFinder finder{problem.Binned(), max_blocks};
    GrowParam const param = MakeParam(table.n_features, random);
    for (int run = 0; run < 2; ++run) {
      auto const gpair = MakeWeights(table.n_rows, without_weight, random);
      LevelRows nodes;
      std::vector<SearchedNode> searched;
      RowIdx row{0};
      for (RowIdx n : sizes) {
        nodes.emplace_back();
        for (RowIdx const end = row + n; row < end; ++row) {
          nodes.back().push_back(row);
        }
      }
      ASSERT_LE(row, table.n_rows);
      HistogramLevel level{r, param, gpair, nodes};
      level.Mask(table.n_features, static_cast<unsigned>(random->Int(0, 1000)));
      for (LevelNode b = 0; b < nodes.size(); ++b) {
        searched.push_back({level.ranges[b], b, SearchedNode::kNoHistogram});
      }
      finder.Find(level.lv, level.Rows(), searched);
      this->ExpectBest(r, AllCandidates{table, r.of_values, gpair, nodes, level.lv}, level, finder);
      ASSERT_FALSE(this->HasFailure()) << "run " << run;
    }
  }

  int n_found_{0};

 private:
  void ExpectBest(TestResolution const& r, AllCandidates const& all, HistogramLevel const& level,
                  NodeSortFinder const& finder) {
    auto const best = level.Best();
    auto const nodes = ToHost(finder.Nodes(), best.size());
    std::size_t const n_columns = finder.NumColumns();
    auto const found = ToHost(finder.Found(), nodes.size() * n_columns);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      LevelNode const b = nodes[i].level_node;
      ASSERT_EQ(best[b], all.Best(b)) << "node " << b;
      for (std::size_t c = 0; c < n_columns; ++c) {
        // Of equal candidates the scan takes the one that it meets first.
        FeatureIdx const f = r.matrix.Columns()[c].feature;
        std::uint64_t key{0};
        std::uint32_t scan_value{0};
        for (auto p = r.of_values.offsets[f]; p < r.of_values.offsets[f + 1]; ++p) {
          for (auto d : {ScanDirection::kForward, ScanDirection::kBackward}) {
            std::uint64_t const k =
                (d == ScanDirection::kForward ? all.forward : all.backward)[b * all.n_pieces + p];
            std::uint32_t const value = ScanValueOf(d, r.of_values.lowest[p]);
            if (k > key || (k == key && value < scan_value)) {
              key = k;
              scan_value = value;
            }
          }
        }
        // A column whose best candidate is none of the node's may have been
        // closed by the bound.
        if (key != 0 && key == best[b]) {
          ASSERT_EQ(found[i * n_columns + c].key, key) << "node " << b << ", column " << c;
          ASSERT_EQ(found[i * n_columns + c].scan_value, scan_value) << "node " << b;
          ++n_found_;
        } else {
          ASSERT_LE(found[i * n_columns + c].key, key) << "node " << b << ", column " << c;
        }
      }
    }
  }
};

TEST_F(NodeSortFinderTest, EverySizeOfNode) {
  std::vector<RowIdx> const all{12288, 0,   1,   2,    31,   32,   33,  12287, 127,  128,
                                129,   255, 500, 1023, 1024, 1025, 700, 4095,  4096, 4097};
  std::vector<RowIdx> const sizes = Scaled(all, {33, 0, 1, 128, 129, 1025, 4097});
  RowIdx n_rows{0};
  for (RowIdx n : sizes) {
    n_rows += n;
  }
  for (double missing : {0.0, 0.4}) {
    for (double without_weight : {0.05, 0.6}) {
      if (LeftOut(missing == 0.0, without_weight == 0.6)) {
        continue;
      }
      Random random{static_cast<unsigned>(10.0 * missing)};
      Table const table = MakeBinnedTable({{0, missing},
                                           {3, missing},
                                           {0, missing, 0.7, 0.25f},
                                           {60, 0.9},
                                           {3000, missing},
                                           {3000, missing, 0.8, 0.25f}},
                                          n_rows, &random);
      for (std::uint32_t max_bins : {16u, 5000u}) {
        this->Check(table, max_bins, sizes, without_weight, &random);
        ASSERT_FALSE(this->HasFailure()) << "missing " << missing << ", " << max_bins << " bins";
      }
    }
  }
  EXPECT_GT(n_found_, 0);
}

/** @brief As many bins as there can be; about as few as another sort takes; bins of 32 and 33 entries, up
 *         to and from which on values of a bin are ordered otherwise; next to no value. */
TEST_F(NodeSortFinderTest, EdgesOfBins) {
  RowIdx const n_rows = Scaled(12288u, 2048u);
  int const most = Scaled(10240, 2048);
  Random random{5};
  Table const values = MakeBinnedTable(
      {{most, 0.0}, {most - 1, 0.0}, {254, 0.0}, {255, 0.3}, {256, 0.3}, {257, 0.0}, {1, 0.999}},
      n_rows, &random);
  this->Check(values, kMaxGroupBins, {n_rows}, 0.05, &random);
  ASSERT_FALSE(this->HasFailure());
  Table const ranges = MakeBinnedTable({{0, 0.0}, {0, 0.1}, {0, 0.999}}, n_rows, &random);
  for (std::uint32_t n_entries : {32u, 33u}) {
    this->Check(ranges, n_rows / n_entries, {n_rows}, 0.05, &random);
    ASSERT_FALSE(this->HasFailure()) << n_entries;
  }
  EXPECT_GT(n_found_, 0);
}

TEST_F(NodeSortFinderTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    std::vector<RowIdx> sizes;
    RowIdx n_rows{1};
    for (int n = random.Int(1, 40); n > 0; --n) {
      sizes.push_back(static_cast<RowIdx>(random.Int(0, random.Pick({3, 40, 200}))));
      n_rows += sizes.back();
    }
    Table const table =
        MakeBinnedTable(n_rows, static_cast<FeatureIdx>(random.Int(1, Scaled(20, 8))), &random);
    // Launches of a few nodes each, as those of very many nodes and columns are.
    std::uint64_t const max_blocks = seed % 2 == 0 ? kMaxGrid : static_cast<std::uint64_t>(seed);
    this->Check(table, static_cast<std::uint32_t>(random.Pick({8, 100, 2000})), sizes,
                random.Pick({0.0, 0.1, 0.6}), &random, max_blocks);
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_found_, 0);
}
}  // namespace
}  // namespace gpu_exact
