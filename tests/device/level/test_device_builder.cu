/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Whole trees of the device builder against the naive host builder.
 */
#include <cstdlib>

#include "device/runtime/runtime.cuh"
#include "plan/memory_plan.h"
#include "tests/device/histogram/histogram_strategy.cuh"
#include "tests/device/random_problem.h"
#include "tests/support/reference_builder.h"

namespace gpu_exact {
namespace {
/** @brief Strategy kHistogram with so many bins a column in each resolution. */
std::unique_ptr<TreeBuilder> MakeHistogramBuilder(Table const& table, HistogramMemory const& memory,
                                                  std::vector<std::uint32_t> const& max_bins,
                                                  RowIdx max_sorted) {
  return MakeBuilder(table.n_rows, [&] {
    return MakeHistogramStrategy(table.View(), memory, max_bins, max_sorted);
  });
}

class DeviceBuilder : public DeviceTest {
 protected:
  /** @brief Trees over one random table, at every kind of changeover. */
  void Compare(unsigned seed, Shape const& shape, int n_trees) {
    Random random{seed};
    Table table = MakeTable(shape, &random);
    std::vector<std::unique_ptr<TreeBuilder>> builders;
    builders.push_back(MakeDeviceBuilder(-1, table.View(), Strategy::kSort));
    builders.push_back(MakeDeviceBuilder(-1, table.View(), Strategy::kHistogram));
    // Ranges, whatever the size; scanned, gathered, and beside nodes that are sorted.
    builders.push_back(MakeHistogramBuilder(table, {true}, {12}, 0));
    builders.push_back(MakeHistogramBuilder(table, {false}, {24, 5}, 0));
    builders.push_back(MakeHistogramBuilder(table, {true}, {41, 20, 8}, shape.n_rows / 3));
    // What is read from the memory of the host.
    constexpr auto kHost = Memory::kHost;
    builders.push_back(MakeHistogramBuilder(table, {true, kHost, kHost, kHost, true, true}, {12, 6},
                                            shape.n_rows / 8));
    auto reference = MakeReferenceBuilder(table.View());
    for (int i = 0; i < n_trees; ++i) {
      auto gpair = MakeGradients(shape.n_rows, random.Pick({0.0, 0.2, 0.9}),
                                 random.Pick({0.0, 0.0, 0.2}), &random);
      GrowParam param = MakeParam(shape.n_features, &random);
      std::vector<std::uint8_t> included(shape.n_rows, 1);
      bool sampled = random.Chance(0.3);
      for (auto& row : included) {
        row = !sampled || random.Chance(0.6);
      }
      RandomFeatures features{shape.n_features, seed};
      FeaturePolicy* policy = random.Chance(0.3) ? &features : nullptr;
      auto const* mask = sampled ? included.data() : nullptr;
      GrownTree want = reference->Build(param, {gpair.data(), Memory::kHost}, mask, policy);
      auto want_positions = Positions(reference.get(), shape.n_rows);
      for (std::size_t b = 0; b < builders.size(); ++b) {
        std::string const what = "seed " + std::to_string(seed) + ", tree " + std::to_string(i) +
                                 ", builder " + std::to_string(b);
        for (int run = 0; run < NumRuns(); ++run) {
          GrownTree got = builders[b]->Build(param, {gpair.data(), Memory::kHost}, mask, policy);
          ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, what));
          ASSERT_EQ(Positions(builders[b].get(), shape.n_rows), want_positions) << what;
        }
      }
    }
  }
};

TEST_F(DeviceBuilder, SmallProblems) {
  for (int seed = 0; seed < NumSeeds(300); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(1, 90)), static_cast<FeatureIdx>(random.Int(1, 7)),
                random.Pick({0.0, 0.05, 0.5, 1.0}), random.Pick({0, 0, 6, 1})};
    ASSERT_NO_FATAL_FAILURE(this->Compare(seed, shape, Scaled(3, 1)));
  }
}

