/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief What workers tell each other on a level, against the same put together on the host.
 */
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "device/runtime/device_context.cuh"
#include "device/table/column_ids.cuh"
#include "device/workers/split_exchange.cuh"
#include "host/thread_communicator.h"
#include "tests/device/device_arrays.cuh"
#include "tests/device/workers/worker_test.h"

namespace gpu_exact {
namespace {
constexpr std::int32_t kWorkers = 3;
constexpr FeatureIdx kFeatures = 70;
constexpr RowIdx kRows = 60;

class SplitExchangeTest : public WorkerTest {
 protected:
  /** @brief Run fn(rank, exchange) as each worker of a group, by messages of both kinds. */
  static void Run(std::function<void(std::int32_t, SplitExchange*)> const& fn) {
    Random random{1};
    Table const table = MakeTable({kRows, kFeatures, 0.3, 0}, &random);
    for (auto transport : {Transport::kCopies, Transport::kHost}) {
      ThreadWorkers workers{kWorkers};
      workers.Run([&](std::int32_t rank) {
        DeviceContext context{-1};
        DeviceContext::Scope const scope{context};
        Table const rows = RowsOf(table, kRows * rank / kWorkers, kRows * (rank + 1) / kWorkers);
        ColumnPartition const partition{workers.Worker(rank), rows.View(), transport};
        SplitExchange exchange{partition};
        fn(rank, &exchange);
        partition.Workers()->Check();
      });
    }
  }
  static std::vector<FeatureIdx> OwnFeatures(SplitExchange const& exchange) {
    ColumnPartition const& partition = exchange.Columns();
    return ToHost(partition.Features().features, partition.OwnTable().n_features);
  }

