/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The best splits of a level against every candidate tried on the host.
 */
#include <map>
#include <set>
#include <utility>

#include "device/sort/column_finder.cuh"
#include "tests/device/level_problem.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
/** @brief A naive node: rows by hand, sums in long double, no penalty but lambda = 1. */
struct NaiveNode {
  std::vector<RowIdx> rows;
  long double grad{0}, hess{0};
};

long double Score(long double grad, long double hess) { return grad * grad / (hess + 1.0L); }

/** @brief Loss change of one split of a node, present values below the threshold going left. */
long double SplitLoss(NaiveNode const& node, std::map<RowIdx, float> const& column, float threshold,
                      bool default_left, std::vector<GradientPair> const& gpair) {
  long double g{0}, h{0};
  for (RowIdx r : node.rows) {
    auto at = column.find(r);
    bool left = at == column.end() ? default_left : at->second < threshold;
    g += left ? gpair[r].grad : 0.0f;
    h += left ? gpair[r].hess : 0.0f;
  }
  if (h < 1.0L || node.hess - h < 1.0L) {
    return 0.0L;
  }
  return Score(g, h) + Score(node.grad - g, node.hess - h) - Score(node.grad, node.hess);
}

class ColumnFinderTest : public DeviceTest {
 protected:
  void Check(Shape const& shape, int n_nodes, unsigned seed) {
    Random random{seed};
    this->Check(MakeTable(shape, &random), n_nodes, seed);
  }

  /** @param tries_all Whether every candidate is tried on the host, besides that all agree. */
  void Check(Table const& table, int n_nodes, unsigned seed, bool tries_all = true) {
    Random random{seed};
    auto gpair = MakeGradients(table.n_rows, 0.1, 0.0, &random);
    std::vector<NodeIdx> positions(table.n_rows);
    std::vector<NaiveNode> nodes(n_nodes);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      // The last one is closed, and so is the one before the first.
      int const node = random.Int(-1, n_nodes);
      positions[r] = EncodePosition(kFirst + node, !random.Chance(0.1));
      if (node >= 0 && node < n_nodes && positions[r] >= 0) {
        nodes[node].rows.push_back(r);
        nodes[node].grad += gpair[r].grad;
        nodes[node].hess += gpair[r].hess;
      }
    }
    auto const found = this->Find(table, gpair, positions, nodes);
    std::vector<std::map<RowIdx, float>> columns(table.n_features);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
        columns[table.entries[i].feature][r] = table.entries[i].value;
      }
    }
    for (int n = 0; n < n_nodes; ++n) {
      Split const& split = found[0][n].split;
      for (auto const& results : found) {
        EXPECT_EQ(split.loss_change, results[n].split.loss_change);
        EXPECT_EQ(split.feature, results[n].split.feature);
        EXPECT_EQ(split.threshold, results[n].split.threshold);
        EXPECT_EQ(split.default_left, results[n].split.default_left);
      }
      if (!tries_all) {
        continue;
      }
      long double best{0};
      for (auto const& column : columns) {
        std::set<float> thresholds;
        for (RowIdx r : nodes[n].rows) {
          auto at = column.find(r);
          if (at != column.end()) {  // split below the value, and above it
            thresholds.insert(at->second);
            thresholds.insert(std::nextafter(at->second, std::numeric_limits<float>::infinity()));
          }
        }
        for (float threshold : thresholds) {
          for (bool left : {false, true}) {
            best = std::max(best, SplitLoss(nodes[n], column, threshold, left, gpair));
          }
        }
      }
      long double got{0};
      if (split.loss_change > 0) {
        got =
            SplitLoss(nodes[n], columns[split.feature], split.threshold, split.default_left, gpair);
      }
      EXPECT_NEAR(static_cast<double>(got), static_cast<double>(best),
                  1e-5 * (1.0 + static_cast<double>(best)))
          << "seed " << seed << ", node " << n;
      EXPECT_NEAR(split.loss_change, static_cast<double>(best),
                  1e-4 * (1.0 + static_cast<double>(best)));
    }
  }

 private:
  static constexpr NodeIdx kFirst = 5;  // node of the level

  /** @brief Results by node: with hints, without. */
  std::vector<std::vector<LevelResult>> Find(Table const& table,
                                             std::vector<GradientPair> const& gpair,
                                             std::vector<NodeIdx> const& positions,
                                             std::vector<NaiveNode> const& nodes) {
    auto n_nodes = static_cast<LevelNode>(nodes.size());
    ColumnStore store{table.View()};
    LevelProblem problem{store.Ref(), GrowParam{}, n_nodes};
    LevelRef& lv = problem.lv;
    std::vector<NodeState> states;
    for (auto const& node : nodes) {
      FixedSum sum{std::llrint(static_cast<double>(node.grad) / lv.quantiser.grad_unit),
                   std::llrint(static_cast<double>(node.hess) / lv.quantiser.hess_unit)};
      auto gain = static_cast<float>(node.hess > 0 ? Score(node.grad, node.hess) : 0.0L);
      states.push_back({sum, 0.0f, gain, WeightBounds::None()});
    }
    problem.SetNodes(states);
    auto d_best = ToDevice(std::vector<std::uint64_t>(n_nodes, 0));
    lv.best = d_best.Data();
    DeviceBuffer<LevelResult> results{"results"};
    results.Reserve(n_nodes);

    std::vector<std::vector<LevelResult>> found;
    std::vector<GradientUnits> units;
    for (GradientPair const& g : gpair) {
      units.push_back(lv.quantiser.Units(g));
    }
    auto d_units = ToDevice(units);
    auto d_positions = ToDevice(positions);
    RowNodesRef const rows{d_positions.Data(), d_units.Data(), kFirst, n_nodes};
    ColumnFinder finder{store.Ref().entries, store.EntryOffsets()};
    for (FeatureIdx const* feature_hints :
         {store.Ref().feature_hints, static_cast<FeatureIdx const*>(nullptr)}) {
      lv.columns.feature_hints = feature_hints;
      ZeroAsync(d_best.Data(), n_nodes);
      finder.Find(lv, rows, results.Data());
      found.push_back(ToHost(results.Data(), n_nodes));
    }
    return found;
  }
};