TEST_F(DeviceBuilder, ManyTiles) {
  for (int seed = 0; seed < NumSeeds(12); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(3000, Scaled(20000, 6000))),
                static_cast<FeatureIdx>(random.Int(1, Scaled(5, 2))), random.Pick({0.0, 0.3, 0.9}),
                random.Pick({0, 50, 2, 2600})};  // so many that short runs are not binned
    ASSERT_NO_FATAL_FAILURE(this->Compare(1000 + seed, shape, 1));
  }
}

/** @brief Small nodes of columns that are not binned, with every parameter. */
TEST_F(DeviceBuilder, SmallSortedColumns) {
  for (int seed = 0; seed < NumSeeds(60); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(300, 700)),
                static_cast<FeatureIdx>(random.Int(1, 3)), random.Pick({0.0, 0.05}), 0};
    ASSERT_NO_FATAL_FAILURE(this->Compare(5000 + seed, shape, 1));
  }
}

/** @brief One value fills most of each column, and goes on through warps, tiles and many tiles. */
TEST_F(DeviceBuilder, LongRuns) {
  for (int seed = 0; seed < NumSeeds(8); ++seed) {
    Random random{static_cast<unsigned>(6000 + seed)};
    double const share = random.Pick({0.6, 0.85});
    Shape shape{Scaled(300000u, 6000u), 2, random.Pick({0.0, 0.3}), 0};
    if (seed % 2 == 0) {
      shape.n_rows = 5000;
    }
    Table table = MakeTable(shape, &random);
    float const common = random.Pick({-1.0f, 0.0f, 1.5f});
    for (CsrEntry& e : table.entries) {
      e.value = random.Chance(share) ? common : e.value;
    }
    auto gpair = MakeGradients(shape.n_rows, 0.1, 0.1, &random);
    std::vector<std::uint8_t> included(shape.n_rows);
    for (auto& row : included) {
      row = random.Chance(0.8);
    }
    auto const* mask = seed % 3 == 0 ? included.data() : nullptr;
    GrowParam param = MakeParam(shape.n_features, &random);
    // The reference is for short columns.
    auto judge = shape.n_rows <= 6000 ? MakeReferenceBuilder(table.View())
                                      : MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
    auto histogram = MakeHistogramBuilder(table, {seed % 2 == 0}, {200, 30}, 1000);
    auto want = judge->Build(param, {gpair.data(), Memory::kHost}, mask, nullptr);
    for (int run = 0; run < Scaled(3, 1); ++run) {
      auto got = histogram->Build(param, {gpair.data(), Memory::kHost}, mask, nullptr);
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "seed " + std::to_string(seed)));
      ASSERT_EQ(Positions(histogram.get(), shape.n_rows), Positions(judge.get(), shape.n_rows));
    }
  }
}

/** @brief Values whose rows have no weight bound candidates all the same. */
TEST_F(DeviceBuilder, RowsWithoutWeight) {
  for (int seed = 0; seed < NumSeeds(200); ++seed) {
    Random random{static_cast<unsigned>(3000 + seed)};
    Shape shape{static_cast<RowIdx>(random.Int(5, 60)), static_cast<FeatureIdx>(random.Int(1, 4)),
                random.Pick({0.0, 0.3, 0.7}), random.Pick({0, 3, 6})};
    Table table = MakeTable(shape, &random);
    auto gpair = MakeGradients(shape.n_rows, 0.0, 0.0, &random);
    for (auto& g : gpair) {
      g = random.Chance(0.6) ? GradientPair{0.0f, 0.0f} : g;
    }
    GrowParam param = MakeParam(shape.n_features, &random);
    param.min_child_weight = 0.0f;
    auto reference = MakeReferenceBuilder(table.View());
    auto want = reference->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    for (Strategy strategy : {Strategy::kSort, Strategy::kHistogram}) {
      auto builder = MakeDeviceBuilder(-1, table.View(), strategy);
      auto got = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "seed " + std::to_string(seed)));
      ASSERT_EQ(Positions(builder.get(), shape.n_rows), Positions(reference.get(), shape.n_rows));
    }
  }
}

