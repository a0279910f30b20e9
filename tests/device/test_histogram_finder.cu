/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The best candidates of the histogram finder against every candidate tried one by one, over
 *        the levels of random trees.
 */
#include <algorithm>
#include <numeric>

#include "src/device/partition/histogram_finder.cuh"
#include "tests/device/binned_problem.h"
#include "tests/device/level_problem.cuh"
#include "tests/device/table_arrays.cuh"

namespace gpu_exact {
namespace {
/** @brief One thread a node and feature tries every bin. @param sums shape: (n_nodes, n_values) */
__global__ void TryAllKernel(LevelRef level, FixedSum const* sums, FeatureIdx const* features,
                             std::size_t n_features) {
  auto i = GlobalIdx();
  if (i >= level.n_nodes * n_features) {
    return;
  }
  auto bucket = static_cast<Bucket>(i / n_features);
  FeatureIdx f = features[i % n_features];
  if (!level.Allowed(bucket, f)) {
    return;
  }
  auto bins = sums + bucket * level.columns.n_values;
  ValueRange range = level.columns.Values(f);
  FixedSum present{0, 0};
  for (auto v = range.first; v < range.last; ++v) {
    present = present + bins[v];
  }
  NodeState const& node = level.nodes[bucket];
  FixedSum before{0, 0};
  std::uint64_t after_below{0};
  bool any{false};
  for (auto v = range.first; v < range.last; ++v) {
    if (bins[v] == FixedSum{0, 0}) {
      continue;
    }
    level.Offer(bucket, any ? level.BoundaryKey(node, f, static_cast<ValueId>(after_below),
                                                static_cast<ValueId>(v), before, present)
                            : level.PresentKey(node, f, ScanDirection::kBackward, v, present));
    any = true;
    after_below = v + 1;
    before = before + bins[v];
  }
  if (any) {
    level.Offer(bucket, level.PresentKey(node, f, ScanDirection::kForward, after_below, present));
  }
}

struct Settings {
  std::uint32_t max_group_bins{0};
  std::uint64_t max_slots{0};  // histograms that are kept; 0: as many as are chosen
  std::uint32_t max_slices{0};
};

class HistogramFinderTest : public DeviceTest {
 protected:
  /** @brief Grow a random tree over the table and check every level of it. */
  void Check(Table const& table, std::vector<FeatureIdx> const& features, Settings const& settings,
             int n_levels, Random* random) {
    ColumnStore store{table.View()};
    BinnedColumns const binned = MakeBinned(table, features, settings.max_group_bins);
    HistogramFinder finder{binned, settings.max_slots * binned.Ref().n_bins * sizeof(FixedSum),
                           settings.max_slices};
    BinnedColumns const few =
        MakeBinned(table, {features.begin(), features.begin() + !features.empty()}, 1);
    HistogramFinder other{few};  // one of less memory is made meanwhile
    GrowParam param = MakeParam(table.n_features, random);
    for (int tree = 0; tree < 2; ++tree) {  // the second one finds the first one's memory
      auto gpair = MakeGradients(table.n_rows, 0.1, 0.0, random);
      for (auto& g : gpair) {
        if (random->Chance(0.05)) {
          g = {0.0f, 0.0f};
        }
      }
      std::vector<std::vector<RowIdx>> nodes(1);
      for (RowIdx r = 0; r < table.n_rows; ++r) {
        if (random->Chance(0.95)) {
          nodes[0].push_back(r);
        }
      }
      std::vector<Bucket> parents;
      for (int depth = 0; depth < n_levels && !nodes.empty(); ++depth) {
        this->CheckLevel(store, table, param, features, gpair, nodes, parents, &finder, random);
        if (this->HasFailure()) {
          FAIL() << "tree " << tree << ", depth " << depth;
        }
        nodes = Split(nodes, &parents, random);
      }
    }
  }

