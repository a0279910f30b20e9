/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Whole trees with categorical features against the naive host builder.
 */
#include <memory>
#include <string>
#include <vector>

#include "plan/memory_plan.h"
#include "tests/device/histogram/histogram_strategy.cuh"
#include "tests/device/random_problem.h"
#include "tests/device/table_arrays.cuh"
#include "tests/support/reference_builder.h"

namespace gpu_exact {
namespace {
std::unique_ptr<TreeBuilder> MakeBuilder(Table const& table, HistogramMemory const& memory,
                                         std::vector<std::uint32_t> const& max_bins,
                                         RowIdx max_sorted) {
  return gpu_exact::MakeBuilder(table.n_rows, [&] {
    return MakeHistogramStrategy(table.View(), memory, max_bins, max_sorted);
  });
}

/** @brief Every way to have bins and to search nodes. */
std::vector<std::unique_ptr<TreeBuilder>> MakeBuilders(Table const& table) {
  constexpr auto kHost = Memory::kHost;
  std::vector<std::unique_ptr<TreeBuilder>> builders;
  builders.push_back(MakeDeviceBuilder(-1, table.View(), Strategy::kAuto));
  builders.push_back(MakeBuilder(table, {true}, {12}, 0));
  builders.push_back(MakeBuilder(table, {false}, {24, 5}, 0));
  builders.push_back(MakeBuilder(table, {true}, {41, 20, 8}, table.n_rows / 3));
  builders.push_back(
      MakeBuilder(table, {true, kHost, kHost, kHost, true, true}, {12, 6}, table.n_rows / 8));
  builders.push_back(MakeBuilder(table, {true}, {}, ~0u));
  HistogramMemory few_rows;
  few_rows.rows_by_category = table.n_rows / 5;  // large nodes have a sum for each category
  builders.push_back(MakeBuilder(table, few_rows, {12, 6}, 0));
  if (!UnderRacecheck()) {
    builders.push_back(MakeDeviceBuilder({0, 0, 0}, table.View(), Strategy::kAuto));
  }
  return builders;
}

/** @brief Makes a column categorical: some of its codes are those of few values or of none. */
void Categorise(FeatureIdx f, int n_codes, double uneven, Random* random, Table* table) {
  table->feature_types.resize(table->n_features, FeatureType::kNumerical);
  table->feature_types[f] = FeatureType::kCategorical;
  for (CsrEntry& entry : table->entries) {
    if (entry.feature == f) {
      int const code = random->Int(0, n_codes - 1);
      bool const low = random->Chance(uneven);
      entry.value = static_cast<float>(low ? random->Int(0, code) : code);
    }
  }
}

class CategoricalTrees : public DeviceTest {
 protected:
  void Compare(unsigned seed, Table const& table, int n_trees, Random* random) {
    auto const builders = MakeBuilders(table);
    auto reference = MakeReferenceBuilder(table.View());
    for (int i = 0; i < n_trees; ++i) {
      auto gpair = MakeGradients(table.n_rows, random->Pick({0.0, 0.2, 0.9}),
                                 random->Pick({0.0, 0.0, 0.2}), random);
      GrowParam param = MakeParam(table.n_features, random);
      param.max_cat_to_onehot = random->Pick({1, 4, 9, 1 << 20});
      param.max_cat_threshold = random->Pick({1, 2, 7, 64, 1025, 1 << 14});
      std::vector<std::uint8_t> included(table.n_rows, 1);
      bool const sampled = random->Chance(0.3);
      for (auto& row : included) {
        row = !sampled || random->Chance(0.6);
      }
      auto const* mask = sampled ? included.data() : nullptr;
      RandomFeatures features{table.n_features, seed};
      FeaturePolicy* policy = random->Chance(0.3) ? &features : nullptr;
      GrownTree const want = reference->Build(param, {gpair.data(), Memory::kHost}, mask, policy);
      auto const want_positions = Positions(reference.get(), table.n_rows);
      for (TreeNode const& node : want) {
        n_sets_ += node.categories.empty() ? 0 : 1;
        n_numbers_ += node.IsLeaf() || !node.categories.empty() ? 0 : 1;
      }
      for (std::size_t k = 0; k < builders.size(); ++k) {
        auto const what = "seed " + std::to_string(seed) + ", tree " + std::to_string(i) +
                          ", builder " + std::to_string(k);
        for (int run = 0; run < NumRuns(); ++run) {
          auto const got = builders[k]->Build(param, {gpair.data(), Memory::kHost}, mask, policy);
          ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, what));
          ASSERT_EQ(Positions(builders[k].get(), table.n_rows), want_positions) << what;
        }
      }
    }
  }

