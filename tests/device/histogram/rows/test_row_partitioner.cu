/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Rows, gradients, sums and positions of random trees against lists of rows on the host.
 */
#include <algorithm>
#include <cmath>
#include <functional>

#include "device/histogram/rows/row_partitioner.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/histogram/histogram_problem.cuh"

namespace gpu_exact {
namespace {
/** @brief Tells how rows are sent left or right. */
enum class Told { kByValue, kByBin, kByWorker };

/** @brief A node, naively: its trained rows, ascending. */
using NodeRows = std::vector<RowIdx>;

struct TreeShape {
  int n_levels;
  double split;  // share of the nodes that are split
  double empty;  // share of the splits that leave a child without rows
};

/** @brief Grows trees over one table with one partitioner. */
class RowPartitionerTest : public DeviceTest {
 protected:
  void Check(RowIdx n_rows, double left_out, TreeShape const& shape, unsigned seed) {
    Random random{seed};
    double const missing = random.Pick({0.0, 0.3});
    // Values by row, and such that bins tell.
    table_ = MakeBinnedTable({{0, missing}, {5, missing}, {0, 0.0}, {200, 0.6}}, n_rows, &random);
    this->CheckTable(left_out, shape, seed);
  }
  void CheckTable(double left_out, TreeShape const& shape, unsigned seed) {
    Random random{seed};
    values_ = ValuesByRow(table_);
    BinnedTable const binned{table_.View(), {16}, {false}};
    RowPartitioner rows{table_.n_rows};
    for (int tree = 0; tree < 2; ++tree) {
      this->Grow(&rows, binned, left_out, shape, &random);
      ASSERT_FALSE(this->HasFailure()) << table_.n_rows << " rows, seed " << seed;
    }
  }

  Table table_;
  int n_rerouted_{0};  // nodes whose threshold says otherwise than the candidate
  int n_both_{0};      // levels that have such a node, and one with a candidate that stays a leaf

