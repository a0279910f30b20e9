/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Seeded small problems for the device ring: a table, gradients and parameters.
 */
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "gpu_exact/device.h"
#include "gpu_exact/tree_builder.h"

namespace gpu_exact {
/** @brief A test that needs a GPU; skips with the reason where there is none. */
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static DeviceStatus const status = ProbeDevice(-1);  // NOLINT
    if (!status.usable) {
      GTEST_SKIP() << status.reason;
    }
  }
};

/** @brief How many random problems to try: GPU_EXACT_SEEDS, fewer under a sanitizer. */
inline int NumSeeds(int n) {
  char const* seeds = std::getenv("GPU_EXACT_SEEDS");
  return seeds == nullptr ? n : std::min(n, std::atoi(seeds));
}

/** @brief GPU_EXACT_SANITIZER names a tool that slows kernels down 10 to 100 times. */
inline bool UnderSanitizer() { return std::getenv("GPU_EXACT_SANITIZER") != nullptr; }

/** @brief racecheck loses track of kernels that threads launch at a time, and may never end then. */
inline bool UnderRacecheck() {
  char const* tool = std::getenv("GPU_EXACT_SANITIZER");
  return tool != nullptr && std::string{tool} == "racecheck";
}

/** @brief A size; a light one under racecheck alone, which is the slowest tool. */
template <typename T>
T ForRacecheck(T const& full, std::common_type_t<T> const& light) {
  return UnderRacecheck() ? light : full;
}

/** @brief How often a builder grows the same tree. */
inline int NumRuns() { return ForRacecheck(2, 1); }

/** @brief A size; a light one, which still takes every path of the kernels, under a sanitizer. */
template <typename T>
T Scaled(T const& full, std::common_type_t<T> const& light) {
  return UnderSanitizer() ? light : full;
}

/** @brief Of two choices with two values each: under a sanitizer both values, not all four pairs. */
inline bool LeftOut(bool first, bool second) { return UnderSanitizer() && first != second; }

/** @brief A table in compressed rows that owns its arrays. */
struct Table {
  RowIdx n_rows{0};
  FeatureIdx n_features{0};
  std::vector<EntryIdx> offsets{0};
  std::vector<CsrEntry> entries;
  std::vector<FeatureType> feature_types{};  // empty: all are numerical

  [[nodiscard]] CsrView View() const {
    return {offsets.data(), entries.data(),
            entries.size(), n_rows,
            n_features,     Memory::kHost,
            nullptr,        feature_types.empty() ? nullptr : feature_types.data()};
  }
};

/** @brief Rows [first, end) of a table. */
inline Table RowsOf(Table const& table, RowIdx first, RowIdx end) {
  Table rows;
  rows.n_rows = end - first;
  rows.n_features = table.n_features;
  rows.entries.assign(table.entries.cbegin() + static_cast<std::ptrdiff_t>(table.offsets[first]),
                      table.entries.cbegin() + static_cast<std::ptrdiff_t>(table.offsets[end]));
  rows.offsets.clear();
  for (RowIdx r = first; r <= end; ++r) {
    rows.offsets.push_back(table.offsets[r] - table.offsets[first]);
  }
  return rows;
}

struct Shape {
  RowIdx n_rows;
  FeatureIdx n_features;
  double missing;  // share of values that are not present
  int n_distinct;  // distinct values a column; 0: continuous
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_{seed} {}
  int Int(int low, int high) { return std::uniform_int_distribution<int>{low, high}(engine_); }
  double Real() { return std::uniform_real_distribution<double>{0.0, 1.0}(engine_); }
  float Normal() { return std::normal_distribution<float>{}(engine_); }
  bool Chance(double p) { return Real() < p; }
  template <typename T>
  T Pick(std::initializer_list<T> of) {
    return of.begin()[Int(0, static_cast<int>(of.size()) - 1)];
  }

 private:
  std::mt19937 engine_;
};

inline Table MakeTable(Shape const& shape, Random* random) {
  Table t;
  t.n_rows = shape.n_rows;
  t.n_features = shape.n_features;
  for (RowIdx r = 0; r < shape.n_rows; ++r) {
    for (FeatureIdx f = 0; f < shape.n_features; ++f) {
      if (!random->Chance(shape.missing)) {
        float value =
            shape.n_distinct == 0
                ? random->Normal()
                : static_cast<float>(random->Int(-shape.n_distinct / 2,
                                                 shape.n_distinct - 1 - shape.n_distinct / 2));
        t.entries.push_back({f, value});
      }
    }
    t.offsets.push_back(t.entries.size());
  }
  return t;
}

/** @brief Make some features categorical. Some of the codes are those of few values or of none. */
inline void MakeCategorical(double share, Random* random, Table* table) {
  std::vector<int> n_codes;
  for (FeatureIdx f = 0; f < table->n_features; ++f) {
    bool const is_categorical = random->Chance(share);
    table->feature_types.push_back(is_categorical ? FeatureType::kCategorical
                                                  : FeatureType::kNumerical);
    n_codes.push_back(random->Pick({1, 2, 3, 7, 40, 200}));
  }
  for (CsrEntry& entry : table->entries) {
    if (table->feature_types[entry.feature] == FeatureType::kCategorical) {
      int const n = n_codes[entry.feature];
      entry.value = static_cast<float>(std::min(random->Int(0, n - 1), random->Int(0, n - 1)));
    }
  }
}