 private:
  static std::vector<std::vector<RowIdx>> Split(std::vector<std::vector<RowIdx>> const& nodes,
                                                std::vector<Bucket>* parents, Random* random) {
    std::vector<std::vector<RowIdx>> children;
    parents->clear();
    for (Bucket b = 0; b < nodes.size(); ++b) {
      if (b != 0 && random->Chance(0.2)) {
        continue;
      }
      double to_left = random->Pick({0.5, 0.9, 0.02, 1.0});
      parents->push_back(b);
      std::vector<RowIdx> left, right;
      for (RowIdx r : nodes[b]) {
        (random->Chance(to_left) ? left : right).push_back(r);
      }
      children.push_back(std::move(left));
      children.push_back(std::move(right));
    }
    return children;
  }

  void CheckLevel(ColumnStore const& store, Table const& table, GrowParam const& param,
                  std::vector<FeatureIdx> const& features, std::vector<GradientPair> const& gpair,
                  std::vector<std::vector<RowIdx>> const& nodes, std::vector<Bucket> const& parents,
                  HistogramFinder* finder, Random* random) {
    auto n_nodes = static_cast<Bucket>(nodes.size());
    LevelProblem problem{store.Ref(), param, n_nodes};
    LevelRef& level = problem.level;
    std::vector<FixedSum> sums(n_nodes * level.columns.n_values, FixedSum{0, 0});
    auto entries = ToHost(level.columns.entries, level.columns.n_entries);
    std::vector<Bucket> of_row(table.n_rows, n_nodes);
    std::vector<NodeState> states;
    std::vector<RowIdx> rows{0};  // a hole
    std::vector<RowRange> ranges;
    for (Bucket b = 0; b < n_nodes; ++b) {
      FixedSum sum{0, 0};
      auto begin = static_cast<RowIdx>(rows.size());
      for (RowIdx r : nodes[b]) {
        of_row[r] = b;
        sum = sum + level.quantiser.Fixed(gpair[r]);
        rows.push_back(r);
      }
      ranges.push_back({begin, static_cast<RowIdx>(rows.size())});
      rows.resize(rows.size() + random->Int(0, 3), 0);
      auto bounds =
          param.monotone_constraints.empty() ? WeightBounds::None() : WeightBounds{-0.5f, 0.75f};
      auto real = level.quantiser.Real(sum);
      float weight = CalcWeight(level.gain, real, bounds);
      states.push_back({sum, weight, CalcGain(level.gain, real, weight), bounds});
    }
    for (auto const& e : entries) {
      if (of_row[e.row] < n_nodes) {
        auto& sum = sums[of_row[e.row] * level.columns.n_values + e.value];
        sum = sum + level.quantiser.Fixed(gpair[e.row]);
      }
    }
    std::vector<GradientPair> placed(rows.size());
    std::transform(rows.begin(), rows.end(), placed.begin(), [&](RowIdx r) { return gpair[r]; });

    FeatureMask mask;
    RandomFeatures policy{table.n_features, static_cast<unsigned>(random->Int(0, 1000))};
    DeviceBuffer<std::uint32_t> d_mask{"mask"};
    if (policy.Select(0, std::vector<OpenNode>(n_nodes), &mask)) {
      d_mask = ToDevice(mask.bits);
      level.mask = d_mask.Data();
      level.mask_words = mask.n_words;
      level.mask_per_node = mask.bits.size() == n_nodes * mask.n_words;
    }
    problem.SetNodes(states);
    auto d_rows = ToDevice(rows);
    auto d_gpair = ToDevice(placed);
    auto d_ranges = ToDevice(ranges);
    auto d_features = ToDevice(features);
    auto d_sums = ToDevice(sums);
    auto want = ToDevice(std::vector<std::uint64_t>(n_nodes, 0));
    auto got = ToDevice(std::vector<std::uint64_t>(n_nodes, 0));
    level.best = want.Data();
    LaunchN("TryAll", TryAllKernel, n_nodes * features.size(), level, d_sums.Data(),
            d_features.Data(), features.size());
    level.best = got.Data();
    finder->Find(level, {d_rows.Data(), d_gpair.Data(), d_ranges.Data()},
                 static_cast<RowIdx>(rows.size()), parents);
    auto h_want = ToHost(want.Data(), n_nodes);
    auto h_got = ToHost(got.Data(), n_nodes);
    for (Bucket b = 0; b < n_nodes; ++b) {
      n_found_ += h_want[b] != 0 ? 1 : 0;
      EXPECT_EQ(h_got[b], h_want[b])
          << "node " << b << " of " << n_nodes << ", " << nodes[b].size() << " rows";
    }
  }