  int n_sets_{0};
  int n_numbers_{0};
};

TEST_F(CategoricalTrees, SmallProblems) {
  for (int seed = 0; seed < NumSeeds(300); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Table table = MakeTable(
        {static_cast<RowIdx>(random.Int(1, 400)), static_cast<FeatureIdx>(random.Int(1, 7)),
         random.Pick({0.0, 0.05, 0.5, 0.9, 1.0}), random.Pick({0, 6, 1})},
        &random);
    MakeCategorical(random.Pick({0.5, 1.0}), &random, &table);
    ASSERT_NO_FATAL_FAILURE(this->Compare(seed, table, Scaled(3, 1), &random));
  }
  EXPECT_GT(n_sets_, NumSeeds(300));
  EXPECT_GT(n_numbers_, NumSeeds(300) / 2);
}

/** @brief Numbers of categories at which kernels and words change. */
TEST_F(CategoricalTrees, NumbersOfCategories) {
  for (int seed = 0; seed < NumSeeds(24); ++seed) {
    Random random{static_cast<unsigned>(100 + seed)};
    Table table = MakeTable({Scaled(12000u, 3000u), 5, random.Pick({0.0, 0.3, 0.9}), 0}, &random);
    int const most = std::min(10240, static_cast<int>(BinMatrix::MaxBins()));
    for (FeatureIdx f = 0; f < 4; ++f) {
      int const n = random.Pick({1, 31, 32, 33, 1000, 1024, 1025, 4096, 4097, most});
      Categorise(f, std::min(n, most), random.Pick({0.0, 0.7}), &random, &table);
    }
    ASSERT_NO_FATAL_FAILURE(this->Compare(seed, table, 1, &random));
  }
  EXPECT_GT(n_sets_, NumSeeds(24));
}

/** @brief Columns of more categories than fit a block, some of which most rows have. */
TEST_F(CategoricalTrees, WideColumns) {
  auto const most = static_cast<int>(BinMatrix::MaxBins());
  for (int seed = 0; seed < NumSeeds(16); ++seed) {
    Random random{static_cast<unsigned>(200 + seed)};
    Table table = MakeTable({Scaled(15000u, 3000u), 4, random.Pick({0.0, 0.3, 0.9}), 0}, &random);
    Categorise(0, random.Pick({most + 1, 30000, 200000}), random.Pick({0.0, 0.9}), &random, &table);
    Categorise(2, random.Pick({most + 1, 20000, 40}), 0.5, &random, &table);
    if (random.Chance(0.5)) {
      for (CsrEntry& e : table.entries) {
        e.value = e.feature == 0 && random.Chance(0.5) ? 17.0f : e.value;
      }
    }
    ASSERT_NO_FATAL_FAILURE(this->Compare(seed, table, 1, &random));
  }
  EXPECT_GT(n_sets_, ForRacecheck(NumSeeds(16), 0));
}

/** @brief Nothing is binned. */
TEST_F(CategoricalTrees, WideColumnsAlone) {
  Random random{7};
  Table table = MakeTable({3000, 1, 0.1, 0}, &random);
  Categorise(0, 50000, 0.9, &random, &table);
  ASSERT_NO_FATAL_FAILURE(this->Compare(7, table, Scaled(3, 1), &random));
}

/** @brief More nodes than results are written to the host's memory of, many batches of histograms, rows
 *         that go left or right in the order of the table. */