/** @brief Columns of many more tiles than a tile looks back at in one step, dense and sparse. */
TEST_F(DeviceBuilder, LongColumns) {
  for (double missing : {0.0, 0.4}) {
    Random random{21};
    // At least 65 tiles of 2048 rows, so that the scan of long segments takes part.
    Shape shape{Scaled(400000u, 140000u), Scaled(3u, 1u), missing, 0};
    Table table = MakeTable(shape, &random);
    auto gpair = MakeGradients(shape.n_rows, 0.1, missing == 0.0 ? 0.0 : 0.1, &random);
    GrowParam param;
    param.max_depth = Scaled(8, 3);
    // The reference is for short columns, long columns are slow under a sanitizer.
    auto judge = UnderSanitizer() ? MakeReferenceBuilder(table.View())
                                  : MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
    auto want = judge->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    for (bool sorts_columns : {true, false}) {
      auto histogram = MakeHistogramBuilder(table, {sorts_columns}, {200, 30}, 1000);
      for (int run = 0; run < Scaled(5, 1); ++run) {
        auto got = histogram->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
        ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "long columns"));
        ASSERT_EQ(Positions(histogram.get(), shape.n_rows), Positions(judge.get(), shape.n_rows));
      }
    }
  }
}

TEST_F(DeviceBuilder, TileEdges) {
  std::vector<RowIdx> const edges{255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4096};
  std::vector<RowIdx> const light{256, 1025, 2049};
  for (RowIdx n : Scaled(edges, ForRacecheck(light, {256, 1025}))) {
    ASSERT_NO_FATAL_FAILURE(this->Compare(n, {n, 2, 0.0, 0}, 1)) << n << " rows";
  }
}

TEST_F(DeviceBuilder, WideAndSparse) {
  for (int seed = 0; seed < NumSeeds(6); ++seed) {
    ASSERT_NO_FATAL_FAILURE(this->Compare(2000 + seed, {200, Scaled(3000u, 600u), 0.98, 0}, 1));
  }
}

/** @brief Levels of so many nodes that long columns are read again, and that keys have two digits. */
TEST_F(DeviceBuilder, ManyNodes) {
  for (int seed = 0; seed < NumSeeds(4); ++seed) {
    Random random{static_cast<unsigned>(4000 + seed)};
    Table table = MakeTable({Scaled(6000u, 3000u), 2, random.Pick({0.0, 0.1}), 0}, &random);
    auto gpair = MakeGradients(table.n_rows, 0.0, 0.1, &random);
    std::vector<std::uint8_t> included(table.n_rows);
    for (RowIdx r = 0; r < table.n_rows; ++r) {
      if (table.offsets[r] != table.offsets[r + 1]) {  // gradients of values, for many splits
        gpair[r].grad = std::rint(256.0f * table.entries[table.offsets[r]].value) / 256.0f;
      }
      included[r] = random.Chance(0.9);
    }
    GrowParam param;
    param.max_depth = Scaled(11, 10);
    param.min_child_weight = 0.0f;
    param.reg_lambda = 0.0f;
    auto reference = MakeReferenceBuilder(table.View());
    auto want = reference->Build(param, {gpair.data(), Memory::kHost}, included.data(), nullptr);
    ASSERT_GT(want.size(), 2 * 256 * Scaled(2, 1)) << "the last searched level has more than 255";
    auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
    auto got = builder->Build(param, {gpair.data(), Memory::kHost}, included.data(), nullptr);
    ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "seed " + std::to_string(seed)));
    ASSERT_EQ(Positions(builder.get(), table.n_rows), Positions(reference.get(), table.n_rows));
  }
}

/** @brief Few rows are trained on, and most of these are soon in leaves. */
TEST_F(DeviceBuilder, FewOpenEntries) {
  constexpr RowIdx kRows = 4000;
  Random random{14};
  Table table = MakeTable({kRows, 80, 0.9, 0}, &random);
  std::vector<GradientPair> gpair(kRows);
  for (auto& g : gpair) {
    g = {random.Chance(0.01) ? 4.0f : 0.0f, 1.0f};
  }
  std::vector<std::uint8_t> included(kRows);
  for (auto& row : included) {
    row = random.Chance(0.2);
  }
  GrowParam param;
  param.max_depth = Scaled(12, 7);
  param.min_child_weight = 0.0f;
  auto reference = MakeReferenceBuilder(table.View());
  auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
  for (std::uint8_t const* mask : {static_cast<std::uint8_t const*>(included.data()),
                                   static_cast<std::uint8_t const*>(nullptr)}) {
    auto want = reference->Build(param, {gpair.data(), Memory::kHost}, mask, nullptr);
    ASSERT_GT(want.size(), 3u);
    auto got = builder->Build(param, {gpair.data(), Memory::kHost}, mask, nullptr);
    ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "few open entries"));
    ASSERT_EQ(Positions(builder.get(), kRows), Positions(reference.get(), kRows));
  }
}

