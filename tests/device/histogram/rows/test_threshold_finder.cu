/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Splits of random candidates: thresholds and rows that go left against the values of all
 *        rows, also between neighbouring floats, huge ones and infinite ones.
 */
#include <cmath>
#include <limits>

#include "device/histogram/rows/threshold_finder.cuh"
#include "tests/device/histogram/histogram_problem.cuh"

namespace gpu_exact {
namespace {
/** @brief The candidate of a node: right after a value in a forward scan, before it in a backward. */
struct NodeCandidate {
  bool any{false};
  std::size_t resolution{0};
  FeatureIdx feature{0};
  ScanDirection direction{ScanDirection::kForward};
  float scanned{0.0f};
  float loss_change{0.0f};
};

class ThresholdFinderTest : public DeviceTest {
 protected:
  void Check(Table const& table, std::vector<std::uint32_t> const& max_bins, int n_nodes,
             Random* random) {
    HistogramProblem const problem{table, max_bins};
    values_ = ValuesByRow(table);
    LevelRows nodes(n_nodes);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      if (random->Chance(0.9)) {
        nodes[random->Int(0, n_nodes - 1)].push_back(r);
      }
    }
    auto const gpair = MakeWeights(table.n_rows, 0.1, random);
    HistogramLevel level{problem.At(0), GrowParam{}, gpair, nodes};
    BinnedTableRef of_host = problem.Ref();
    of_host.values_of_host = true;  // they are read sparingly, and the same
    ThresholdFinder resolvers[]{ThresholdFinder{problem.Ref()}, ThresholdFinder{of_host}};
    for (int run = 0; run < 6; ++run) {  // the third one finds what the first one left
      auto const candidates = this->Choose(nodes, max_bins.size(), random);
      this->CheckLevel(problem, nodes, candidates, &level, &resolvers[run % 2], random);
      ASSERT_FALSE(this->HasFailure()) << "run " << run;
    }
  }

  int n_rerouted_{0};  // nodes whose threshold says otherwise than the candidate
  int n_refined_{0};
  int n_last_{0};  // candidates past the last value scanned
  int n_nan_{0};   // of these, past an infinite one

 private:
  [[nodiscard]] std::vector<NodeCandidate> Choose(LevelRows const& nodes, std::size_t n_resolutions,
                                                  Random* random) const {
    std::vector<NodeCandidate> candidates(nodes.size());
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      NodeCandidate& c = candidates[b];
      c.feature = static_cast<FeatureIdx>(random->Int(0, static_cast<int>(values_.size()) - 1));
      c.resolution = static_cast<std::size_t>(random->Int(0, static_cast<int>(n_resolutions) - 1));
      c.direction = random->Pick({ScanDirection::kForward, ScanDirection::kBackward});
      c.loss_change = 0.5f + static_cast<float>(random->Real());
      std::vector<float> present;
      for (RowIdx r : nodes[b]) {
        auto const at = values_[c.feature].find(r);
        if (at != values_[c.feature].end()) {
          present.push_back(at->second);
        }
      }
      c.any = !present.empty() && !random->Chance(0.1);
      if (c.any) {
        c.scanned = present[random->Int(0, static_cast<int>(present.size()) - 1)];
      }
    }
    return candidates;
  }