TEST_F(CategoricalTrees, DeepTrees) {
  if (UnderRacecheck()) {
    GTEST_SKIP() << "Takes long; other tests run the same kernels.";
  }
  Random random{3};
  Table table = MakeTable({Scaled(60000u, 5000u), 3, 0.1, 0}, &random);
  Categorise(0, 3000, 0.5, &random, &table);
  Categorise(1, 50, 0.0, &random, &table);
  auto const gpair = MakeGradients(table.n_rows, 0.1, 0.0, &random);
  GrowParam param;
  param.max_depth = 11;
  auto const want = MakeReferenceBuilder(table.View())
                        ->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  EXPECT_GT(want.size(), Scaled(1000u, 100u));
  for (auto const& builder : MakeBuilders(table)) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameTree(
        builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr), want, "deep"));
  }
}

TEST_F(CategoricalTrees, TablesInPagesAndWithoutRows) {
  Random random{4};
  Table table = MakeTable({1000, 4, 0.2, 0}, &random);
  MakeCategorical(1.0, &random, &table);
  auto const gpair = MakeGradients(table.n_rows, 0.1, 0.1, &random);
  auto const want = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto)
                        ->Build({}, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  TablePages const pages{table, {0, 1, 500}};
  ExpectSameTree(MakeDeviceBuilder(-1, pages.View(), Strategy::kAuto)
                     ->Build({}, {gpair.data(), Memory::kHost}, nullptr, nullptr),
                 want, "pages");
  Table none = MakeTable({0, 3, 0.0, 0}, &random);
  none.feature_types.assign(3, FeatureType::kCategorical);
  ExpectSameTree(
      MakeDeviceBuilder(-1, none.View(), Strategy::kAuto)
          ->Build({}, {nullptr, Memory::kHost}, nullptr, nullptr),
      MakeReferenceBuilder(none.View())->Build({}, {nullptr, Memory::kHost}, nullptr, nullptr),
      "no rows");
}

/** @brief The first value that is no category is told, by row, then by feature. */
TEST_F(CategoricalTrees, RefusesWhatIsNoCategory) {
  for (double const missing : {0.0, 0.8}) {  // by column, by row
    Random random{5};
    Table table = MakeTable({3000, 4, missing, 0}, &random);
    for (FeatureIdx f : {1, 2}) {
      Categorise(f, 50, 0.0, &random, &table);
    }
    auto const refused = [&](FeatureIdx f, float value) {
      try {
        static_cast<void>(MakeDeviceBuilder(-1, table.View(), Strategy::kAuto));
        return false;
      } catch (InvalidCategory const& e) {
        return e.feature == f && e.value == value;
      }
    };
    EXPECT_NO_THROW(static_cast<void>(MakeDeviceBuilder(-1, table.View(), Strategy::kAuto)));
    std::vector<CsrEntry*> of[2];
    for (CsrEntry& e : table.entries) {
      if (e.feature == 1 || e.feature == 2) {
        of[e.feature - 1].push_back(&e);
      }
    }
    of[0][200]->value = 16777216.0f;
    EXPECT_TRUE(refused(1, 16777216.0f));
    of[1][10]->value = -0.25f;
    EXPECT_TRUE(refused(2, -0.25f));
    of[0][0]->value = of[1][0]->value = -1.0f;
    EXPECT_TRUE(refused(of[0][0] < of[1][0] ? 1 : 2, -1.0f));
  }
}

/** @brief A worker tells the feature of the whole table. */
TEST_F(CategoricalTrees, WorkersRefuseWhatIsNoCategory) {
  Random random{6};
  Table table = MakeTable({900, 5, 0.0, 0}, &random);
  for (FeatureIdx f = 0; f < 5; ++f) {
    Categorise(f, 9, 0.0, &random, &table);
  }
  table.entries[500 * 5 + 3].value = -2.0f;
  try {
    static_cast<void>(MakeDeviceBuilder({0, 0}, table.View(), Strategy::kAuto));
    FAIL() << "-2 is no category.";
  } catch (std::exception const& e) {
    EXPECT_NE(std::string{e.what()}.find("column 3 has -2"), std::string::npos) << e.what();
  }
}