/** @brief One row, one feature, one entry. */
TEST_F(DeviceBuilder, OneEntry) { this->Compare(1, {1, 1, 0.0, 0}, 1); }

TEST_F(DeviceBuilder, NoEntries) { this->Compare(1, {50, 3, 1.0, 0}, 1); }

TEST_F(DeviceBuilder, NoRows) { this->Compare(1, {0, 3, 0.0, 0}, 1); }

/** @brief One column of some values; the last rows have none: both directions are searched. */
Table MakeColumn(std::vector<float> const& values, std::vector<RowIdx> const& value_of_row,
                 RowIdx n_rows) {
  Table table;
  table.n_rows = n_rows;
  table.n_features = 1;
  for (RowIdx r = 0; r < n_rows; ++r) {
    if (r < value_of_row.size()) {
      table.entries.push_back({0, values[value_of_row[r]]});
    }
    table.offsets.push_back(table.entries.size());
  }
  return table;
}

/** @brief The threshold between two neighbouring floats is one of them, and between two huge ones
 *         infinite: rows may go the other way than their gradients were counted. */
TEST_F(DeviceBuilder, NeighbouringFloats) {
  auto compare = [](Table const& table, std::vector<GradientPair> const& gpair) {
    auto reference = MakeReferenceBuilder(table.View());
    for (auto direction : {DefaultDirection::kLearn, DefaultDirection::kRight}) {
      GrowParam param;
      param.max_depth = 3;
      param.default_direction = direction;
      auto want = reference->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
      ASSERT_TRUE(want.size() > 1 || direction != DefaultDirection::kLearn);
      std::vector<std::unique_ptr<TreeBuilder>> builders;
      builders.push_back(MakeDeviceBuilder(-1, table.View(), Strategy::kSort));
      builders.push_back(MakeHistogramBuilder(table, {}, {}, ~0u));
      for (auto const& builder : builders) {
        auto got = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
        ExpectSameTree(got, want, "neighbouring floats");
        EXPECT_EQ(Positions(builder.get(), table.n_rows), Positions(reference.get(), table.n_rows));
      }
    }
  };
  compare(MakeColumn({1.0f, std::nextafter(1.0f, 2.0f)}, {0, 1, 0, 1}, 6),
          {{4, 1}, {-4, 1}, {4, 1}, {-4, 1}, {-2, 1}, {-3, 1}});
  // Enough values for a sorted column; gradients change sign every few values, so that it splits.
  constexpr RowIdx kValues = 700;
  Random random{3};
  std::vector<RowIdx> value_of_row;
  std::vector<float> neighbours{1.0f}, huge;
  for (RowIdx r = 0; r < kValues; ++r) {
    value_of_row.push_back(r * 9 % kValues);
    neighbours.push_back(std::nextafter(neighbours.back(), 2.0f));
    huge.push_back(3.0e38f + static_cast<float>(r) * 4.0e34f);
  }
  for (RowIdx n_rows : {kValues, kValues + 50}) {
    for (int i = 0; i < Scaled(10, 2); ++i) {
      std::vector<GradientPair> gpair(n_rows);
      int const step = random.Int(1, 300);
      for (RowIdx r = 0; r < n_rows; ++r) {
        bool odd = r < kValues && value_of_row[r] / step % 2 != 0;
        gpair[r] = {static_cast<float>(random.Int(-2, 2) + (odd ? 3 : -3)), 1.0f};
      }
      compare(MakeColumn(i % 3 == 0 ? huge : neighbours, value_of_row, n_rows), gpair);
    }
  }
}

