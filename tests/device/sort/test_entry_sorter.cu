/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Sorting by node and by child against std::stable_partition's order.
 */
#include <algorithm>
#include <type_traits>

#include "device/sort/entry_sorter.cuh"
#include "device/sort/row_router.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
class EntrySorterTest : public DeviceTest {
 protected:
  static constexpr EntryIdx kLongSegment = EntrySorter::kLongSegment;

  /** @brief Entries of each node must be the columns' entries of its rows, in their order. */
  void CheckNodes(ColumnsRef const& columns, EntrySorter const& sorter,
                  std::vector<int> const& node_of_row, int n_nodes) {
    auto all = ToHost(columns.entries, columns.n_entries);
    auto ranges = ToHost(sorter.Ranges().ranges, n_nodes);
    auto ends = ToHost(sorter.Ranges().open_ends, n_nodes);
    EntryIdx n_open{0};
    for (int node = 0; node < n_nodes; ++node) {
      auto entries = ToHost(sorter.Entries().entries + ranges[node].begin, ranges[node].Size());
      EntryIdx at{0};
      for (auto const& e : all) {
        if (node_of_row[e.row] == node) {
          ASSERT_LT(at, entries.size()) << "node " << node;
          ASSERT_EQ(entries[at].row, e.row);
          ASSERT_EQ(entries[at].value, e.value);
          ++at;
        }
      }
      ASSERT_EQ(at, entries.size()) << "node " << node;
      n_open += ranges[node].Size();
      ASSERT_EQ(ends[node], n_open);
    }
    ASSERT_GE(sorter.Ranges().max_open, n_open);
  }

  /** @brief Two trees; each is sorted by node twice, then by child twice, and by node again. */
  void Check(Shape const& shape, int n_nodes, EntryIdx long_segment = kLongSegment) {
    Random random{shape.n_rows};
    Table table = MakeTable(shape, &random);
    ColumnStore store{table.View()};
    std::vector<GradientPair> gpair;
    for (RowIdx r = 0; r < shape.n_rows; ++r) {
      gpair.push_back({static_cast<float>(r), 1.0f});
    }
    auto d_gpair = ToDevice(gpair);
    EntrySorter sorter{store.Ref(), long_segment};
    for (int tree = 0; tree < 2; ++tree) {
      sorter.Reset(d_gpair.Data(), quantiser_);
      ASSERT_NO_FATAL_FAILURE(
          this->CheckNodes(store.Ref(), sorter, std::vector<int>(shape.n_rows, 0), 1));
      ASSERT_NO_FATAL_FAILURE(this->SortByNode(store.Ref(), n_nodes, &random, &sorter));
      ASSERT_NO_FATAL_FAILURE(this->SortByNode(store.Ref(), n_nodes, &random, &sorter));
      ASSERT_NO_FATAL_FAILURE(this->SortByChild(store.Ref(), n_nodes, &random, &sorter));
      ASSERT_NO_FATAL_FAILURE(this->SortByNode(store.Ref(), n_nodes, &random, &sorter));
    }
  }

 private:
  /** @brief Rows of any node, and of none. */
  void SortByNode(ColumnsRef const& columns, int n_nodes, Random* random, EntrySorter* sorter) {
    node_of_row_.clear();
    std::vector<std::uint8_t> keys;
    for (RowIdx r = 0; r < columns.n_rows; ++r) {
      node_of_row_.push_back(random->Int(-1, n_nodes - 1));
      keys.push_back(node_of_row_[r] < 0 ? kNoKey : static_cast<std::uint8_t>(node_of_row_[r]));
    }
    sorter->SortByNode(ToDevice(keys).Data(), n_nodes, columns.n_entries);
    this->CheckNodes(columns, *sorter, node_of_row_, n_nodes);
  }

  /** @brief Twice, one node in five being closed. */
  void SortByChild(ColumnsRef const& columns, int n_nodes, Random* random, EntrySorter* sorter) {
    for (int level = 0; level < 2; ++level) {
      auto const nodes = ToHost(sorter->Ranges().ranges, n_nodes);
      std::vector<EntryRange> split_nodes;
      std::vector<int> rank;  // of a split node among them, -1: closed
      for (int node = 0; node < n_nodes; ++node) {
        bool const is_split = node % 5 != 3;
        rank.push_back(is_split ? static_cast<int>(split_nodes.size()) : -1);
        if (is_split) {
          split_nodes.push_back(nodes[node]);
        }
      }
      std::vector<std::uint8_t> keys(columns.n_rows, kNoKey);
      for (RowIdx r = 0; r < columns.n_rows; ++r) {
        int node = node_of_row_[r];
        if (node >= 0) {
          keys[r] = static_cast<std::uint8_t>(random->Int(0, 1));
          node_of_row_[r] = rank[node] >= 0 ? 2 * rank[node] + keys[r] : -1;
        }
      }
      sorter->SortByChild(split_nodes, ToDevice(keys).Data());
      n_nodes = 2 * static_cast<int>(split_nodes.size());
      ASSERT_NO_FATAL_FAILURE(this->CheckNodes(columns, *sorter, node_of_row_, n_nodes));
    }
  }

  Quantiser quantiser_{Quantiser::Make(1 << 20, 1.0f, 1 << 20)};
  std::vector<int> node_of_row_;
};

TEST_F(EntrySorterTest, OneNode) { this->Check({1000, 3, 0.2, 0}, 1); }
TEST_F(EntrySorterTest, OneEntry) { this->Check({1, 1, 0.0, 0}, 1); }
TEST_F(EntrySorterTest, NoEntries) { this->Check({10, 2, 1.0, 0}, 3); }
TEST_F(EntrySorterTest, ManyNodes) { this->Check({2000, 5, 0.5, 0}, 100); }
TEST_F(EntrySorterTest, AsManyNodesAsCanBeKeyed) { this->Check({3000, 4, 0.3, 0}, 128); }
TEST_F(EntrySorterTest, NodesWithoutEntries) { this->Check({20, 3, 0.8, 0}, 50); }
// The node has half of the entries, which are sorted by all blocks; a child's are by one.
TEST_F(EntrySorterTest, LongSegments) {
  this->Check({Scaled(400000u, 20000u), 2, 0.0, 100}, 1, Scaled(kLongSegment, EntryIdx{1} << 14));
}
}  // namespace
}  // namespace gpu_exact
