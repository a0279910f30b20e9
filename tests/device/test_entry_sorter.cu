/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Sorting by node and by child against std::stable_partition's order.
 */
#include "src/device/sort/entry_sorter.cuh"
#include "src/device/sort/row_partition.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
class EntrySorterTest : public DeviceTest {
 protected:
  /** @brief Entries of each node must be the columns' entries of its rows, in their order. */
  void CheckNodes(ColumnsRef const& columns, EntrySorter const& sorter,
                  std::vector<int> const& node_of_row, int n_nodes) {
    auto all = ToHost(columns.entries, columns.n_entries);
    auto entries = ToHost(sorter.Entries(), columns.n_entries);
    auto ranges = ToHost(sorter.Ranges().ranges, n_nodes);
    auto ends = ToHost(sorter.Ranges().open_ends, n_nodes);
    EntryIdx n_open{0};
    for (int node = 0; node < n_nodes; ++node) {
      auto at = ranges[node].begin;
      for (auto const& e : all) {
        if (node_of_row[e.row] == node) {
          ASSERT_LT(at, ranges[node].end) << "node " << node;
          ASSERT_EQ(entries[at].row, e.row);
          ASSERT_EQ(entries[at].value, e.value);
          ASSERT_EQ(entries[at].gpair.grad, static_cast<float>(e.row));
          ++at;
        }
      }
      ASSERT_EQ(at, ranges[node].end) << "node " << node;
      n_open += ranges[node].Size();
      ASSERT_EQ(ends[node], n_open);
    }
    ASSERT_EQ(sorter.Ranges().n_open, n_open);
  }

  /** @brief Sort by node, then twice by child, one node in five being closed. */
  void Check(Shape const& shape, int n_nodes) {
    Random random{shape.n_rows};
    Table table = MakeTable(shape, &random);
    ColumnStore store{table.View()};
    ColumnsRef columns = store.Ref();
    std::vector<GradientPair> gpair;
    std::vector<int> node_of_row;
    std::vector<std::uint8_t> keys;
    for (RowIdx r = 0; r < shape.n_rows; ++r) {
      gpair.push_back({static_cast<float>(r), 1.0f});
      node_of_row.push_back(random.Int(-1, n_nodes - 1));
      keys.push_back(node_of_row[r] < 0 ? kNoKey : static_cast<std::uint8_t>(node_of_row[r]));
    }
    auto d_gpair = ToDevice(gpair);
    EntrySorter sorter{columns};
    sorter.Reset(columns, d_gpair.Data());
    sorter.SortByNode(ToDevice(keys).Data(), n_nodes);
    ASSERT_NO_FATAL_FAILURE(this->CheckNodes(columns, sorter, node_of_row, n_nodes));
    for (int level = 0; level < 2; ++level) {
      std::vector<bool> is_split;
      std::vector<int> rank;
      int n_split{0};
      for (int node = 0; node < n_nodes; ++node) {
        is_split.push_back(node % 5 != 3);
        rank.push_back(n_split);
        n_split += is_split[node];
      }
      for (RowIdx r = 0; r < shape.n_rows; ++r) {
        int node = node_of_row[r];
        keys[r] = kNoKey;
        if (node >= 0) {
          keys[r] = static_cast<std::uint8_t>(random.Int(0, 1));
          node_of_row[r] = is_split[node] ? 2 * rank[node] + keys[r] : -1;
        }
      }
      auto nodes = ToHost(sorter.Ranges().ranges, n_nodes);
      sorter.SortByChild(nodes, is_split, ToDevice(keys).Data());
      n_nodes = 2 * n_split;
      ASSERT_NO_FATAL_FAILURE(this->CheckNodes(columns, sorter, node_of_row, n_nodes));
    }
  }
};

TEST_F(EntrySorterTest, OneNode) { this->Check({1000, 3, 0.2, 0}, 1); }
TEST_F(EntrySorterTest, ManyNodes) { this->Check({2000, 5, 0.5, 0}, 100); }
TEST_F(EntrySorterTest, NodesWithoutEntries) { this->Check({20, 3, 0.8, 0}, 50); }
// The node has half of the entries: more than 2^18 are sorted by all blocks, its children's by one.
TEST_F(EntrySorterTest, LongSegments) { this->Check({Scaled(400000u, 280000u), 2, 0.0, 100}, 1); }
}  // namespace
}  // namespace gpu_exact