/** @brief Trees of one builder, with all rows and with some, over columns of each kind, in which
 *         nodes that could be split stay leaves. Rows left out may have any gradient. */
TEST_F(DeviceBuilder, MixedColumnsInTurn) {
  for (double missing : {0.0, 0.3}) {
    Random random{static_cast<unsigned>(90 + 10 * missing)};
    Table all = MakeTable({Scaled(5000u, 2500u), 3, 0.0, 0}, &random);
    Table table;  // few values; many; many, some of which are missing
    table.n_rows = all.n_rows;
    table.n_features = 3;
    for (CsrEntry e : all.entries) {
      if (e.feature == 0) {
        e.value = std::rint(e.value);
      }
      if (e.feature != 2 || !random.Chance(missing)) {
        table.entries.push_back(e);
      }
      if (e.feature == 2) {
        table.offsets.push_back(table.entries.size());
      }
    }
    auto reference = MakeReferenceBuilder(table.View());
    auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kHistogram);
    for (int i = 0; i < Scaled(16, 4); ++i) {
      auto gpair = MakeGradients(table.n_rows, 0.1, 0.0, &random);
      std::vector<std::uint8_t> included(table.n_rows);
      for (RowIdx r = 0; r < table.n_rows; ++r) {
        included[r] = i % 2 == 0 || random.Chance(0.7);
        if (included[r] == 0 && random.Chance(0.1)) {
          gpair[r].grad = 1e30f;
        }
      }
      GrowParam param = MakeParam(table.n_features, &random);
      param.max_leaves = random.Pick({0, 3, 6});
      auto const* mask = i % 2 == 0 ? nullptr : included.data();
      auto want = reference->Build(param, {gpair.data(), Memory::kHost}, mask, nullptr);
      auto got = builder->Build(param, {gpair.data(), Memory::kHost}, mask, nullptr);
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "tree " + std::to_string(i)));
      ASSERT_EQ(Positions(builder.get(), table.n_rows), Positions(reference.get(), table.n_rows));
    }
  }
}

TEST_F(DeviceBuilder, GradientsOnTheDevice) {
  Random random{7};
  Table table = MakeTable({500, 4, 0.2, 0}, &random);
  auto gpair = MakeGradients(500, 0.0, 0.1, &random);
  DeviceBuffer<GradientPair> d_gpair{"test gradients"};
  DeviceBuffer<NodeIdx> d_positions{"test positions"};
  CopyAsync(d_gpair.Reserve(500), gpair.data(), 500);
  auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto);
  GrowParam param;
  auto want = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  auto want_positions = Positions(builder.get(), 500);
  auto got = builder->Build(param, {d_gpair.Data(), Memory::kDevice}, nullptr, nullptr);
  ExpectSameTree(got, want, "device gradients");
  builder->WritePositions({}, Memory::kDevice, d_positions.Reserve(500));
  EXPECT_EQ(ToHost(d_positions.Data(), 500), want_positions);
}

TEST_F(DeviceBuilder, RemapsPositions) {
  Random random{8};
  Table table = MakeTable({300, 3, 0.1, 0}, &random);
  auto gpair = MakeGradients(300, 0.0, 0.2, &random);
  auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto);
  GrowParam param;
  param.max_depth = 2;
  auto tree = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  std::vector<NodeIdx> to_root(tree.size(), kRoot);
  auto positions = Positions(builder.get(), 300, to_root);
  for (RowIdx r = 0; r < 300; ++r) {
    ASSERT_EQ(positions[r], EncodePosition(kRoot, gpair[r].hess >= 0.0f));
  }
}

TEST_F(DeviceBuilder, SameBitsEveryRun) {
  Random random{9};
  Table table = MakeTable({Scaled(20000u, 5000u), Scaled(6u, 2u), 0.3, 0}, &random);
  std::vector<GradientPair> gpair(table.n_rows);
  for (auto& g : gpair) {
    g = {random.Normal(), static_cast<float>(random.Real())};  // sums depend on order as floats
  }
  auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
  auto histogram = MakeDeviceBuilder(-1, table.View(), Strategy::kHistogram);
  GrowParam param;
  param.max_depth = 8;
  auto want = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  for (int run = 0; run < Scaled(15, 2); ++run) {
    auto got = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    ExpectSameTree(got, want, "run " + std::to_string(run));
    got = histogram->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    ExpectSameTree(got, want, "histogram, run " + std::to_string(run));
  }
}

