/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The best candidate of a column against a scan of its rows in the order of XGBoost's CPU code;
 *        bounds that no candidate passes; which features a node may split on.
 */
#include <algorithm>
#include <map>
#include <vector>

#include "device/level/level_ref.cuh"
#include "tests/device/device_arrays.cuh"
#include "tests/device/random_problem.h"
#include "tests/support/reference_split.h"

namespace gpu_exact {
namespace {
constexpr FeatureIdx kFeature = 1;
constexpr ValueId kFirst = 5;  // value id of the feature

struct Found {
  std::uint64_t key;       // of the best candidate
  std::uint32_t n_passed;  // candidates that gain more than their bound
  std::uint32_t n_other;   // boundaries whose entries have another candidate beside them
};

// one thread; sums, shape: (n_values), of the node's rows with each value
__global__ void TryAllKernel(LevelRef lv, FixedSum const* sums, std::uint32_t n_values,
                             FixedSum present, Found* out) {
  WaitForPreviousKernel();
  NodeState const& node = lv.nodes[0];
  bool const missing = !(present == node.sum);
  Found found{lv.PresentKey(node, kFeature, present), 0, 0};
  FixedSum before{0, 0};
  for (std::uint32_t v = 1; v < n_values; ++v) {
    before = before + sums[v - 1];
    std::uint64_t const key = lv.BoundaryKey(node, kFeature, kFirst + v, before, present);
    float const to_beat = lv.bound.GainToBeat(CandidateKey::LossChange(key), node.gain);
    if (key != 0 && (!lv.MayReach(to_beat, node.sum, before, present, missing) ||
                     lv.Bound(node.sum, before, present, missing) < to_beat)) {
      ++found.n_passed;
    }
    auto const beside = [&](ScanDirection d, ValueId value) {
      return lv.ScanKeyBeside(to_beat, node, kFeature, d, kFirst + value, before, present);
    };
    found.n_other +=
        max(beside(ScanDirection::kForward, v - 1), beside(ScanDirection::kBackward, v)) != key;
    found.key = max(found.key, key);
  }
  *out = found;
}

/** @brief One node, all rows of a table with one column. */
struct OneColumn {
  std::map<float, reference::Sums> values;  // present ones, and the sums of their rows
  reference::Node node;

  OneColumn(Random* random, bool has_missing) {
    int const n_distinct = random->Pick({1, 2, 5, 30});
    for (auto const& g : MakeGradients(static_cast<RowIdx>(random->Int(1, 60)),
                                       random->Pick({0.0, 0.5, 0.9}), 0.0, random)) {
      node.total.Add(g);
      if (!has_missing || random->Chance(0.7)) {
        values[static_cast<float>(random->Int(0, n_distinct - 1)) - 2.0f].Add(g);
      }
    }
  }
};

class LevelRefTest : public DeviceTest {
 protected:
  /** @brief The best split by scans of the rows, forward first. */
  static reference::Split Scan(OneColumn const& column, GrowParam const& param, bool forward,
                               bool backward) {
    reference::Split best;
    auto const visit = [](reference::Scan* scan, float value, reference::Sums const& sums) {
      scan->Visit(value, {static_cast<float>(sums.grad), static_cast<float>(sums.hess)});
    };
    if (forward) {
      reference::Scan scan{param, column.node, kFeature, true, &best};
      for (auto const& [value, sums] : column.values) {
        visit(&scan, value, sums);
      }
      scan.Finish();
    }
    if (backward) {
      reference::Scan scan{param, column.node, kFeature, false, &best};
      for (auto at = column.values.crbegin(); at != column.values.crend(); ++at) {
        visit(&scan, at->first, at->second);
      }
      scan.Finish();
    }
    return best;
  }

  /** @brief The split that a key names. */
  static reference::Split Read(std::uint64_t key, OneColumn const& column) {
    auto const n = static_cast<ValueId>(column.values.size());
    Candidate const c = Candidate::FromRank({kFirst, kFirst + n}, CandidateKey::RankOf(key));
    bool const forward = c.direction == ScanDirection::kForward;
    auto const at = [&](std::ptrdiff_t i) { return std::next(column.values.cbegin(), i)->first; };
    std::ptrdiff_t const below = c.value - std::ptrdiff_t{kFirst} - 1;
    float const threshold = c.present ? PresentThreshold(c.direction, forward ? at(n - 1) : at(0))
                            : forward ? MidThreshold(at(below), at(below + 1))
                                      : MidThreshold(at(below + 1), at(below));
    return {CandidateKey::LossChange(key), kFeature, threshold, !forward, {}};
  }

