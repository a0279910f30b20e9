/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The reference builder of several workers: the trees and positions of one with all rows.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gpu_exact/device.h"
#include "tests/device/random_problem.h"
#include "tests/support/gather.h"
#include "tests/support/reference_builder.h"
#include "tests/support/run_workers.h"

namespace gpu_exact {
namespace {
/** @brief Where each worker's rows begin, and the end; some workers may have none. */
std::vector<RowIdx> Shards(std::int32_t n_workers, RowIdx n_rows, Random* random) {
  std::vector<RowIdx> bounds{0, n_rows};
  for (std::int32_t i = 1; i < n_workers; ++i) {
    bounds.push_back(static_cast<RowIdx>(random->Int(0, static_cast<int>(n_rows))));
  }
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

/** @brief Rows [begin, end) as a table of their own. */
Table Rows(Table const& table, RowIdx begin, RowIdx end) {
  Table rows{end - begin, table.n_features, {}, {}, table.feature_types};
  for (RowIdx row = begin; row <= end; ++row) {
    rows.offsets.push_back(table.offsets[row] - table.offsets[begin]);
  }
  rows.entries.assign(table.entries.cbegin() + table.offsets[begin],
                      table.entries.cbegin() + table.offsets[end]);
  return rows;
}

void ExpectNoErrors(std::vector<std::exception_ptr> const& errors, std::string const& what) {
  for (auto const& error : errors) {
    EXPECT_NO_THROW(if (error) { std::rethrow_exception(error); }) << what;
  }
}

class ReferenceWorkers : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(ReferenceWorkers, TreesAreThoseOfOneWorker) {
  auto const n_workers = GetParam();
  std::size_t n_splits{0};
  std::ptrdiff_t n_by_categories{0};
  for (int seed = 0; seed < NumSeeds(150); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    auto const n_rows = static_cast<RowIdx>(random.Int(1, 200));
    auto const n_features = static_cast<FeatureIdx>(random.Int(1, 12));
    auto table = MakeTable(
        {n_rows, n_features, random.Pick({0.0, 0.3, 0.8}), random.Pick({0, 2, 6})}, &random);
    MakeCategorical(random.Pick({0.0, 0.6}), &random, &table);
    auto param = MakeParam(n_features, &random);
    param.max_cat_to_onehot = random.Pick({1, 4, 30});
    param.max_cat_threshold = random.Pick({1, 3, 64, 64});
    auto const gpair = MakeGradients(n_rows, 0.1, random.Pick({0.0, 0.2}), &random);
    std::vector<std::uint8_t> included(n_rows);
    for (auto& flag : included) {
      flag = random.Chance(0.7) ? 1 : 0;
    }
    auto const* rows = random.Chance(0.5) ? included.data() : nullptr;
    auto const bounds = Shards(n_workers, n_rows, &random);
    auto const what = "seed " + std::to_string(seed);

    auto const alone = MakeReferenceBuilder(table.View());
    RandomFeatures features{n_features, static_cast<unsigned>(seed)};
    auto const want = alone->Build(param, {gpair.data(), Memory::kHost}, rows, &features);
    auto const want_positions = Positions(alone.get(), n_rows);
    n_splits += want.size() / 2;
    n_by_categories += std::count_if(want.cbegin(), want.cend(),
                                     [](TreeNode const& node) { return !node.categories.empty(); });

    ExpectNoErrors(reference::RunWorkers(
                       n_workers,
                       [&](Communicator* comm) {
                         auto const begin = bounds[comm->Rank()];
                         auto const end = bounds[comm->Rank() + 1];
                         auto const shard = Rows(table, begin, end);
                         auto const builder = MakeReferenceBuilder(shard.View(), comm);
                         RandomFeatures same_features{n_features, static_cast<unsigned>(seed)};
                         auto const tree =
                             builder->Build(param, {gpair.data() + begin, Memory::kHost},
                                            rows ? rows + begin : nullptr, &same_features);
                         ExpectSameTree(tree, want, what);
                         std::vector<NodeIdx> const positions(want_positions.cbegin() + begin,
                                                              want_positions.cbegin() + end);
                         EXPECT_EQ(Positions(builder.get(), end - begin), positions) << what;
                       }),
                   what);
  }
  EXPECT_GT(n_splits, NumSeeds(150));
  EXPECT_GT(n_by_categories, NumSeeds(150));
}

INSTANTIATE_TEST_SUITE_P(Workers, ReferenceWorkers, ::testing::Values(1, 2, 3, 7),
                         ::testing::PrintToStringParamName());

TEST(ReferenceWorkers, EqualSplitsOfTwoWorkersGoToTheLowerFeature) {
  Table table{4, 3, {0}, {}};
  for (RowIdx row = 0; row < 4; ++row) {  // the same values in features 1 and 2, none in 0
    auto const value = static_cast<float>(row);
    table.entries.insert(table.entries.end(), {{1, value}, {2, value}});
    table.offsets.push_back(table.entries.size());
  }
  std::vector<GradientPair> const gpair{{-1, 1}, {-1, 1}, {1, 1}, {1, 1}};
  ExpectNoErrors(
      reference::RunWorkers(2,
                            [&](Communicator* comm) {
                              auto const begin = comm->Rank() == 0 ? 0u : 3u;
                              auto const end = comm->Rank() == 0 ? 3u : 4u;
                              auto const shard = Rows(table, begin, end);
                              auto const builder = MakeReferenceBuilder(shard.View(), comm);
                              auto const tree = builder->Build(
                                  {}, {gpair.data() + begin, Memory::kHost}, nullptr, nullptr);
                              ASSERT_GT(tree.size(), 1u);
                              EXPECT_EQ(tree[0].feature, 1u);
                              EXPECT_EQ(tree[0].threshold, 1.5f);
                            }),
      "ties");
}

/** @brief The table's type is told to all workers, and so is a value that is none of its categories. */
TEST(ReferenceWorkers, WhatIsNoCategoryIsAnErrorOfAll) {
  for (float const value : {-1.0f, -0.5f, 16777216.0f, 1.5f, 16777215.0f, -0.0f}) {
    Table const table{2,
                      2,
                      {0, 2, 4},
                      {{0, -1.0f}, {1, 0.0f}, {0, -1.0f}, {1, value}},
                      {FeatureType::kNumerical, FeatureType::kCategorical}};
    bool const is_category = value >= 0.0f && value < 16777216.0f;
    auto const errors = reference::RunWorkers(2, [&](Communicator* comm) {
      RowIdx const first = comm->Rank();
      auto const shard = Rows(table, first, first + 1);
      static_cast<void>(MakeReferenceBuilder(shard.View(), comm));
    });
    for (auto const& error : errors) {
      if (is_category) {
        ExpectNoErrors({error}, std::to_string(value));
        continue;
      }
      try {
        std::rethrow_exception(error);
      } catch (InvalidCategory const& e) {
        EXPECT_EQ(e.feature, 1u);
        EXPECT_EQ(e.value, value);
      }
    }
  }
}

TEST(ReferenceWorkers, TheTextNamesColumnAndValue) {
  EXPECT_STREQ(InvalidCategory(3, -0.5f).what(),
               "Invalid categorical value detected: column 3 has -0.5; give its categories whole "
               "numbers from 0 to 16777215, and make missing what is none.");
  std::string const named = InvalidCategory(3, 16777216.0f, "city").what();
  EXPECT_NE(named.find("column 3, \"city\", has 16777216;"), std::string::npos) << named;
}

/** @brief Trees of two workers with two rows each; the second one's gradient is given. */
std::vector<std::exception_ptr> GrowWith(float grad) {
  Table table{2, 1, {0, 1, 2}, {{0, 1.0f}, {0, 2.0f}}};
  return reference::RunWorkers(2, [&](Communicator* comm) {
    auto const builder = MakeReferenceBuilder(table.View(), comm);
    std::vector<GradientPair> const gpair{{1, 1}, {comm->Rank() == 1 ? grad : 1, 1}};
    auto const tree = builder->Build({}, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    if (comm->Rank() == 1 && tree.front().sum_grad > 10) {
      throw std::runtime_error{"gone"};
    }
    std::uint64_t one{1};
    comm->AllReduce(&one, 1);
  });
}

TEST(ReferenceWorkers, NotANumberOfOneWorkerIsAnErrorOfAll) {
  for (auto const& error : GrowWith(std::numeric_limits<float>::quiet_NaN())) {
    EXPECT_THROW(std::rethrow_exception(error), NonFiniteGradient);
  }
}

TEST(ReferenceWorkers, AWorkerThatIsGoneIsAnErrorOfTheOthers) {
  auto const errors = GrowWith(100);
  EXPECT_THROW(std::rethrow_exception(errors[0]), WorkerError);
  EXPECT_EQ(GrowWith(1), (std::vector<std::exception_ptr>(2)));
}
}  // namespace
}  // namespace gpu_exact