  void CheckLevel(HistogramProblem const& problem, LevelRows const& nodes,
                  std::vector<NodeCandidate> const& candidates, HistogramLevel* level,
                  ThresholdFinder* resolver, Random* random) {
    auto const n_nodes = static_cast<LevelNode>(nodes.size());
    std::vector<std::uint64_t> best(n_nodes, 0);
    std::vector<std::vector<SearchedNode>> searched;
    std::vector<std::vector<FoundCandidate>> refined;
    std::vector<DeviceBuffer<SearchedNode>> d_searched;
    std::vector<DeviceBuffer<FoundCandidate>> d_refined;
    for (LevelNode i = 0; i < n_nodes; ++i) {
      LevelNode const b = n_nodes - 1 - i;  // in any order
      NodeCandidate const& c = candidates[b];
      searched.resize(std::max(searched.size(), c.resolution + 1));
      refined.resize(searched.size());
      searched[c.resolution].push_back({level->ranges[b], b, SearchedNode::kNoHistogram});
      FoundCandidate found{random->Chance(0.5) ? 0 : 12345u, 678u};  // of no meaning
      if (c.any) {
        HostBins const& bins = problem.At(c.resolution).bins;
        auto const bin = bins.offsets[c.feature] + bins.BinOf(c.feature, c.scanned);
        auto const place =
            CandidateKey::Rank({bins.offsets[c.feature], bins.offsets[c.feature + 1]}, c.direction,
                               CandidateKey::Beside(c.direction, bin));
        best[b] = CandidateKey::Make(c.loss_change, place);
        if (bins.is_range[bin] != 0) {
          found = {best[b], ScanValueOf(c.direction, c.scanned)};
          ++n_refined_;
        }
      }
      refined[c.resolution].push_back(found);
    }
    level->SetBest(best);
    DeviceBuffer<LevelResult> d_results{"results"};
    d_results.Reserve(n_nodes);
    for (std::size_t i = 0; i < searched.size(); ++i) {
      d_searched.push_back(ToDevice(searched[i]));
      d_refined.push_back(ToDevice(refined[i]));
      ReadCandidates(resolver, *level, problem.At(i), d_searched[i].Data(),
                     static_cast<LevelNode>(searched[i].size()), d_refined[i].Data(),
                     d_results.Data());
    }
    auto const read = ToHost(d_results.Data(), n_nodes);
    for (LevelNode b = 0; b < n_nodes; ++b) {  // what the host decides by
      ASSERT_EQ(read[b].split.loss_change, candidates[b].any ? candidates[b].loss_change : 0.0f);
    }
    SplitSidesRef const sides = resolver->Sides({nullptr, 0});
    DeviceBuffer<std::uint32_t> left_rows{"rows that go left"};
    RowIdx const n_words = level->lv.columns.n_rows / 32 + 1;
    ZeroAsync(left_rows.Reserve(n_words), n_words);
    resolver->Resolve(sides, level->Rows(), n_nodes, level->n_slots, left_rows.Data(),
                      d_results.Data());
    auto const words = ToHost(left_rows.Data(), n_words);
    auto const results = ToHost(d_results.Data(), n_nodes);
    for (LevelNode b = 0; b < n_nodes; ++b) {
      std::vector<bool> left;
      for (RowIdx row : nodes[b]) {
        left.push_back((words[row / 32] >> row % 32 & 1u) != 0);
      }
      this->ExpectSplit(nodes[b], candidates[b], results[b].split, left);
      ASSERT_FALSE(this->HasFailure()) << "node " << b;
    }
    auto const states = ToHost(level->lv.nodes, n_nodes);
    for (LevelNode b = 0; b < n_nodes; ++b) {
      ASSERT_TRUE(results[b].state.sum == states[b].sum) << "node " << b;
      ASSERT_EQ(results[b].state.gain, states[b].gain) << "node " << b;
    }
  }

  void ExpectSplit(std::vector<RowIdx> const& rows, NodeCandidate const& c, Split const& split,
                   std::vector<bool> const& left) {
    if (!c.any) {
      ASSERT_EQ(split.loss_change, 0.0f);
      return;
    }
    bool const forward = c.direction == ScanDirection::kForward;
    auto const& column = values_[c.feature];
    bool is_last{true};
    float next{0.0f};
    for (RowIdx r : rows) {
      auto const at = column.find(r);
      if (at == column.end() || !(forward ? at->second > c.scanned : at->second < c.scanned)) {
        continue;
      }
      bool const nearer = forward ? at->second < next : at->second > next;
      next = is_last || nearer ? at->second : next;
      is_last = false;
    }
    n_last_ += is_last ? 1 : 0;
    float const threshold =
        is_last ? PresentThreshold(c.direction, c.scanned) : MidThreshold(c.scanned, next);
    ASSERT_EQ(split.loss_change, c.loss_change);
    ASSERT_EQ(split.feature, c.feature);
    if (std::isnan(threshold)) {
      ASSERT_TRUE(std::isnan(split.threshold)) << split.threshold << " past " << c.scanned;
      ++n_nan_;
    } else {
      ASSERT_EQ(split.threshold, threshold) << "between " << c.scanned << " and " << next;
    }
    ASSERT_EQ(split.default_left, forward ? 0u : 1u);
    bool reroutes{false};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const at = column.find(rows[i]);
      bool const missing = at == column.end();
      bool const want = missing ? !forward : at->second < threshold;
      ASSERT_EQ(left[i], want) << "row " << rows[i] << ", threshold " << threshold;
      if (!missing) {
        bool const counted_left = forward ? at->second <= c.scanned : at->second < c.scanned;
        reroutes = reroutes || counted_left != want;
      }
    }
    n_rerouted_ += reroutes ? 1 : 0;
  }

  std::vector<std::map<RowIdx, float>> values_;
};

