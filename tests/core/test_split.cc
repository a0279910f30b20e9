/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The total order of candidates, and thresholds.
 */
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/split.h"

namespace gpu_exact {
namespace {
constexpr auto kForward = ScanDirection::kForward;
constexpr auto kBackward = ScanDirection::kBackward;

/** @brief Places of a feature's candidates in the order in which XGBoost meets them. */
std::vector<std::uint64_t> PlacesInScanOrder(ValueRange r) {
  std::vector<std::uint64_t> places;
  for (auto v = r.begin + 1; v < r.end; ++v) {
    places.push_back(CandidateKey::Rank(r, kForward, v));
  }
  places.push_back(CandidateKey::Rank(r, kForward, r.end));
  for (auto v = r.end - 1; v > r.begin; --v) {
    places.push_back(CandidateKey::Rank(r, kBackward, v));
  }
  places.push_back(CandidateKey::Rank(r, kBackward, r.begin));
  return places;
}

TEST(CandidateKey, PlacesFollowTheScansOfEveryFeature) {
  std::uint64_t next{0};
  for (ValueRange r : {ValueRange{0, 1}, ValueRange{1, 5}, ValueRange{5, 7}, ValueRange{7, 100}}) {
    for (auto place : PlacesInScanOrder(r)) {
      EXPECT_EQ(place, next++);
      EXPECT_GE(CandidateKey::AnyValueOf(place), r.begin);
      EXPECT_LT(CandidateKey::AnyValueOf(place), r.end);
    }
  }
}

TEST(CandidateKey, CandidatesComeBackFromTheirPlaces) {
  ValueRange r{3, 9};
  for (auto d : {kForward, kBackward}) {
    for (std::uint64_t v = 4; v < 9; ++v) {
      auto c = Candidate::FromRank(r, CandidateKey::Rank(r, d, v));
      EXPECT_EQ(c.direction, d);
      EXPECT_FALSE(c.present);
      EXPECT_EQ(c.value, v);
    }
    auto c = Candidate::FromRank(r, CandidateKey::Rank(r, d, d == kForward ? r.end : r.begin));
    EXPECT_EQ(c.direction, d);
    EXPECT_TRUE(c.present);
  }
}

/** @brief A candidate lies above the entry that a scan from below has met last, and below that of the other. */
TEST(CandidateKey, BesideAnEntry) {
  EXPECT_EQ(CandidateKey::Beside(kForward, 4), 5u);
  EXPECT_EQ(CandidateKey::Beside(kBackward, 4), 4u);
}

/** @brief What another worker has found bars all that gains less, and nothing that gains as much. */
TEST(CandidateKey, BarIsBelowItsEquals) {
  ValueRange const most{0xfffffff0u, 0xffffffffu};
  auto const last = CandidateKey::Rank(most, kBackward, most.begin);
  for (float loss : {1e-30f, 0.5f, 3e38f}) {
    auto const to_beat = CandidateKey::GainToBeat(loss);
    EXPECT_EQ(CandidateKey::LossChange(to_beat), loss);
    EXPECT_LT(to_beat, CandidateKey::Make(loss, last));
    EXPECT_GT(to_beat, CandidateKey::Make(std::nextafter(loss, 0.0f), 0));
    EXPECT_FALSE(CandidateKey::IsLocal(to_beat));
    EXPECT_TRUE(CandidateKey::IsLocal(CandidateKey::Make(loss, last)));
  }
  EXPECT_EQ(CandidateKey::GainToBeat(0.0f), 0u);
  EXPECT_FALSE(CandidateKey::IsLocal(0));
}

TEST(CandidateKey, GreaterLossWinsThenEarlierPlace) {
  EXPECT_GT(CandidateKey::Make(2.0f, 1000), CandidateKey::Make(1.0f, 0));
  EXPECT_GT(CandidateKey::Make(1.0f, 7), CandidateKey::Make(1.0f, 8));
  EXPECT_GT(CandidateKey::Make(1e-30f, CandidateKey::kRankMask), 0u);
}

TEST(CandidateKey, KeepsLossAndPlace) {
  std::uint64_t last = 2 * ((std::uint64_t{1} << 32) - 1) + 1;
  for (float loss : {1e-38f, 1.5f, std::numeric_limits<float>::max()}) {
    for (std::uint64_t place : {std::uint64_t{0}, std::uint64_t{12345}, last}) {
      auto key = CandidateKey::Make(loss, place);
      EXPECT_EQ(CandidateKey::LossChange(key), loss);
      EXPECT_EQ(CandidateKey::RankOf(key), place);
    }
  }
}

TEST(CandidateKey, RefusesWhatIsNoGain) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (float loss : {0.0f, -0.0f, -1.0f, kInf, -kInf, std::nanf("")}) {
    EXPECT_EQ(CandidateKey::Make(loss, 5), 0u) << loss;
  }
}

TEST(Threshold, LiesInTheMiddle) {
  EXPECT_EQ(MidThreshold(1.0f, 2.0f), 1.5f);
  EXPECT_EQ(MidThreshold(2.0f, 1.0f), 1.5f);
}

TEST(Threshold, OfNeighbouringFloatsIsTheLastScanned) {
  for (float lower : {1.0f, std::nextafter(1.0f, 2.0f), 0.3f}) {
    float upper = std::nextafter(lower, 2.0f);
    EXPECT_EQ(MidThreshold(lower, upper), lower);
    EXPECT_EQ(MidThreshold(upper, lower), upper);
  }
}

TEST(Threshold, PastThePresentValues) {
  EXPECT_EQ(PresentThreshold(kForward, 8.0f), 16.0f);
  EXPECT_FLOAT_EQ(PresentThreshold(kBackward, 7.0f), -9.5367432e-07f);
  EXPECT_EQ(PresentThreshold(kForward, 0.0f), 1e-6f);
}

TEST(ScanPlan, DenseColumnsAreSearchedBackwardOnly) {
  auto plan = ScanPlan::Make(DefaultDirection::kLearn, 1.0f, 10, 10, 5);
  EXPECT_FALSE(plan.forward);
  EXPECT_TRUE(plan.backward);
}

TEST(ScanPlan, ColumnsWithMissingValuesAreSearchedBothWays) {
  auto plan = ScanPlan::Make(DefaultDirection::kLearn, 1.0f, 10, 9, 5);
  EXPECT_TRUE(plan.forward);
  EXPECT_TRUE(plan.backward);
}

TEST(ScanPlan, ConstantColumnsAreSearchedBackwardOnly) {
  EXPECT_FALSE(ScanPlan::Make(DefaultDirection::kLearn, 1.0f, 10, 9, 1).forward);
}

TEST(ScanPlan, DirectionsCanBeForced) {
  auto left = ScanPlan::Make(DefaultDirection::kLeft, 1.0f, 10, 5, 5);
  EXPECT_FALSE(left.forward);
  EXPECT_TRUE(left.backward);
  auto right = ScanPlan::Make(DefaultDirection::kRight, 1.0f, 10, 10, 1);
  EXPECT_TRUE(right.forward);
  EXPECT_FALSE(right.backward);
}

TEST(ScanPlan, NoRowsCountAsDense) {
  EXPECT_FALSE(ScanPlan::Make(DefaultDirection::kLearn, 1.0f, 0, 0, 0).forward);
}
}  // namespace
}  // namespace gpu_exact