 private:
  void Grow(RowPartitioner* rows, BinnedTable const& binned, double left_out,
            TreeShape const& shape, Random* random) {
    RowIdx const n_rows = table_.n_rows;
    auto const gpair = MakeGradients(n_rows, 0.1, left_out / 2, random);
    std::vector<std::uint8_t> included(n_rows);
    std::vector<NodeRows> nodes(1);
    for (RowIdx r = 0; r < n_rows; ++r) {
      included[r] = random->Chance(left_out / 2) ? 0 : 1;
      if (included[r] != 0 && gpair[r].hess >= 0.0f) {
        nodes[0].push_back(r);
      }
    }
    auto const n_trained = static_cast<RowIdx>(nodes[0].size());
    auto const d_gpair = ToDevice(gpair);
    auto const d_included = ToDevice(included);
    auto const quantiser = Quantiser::Make(4.0f, 2.0f, std::max(n_rows, 1u));
    auto const sum_of = [&](NodeRows const& node) {
      FixedSum sum{0, 0};
      for (RowIdx r : node) {
        sum = sum + quantiser.Fixed(gpair[r]);
      }
      return sum;
    };
    Level level, below;
    NodeState root{};
    root.sum = sum_of(nodes[0]);
    CopyFromHost(level.states.Reserve(1), &root, 1);
    rows->Reset({d_gpair.Data(), d_included.Data(), n_rows}, n_rows - n_trained, quantiser, &level);
    ASSERT_EQ(level.NumSlots(), n_trained);
    ASSERT_EQ(rows->NumRows(), n_rows);
    std::vector<GradientUnits> units;
    for (GradientPair const& g : gpair) {
      units.push_back(quantiser.Units(g));
    }
    std::vector<NodeSplit> tree{{0, kNoNode, 0.0f, false}};
    for (int depth = 0; depth < shape.n_levels; ++depth) {
      ASSERT_NO_FATAL_FAILURE(this->ExpectRows(*rows, level, nodes, units)) << "depth " << depth;
      auto const first_child = static_cast<NodeIdx>(tree.size());
      Told const told = random->Pick({Told::kByValue, Told::kByBin, Told::kByWorker});
      std::vector<NodeThreshold> points;
      int const n_rerouted = n_rerouted_;
      auto const want = this->Split(nodes, first_child, shape, binned, random, &points);
      bool any_stays{false};
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        if (told == Told::kByWorker) {
          points[b].reroutes = random->Chance(0.5);  // of an own candidate, which need not have won
        }
        any_stays = any_stays || (want[b].left == kNoNode && !nodes[b].empty() &&
                                  points[b].feature != NodeThreshold::kNoFeature);
      }
      n_both_ += any_stays && n_rerouted_ != n_rerouted && told != Told::kByWorker ? 1 : 0;
      std::copy(want.cbegin(), want.cend(), tree.begin() + level.nodes.first);
      std::vector<NodeRows> children;
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        if (want[b].left != kNoNode) {
          children.resize(children.size() + 2);
          for (RowIdx r : nodes[b]) {
            children[children.size() - (this->GoesLeft(r, want[b]) ? 2 : 1)].push_back(r);
          }
        }
      }
      level.is_last = depth + 1 == shape.n_levels;
      auto const d_points = ToDevice(points);
      SplitSidesRef sides{binned.Ref(), d_points.Data(), {nullptr, 0}, {}};
      sides.table.values_of_host = told == Told::kByBin;
      // Two workers; the first one has the splits of odd nodes, and both have any bits of other rows.
      std::vector<std::uint32_t> words(2 * std::size_t{n_rows / 32 + 1}, 0x5a5a5a5au), winners;
      for (std::size_t b = 0; b < nodes.size(); ++b) {
        auto const winner = static_cast<std::uint32_t>((b + 1) % 2);
        bool const any = points[b].feature != NodeThreshold::kNoFeature;
        winners.push_back(any ? winner : SplitExchange::kNobody);
        for (RowIdx r : nodes[b]) {
          std::uint32_t& word = words[winner * std::size_t{n_rows / 32 + 1} + r / 32];
          bool const left = this->GoesLeft(r, want[b]);
          word = (word & ~(1u << r % 32)) | (left ? 1u : 0u) << r % 32;
        }
      }
      auto const d_words = ToDevice(words);
      auto const d_winners = ToDevice(winners);
      if (told == Told::kByWorker) {
        sides.left_rows = {d_words.Data(), n_rows / 32 + std::uint64_t{1}, d_winners.Data()};
      }
      rows->Route(level, sides);
      if (children.empty()) {
        break;  // as the level loop does: the level's rows are in leaves
      }
      auto const n_children = static_cast<LevelNode>(children.size());
      auto const d_splits = ToDevice(want);
      below.nodes = {first_child, n_children};
      below.parents.clear();
      for (LevelNode b = 0; b < want.size(); ++b) {
        if (want[b].left != kNoNode) {
          below.parents.push_back(b);
        }
      }
      below.states.Reserve(n_children);
      std::vector<NodeSplit> splits = want;
      for (NodeSplit& split : splits) {
        split.threshold = told == Told::kByWorker ? split.threshold : -1234.0f;
      }
      rows->Partition(level, sides, {&splits, d_splits.Data()}, &below);
      for (std::size_t b = 0; b < want.size(); ++b) {
        if (want[b].left != kNoNode && !std::isnan(want[b].threshold)) {
          ASSERT_EQ(splits[b].threshold, want[b].threshold) << "depth " << depth << ", " << b;
        }
      }
      auto const states = ToHost(below.states.Data(), n_children);
      for (LevelNode b = 0; b < n_children; ++b) {
        ASSERT_TRUE(states[b].sum == sum_of(children[b])) << "depth " << depth << ", child " << b;
      }
      tree.resize(tree.size() + n_children, {0, kNoNode, 0.0f, false});
      std::swap(level, below);
      nodes = std::move(children);
    }
    rows->Finish(level, binned.Ref(), tree);
    this->ExpectPositions(rows, tree, gpair, included);
  }