TEST_F(ColumnFinderTest, RandomLevels) {
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(20, 400)), static_cast<FeatureIdx>(random.Int(1, 6)),
                random.Pick({0.0, 0.3, 0.9}), random.Pick({0, 5})};
    this->Check(shape, random.Int(1, 40), seed);
  }
}

/** @brief More nodes than are searched at a time in long columns, and than one digit tells apart. */
TEST_F(ColumnFinderTest, ManyNodes) {
  for (int n_nodes : {kNodesAPass, kNodesAPass + 1, 255u, 256u, 1000u}) {
    this->Check({4000, 2, 0.2, 0}, n_nodes, 76);
    this->Check({900, 40, 0.97, 0}, n_nodes, 76);  // columns of a warp
    this->Check({3000, 9, 0.8, 7}, n_nodes, 77);   // of a block
  }
}

/** @brief More than an entry's segment has room for, in columns of a block and of a warp. */
TEST_F(ColumnFinderTest, MoreNodesThanSegmentsTellApart) {
  this->Check({2500, 4, 0.7, 5}, static_cast<int>(kNoLevelNode) + 1000, 80);
}

/** @brief Columns that fill a warp, a block, tiles; some more, some less; in any order. */
TEST_F(ColumnFinderTest, ColumnsOfAllLengths) {
  std::vector<RowIdx> const lengths{1,    31,   0,    32,   2,    33,  1,    1023, 1,  1024, 0, 5,
                                    27,   1025, 1025, 2048, 2049, 600, 424,  0,    1,  1,    1, 30,
                                    4097, 0,    3,    31,   1,    32,  1024, 32,   32, 900,  7};
  constexpr RowIdx kRows = 5000;
  for (int n_distinct : {0, 7}) {
    Random random{static_cast<unsigned>(n_distinct)};
    std::vector<std::vector<CsrEntry>> rows(kRows);
    for (FeatureIdx f = 0; f < lengths.size(); ++f) {
      auto const first = static_cast<RowIdx>(random.Int(0, kRows - 1));
      for (RowIdx i = 0; i < lengths[f]; ++i) {
        float const value =
            n_distinct == 0 ? random.Normal() : static_cast<float>(random.Int(1, n_distinct));
        rows[(first + i) % kRows].push_back({f, value});
      }
    }
    Table table;
    table.n_rows = kRows;
    table.n_features = static_cast<FeatureIdx>(lengths.size());
    for (auto const& row : rows) {
      table.entries.insert(table.entries.end(), row.cbegin(), row.cend());
      table.offsets.push_back(table.entries.size());
    }
    for (int n_nodes : {1, 3, 15, 16, 40, 300}) {
      bool const tries_all = n_distinct != 0 && n_nodes <= 3;
      ASSERT_NO_FATAL_FAILURE(this->Check(table, n_nodes, 83, tries_all));
    }
  }
}

TEST_F(ColumnFinderTest, OneEntry) { this->Check({1, 1, 0.0, 0}, 1, 79); }

/** @brief Short columns, empty ones among them, and segments of one entry. */
TEST_F(ColumnFinderTest, ManyFeatures) {
  for (unsigned seed : {80, 81}) {
    this->Check({60, 700, 0.97, 0}, 5, seed);
    this->Check({200, 150, 0.7, 3}, 9, seed);
  }
}

TEST_F(ColumnFinderTest, SegmentsAcrossManyTiles) { this->Check({9000, 1, 0.1, 30}, 2, 78); }
}  // namespace
}  // namespace gpu_exact