 protected:
  static std::vector<FeatureIdx> All(Table const& table) {
    std::vector<FeatureIdx> features(table.n_features);
    std::iota(features.begin(), features.end(), 0);
    return features;
  }
  int n_found_{0};  // nodes that had a candidate
};

TEST_F(HistogramFinderTest, RandomTrees) {
  for (int seed = 0; seed < NumSeeds(40); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table = MakeBinnedTable(static_cast<RowIdx>(random.Int(1, Scaled(600, 200))),
                                  static_cast<FeatureIdx>(random.Int(1, Scaled(30, 12))), &random);
    auto features = All(table);
    features.erase(std::remove_if(features.begin(), features.end(),
                                  [&](FeatureIdx) { return random.Chance(0.1); }),
                   features.end());
    Settings settings{static_cast<std::uint32_t>(random.Pick({0, 0, 1, 300, 20000})),
                      static_cast<std::uint64_t>(random.Pick({0, 0, 1, 5})),
                      static_cast<std::uint32_t>(random.Pick({0, 1, 3}))};
    this->Check(table, features, settings, random.Int(1, 6), &random);
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_found_, 0);
}

TEST_F(HistogramFinderTest, SegmentsOfManyBlocks) {
  for (std::uint64_t max_slots : {0, 1}) {
    for (double missing : {0.0, 0.6}) {
      Random random{static_cast<unsigned>(max_slots)};
      // Two columns of more bins than a tile has, whose rows make several slices.
      int const most = Scaled(8192, 1500);
      Table table = MakeBinnedTable({{1, missing},
                                     {2, missing},
                                     {most, missing},
                                     {40, missing},
                                     {Scaled(2500, 1100), missing}},
                                    Scaled(30000u, 3000u), &random);
      ASSERT_LE(static_cast<std::uint32_t>(most), BinnedColumns::MaxBins());
      this->Check(table, All(table), {0, max_slots, 0}, Scaled(4, 2), &random);
      EXPECT_GT(n_found_, 0);
    }
  }
}

TEST_F(HistogramFinderTest, ManyNodes) {
  for (std::uint64_t max_slots : {0, Scaled(60, 3)}) {
    Random random{7};
    Table table = MakeBinnedTable({{2, 0.0}, {30, 0.3}, {7, 0.1}}, Scaled(6000u, 200u), &random);
    this->Check(table, All(table), {0, max_slots, 0}, Scaled(13, 4), &random);
    EXPECT_GT(n_found_, 0);
  }
}

TEST_F(HistogramFinderTest, ManyFeatures) {
  for (std::uint64_t max_slots : {0, 1}) {
    for (double missing : {0.0, 0.9}) {
      Random random{8};
      std::vector<ColumnShape> columns;
      for (int f = 0; f < Scaled(3000, 600); ++f) {  // several tiles of columns in a group
        columns.push_back({random.Int(1, 4), missing});
      }
      Table table = MakeBinnedTable(columns, Scaled(200u, 60u), &random);
      this->Check(table, All(table), {20000, max_slots, 0}, 3, &random);
      EXPECT_GT(n_found_, 0);
    }
  }
}

TEST_F(HistogramFinderTest, OneConstantFeature) {
  Random random{9};
  for (double missing : {0.0, 0.5}) {
    Table table = MakeBinnedTable({{1, missing}}, 500, &random);
    this->Check(table, All(table), {}, 3, &random);
  }
}
}  // namespace
}  // namespace gpu_exact