TEST_F(DeviceBuilder, KeepsToTheMemoryPlan) {
  if (UnderSanitizer()) {
    GTEST_SKIP() << "Counts bytes of large tables; other tests run the same kernels.";
  }
  Random random{13};
  for (Strategy strategy : {Strategy::kSort, Strategy::kHistogram}) {
    for (Shape shape :
         {Shape{200000, 3, 0.0, 0}, Shape{9000, 40, 0.0, 0}, Shape{60000, 8, 0.6, 0}}) {
      Table table = MakeTable(shape, &random);
      auto gpair = MakeGradients(shape.n_rows, 0.0, 0.0, &random);
      auto builder = MakeDeviceBuilder(-1, table.View(), strategy);
      GrowParam param;
      param.max_depth = 9;
      param.min_child_weight = 10.0f;
      static_cast<void>(builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr));
      auto plan = MemoryPlan::Make(table.entries.size(), shape.n_rows, shape.n_features, strategy);
      constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;  // nodes, and CUB's scratch
      EXPECT_LE(builder->DeviceBytes(), plan.Peak() + kSlack) << shape.n_rows << " rows";
      if (strategy == Strategy::kSort) {  // the other has room for histograms of deep trees
        std::uint64_t growing{0};
        for (MemoryItem const& item : plan.growing) {
          growing += item.bytes;
        }
        EXPECT_GT(builder->DeviceBytes(), growing / 2) << shape.n_rows << " rows";
      }
    }
  }
}

/** @brief Set-up included, which holds most of what is taken at a time. */
TEST_F(DeviceBuilder, NeverTakesMoreThanPlanned) {
  if (UnderSanitizer()) {
    GTEST_SKIP() << "Counts bytes of a large table; other tests run the same kernels.";
  }
  constexpr std::uint64_t kSlack = std::uint64_t{96} << 20;  // nodes, and CUB's scratch
  Random random{14};
  for (double missing : {0.0, 0.2, 0.6}) {  // the last one is read again in parts
    Table const table = MakeTable({500'000, 60, missing, 0}, &random);
    auto const gpair = MakeGradients(table.n_rows, 0.0, 0.0, &random);
    GrowParam param;
    param.min_child_weight = 10.0f;
    GrownTree want;
    for (HistogramMemory const& memory : HistogramMemory::All()) {
      auto const plan = MemoryPlan::Make(table.entries.size(), table.n_rows, table.n_features,
                                         Strategy::kHistogram, memory);
      std::string const what = plan.Describe();
      auto const context = std::make_shared<DeviceContext>(-1);
      DeviceContext::Scope const scope{*context};
      auto builder = MakeTreeBuilder(context, table.n_rows,
                                     MakeHistogramStrategy(table.View(), memory, {}, ~0u));
      auto const got = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
      EXPECT_LE(context->Memory()->Peak(), plan.Peak() + kSlack) << what;
      if (want.empty()) {
        want = got;
      }
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, what));
    }
  }
}

TEST_F(DeviceBuilder, ALimitLeavesRoomAndTheTreesAsTheyAre) {
  Random random{15};
  Table const table = MakeTable({Scaled(30000u, 3000u), 12, 0.1, 0}, &random);
  auto const gpair = MakeGradients(table.n_rows, 0.0, 0.0, &random);
  GrowParam param;
  auto sort = MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
  auto const want = sort->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  std::uint64_t before = ~std::uint64_t{0};
  for (HistogramMemory const& memory : HistogramMemory::All()) {
    auto const plan = MemoryPlan::Make(table.entries.size(), table.n_rows, table.n_features,
                                       Strategy::kHistogram, memory);
    auto builder = MakeDeviceBuilder(-1, table.View(),
                                     {Strategy::kHistogram, static_cast<double>(plan.Peak())});
    auto const got = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, plan.Describe()));
    EXPECT_LE(builder->Stats().planned_bytes, plan.Peak());
    EXPECT_LE(builder->Stats().planned_bytes, before);
    before = builder->Stats().planned_bytes;
  }
  EXPECT_THROW((void)MakeDeviceBuilder(-1, table.View(), {Strategy::kHistogram, 1000.0}),
               OutOfDeviceMemory);
}