  /** @brief Split nodes beside any of their values. @return What becomes of the candidates. */
  [[nodiscard]] std::vector<NodeSplit> Split(std::vector<NodeRows> const& nodes,
                                             NodeIdx first_child, TreeShape const& shape,
                                             BinnedTable const& binned, Random* random,
                                             std::vector<NodeThreshold>* out_points) {
    HostBins const bins{binned.Resolutions().front()->bins, table_.n_features};
    std::vector<NodeSplit> splits;
    for (NodeRows const& node : nodes) {
      auto const f =
          static_cast<FeatureIdx>(random->Int(0, static_cast<int>(table_.n_features) - 1));
      auto const d = random->Pick({ScanDirection::kForward, ScanDirection::kBackward});
      bool const forward = d == ScanDirection::kForward;
      std::vector<float> present;  // in the order of the scan
      for (RowIdx r : node) {
        if (auto const at = values_[f].find(r); at != values_[f].end()) {
          present.push_back(at->second);
        }
      }
      std::sort(present.begin(), present.end());
      if (!forward) {
        std::reverse(present.begin(), present.end());
      }
      float scanned{0.0f};  // of a node that has no value: as if another worker had any
      if (!present.empty()) {
        scanned = random->Chance(shape.empty)
                      ? present.back()
                      : present[random->Int(0, static_cast<int>(present.size()) - 1)];
      }
      auto const next = std::find_if(present.cbegin(), present.cend(), [&](float value) {
        return forward ? value > scanned : value < scanned;
      });
      NodeSplit split{f, kNoNode, 0.0f, !forward};
      split.threshold =
          next == present.cend() ? PresentThreshold(d, scanned) : MidThreshold(scanned, *next);
      NodeThreshold point{};
      point.feature = f;
      point.direction = d;
      point.scanned = ScanValueOf(d, scanned);
      point.next = point.next_bin = point.beyond = ScanValue::kNone;
      if (bins.NumBins(f) != 0 && scanned >= bins.lowest[bins.offsets[f]]) {
        std::uint32_t const bin = bins.BinOf(f, scanned);
        point.bin = forward ? bin : ScanValue::kNone - 1 - bin;
      }
      if (random->Chance(shape.split)) {
        split.left = first_child;
        first_child += 2;
        n_rerouted_ += std::any_of(present.cbegin(), present.cend(), [&](float value) {
          bool const is_scanned = forward ? value <= scanned : value >= scanned;
          return (value < split.threshold) != (is_scanned == forward);
        });
      } else if (random->Chance(0.5)) {
        point.feature = NodeThreshold::kNoFeature;  // else it is not worth it
      }
      out_points->push_back(point);
      splits.push_back(split);
    }
    return splits;
  }

  [[nodiscard]] bool GoesLeft(RowIdx row, NodeSplit const& split) const {
    auto const at = values_[split.feature].find(row);
    return at == values_[split.feature].end() ? split.default_left : at->second < split.threshold;
  }

  void ExpectRows(RowPartitioner const& rows, Level const& level,
                  std::vector<NodeRows> const& nodes,
                  std::vector<GradientUnits> const& units) const {
    RowsRef const ref = rows.Rows(level);
    auto const units_of_row = ToHost(ref.units_of_row, table_.n_rows);
    auto const numbers = ToHost(ref.numbers, nodes.size());
    std::vector<ShortLevelNode> node_of(table_.n_rows, kNowhere);
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      for (RowIdx row : nodes[b]) {
        node_of[row] = static_cast<ShortLevelNode>(numbers[b]);
      }
    }
    if (ref.node_of != nullptr) {
      ASSERT_EQ(ToHost(ref.node_of, table_.n_rows), node_of);
      ASSERT_TRUE(std::is_sorted(numbers.cbegin(), numbers.cend(), std::less_equal<>{}));
    } else {
      ++n_unnumbered_;
    }
    auto const got = ToHost(ref.rows, level.NumSlots());
    auto const got_units = ToHost(ref.units, level.NumSlots());
    auto const ranges = ToHost(ref.nodes, nodes.size());
    ASSERT_EQ(level.row_ranges.size(), nodes.size());
    ASSERT_EQ(ref.are_all, nodes.size() == 1 && nodes[0].size() == table_.n_rows);
    RowIdx end{0};
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      RowRange const range = level.row_ranges[b];
      ASSERT_EQ(ranges[b].begin, range.begin);
      ASSERT_EQ(ranges[b].end, range.end);
      ASSERT_GE(range.begin, end) << "node " << b;
      ASSERT_EQ(range.end - range.begin, nodes[b].size()) << "node " << b;
      end = range.end;
      NodeRows in_node{got.cbegin() + range.begin, got.cbegin() + range.end};
      for (std::size_t i = 0; i < in_node.size(); ++i) {
        RowIdx const row = in_node[i];
        ASSERT_LT(row, units.size()) << "node " << b << ", its row " << i;
        ASSERT_EQ(got_units[range.begin + i].Fixed(), units[row].Fixed())
            << "node " << b << ", its row " << i;
        ASSERT_EQ(units_of_row[row].Fixed(), units[row].Fixed()) << row;
      }
      std::sort(in_node.begin(), in_node.end());
      ASSERT_EQ(in_node, nodes[b]) << "node " << b;
    }
    ASSERT_EQ(end, level.NumSlots());
  }

  void ExpectPositions(RowPartitioner* rows, std::vector<NodeSplit> const& tree,
                       std::vector<GradientPair> const& gpair,
                       std::vector<std::uint8_t> const& included) const {
    std::vector<NodeIdx> positions(table_.n_rows);
    HostCopier copier;
    rows->Positions().Write(0, rows->NumRows(), {}, Memory::kHost, positions.data(), &copier);
    for (RowIdx r = 0; r < table_.n_rows; ++r) {
      NodeIdx nidx{kRoot};
      while (tree[nidx].left != kNoNode) {
        nidx = tree[nidx].left + (this->GoesLeft(r, tree[nidx]) ? 0 : 1);
      }
      bool const trained = included[r] != 0 && gpair[r].hess >= 0.0f;
      ASSERT_EQ(positions[r], EncodePosition(nidx, trained)) << "row " << r;
    }
  }

  std::vector<std::map<RowIdx, float>> values_;

 protected:
  static inline int n_unnumbered_{0};  // levels whose nodes have no numbers
};

