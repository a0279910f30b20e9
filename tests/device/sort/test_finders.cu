/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Both split finders, by both kinds of entries, against every candidate tried on the host,
 *        and against each other.
 */
#include <map>
#include <set>
#include <utility>

#include "device/sort/entries.cuh"
#include "device/sort/entry_sorter.cuh"
#include "device/sort/feature_hints.cuh"
#include "device/sort/interleaved_finder.cuh"
#include "device/sort/segmented_finder.cuh"
#include "device/sort/thresholds.cuh"
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

class FindersTest : public DeviceTest {
 protected:
  void Check(Shape const& shape, int n_nodes, unsigned seed) {
    Random random{seed};
    this->Check(MakeTable(shape, &random), n_nodes, seed);
  }

  /** @param tries_all Whether every candidate is tried on the host, besides that all agree. */
  void Check(Table const& table, int n_nodes, unsigned seed, bool tries_all = true) {
    Random random{seed};
    auto gpair = MakeGradients(table.n_rows, 0.1, 0.0, &random);
    std::vector<std::uint8_t> keys(table.n_rows);
    std::vector<NaiveNode> nodes(n_nodes);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      int node = random.Int(0, n_nodes);  // the last one is closed
      keys[r] = node == n_nodes ? kNoKey : static_cast<std::uint8_t>(node);
      if (node < n_nodes) {
        nodes[node].rows.push_back(r);
        nodes[node].grad += gpair[r].grad;
        nodes[node].hess += gpair[r].hess;
      }
    }
    auto const found = this->Find(table, gpair, keys, nodes);
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
        EXPECT_EQ(split.first_right, results[n].split.first_right);
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
  /**
   * @brief Results by node: of the interleaved finder, which takes fewer nodes, of the sorted one
   *        with hints, without.
   */
  std::vector<std::vector<LevelResult>> Find(Table const& table,
                                             std::vector<GradientPair> const& gpair,
                                             std::vector<std::uint8_t> const& keys,
                                             std::vector<NaiveNode> const& nodes) {
    auto n_nodes = static_cast<LevelNode>(nodes.size());
    ColumnStore store{table.View()};
    auto d_gpair = ToDevice(gpair);
    auto d_keys = ToDevice(keys);
    LevelProblem problem{store.Ref(), GrowParam{}, n_nodes};
    LevelRef& level = problem.level;
    std::vector<NodeState> states;
    for (auto const& node : nodes) {
      FixedSum sum{std::llrint(static_cast<double>(node.grad) / level.quantiser.grad_unit),
                   std::llrint(static_cast<double>(node.hess) / level.quantiser.hess_unit)};
      auto gain = static_cast<float>(node.hess > 0 ? Score(node.grad, node.hess) : 0.0L);
      states.push_back({sum, 0.0f, gain, WeightBounds::None()});
    }
    problem.SetNodes(states);
    auto d_best = ToDevice(std::vector<std::uint64_t>(n_nodes, 0));
    level.best = d_best.Data();
    DeviceBuffer<LevelResult> results{"results"};
    results.Reserve(n_nodes);

    std::vector<std::vector<LevelResult>> found;
    EntrySorter sorter{store.Ref()};
    sorter.Reset(d_gpair.Data(), level.quantiser);
    if (n_nodes <= kMaxInterleavedNodes) {
      InterleavedFinder interleaved;
      interleaved.BuildTiles(store.EntryOffsets());
      interleaved.Find(level, sorter.Entries(), d_keys.Data());
      FindThresholds(level, interleaved.Ref(), results.Data());
      found.push_back(ToHost(results.Data(), n_nodes));
    }

    // The bound counts entries of closed nodes: tiles at the end have none.
    sorter.SortByNode(d_keys.Data(), n_nodes, table.entries.size());
    SegmentedFinder sorted;
    FeatureHints hints{store.Ref()};
    for (FeatureIdx const* feature_hints :
         {hints.Data(), static_cast<FeatureIdx const*>(nullptr)}) {
      level.columns.feature_hints = feature_hints;
      ZeroAsync(d_best.Data(), n_nodes);
      sorted.Find(level, sorter.Entries(), sorter.Ranges());
      FindThresholds(level, sorter.Entries(), sorter.Ranges(), results.Data());
      found.push_back(ToHost(results.Data(), n_nodes));
    }
    return found;
  }
};

TEST_F(FindersTest, RandomLevels) {
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(20, 400)), static_cast<FeatureIdx>(random.Int(1, 6)),
                random.Pick({0.0, 0.3, 0.9}), random.Pick({0, 5})};
    this->Check(shape, random.Int(1, 40), seed);
  }
}

TEST_F(FindersTest, AsManyNodesAsCanBeKeyed) { this->Check({4000, 2, 0.2, 0}, 128, 77); }

TEST_F(FindersTest, AsManyNodesAsCanBeInterleaved) {
  this->Check({4000, 2, 0.2, 0}, kMaxInterleavedNodes, 76);
  this->Check({900, 40, 0.97, 0}, kMaxInterleavedNodes, 76);  // sparse columns of a warp
}

/** @brief Columns that fill a warp, a block, tiles; some more, some less; in any order. */
TEST_F(FindersTest, ColumnsOfAllLengths) {
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
    for (int n_nodes : {1, 3, 15, 16, 40}) {
      bool const tries_all = n_distinct != 0 && n_nodes <= 3;
      ASSERT_NO_FATAL_FAILURE(this->Check(table, n_nodes, 83, tries_all));
    }
  }
}

TEST_F(FindersTest, OneEntry) { this->Check({1, 1, 0.0, 0}, 1, 79); }

/** @brief Short columns, empty ones among them, and segments of one entry. */
TEST_F(FindersTest, ManyFeatures) {
  for (unsigned seed : {80, 81}) {
    this->Check({60, 700, 0.97, 0}, 5, seed);
    this->Check({200, 150, 0.7, 3}, 9, seed);
  }
}

TEST_F(FindersTest, SegmentsAcrossManyTiles) { this->Check({9000, 1, 0.1, 30}, 2, 78); }
}  // namespace
}  // namespace gpu_exact