TEST_F(DeviceBuilder, RefusesNonFiniteGradients) {
  Random random{10};
  Table table = MakeTable({40, 2, 0.0, 0}, &random);
  auto builder = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto gpair = MakeGradients(40, 0.0, 0.0, &random);
    gpair[17].grad = bad;
    GrowParam param;
    EXPECT_THROW(
        static_cast<void>(builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr)),
        NonFiniteGradient);
  }
}

TEST_F(DeviceBuilder, RefusesGradientsFarApart) {
  Random random{12};
  Table table = MakeTable({400, 2, 0.0, 0}, &random);
  GrowParam param;
  for (Strategy strategy : {Strategy::kSort, Strategy::kHistogram}) {
    auto builder = MakeDeviceBuilder(-1, table.View(), strategy);
    auto gpair = MakeGradients(400, 0.0, 0.0, &random);
    auto build = [&](std::uint8_t const* included) {
      return builder->Build(param, {gpair.data(), Memory::kHost}, included, nullptr);
    };
    std::vector<std::uint8_t> without_it(400, 1);
    without_it[17] = 0;
    gpair[17].grad = 1e18f;
    EXPECT_THROW(static_cast<void>(build(nullptr)), GradientRange);
    EXPECT_GT(build(without_it.data()).size(), 1u) << "rows left out do not count";
    gpair[17].grad = 1e10f;
    EXPECT_GT(build(nullptr).size(), 1u) << "what fits is grown";
    for (auto& g : gpair) {
      g.grad = g.grad < 0.0f ? -1e18f : 1e18f;
    }
    EXPECT_GT(build(nullptr).size(), 1u) << "large, but not apart";
  }
}

TEST_F(DeviceBuilder, KnowsItsLastTree) {
  Random random{13};
  Table table = MakeTable({2000, 3, 0.0, 0}, &random);
  auto gpair = MakeGradients(2000, 0.0, 0.0, &random);
  for (Strategy strategy : {Strategy::kSort, Strategy::kHistogram}) {
    auto builder = MakeDeviceBuilder(-1, table.View(), strategy);
    EXPECT_EQ(builder->Stats().strategy, strategy);
    EXPECT_EQ(builder->Stats().levels_ms, 0.0);
    GrowParam param;
    static_cast<void>(builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr));
    TreeStats const stats = builder->Stats();
    EXPECT_GT(stats.start_ms, 0.0);
    EXPECT_GT(stats.levels_ms, 0.0);
    EXPECT_LE(stats.refined_share, 1.0);
  }
}

/** @brief Where the best splits break a constraint, the bar is low: ranges must not stay open for them. */
TEST_F(DeviceBuilder, RangesOfForbiddenSplitsAreNotSearched) {
  constexpr RowIdx kRows = 200'000;
  Random random{14};
  Table table = MakeTable({kRows, 2, 0.0, 0}, &random);
  CsrView const view = table.View();
  std::vector<GradientPair> gpair;
  for (RowIdx row = 0; row < kRows; ++row) {
    float const noise = random.Normal();
    gpair.push_back({view.entries[2 * row].value > 0.0f ? noise + 1.0f : noise - 1.0f, 1.0f});
  }
  auto builder = MakeDeviceBuilder(-1, view, Strategy::kHistogram);
  GrowParam param;
  auto share = [&](std::vector<std::int32_t> const& constraints) {
    param.monotone_constraints = constraints;
    static_cast<void>(builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr));
    return builder->Stats().refined_share;
  };
  EXPECT_GT(share({-1, 0}), 0.0) << "what is found";
  EXPECT_LT(share({1, 0}), 0.3) << "half of the entries are of the first column";
}
}  // namespace
}  // namespace gpu_exact
