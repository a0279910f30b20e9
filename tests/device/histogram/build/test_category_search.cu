/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Splits of a categorical column against all of them tried one by one, empty categories too.
 */
#include <algorithm>
#include <numeric>

#include "device/histogram/build/category_search.cuh"
#include "tests/device/level_problem.cuh"
#include "tests/device/random_problem.h"

namespace gpu_exact {
namespace {
constexpr int kThreads = 64;

// one block a node
template <int kMost>
__global__ __launch_bounds__(kThreads) void SearchCategoriesKernel(
    __grid_constant__ LevelRef const lv, CategoricalFeature column, FixedSum const* sums,
    std::uint32_t* sets) {
  WaitForPreviousKernel();
  using Agent = CategorySearchAgent<kThreads, kMost>;
  __shared__ typename Agent::Storage temp;
  LevelNode const b = blockIdx.x;
  auto const load = [&](std::uint32_t code) {
    return sums[std::uint64_t{b} * column.n_categories + code];
  };
  Agent agent{&temp, lv, column, b};
  agent.Gather(load);
  agent.Search([&](auto, std::uint32_t code) { return load(code); }, sets + b * column.NumWords());
}

/** @brief One node: the sums of its categories, and of all of its rows. */
struct Node {
  std::vector<FixedSum> sums;
  NodeState state{};
};

/** @brief The best split of a node. */
struct Best {
  std::uint64_t key{0};
  std::vector<std::uint32_t> right;  // words
};

class CategorySearchTest : public DeviceTest {
 protected:
  /** @brief Tries all splits in the order of XGBoost's `hist`, on the host. */
  [[nodiscard]] static Best FindBest(LevelRef const& lv, GrowParam const& param, std::uint32_t n,
                                     Node const& node) {
    float most{0.0f};
    Best best;
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    // The categories in places [first, end) of the order go right.
    auto const offer = [&](FixedSum const& left, FixedSum const& right, bool missing_left,
                           std::uint32_t first, std::uint32_t end) {
      float const loss = CalcLossChange(lv.gain, lv.quantiser.Real(left), lv.quantiser.Real(right),
                                        node.state.bounds, param.Monotone(0), node.state.gain);
      if (loss > most) {
        most = loss;
        best.key = CandidateKey::Make(loss, missing_left ? 0 : 1);
        best.right.assign((n + 31) / 32, 0);
        for (std::uint32_t i = first; i < end; ++i) {
          best.right[order[i] / 32] |= 1u << order[i] % 32;
        }
      }
    };
    bool const left_too = param.default_direction != DefaultDirection::kRight;
    bool const right_too = param.default_direction != DefaultDirection::kLeft;
    FixedSum const total = node.state.sum;
    FixedSum const present = std::accumulate(node.sums.cbegin(), node.sums.cend(), FixedSum{0, 0});
    if (n < param.max_cat_to_onehot) {
      for (std::uint32_t c = 0; c < n; ++c) {
        FixedSum const with_missing = node.sums[c] + (total - present);
        if (left_too) {
          offer(total - node.sums[c], node.sums[c], true, c, c + 1);
        }
        if (right_too) {
          offer(total - with_missing, with_missing, false, c, c + 1);
        }
      }
      return best;
    }
    std::vector<float> weights;
    for (FixedSum const& sum : node.sums) {
      weights.push_back(CalcWeight(lv.gain, lv.quantiser.Real(sum), WeightBounds::None()));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return weights[a] < weights[b]; });
    auto const n_tried = std::min(n, static_cast<std::uint32_t>(param.max_cat_threshold));
    for (bool const forward : {true, false}) {
      FixedSum seen{0, 0};
      for (std::uint32_t k = 0; (forward ? left_too : right_too) && k + 1 < n_tried; ++k) {
        seen = seen + node.sums[order[forward ? k : n - 1 - k]];
        offer(forward ? total - seen : seen, forward ? seen : total - seen, forward, 0,
              forward ? k + 1 : n - 1 - k);
      }
    }
    return best;
  }