/** @brief Multiples of 1/16, so that sums are exact in any order. */
inline std::vector<GradientPair> MakeGradients(RowIdx n_rows, double zero_hess, double deleted,
                                               Random* random) {
  std::vector<GradientPair> gpair(n_rows);
  for (auto& g : gpair) {
    g.grad = static_cast<float>(random->Int(-64, 64)) / 16.0f;
    g.hess = static_cast<float>(random->Int(1, 32)) / 16.0f;
    if (random->Chance(zero_hess)) {
      g.hess = 0.0f;
    }
    if (random->Chance(deleted)) {
      g.hess = -1.0f;
    }
  }
  return gpair;
}

inline GrowParam MakeParam(FeatureIdx n_features, Random* random) {
  GrowParam p;
  p.max_depth = random->Int(1, ForRacecheck(8, 4));
  p.min_child_weight = random->Pick({0.0f, 1.0f, 2.5f});
  p.reg_lambda = random->Pick({0.0f, 1.0f, 0.37f});
  p.reg_alpha = random->Pick({0.0f, 0.0f, 0.5f});
  p.max_delta_step = random->Pick({0.0f, 0.0f, 0.7f});
  p.gain_rules = random->Pick({GainRules::kNew, GainRules::kOld});
  if (p.gain_rules == GainRules::kOld && p.min_child_weight == 0.0f) {
    p.min_child_weight = 0.5f;  // 0 is left to XGBoost, see WhyNotOnGpu()
  }
  p.opt_dense_col = random->Pick({1.0f, 1.0f, 0.6f});
  if (random->Chance(0.3)) {
    p.grow_policy = GrowPolicy::kLossGuide;
    p.max_depth = random->Pick({0, p.max_depth});
    p.max_leaves = std::min(random->Pick({2, 5, 20, 70}), ForRacecheck(70, 5));
    p.min_split_loss = random->Pick({0.0f, 0.0f, 0.5f});
  }
  p.default_direction = random->Pick({DefaultDirection::kLearn, DefaultDirection::kLearn,
                                      DefaultDirection::kLeft, DefaultDirection::kRight});
  if (random->Chance(0.3)) {
    p.monotone_constraints.resize(n_features);
    for (auto& m : p.monotone_constraints) {
      m = random->Int(-1, 1);
    }
  }
  return p;
}

/** @brief A mask that bars a share of the features, other ones at each node or at each level. It depends
 *         on the way to a node alone. */
class RandomFeatures : public FeaturePolicy {
 public:
  RandomFeatures(FeatureIdx n_features, unsigned seed) : n_features_{n_features}, seed_{seed} {}
  bool Select(std::int32_t depth, std::vector<LiveNode> const& nodes,
              FeatureMask* out_mask) override {
    for (LiveNode const& node : nodes) {
      ways_[node.nidx] = 2654435761u * (2 * ways_[node.parent] + node.nidx % 2 + seed_ + 1);
    }
    Random random{seed_ + static_cast<unsigned>(depth)};
    if (random.Chance(0.3)) {
      return false;
    }
    out_mask->n_words = (n_features_ + 31) / 32;
    out_mask->bits.clear();
    if (random.Chance(0.3)) {
      this->AddRow(&random, out_mask);
      return true;
    }
    for (LiveNode const& node : nodes) {
      Random of_node{ways_[node.nidx]};
      this->AddRow(&of_node, out_mask);
    }
    return true;
  }

 private:
  static void AddRow(Random* random, FeatureMask* mask) {
    for (std::size_t i = 0; i < mask->n_words; ++i) {
      mask->bits.push_back(static_cast<std::uint32_t>(random->Int(0, 0x7fffffff)) * 2654435761u);
    }
  }

  FeatureIdx n_features_;
  unsigned seed_;
  std::unordered_map<NodeIdx, unsigned> ways_;  // numbers that stand for them; 0 above the root
};

/** @brief Every field of two trees, bit for bit. */
inline void ExpectSameTree(GrownTree const& got, GrownTree const& want, std::string const& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::string where = what + ", node " + std::to_string(i);
    ASSERT_EQ(got[i].parent, want[i].parent) << where;
    ASSERT_EQ(got[i].left, want[i].left) << where;
    ASSERT_EQ(got[i].right, want[i].right) << where;
    ASSERT_EQ(got[i].loss_change, want[i].loss_change) << where;
    ASSERT_EQ(got[i].weight, want[i].weight) << where;
    ASSERT_EQ(got[i].sum_grad, want[i].sum_grad) << where;
    ASSERT_EQ(got[i].sum_hess, want[i].sum_hess) << where;
    if (!want[i].IsLeaf()) {
      ASSERT_EQ(got[i].feature, want[i].feature) << where;
      ASSERT_EQ(got[i].threshold, want[i].threshold) << where;
      ASSERT_EQ(got[i].categories, want[i].categories) << where;
      ASSERT_EQ(got[i].default_left, want[i].default_left) << where;
    }
  }
}

inline std::vector<NodeIdx> Positions(TreeBuilder* builder, RowIdx n_rows,
                                      std::vector<NodeIdx> const& remap = {}) {
  std::vector<NodeIdx> positions(n_rows);
  builder->WritePositions(remap, Memory::kHost, positions.data());
  return positions;
}
}  // namespace gpu_exact