  void Check(Random* random) {
    GrowParam param = MakeParam(kFeature + 1, random);
    OneColumn column{random, random->Chance(0.6)};
    if (column.values.empty()) {
      return;
    }
    bool const bounded = GainParam{param}.bounded;
    column.node.bounds = bounded ? reference::Bounds{-0.5f, 0.75f} : reference::Bounds{};
    auto const& total = column.node.total;
    float const weight = reference::Weight(param, total, column.node.bounds);
    column.node.root_gain = reference::Gain(param, total, weight);

    auto const n = static_cast<ValueId>(column.values.size());
    auto const offsets = ToDevice(std::vector<ValueId>{0, kFirst, kFirst + n});
    std::vector<FeatureRule> rules(2);
    rules[kFeature].forward = random->Chance(0.7);
    rules[kFeature].backward = !rules[kFeature].forward || random->Chance(0.7);
    rules[kFeature].monotone = param.monotone_constraints.empty()
                                   ? 0
                                   : static_cast<signed char>(param.monotone_constraints[kFeature]);
    LevelRef lv{};
    lv.columns.value_offsets = offsets.Data();
    lv.columns.n_features = kFeature + 1;
    lv.gain = GainParam{param};
    lv.quantiser = Quantiser::Make(256.0f, 128.0f, 64);
    lv.bound = GainBound::Make(lv.gain, lv.quantiser);
    lv.n_nodes = 1;
    auto const fixed = [&](reference::Sums const& s) {
      return lv.quantiser.Fixed({static_cast<float>(s.grad), static_cast<float>(s.hess)});
    };
    FixedSum present{0, 0};
    std::vector<FixedSum> sums;
    for (auto const& value : column.values) {
      sums.push_back(fixed(value.second));
      present = present + sums.back();
    }
    NodeState const state{fixed(total),
                          weight,
                          column.node.root_gain,
                          {column.node.bounds.lower, column.node.bounds.upper}};
    auto const d_rules = ToDevice(rules);
    auto const d_sums = ToDevice(sums);
    auto const d_node = ToDevice(std::vector<NodeState>{state});
    lv.rules = d_rules.Data();
    lv.nodes = d_node.Data();
    DeviceBuffer<Found> found{"the best"};
    Launch("TryAll", TryAllKernel, 1, 1, lv, d_sums.Data(), n, present, found.Reserve(1));
    Found const got = ToHost(found.Data(), 1)[0];
    auto const want = Scan(column, param, rules[kFeature].forward, rules[kFeature].backward);
    EXPECT_EQ(got.n_passed, 0u);
    EXPECT_EQ(got.n_other, 0u);
    ASSERT_EQ(got.key != 0, want.loss_change > 0.0f);
    if (got.key != 0) {
      auto const split = Read(got.key, column);
      ASSERT_EQ(split.loss_change, want.loss_change);
      ASSERT_EQ(split.threshold, want.threshold);
      ASSERT_EQ(split.default_left, want.default_left);
      ++n_found_;
    }
  }

  int n_found_{0};
};

TEST_F(LevelRefTest, TheBestOfAColumn) {
  int const n_seeds = NumSeeds(1000);
  for (int seed = 0; seed < n_seeds; ++seed) {
    Random random{static_cast<unsigned>(seed)};
    this->Check(&random);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_TRUE(n_found_ > n_seeds / 10 || UnderSanitizer());
}

// one thread a pair
__global__ void ChooseBetterKernel(FoundCandidate const* pairs, std::uint32_t n,
                                   FoundCandidate* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < n) {
    out[i] = BetterCandidate{}(pairs[2 * i], pairs[2 * i + 1]);
  }
}

/** @brief The greater key, then the lesser order, whichever comes first. */
TEST_F(LevelRefTest, TheBetterOfTwo) {
  Random random{1};
  std::vector<FoundCandidate> pairs(2 * 1000);
  for (auto& c : pairs) {
    c = {std::uint64_t(random.Int(0, 2)) << random.Pick({0, 40}),
         static_cast<std::uint32_t>(random.Int(-2, 2))};  // those below 0 are the greatest
  }
  auto out = ToDevice(std::vector<FoundCandidate>(1000));  // all of it is copied back, padding too
  auto const d_pairs = ToDevice(pairs);
  LaunchN("ChooseBetter", ChooseBetterKernel, 1000, d_pairs.Data(), 1000, out.Data());
  auto const got = ToHost(out.Data(), 1000);
  for (std::size_t i = 0; i < got.size(); ++i) {
    FoundCandidate const& a = pairs[2 * i];
    FoundCandidate const& b = pairs[2 * i + 1];
    bool const is_first = a.key != b.key ? a.key > b.key : a.scan_value < b.scan_value;
    ASSERT_EQ(got[i].key, is_first ? a.key : b.key) << i;
    ASSERT_EQ(got[i].scan_value, is_first ? a.scan_value : b.scan_value) << i;
  }
}

// one thread a node and feature
__global__ void AskKernel(LevelRef lv, FeatureIdx n_features, std::uint8_t* out) {
  WaitForPreviousKernel();
  if (auto const i = GlobalIdx(); i < lv.n_nodes * std::uint64_t{n_features}) {
    out[i] =
        lv.Allowed(static_cast<LevelNode>(i / n_features), static_cast<FeatureIdx>(i % n_features));
  }
}

TEST_F(LevelRefTest, FeaturesOfANode) {
  Random random{1};
  constexpr FeatureIdx kFeatures = 77;
  constexpr LevelNode kNodes = 5;
  LevelRef lv{};
  lv.n_nodes = kNodes;
  lv.mask_words = (kFeatures + 31) / 32;
  std::vector<std::uint32_t> mask(kNodes * lv.mask_words);
  for (auto& word : mask) {
    word = static_cast<std::uint32_t>(random.Int(0, 0x7fffffff)) * 3;
  }
  auto const d_mask = ToDevice(mask);
  DeviceBuffer<std::uint8_t> out{"answers"};
  for (int kind = 0; kind < 3; ++kind) {  // none, one of all nodes, one of each
    lv.mask = kind == 0 ? nullptr : d_mask.Data();
    lv.mask_per_node = kind == 2;
    LaunchN("Ask", AskKernel, kNodes * kFeatures, lv, kFeatures, out.Reserve(kNodes * kFeatures));
    auto const got = ToHost(out.Data(), kNodes * kFeatures);
    for (LevelNode b = 0; b < kNodes; ++b) {
      for (FeatureIdx f = 0; f < kFeatures; ++f) {
        auto const word = mask[(kind == 2 ? b : 0) * lv.mask_words + f / 32];
        ASSERT_EQ(got[b * kFeatures + f] != 0, kind == 0 || (word >> f % 32 & 1u) != 0)
            << "node " << b << ", feature " << f << ", kind " << kind;
      }
    }
  }
}
}  // namespace
}  // namespace gpu_exact
