/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Rows, gradients, sums and positions of random trees against lists of rows on the host.
 */
#include <algorithm>

#include "device/histogram/rows/row_partitioner.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/histogram/binned_problem.h"

namespace gpu_exact {
namespace {
// one thread a slot and one slot more, in whole warps
__global__ void WriteGoesLeftKernel(std::uint8_t const* goes_left, std::uint64_t n_slots,
                                    RankBitVectorRef out) {
  WaitForPreviousKernel();
  auto slot = GlobalIdx();
  bool const left = slot < n_slots && goes_left[slot] != 0;
  if (slot / 32 <= n_slots / 32) {
    out.WriteWord(slot, left);
  }
}

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
    table_ = MakeBinnedTable({{0, missing}, {5, missing}, {0, 0.0}, {200, 0.6}}, n_rows, &random);
    values_ = ValuesByRow(table_);
    BinnedTable const binned{
        table_.View(), {16}, {false}};  // values by row, and such that bins tell
    RowPartitioner rows{n_rows, seed % 2 == 0 ? 0 : kMinByRow};
    for (int tree = 0; tree < 2; ++tree) {
      this->Grow(&rows, binned, left_out, shape, &random);
      ASSERT_FALSE(this->HasFailure()) << n_rows << " rows, seed " << seed << ", tree " << tree;
    }
  }

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
    Level level, below;
    rows->Reset({d_gpair.Data(), d_included.Data(), n_rows}, n_rows - n_trained, quantiser, true,
                &level);
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
      auto const node_splits = this->Split(nodes.size(), first_child, shape, random);
      std::copy(node_splits.cbegin(), node_splits.cend(), tree.begin() + level.nodes.first);
      std::vector<NodeRows> children = this->FindLeft(rows, level, nodes, node_splits);
      if (children.empty()) {
        break;  // as the level loop does: the level's rows are in leaves
      }
      auto const n_children = static_cast<LevelNode>(children.size());
      auto const d_node_splits = ToDevice(node_splits);
      below.nodes = {first_child, n_children};
      below.is_searched = depth + 1 != shape.n_levels;
      below.parents.clear();
      for (LevelNode b = 0; b < node_splits.size(); ++b) {
        if (node_splits[b].left != kNoNode) {
          below.parents.push_back(b);
        }
      }
      ZeroAsync(below.states.Reserve(n_children), n_children);
      rows->Move(level, {node_splits, d_node_splits.Data()}, &below);
      auto const states = ToHost(below.states.Data(), n_children);
      for (LevelNode b = 0; b < n_children; ++b) {
        FixedSum sum{0, 0};
        for (RowIdx r : children[b]) {
          sum = sum + quantiser.Fixed(gpair[r]);
        }
        ASSERT_EQ(states[b].sum.grad, sum.grad) << "depth " << depth << ", child " << b;
        ASSERT_EQ(states[b].sum.hess, sum.hess) << "depth " << depth << ", child " << b;
      }
      tree.resize(tree.size() + n_children, {0, kNoNode, 0.0f, false});
      std::swap(level, below);
      nodes = std::move(children);
    }
    rows->Finish(level, binned.Ref(), tree);
    this->ExpectPositions(rows, tree, gpair, included);
  }

  [[nodiscard]] static std::vector<NodeSplit> Split(std::size_t n_nodes, NodeIdx first_child,
                                                    TreeShape const& shape, Random* random) {
    std::vector<NodeSplit> node_splits;
    for (std::size_t b = 0; b < n_nodes; ++b) {
      NodeSplit split{static_cast<FeatureIdx>(random->Int(0, 3)), kNoNode, random->Normal(),
                      random->Chance(0.5)};
      if (random->Chance(shape.split)) {
        split.left = first_child;
        first_child += 2;
        if (random->Chance(shape.empty)) {
          split.threshold = random->Pick({-1e30f, 1e30f});
          split.default_left = split.threshold > 0.0f;
        }
      }
      node_splits.push_back(split);
    }
    return node_splits;
  }

  /** @brief Tell the partitioner which rows go left. @return Rows of the children, naively. */
  [[nodiscard]] std::vector<NodeRows> FindLeft(RowPartitioner* rows, Level const& level,
                                               std::vector<NodeRows> const& nodes,
                                               std::vector<NodeSplit> const& node_splits) const {
    // Slots and rows of leaves have any bit.
    std::vector<std::uint8_t> goes_left(level.NumSlots());
    std::vector<std::uint32_t> left_of_row(table_.n_rows / 32 + 1, 0x5a5a5a5au);
    for (std::size_t i = 0; i < goes_left.size(); ++i) {
      goes_left[i] = i % 3 == 0 ? 1 : 0;
    }
    std::vector<NodeRows> children;
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      if (node_splits[b].left == kNoNode) {
        continue;
      }
      NodeRows sides[2];
      RowIdx slot = level.row_ranges[b].begin;
      for (RowIdx r : nodes[b]) {
        bool const left = this->GoesLeft(r, node_splits[b]);
        goes_left[slot++] = left ? 1 : 0;
        left_of_row[r / 32] &= ~(1u << r % 32);
        left_of_row[r / 32] |= (left ? 1u : 0u) << r % 32;
        sides[left ? 0 : 1].push_back(r);
      }
      children.push_back(std::move(sides[0]));
      children.push_back(std::move(sides[1]));
    }
    auto const d_goes_left = ToDevice(goes_left);
    if (rows->GoesByRow(level)) {
      CopyAsync(rows->LeftOfRow(), left_of_row.data(), left_of_row.size());
      rows->FindLeft(level);
      ++n_by_row_;
    } else {
      LaunchN("WriteGoesLeft", WriteGoesLeftKernel, goes_left.size() + 32, d_goes_left.Data(),
              goes_left.size(), rows->GoesLeft());
    }
    rows->CountLeft(level);
    Synchronize();
    return children;
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
    std::vector<ShortLevelNode> node_of(table_.n_rows, kNowhere);
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      for (RowIdx row : nodes[b]) {
        node_of[row] = static_cast<ShortLevelNode>(b);
      }
    }
    if (nodes.size() <= kMostFollowed) {
      ASSERT_EQ(ToHost(ref.node_of, table_.n_rows), node_of);
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
      ASSERT_EQ(range.begin, end) << "node " << b;
      ASSERT_EQ(range.end - range.begin, nodes[b].size()) << "node " << b;
      end = range.end;
      for (std::size_t i = 0; i < nodes[b].size(); ++i) {
        RowIdx const row = nodes[b][i];
        ASSERT_EQ(got[range.begin + i], row) << "node " << b << ", its row " << i;
        ASSERT_EQ(got_units[range.begin + i].Fixed(), units[row].Fixed())
            << "node " << b << ", its row " << i;
        ASSERT_EQ(units_of_row[row].Fixed(), units[row].Fixed()) << row;
      }
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

  Table table_;
  std::vector<std::map<RowIdx, float>> values_;

 protected:
  static inline int n_by_row_{0};  // levels whose rows went in the order of the table
};

TEST_F(RowPartitionerTest, RandomTrees) {
  n_by_row_ = 0;
  for (int seed = 0; seed < NumSeeds(30); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    TreeShape const shape{random.Int(1, 8), random.Pick({1.0, 0.8, 0.5}), random.Pick({0.0, 0.3})};
    this->Check(static_cast<RowIdx>(random.Int(1, Scaled(3000, 500))), random.Pick({0.0, 0.0, 0.4}),
                shape, static_cast<unsigned>(seed));
    ASSERT_FALSE(this->HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(n_by_row_, 0);
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
TEST_F(RowPartitionerTest, MoreNodesThanAreFollowed) {
  if (!UnderSanitizer()) {
    this->Check(270000, 0.1, {17, 1.0, 0.0}, 6);
  }
}

TEST_F(RowPartitionerTest, EmptyChildrenAllTheWayDown) { this->Check(3000, 0.0, {7, 1.0, 1.0}, 5); }
}  // namespace
}  // namespace gpu_exact