TEST_F(RowPartitionerTest, RandomTrees) {
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    TreeShape const shape{random.Int(1, 8), random.Pick({1.0, 0.8, 0.5}), random.Pick({0.0, 0.3})};
    this->Check(static_cast<RowIdx>(random.Int(1, Scaled(3000, 500))), random.Pick({0.0, 0.0, 0.4}),
                shape, static_cast<unsigned>(seed));
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
}

TEST_F(RowPartitionerTest, TileEdges) {
  std::vector<RowIdx> const edges{0,   1,   31,   32,   33,   63,   64,   255,
                                  256, 257, 1024, 2047, 2048, 2049, 4096, 4097};
  for (RowIdx n : Scaled(edges, {1, 32, 33, 2048, 2049})) {
    for (double left_out : {0.0, 0.3}) {
      this->Check(n, left_out, {3, 0.9, 0.1}, 2 * n);
      this->Check(n, left_out, {3, 0.9, 0.1}, 2 * n + 1);
      ASSERT_FALSE(this->HasFailure()) << n << " rows";
    }
  }
}

TEST_F(RowPartitionerTest, NoRowIsTrained) { this->Check(100, 2.0, {3, 1.0, 0.0}, 1); }

TEST_F(RowPartitionerTest, TheRootStaysALeaf) {
  for (double left_out : {0.0, 0.3}) {
    this->Check(1000, left_out, {2, 0.0, 0.0}, 2);
    this->Check(1000, left_out, {0, 0.0, 0.0}, 3);
  }
}

/** @brief Nodes of many tiles, whose sums all blocks add to, and thousands of a few rows. */
TEST_F(RowPartitionerTest, LargeNodesAndManySmallOnes) {
  for (double left_out : {0.0, 0.2}) {
    this->Check(Scaled(60000u, 5000u), left_out, {Scaled(12, 7), 0.97, 0.05}, 4);
  }
}

/** @brief Levels of more nodes than two bytes count. */
TEST_F(RowPartitionerTest, MoreNodesThanHaveNumbers) {
  if (!UnderSanitizer()) {
    n_unnumbered_ = 0;
    this->Check(270000, 0.1, {17, 1.0, 0.0}, 6);
    EXPECT_GT(n_unnumbered_, 0);
  }
}

/** @brief Nodes whose threshold sends rows otherwise than the candidate, beside others. */
TEST_F(RowPartitionerTest, NeighbouringAndHugeFloats) {
  for (RowIdx n_rows : {500u, Scaled(600000u, 3000u)}) {
    Random random{n_rows};
    table_ = {};
    table_.n_rows = n_rows;
    table_.n_features = 3;
    for (RowIdx r = 0; r < n_rows; ++r) {
      float const near = 1.0f + 1.1920929e-7f * static_cast<float>(random.Int(0, 300));
      float const huge = 3.0e38f + 4.0e34f * static_cast<float>(random.Int(0, 900));
      float const values[]{near, random.Chance(0.5) ? huge : -huge, random.Normal()};
      for (FeatureIdx f = 0; f < 3; ++f) {
        if (!random.Chance(0.1)) {
          table_.entries.push_back({f, values[f]});
        }
      }
      table_.offsets.push_back(table_.entries.size());
    }
    for (unsigned seed = 0; seed < 12; ++seed) {
      this->CheckTable(0.2, {4, seed % 3 == 0 ? 0.9 : 0.7, 0.1}, seed);
      ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
    }
    EXPECT_GT(n_rerouted_, 0);
  }
  EXPECT_GT(n_both_, 0);
}

TEST_F(RowPartitionerTest, EmptyChildrenAllTheWayDown) { this->Check(3000, 0.0, {7, 1.0, 1.0}, 5); }
}  // namespace
}  // namespace gpu_exact
