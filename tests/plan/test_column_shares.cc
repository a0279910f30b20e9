/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu_exact/device.h"
#include "plan/column_shares.h"

namespace gpu_exact {
namespace {
TEST(ColumnShares, LongestFirstToTheLeastLoaded) {
  EXPECT_EQ(ShareColumns({5, 100, 60, 50, 4}, 2), (std::vector<std::int32_t>{0, 0, 1, 1, 0}));
}

TEST(ColumnShares, EqualColumnsGoRound) {
  for (std::uint64_t n_entries : {0, 7}) {
    for (std::int32_t n_workers : {1, 2, 3}) {
      for (std::size_t n_columns : {1, 3, 5, 100}) {
        std::vector<std::size_t> columns(n_workers, 0);
        for (auto worker :
             ShareColumns(std::vector<std::uint64_t>(n_columns, n_entries), n_workers)) {
          ++columns.at(worker);
        }
        auto const [least, most] = std::minmax_element(columns.cbegin(), columns.cend());
        EXPECT_LE(*most - *least, 1u) << n_columns << " columns, " << n_workers << " workers";
      }
    }
  }
  auto const worker_of = ShareColumns({2, 0, 0, 0, 0}, 2);
  EXPECT_EQ(std::count(worker_of.cbegin(), worker_of.cend(), worker_of[0]), 1)
      << "the others have the columns that are empty";
}

TEST(ColumnShares, WhatReturnsEveryFewColumnsMeetsAllWorkers) {
  for (std::int32_t n_workers : {2, 3, 4, 8}) {
    auto const worker_of = ShareColumns(std::vector<std::uint64_t>(1600, 9), n_workers);
    for (std::size_t every : {2, 4, 8, 10, 12, 16, 24}) {
      std::vector<std::size_t> columns(n_workers, 0);
      for (std::size_t c = every - 1; c < worker_of.size(); c += every) {
        ++columns[worker_of[c]];
      }
      auto const [least, most] = std::minmax_element(columns.cbegin(), columns.cend());
      EXPECT_LE(*most, 2 * *least) << n_workers << " workers, every " << every;
    }
  }
}

TEST(ColumnShares, FewColumnsOrNone) {
  EXPECT_EQ(ShareColumns({9}, 3), (std::vector<std::int32_t>{0}));
  EXPECT_TRUE(ShareColumns({}, 3).empty());
}

TEST(ColumnShares, LoadsAreAlike) {
  std::mt19937 engine{5};
  for (std::int32_t n_workers : {2, 3, 8}) {
    std::vector<std::uint64_t> n_entries(200);
    for (auto& n : n_entries) {
      n = engine() % 1000;
    }
    auto const worker_of = ShareColumns(n_entries, n_workers);
    std::vector<std::uint64_t> loads(n_workers, 0);
    for (std::size_t c = 0; c < n_entries.size(); ++c) {
      ASSERT_LT(worker_of[c], n_workers);
      loads[worker_of[c]] += n_entries[c] + 1;
    }
    auto const [least, most] = std::minmax_element(loads.cbegin(), loads.cend());
    EXPECT_LE(*most - *least, *most / 100) << n_workers;
  }
}

std::string Refusal(std::string const& text) {
  try {
    static_cast<void>(ChooseDevices(text, 1, 4, 1));
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "";
}

TEST(ChooseDevices, ListsAndAll) {
  constexpr EntryIdx kMany = EntryIdx{1} << 30;
  using List = std::vector<int>;
  EXPECT_EQ(ChooseDevices("", 1, 4, kMany), List{1});
  EXPECT_EQ(ChooseDevices("all", 1, 4, kMany), (List{1, 0, 2, 3}));
  EXPECT_EQ(ChooseDevices("all", 1, 4, 1000), List{1});
  EXPECT_EQ(ChooseDevices("all", 0, 1, kMany), List{0});
  EXPECT_EQ(ChooseDevices("3,1,2", 1, 4, 1), (List{1, 3, 2}));
  EXPECT_EQ(ChooseDevices("1,1", 1, 4, 1), (List{1, 1}));  // tests on one GPU
}

TEST(ChooseDevices, RefusesWithARemedy) {
  auto const error = Refusal("1,4");
  EXPECT_EQ(error.rfind("gpu_exact_devices is \"1,4\", and this process sees 4 GPUs", 0), 0u)
      << error;
  EXPECT_NE(error.find("set it to \"all\""), std::string::npos) << error;
  for (char const* text : {"cuda", "1,,0", "1;2", "-1", "1,99999999999999999999", "1, 2"}) {
    EXPECT_NE(Refusal(text).find("no list of devices"), std::string::npos) << text;
  }
  EXPECT_NE(Refusal("0,2").find("leaves out the booster's own, 1"), std::string::npos);
}
}  // namespace
}  // namespace gpu_exact