TEST_F(CategoricalTrees, AreNotSorted) {
  Random random{6};
  Table table = MakeTable({300, 3, 0.1, 4}, &random);
  table.feature_types.assign(3, FeatureType::kNumerical);
  EXPECT_NO_THROW(static_cast<void>(MakeDeviceBuilder(-1, table.View(), Strategy::kSort)));
  Categorise(0, 10, 0.0, &random, &table);
  EXPECT_THROW(static_cast<void>(MakeDeviceBuilder(-1, table.View(), Strategy::kSort)),
               std::invalid_argument);
}

TEST_F(CategoricalTrees, KeepToTheMemoryPlan) {
  if (UnderRacecheck()) {
    GTEST_SKIP() << "Takes long; other tests run the same kernels.";
  }
  Random random{8};
  for (double const missing : {0.0, 0.6}) {
    Table table = MakeTable({Scaled(50000u, 2000u), 6, missing, 0}, &random);
    for (FeatureIdx f = 0; f < 4; ++f) {
      Categorise(f, 2000, 0.5, &random, &table);
    }
    auto const builder = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto);
    auto const gpair = MakeGradients(table.n_rows, 0.0, 0.0, &random);
    GrowParam param;
    param.max_depth = 9;
    param.min_child_weight = 10.0f;
    static_cast<void>(builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr));
    TableCategories const categories = CountCategories(table.View());
    ASSERT_EQ(categories.columns.Size(), 4u);
    auto const plan = MemoryPlan::Make(table.entries.size(), table.n_rows, 6, Strategy::kHistogram,
                                       {}, kMaxGroupBins, categories.columns);
    constexpr std::uint64_t kSlack = std::uint64_t{3} << 20;  // nodes, and CUB's scratch
    EXPECT_LE(builder->DeviceBytes(), plan.Peak() + kSlack) << missing;
  }
}

/** @brief The sets of splits are lists: a tree takes as much however long the column is, the twentieth as
 *         much as the first. */
TEST_F(CategoricalTrees, OfMillionsKeepToTheMemoryPlan) {
  if (UnderRacecheck()) {
    GTEST_SKIP() << "Takes long; other tests run the same kernels.";
  }
  Random random{9};
  Table table = MakeTable({Scaled(100'000u, 20'000u), 2, 0.0, 0}, &random);
  Categorise(0, 4'000'000, 0.5, &random, &table);
  TableCategories const categories = CountCategories(table.View());
  ASSERT_GT(categories.of_feature[0], 3'000'000u);
  EXPECT_EQ(categories.columns.n_entries, table.n_rows);
  EXPECT_EQ(categories.columns.n_elements, 2 * MostElements(table.n_rows, table.n_rows));
  auto const plan = MemoryPlan::Make(table.entries.size(), table.n_rows, 2, Strategy::kHistogram,
                                     {}, kMaxGroupBins, categories.columns);
  auto const gpair = MakeGradients(table.n_rows, 0.0, 0.0, &random);
  GrowParam param;
  param.max_depth = 12;
  auto const builder = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto);
  std::uint64_t first{0};
  for (int i = 0; i < 20; ++i) {
    auto const tree = builder->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    EXPECT_GT(tree.size(), 20u);
    first = i == 0 ? builder->DeviceBytes() : first;
  }
  EXPECT_LE(builder->DeviceBytes(), first + first / 100);
  constexpr std::uint64_t kSlack = std::uint64_t{6} << 20;  // nodes, and CUB's scratch
  EXPECT_LE(first, plan.Peak() + kSlack);

  // Bits of as many nodes as such a tree may have do not fit beside the plan.
  auto const most = static_cast<double>(plan.Peak());
  auto const limited = MakeDeviceBuilder(-1, table.View(), {Strategy::kAuto, most});
  param.max_cat_threshold = 1026;
  EXPECT_THROW(
      static_cast<void>(limited->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr)),
      OutOfDeviceMemory);
  param.max_cat_threshold = 1025;
  EXPECT_NO_THROW(
      static_cast<void>(limited->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr)));
  EXPECT_THROW(
      static_cast<void>(MakeDeviceBuilder(-1, table.View(), {Strategy::kAuto, most / 1000})),
      OutOfDeviceMemory);
}
}  // namespace
}  // namespace gpu_exact