  /** @brief What a worker has found for each node: few gains, so that many are alike. */
  static std::vector<LevelResult> Found(std::int32_t rank, SplitExchange const& exchange,
                                        LevelNode n_nodes) {
    Random random{static_cast<unsigned>(10 + rank)};
    auto const own = OwnFeatures(exchange);
    std::vector<LevelResult> found(n_nodes);
    for (LevelNode b = 0; b < n_nodes; ++b) {
      FeatureIdx const f = own[random.Int(0, static_cast<int>(own.size()) - 1)];
      found[b].split = {static_cast<float>(random.Int(0, 2)), f, static_cast<float>(f) + 0.5f,
                        f % 2};
    }
    return found;
  }
  /** @brief The worker whose split is the best of a node; -1: there is none. */
  static std::int32_t WinnerOf(std::vector<std::vector<LevelResult>> const& all, LevelNode b) {
    std::int32_t best{-1};
    for (std::int32_t rank = 0; rank < kWorkers; ++rank) {
      Split const& split = all[rank][b].split;
      if (split.loss_change > 0.0f &&
          (best < 0 || split.loss_change > all[best][b].split.loss_change ||
           (split.loss_change == all[best][b].split.loss_change &&
            split.feature < all[best][b].split.feature))) {
        best = rank;
      }
    }
    return best;
  }
  static void ExpectSplit(LevelResult const& got, std::vector<std::vector<LevelResult>> const& all,
                          LevelNode b) {
    std::int32_t const winner = WinnerOf(all, b);
    ASSERT_EQ(got.split.loss_change, winner < 0 ? 0.0f : all[winner][b].split.loss_change);
    if (winner >= 0) {
      ASSERT_EQ(got.split.feature, all[winner][b].split.feature) << "node " << b;
      ASSERT_EQ(got.split.threshold, all[winner][b].split.threshold) << "node " << b;
      ASSERT_EQ(got.split.default_left, all[winner][b].split.default_left) << "node " << b;
    }
  }
};

TEST_F(SplitExchangeTest, TheBestGainsAreToBeatEverywhere) {
  constexpr LevelNode kNodes = 300;
  std::vector<std::vector<std::uint64_t>> all(kWorkers, std::vector<std::uint64_t>(kNodes));
  for (std::int32_t rank = 0; rank < kWorkers; ++rank) {
    Random random{static_cast<unsigned>(rank)};
    for (std::uint64_t& key : all[rank]) {
      key = CandidateKey::Make(static_cast<float>(random.Int(0, 4)), 1000 + rank);
    }
  }
  Run([&](std::int32_t rank, SplitExchange* exchange) {
    auto const best = ToDevice(all[rank]);
    exchange->ShareBestGains(best.Data(), kNodes);
    auto const got = ToHost(best.Data(), kNodes);
    for (LevelNode b = 0; b < kNodes; ++b) {
      float most{0.0f};
      for (auto const& keys : all) {
        most = std::max(most, CandidateKey::LossChange(keys[b]));
      }
      ASSERT_EQ(CandidateKey::LossChange(got[b]), most) << "node " << b;
      ASSERT_EQ(got[b] == all[rank][b], CandidateKey::LossChange(all[rank][b]) == most);
      ASSERT_TRUE(got[b] == all[rank][b] || !CandidateKey::IsLocal(got[b])) << "node " << b;
    }
  });
}

TEST_F(SplitExchangeTest, TheBestSplits) {
  constexpr LevelNode kNodes = 300;
  std::vector<std::vector<LevelResult>> all(kWorkers);
  Run([&](std::int32_t rank, SplitExchange* exchange) {
    all[rank] = Found(rank, *exchange, kNodes);
    auto const results = ToDevice(all[rank]);
    exchange->ShareBest(results.Data(), kNodes);
    auto const got = ToHost(results.Data(), kNodes);  // all have made theirs
    auto const winners = ToHost(exchange->Winners(), kNodes);
    for (LevelNode b = 0; b < kNodes; ++b) {
      ASSERT_NO_FATAL_FAILURE(ExpectSplit(got[b], all, b));
      ASSERT_EQ(static_cast<std::int32_t>(winners[b]), WinnerOf(all, b)) << "node " << b;
    }
  });
}

// one thread a node and row
__global__ void ReadLeftRowsKernel(LeftRowsRef left_rows, LevelNode n_nodes, std::uint8_t* out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  auto const b = static_cast<LevelNode>(i / kRows);
  if (b < n_nodes && left_rows.winners[b] != SplitExchange::kNobody) {
    auto const row = static_cast<RowIdx>(i % kRows);
    out[i] = left_rows.Of(b)[row / 32] >> row % 32 & 1u;
  }
}

/** @brief Of each node the bits of the worker with the best split, on levels of more nodes and of fewer. */
TEST_F(SplitExchangeTest, WhoGoesLeftWithTheBestSplits) {
  for (LevelNode n_nodes : {8u, 300u, 1u}) {
    std::vector<std::vector<LevelResult>> all(kWorkers);
    std::vector<std::vector<std::uint32_t>> bits(kWorkers);
    Run([&](std::int32_t rank, SplitExchange* exchange) {
      all[rank] = Found(rank, *exchange, n_nodes);
      Random random{static_cast<unsigned>(rank)};
      bits[rank].clear();
      for (RowIdx i = 0; i <= kRows / 32; ++i) {
        bits[rank].push_back(static_cast<std::uint32_t>(random.Int(0, 0x7fffffff)) * 3);
      }
      auto const results = ToDevice(all[rank]);
      std::uint32_t* const own = exchange->LeftRows(n_nodes);
      ASSERT_EQ(ToHost(own, bits[rank].size()), std::vector<std::uint32_t>(bits[rank].size(), 0));
      CopyFromHost(own, bits[rank].data(), bits[rank].size());
      LeftRowsRef const left_rows = exchange->ShareBest(results.Data(), n_nodes, true);
      DeviceBuffer<std::uint8_t> left{"rows that go left"};
      left.Reserve(n_nodes * kRows);
      LaunchN("ReadLeftRows", ReadLeftRowsKernel, n_nodes * kRows, left_rows, n_nodes, left.Data());
      auto const got = ToHost(results.Data(), n_nodes);
      auto const goes_left = ToHost(left.Data(), n_nodes * kRows);
      for (LevelNode b = 0; b < n_nodes; ++b) {
        ASSERT_NO_FATAL_FAILURE(ExpectSplit(got[b], all, b));
        std::int32_t const winner = WinnerOf(all, b);
        for (RowIdx row = 0; winner >= 0 && row < kRows; ++row) {
          ASSERT_EQ(goes_left[b * kRows + row], bits[winner][row / 32] >> row % 32 & 1u)
              << "node " << b << ", row " << row;
        }
      }
    });
  }
}

TEST_F(SplitExchangeTest, WordsOfAll) {
  constexpr std::uint64_t kWords = 1000;
  auto const word_of = [](std::int32_t rank, std::uint64_t i) {
    return static_cast<std::uint32_t>(i * 2654435761u) & 0x49249249u << rank;
  };
  Run([&](std::int32_t rank, SplitExchange* exchange) {
    std::vector<std::uint32_t> own(kWords), want(kWords, 0);
    for (std::uint64_t i = 0; i < kWords; ++i) {
      own[i] = word_of(rank, i);
      for (std::int32_t of = 0; of < kWorkers; ++of) {
        want[i] |= word_of(of, i);
      }
    }
    CopyFromHost(exchange->OwnWords(kWords), own.data(), kWords);
    DeviceBuffer<std::uint32_t> joined{"words of all"};
    exchange->JoinWords(kWords, joined.Reserve(kWords));
    ASSERT_EQ(ToHost(joined.Data(), kWords), want);
  });
}

TEST_F(SplitExchangeTest, MasksOfTheOwnColumns) {
  constexpr std::size_t kWords = (kFeatures + 31) / 32;
  constexpr std::uint64_t kMasks = 9;
  Random random{1};
  std::vector<std::uint32_t> masks(kMasks * kWords);
  for (std::uint32_t& word : masks) {
    word = static_cast<std::uint32_t>(random.Int(0, 0x7fffffff)) * 3;
  }
  Run([&](std::int32_t, SplitExchange* exchange) {
    auto const own = OwnFeatures(*exchange);
    auto const n_words = SplitExchange::MaskWords(static_cast<FeatureIdx>(own.size()));
    auto const d_masks = ToDevice(masks);
    DeviceBuffer<std::uint32_t> out{"own masks"};
    exchange->SelectOwn(d_masks.Data(), kWords, kMasks, out.Reserve(kMasks * n_words));
    auto const got = ToHost(out.Data(), kMasks * n_words);
    for (std::uint64_t m = 0; m < kMasks; ++m) {
      for (std::size_t c = 0; c < own.size(); ++c) {
        ASSERT_EQ(got[m * n_words + c / 32] >> c % 32 & 1u,
                  masks[m * kWords + own[c] / 32] >> own[c] % 32 & 1u)
            << "mask " << m << ", column " << c;
      }
    }
  });
}

/** @brief The column of a split is own, another worker's, or there is none. */
TEST_F(SplitExchangeTest, ColumnsOfSplits) {
  EXPECT_EQ(ColumnOf({4, 1, 0.0f, false}, nullptr), ColumnIdx{4});
  EXPECT_EQ(ColumnOf({4, kNoNode, 0.0f, false}, nullptr), kRemoteColumn);
  Run([&](std::int32_t, SplitExchange* exchange) {
    auto const own = OwnFeatures(*exchange);
    for (FeatureIdx f = 0; f < kFeatures; ++f) {
      auto const at = std::find(own.cbegin(), own.cend(), f);
      ASSERT_EQ(ColumnOf({f, 1, 0.0f, false}, exchange),
                at == own.cend() ? kRemoteColumn
                                 : ColumnIdx{static_cast<std::uint32_t>(at - own.cbegin())});
    }
  });
}
}  // namespace
}  // namespace gpu_exact