  template <int kMost>
  void Check(std::uint32_t n_categories, Random* random) {
    // One column whose value ids are the codes.
    auto const offsets = ToDevice(std::vector<ValueId>{0, n_categories});
    auto const n_present = ToDevice(std::vector<std::uint32_t>{n_categories});
    ColumnsRef columns{};
    columns.value_offsets = offsets.Data();
    columns.n_present = n_present.Data();
    columns.n_categories = n_present.Data();
    columns.n_rows = 1 << 20;
    columns.n_features = 1;
    for (bool const one_hot : {false, true}) {
      GrowParam param = MakeParam(1, random);
      param.max_cat_to_onehot = one_hot ? n_categories + 1 : random->Int(0, 1) * n_categories;
      param.max_cat_threshold = random->Pick({1, 2, 5, 64, 1 << 14});
      auto const n_nodes = static_cast<LevelNode>(random->Int(1, 40));
      LevelProblem problem{columns, param, n_nodes};
      std::vector<Node> nodes(n_nodes);
      std::vector<NodeState> states;
      std::vector<FixedSum> sums;
      double const absent = random->Pick({0.0, 0.3, 0.9, 1.0});
      for (Node& node : nodes) {
        for (std::uint32_t c = 0; c < n_categories; ++c) {
          node.sums.push_back(this->Sum(absent, random, problem.lv.quantiser));
        }
        node.state.sum = std::accumulate(
            node.sums.cbegin(), node.sums.cend(),
            random->Chance(0.5) ? FixedSum{0, 0} : this->Sum(0.0, random, problem.lv.quantiser));
        node.state.bounds = WeightBounds::OfRoot(problem.lv.gain.bounded);
        GradientSum const real = problem.lv.quantiser.Real(node.state.sum);
        node.state.weight = CalcWeight(problem.lv.gain, real, node.state.bounds);
        node.state.gain = CalcGain(problem.lv.gain, real, node.state.weight);
        states.push_back(node.state);
        sums.insert(sums.end(), node.sums.cbegin(), node.sums.cend());
      }
      problem.SetNodes(states);
      auto const d_sums = ToDevice(sums);
      CategoricalFeature const column{0, n_categories};
      DeviceBuffer<std::uint64_t> best{"best candidates"};
      DeviceBuffer<std::uint32_t> sets{"sets"};
      ZeroAsync(best.Reserve(n_nodes), n_nodes);
      ZeroAsync(sets.Reserve(n_nodes * std::size_t{column.NumWords()}),
                n_nodes * std::size_t{column.NumWords()});
      problem.lv.best = best.Data();
      Launch("SearchCategories", SearchCategoriesKernel<kMost>, n_nodes, kThreads, problem.lv,
             column, d_sums.Data(), sets.Data());
      auto const got = ToHost(best.Data(), n_nodes);
      auto const got_sets = ToHost(sets.Data(), n_nodes * std::size_t{column.NumWords()});
      for (LevelNode b = 0; b < n_nodes; ++b) {
        Best const want = FindBest(problem.lv, param, n_categories, nodes[b]);
        auto const what = "node " + std::to_string(b) + ", " + std::to_string(n_categories) +
                          " categories, one-hot " + std::to_string(one_hot);
        ASSERT_EQ(got[b], want.key) << what;
        if (want.key != 0) {
          auto const first = got_sets.cbegin() + b * std::size_t{column.NumWords()};
          ASSERT_EQ((std::vector<std::uint32_t>{first, first + column.NumWords()}), want.right)
              << what;
          ++n_found_;
        }
      }
    }
  }

  int n_found_{0};

 private:
  /** @brief Of few different rows, so that weights are equal now and then; some have no hessian. */
  [[nodiscard]] FixedSum Sum(double absent, Random* random, Quantiser const& quantiser) const {
    if (random->Chance(absent)) {
      return {0, 0};
    }
    auto const grad = static_cast<float>(random->Int(-3, 3));
    auto const hess = static_cast<float>(random->Int(0, 3)) / 2;
    return quantiser.Units({grad, hess}).Fixed();
  }
};

TEST_F(CategorySearchTest, IsTheBestOfAllSplits) {
  for (int seed = 0; seed < NumSeeds(200); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    this->Check<kThreads>(static_cast<std::uint32_t>(random.Int(1, kThreads)), &random);
    this->Check<4 * kThreads>(static_cast<std::uint32_t>(random.Int(1, 4 * kThreads)), &random);
    this->Check<11 * kThreads>(
        static_cast<std::uint32_t>(random.Pick({31, 32, 33, 700, 11 * kThreads})), &random);
  }
  EXPECT_GT(n_found_, 10 * NumSeeds(200));
}
}  // namespace
}  // namespace gpu_exact