TEST_F(ThresholdFinderTest, RandomTables) {
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table const table = MakeBinnedTable(static_cast<RowIdx>(random.Int(1, Scaled(3000, 400))),
                                        static_cast<FeatureIdx>(random.Int(1, 20)), &random);
    this->Check(table, {static_cast<std::uint32_t>(random.Pick({8, 30, 2000})), 5},
                random.Int(1, 60), &random);
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_refined_, 0);
  EXPECT_GT(n_last_, 0);
}

/** @brief Columns of values so near, so small or so huge that thresholds round to one of them, are
 *         infinite, or no number. */
TEST_F(ThresholdFinderTest, NeighbouringAndHugeFloats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr RowIdx kValues = 700;
  for (double missing : {0.0, 0.3}) {
    Random random{3};
    Table table;
    table.n_rows = 2 * kValues;
    table.n_features = 9;
    std::vector<std::vector<float>> values(table.n_features);
    values[0] = {1.0f};
    values[1] = {-1.0f};
    for (RowIdx k = 0; k < kValues; ++k) {
      values[0].push_back(std::nextafter(values[0].back(), 2.0f));
      values[1].push_back(std::nextafter(values[1].back(), -2.0f));
      values[2].push_back(static_cast<float>(static_cast<int>(k) - 350) * 1e-45f);
      values[3].push_back(3.0e38f + static_cast<float>(k) * 4.0e34f);
      values[4].push_back(-values[3].back());
      values[5].push_back(random.Pick({-1.0f, 1.0f}) * std::numeric_limits<float>::max() /
                          static_cast<float>(1 + k));
      values[6].push_back(-kInfinity);
      values[7].push_back(k % 3 == 0 ? static_cast<float>(k) : -kInfinity);
      values[8].push_back(k % 3 == 0 ? -static_cast<float>(k) : kInfinity);
    }
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      for (FeatureIdx f = 0; f < table.n_features; ++f) {
        if (!random.Chance(missing)) {
          table.entries.push_back({f, values[f][r * 9 % kValues]});
        }
      }
      table.offsets.push_back(table.entries.size());
    }
    for (std::vector<std::uint32_t> const& max_bins :
         {std::vector<std::uint32_t>{1000}, std::vector<std::uint32_t>{40, 7}}) {
      for (int n_nodes : {1, 7, 100}) {
        this->Check(table, max_bins, n_nodes, &random);
        ASSERT_FALSE(this->HasFailure()) << n_nodes << " nodes";
      }
    }
  }
  EXPECT_GT(n_rerouted_, 0);
  EXPECT_GT(n_refined_, 0);
  EXPECT_GT(n_nan_, 0);
}

/** @brief Slots at the edges of warps and tiles, nodes of many tiles. */
TEST_F(ThresholdFinderTest, TileEdges) {
  for (RowIdx n_rows : {1u, 31u, 32u, 33u, 1023u, 1024u, 1025u, Scaled(270000u, 2049u)}) {
    Random random{n_rows};
    Table const table = MakeBinnedTable({{0, 0.2}, {3, 0.0}}, n_rows, &random);
    for (int n_nodes : {1, 40}) {
      this->Check(table, {20}, n_nodes, &random);
      ASSERT_FALSE(this->HasFailure()) << n_rows << " rows";
    }
  }
}
}  // namespace
}  // namespace gpu_exact
