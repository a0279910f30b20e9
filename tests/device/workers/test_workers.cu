/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Several workers with a share of the columns each grow the trees of one: threads on one GPU,
 *        and on two where there are two.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/builder/device_builder.cuh"
#include "device/sort/sort_strategy.cuh"
#include "device/workers/column_partition.cuh"
#include "device/workers/device_communicator.cuh"
#include "device/workers/nccl.cuh"
#include "host/thread_communicator.h"
#include "tests/device/histogram/histogram_strategy.cuh"
#include "tests/device/random_problem.h"
#include "tests/device/table_arrays.cuh"
#include "tests/device/workers/worker_test.h"

namespace gpu_exact {
namespace {
using MakeStrategyFn = std::function<std::unique_ptr<SplitStrategy>(CsrView const&)>;

/** @brief How a strategy is made of a table or of a share of it. */
struct Way {
  char const* name;
  MakeStrategyFn make;
};

std::vector<Way> Ways(RowIdx n_rows) {
  return {{"sort", [](CsrView const& t) { return MakeSortStrategy(t); }},
          {"histogram", [](CsrView const& t) { return MakeHistogramStrategy(t, {true}); }},
          {"scanned ranges",
           [](CsrView const& t) { return MakeHistogramStrategy(t, {true}, {12}, 0); }},
          {"gathered ranges",
           [](CsrView const& t) {
             return MakeHistogramStrategy(t, {false}, {24, 5}, 0);
           }},
          {"ranges beside sorted nodes", [n_rows](CsrView const& t) {
             return MakeHistogramStrategy(t, {true}, {40, 8}, n_rows / 3);
           }}};
}

/** @brief Rows of each worker, at random: some may have none. */
std::vector<RowIdx> DivideRows(RowIdx n_rows, std::int32_t n_workers, Random* random) {
  std::vector<RowIdx> begins{0};
  for (std::int32_t w = 1; w < n_workers; ++w) {
    begins.push_back(random->Chance(0.2) ? begins.back() : random->Int(begins.back(), n_rows));
  }
  begins.push_back(n_rows);
  return begins;
}

/** @brief Workers in threads, on the devices in turn. */
class Group {
 public:
  Group(std::int32_t n_workers, int n_devices, Transport transport)
      : workers_{n_workers}, n_devices_{n_devices}, transport_{transport}, builders_(n_workers) {}

  /** @brief Builders by a strategy each. */
  void Make(Table const& table, std::vector<RowIdx> const& begins, MakeStrategyFn const& make) {
    begins_ = begins;
    workers_.Run([&](std::int32_t rank) {
      auto context = std::make_shared<DeviceContext>(this->Device(rank));
      DeviceContext::Scope const scope{*context};
      Table const rows = RowsOf(table, begins[rank], begins[rank + 1]);
      auto partition =
          std::make_unique<ColumnPartition>(workers_.Worker(rank), rows.View(), transport_);
      EXPECT_EQ(partition->Workers()->Kind(), transport_);
      auto strategy = make(partition->OwnTable());
      partition->ReleaseOwnTable();
      builders_[rank] = MakeTreeBuilder(std::move(context), table.n_rows, std::move(strategy),
                                        TreeStats{}, std::move(partition));
    });
  }
  /** @brief Builders as they are chosen for the table. */
  void Make(Table const& table, std::vector<RowIdx> const& begins, Strategy strategy) {
    begins_ = begins;
    workers_.Run([&](std::int32_t rank) {
      Table const rows = RowsOf(table, begins[rank], begins[rank + 1]);
      builders_[rank] =
          MakeDeviceBuilder(this->Device(rank), rows.View(), strategy, workers_.Worker(rank));
    });
  }

  /** @brief Grows the tree and compares it and all positions with what they should be. */
  void Expect(GrownTree const& want, std::vector<NodeIdx> const& want_positions,
              GrowParam const& param, std::vector<GradientPair> const& gpair,
              std::uint8_t const* included, std::function<FeaturePolicy*(int)> const& policy,
              std::string const& what) {
    std::vector<GrownTree> got(builders_.size());
    std::vector<NodeIdx> positions(gpair.size());
    workers_.Run([&](std::int32_t rank) {
      RowIdx const first = begins_[rank];
      got[rank] =
          builders_[rank]->Build(param, {gpair.data() + first, Memory::kHost},
                                 included == nullptr ? nullptr : included + first, policy(rank));
      builders_[rank]->WritePositions({}, Memory::kHost, positions.data() + first);
    });
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectSameTree(got[rank], want, what + ", worker " + std::to_string(rank)));
    }
    ASSERT_EQ(positions, want_positions) << what;
  }

  [[nodiscard]] ThreadWorkers& Workers() { return workers_; }
  [[nodiscard]] TreeBuilder* Builder(std::int32_t rank) { return builders_[rank].get(); }

 private:
  [[nodiscard]] int Device(std::int32_t rank) const { return rank % n_devices_; }

  ThreadWorkers workers_;
  int n_devices_;
  Transport transport_;
  std::vector<RowIdx> begins_;
  std::vector<std::unique_ptr<TreeBuilder>> builders_;
};

class WorkersOnDevices : public WorkerTest {
 protected:
  /** @brief Trees of some workers over one random table against those of one worker. */
  void Compare(unsigned seed, Shape const& shape, std::int32_t n_workers, int n_devices,
               Transport transport, int n_trees, Way const& way) {
    Random random{seed};
    Table table = MakeTable(shape, &random);
    auto alone = MakeBuilder(table.n_rows, [&] { return way.make(table.View()); });
    Group group{n_workers, n_devices, transport};
    group.Make(table, DivideRows(shape.n_rows, n_workers, &random), way.make);
    for (int i = 0; i < n_trees; ++i) {
      auto gpair = MakeGradients(shape.n_rows, random.Pick({0.0, 0.2, 0.9}),
                                 random.Pick({0.0, 0.0, 0.2}), &random);
      GrowParam param = MakeParam(shape.n_features, &random);
      if (random.Chance(0.2)) {
        param.max_depth = 0;
        param.max_leaves = random.Int(2, 20);
      }
      std::vector<std::uint8_t> included(shape.n_rows, 1);
      bool const sampled = random.Chance(0.4);
      for (auto& row : included) {
        row = !sampled || random.Chance(0.6);
      }
      auto const* mask = sampled ? included.data() : nullptr;
      bool const restricted = random.Chance(0.4);
      RandomFeatures features{shape.n_features, seed};
      std::vector<RandomFeatures> of_workers(n_workers, features);
      auto want = alone->Build(param, {gpair.data(), Memory::kHost}, mask,
                               restricted ? &features : nullptr);
      std::string const what = std::string{way.name} + ", seed " + std::to_string(seed) +
                               ", tree " + std::to_string(i) + ", " + std::to_string(n_workers) +
                               " workers";
      ASSERT_NO_FATAL_FAILURE(group.Expect(
          want, Positions(alone.get(), shape.n_rows), param, gpair, mask,
          [&](int rank) { return restricted ? &of_workers[rank] : nullptr; }, what));
    }
  }
};

/** @brief The numbers that one worker has for another: they say whose they are. */
std::uint32_t Number(std::int32_t from, std::int32_t to, std::uint64_t i) {
  return static_cast<std::uint32_t>(i * 64 + from * 8 + to);
}

/** @brief Parts of any length, none included, from each worker to each and from each to all. */
void ExpectExchange(std::int32_t n_workers, int n_devices, Transport transport,
                    std::vector<std::uint64_t> const& lengths) {
  ThreadWorkers workers{n_workers};
  auto length = [&](std::int32_t from, std::int32_t to) {
    return lengths[(from * 3 + to) % lengths.size()];
  };
  auto parts_of = [&](auto&& length_of) {
    Parts parts{{0}, sizeof(std::uint32_t)};
    for (std::int32_t r = 0; r < n_workers; ++r) {
      parts.begins.push_back(parts.begins.back() + length_of(r));
    }
    return parts;
  };
  std::vector<int> n_wrong(n_workers, 0);
  workers.Run([&](std::int32_t rank) {
    DeviceContext context{rank % n_devices};
    DeviceContext::Scope const scope{context};
    auto comm = DeviceCommunicator::Make(workers.Worker(rank), transport);
    n_wrong[rank] += (context.Bytes() != 0) == (transport == Transport::kCopies) ? 0 : 1;
    auto const sends = parts_of([&](std::int32_t to) { return length(rank, to); });
    auto const receives = parts_of([&](std::int32_t from) { return length(from, rank); });
    auto const gathers = parts_of([&](std::int32_t from) { return length(from, 0); });
    std::vector<std::uint32_t> send, want, all, want_all;
    for (std::int32_t r = 0; r < n_workers; ++r) {
      for (std::uint64_t i = 0; i < length(rank, r); ++i) {
        send.push_back(Number(rank, r, i));
      }
      for (std::uint64_t i = 0; i < length(r, rank); ++i) {
        want.push_back(Number(r, rank, i));
      }
      for (std::uint64_t i = 0; i < length(r, 0); ++i) {
        all.push_back(r == rank ? Number(r, 0, i) : 0xffffffffu);
        want_all.push_back(Number(r, 0, i));
      }
    }
    auto d_send = ToDevice(send);
    auto d_all = ToDevice(all);
    DeviceBuffer<std::uint32_t> d_receive{"received"};
    d_receive.Reserve(want.size());
    for (int run = 0; run < 3; ++run) {  // what is sent may be written again at once
      CopyAsync(d_all.Data(), all.data(), all.size());
      comm->AllToAll(d_send.Data(), sends, d_receive.Data(), receives);
      comm->AllGather(d_all.Data(), gathers);
      comm->Await();
      n_wrong[rank] += ToHost(d_receive.Data(), want.size()) == want ? 0 : 1;
      n_wrong[rank] += ToHost(d_all.Data(), all.size()) == want_all ? 0 : 1;
      CopyAsync(d_all.Data(), all.data(), all.size());
      comm->AllGatherWords(d_all.Data(), gathers);
      n_wrong[rank] += ToHost(d_all.Data(), all.size()) == want_all ? 0 : 1;
      comm->Check();
      ZeroAsync(d_receive.Data(), want.size());
      comm->AllToAllAndWait(d_send.Data(), sends, d_receive.Data(), receives);
      n_wrong[rank] += ToHost(d_receive.Data(), want.size()) == want ? 0 : 1;
    }
  });
  EXPECT_EQ(n_wrong, std::vector<int>(n_workers, 0));
}

TEST_F(WorkersOnDevices, EachTellsEach) {
  for (auto transport : {Transport::kCopies, Transport::kHost}) {
    for (std::int32_t n_workers : {1, 2, 3}) {
      ExpectExchange(n_workers, 1, transport, {5, 0, 1000, 1});
      ExpectExchange(n_workers, 1, transport, {0});
    }
    ExpectExchange(2, 1, transport, {Scaled(std::uint64_t{5} << 20, 1u << 14), 3});  // 20 MiB
  }
}

TEST_F(WorkersOnDevices, TakeTheFirstTransportThatAllCanHave) {
  auto worker = [](std::int64_t process, char device, bool has_nccl) {
    return WorkerInfo{process, 7, {{device}}, has_nccl ? 1u : 0u};
  };
  using Workers = std::vector<WorkerInfo>;
  EXPECT_EQ(ChooseTransport(Workers{worker(1, 'a', true)}), Transport::kCopies);
  EXPECT_EQ(ChooseTransport(Workers{worker(1, 'a', false), worker(1, 'a', false)}),
            Transport::kCopies);
  EXPECT_EQ(ChooseTransport(Workers{worker(1, 'a', true), worker(2, 'b', true)}), Transport::kNccl);
  EXPECT_EQ(ChooseTransport(Workers{worker(1, 'a', true), worker(2, 'b', false)}),
            Transport::kHost);
  EXPECT_EQ(
      ChooseTransport(Workers{worker(1, 'a', true), worker(2, 'b', true), worker(3, 'a', true)}),
      Transport::kHost);
  auto elsewhere = worker(1, 'b', true);  // an id may be used again, on another machine too
  elsewhere.born = 8;
  EXPECT_EQ(ChooseTransport(Workers{worker(1, 'a', true), elsewhere}), Transport::kNccl);
}

TEST_F(WorkersOnDevices, SmallProblems) {
  for (int seed = 0; seed < NumSeeds(60); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(0, 90)), static_cast<FeatureIdx>(random.Int(1, 7)),
                random.Pick({0.0, 0.05, 0.5, 1.0}), random.Pick({0, 0, 6, 1})};
    for (Way const& way : Ways(shape.n_rows)) {
      ASSERT_NO_FATAL_FAILURE(
          this->Compare(seed, shape, 1 + seed % 4, 1, Transport::kCopies, Scaled(2, 1), way));
    }
  }
}

/** @brief Enough rows for ranges, for many words of bits, and for deep trees. */
TEST_F(WorkersOnDevices, LargerProblems) {
  for (int seed = 0; seed < NumSeeds(6); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(3000, Scaled(20000, 4000))),
                static_cast<FeatureIdx>(random.Int(2, Scaled(9, 4))), random.Pick({0.0, 0.3, 0.9}),
                random.Pick({0, 50, 2600})};
    for (Way const& way : Ways(shape.n_rows)) {
      ASSERT_NO_FATAL_FAILURE(
          this->Compare(100 + seed, shape, 2 + seed % 2, 1, Transport::kCopies, Scaled(2, 1), way));
    }
  }
}

TEST_F(WorkersOnDevices, WideAndSparse) {
  for (int seed = 0; seed < NumSeeds(4); ++seed) {  // features are drawn by node in some
    for (Way const& way : Ways(200)) {
      ASSERT_NO_FATAL_FAILURE(this->Compare(200 + seed, {200, Scaled(2000u, 600u), 0.98, 0}, 3, 1,
                                            Transport::kCopies, Scaled(2, 1), way));
    }
  }
}

TEST_F(WorkersOnDevices, ThroughTheHost) {
  for (int seed = 0; seed < NumSeeds(20); ++seed) {
    Random random{static_cast<unsigned>(seed)};
    Shape shape{static_cast<RowIdx>(random.Int(0, 2000)), static_cast<FeatureIdx>(random.Int(1, 7)),
                random.Pick({0.0, 0.5}), random.Pick({0, 6})};
    for (Way const& way : Ways(shape.n_rows)) {
      ASSERT_NO_FATAL_FAILURE(
          this->Compare(300 + seed, shape, 2 + seed % 2, 1, Transport::kHost, 1, way));
    }
  }
}

/** @brief Each strategy as it is chosen, without and with bars upon the device that is asked for. */
TEST_F(WorkersOnDevices, ByThePublicCalls) {
  Random random{31};
  Table table = MakeTable({Scaled(30000u, 4000u), 6, 0.1, 0}, &random);
  auto gpair = MakeGradients(table.n_rows, 0.1, 0.0, &random);
  GrowParam param;
  for (Strategy strategy : {Strategy::kAuto, Strategy::kSort, Strategy::kHistogram}) {
    auto alone = MakeDeviceBuilder(-1, table.View(), strategy);
    auto const want = alone->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    auto const positions = Positions(alone.get(), table.n_rows);
    Group group{3, 1, Transport::kCopies};
    group.Make(table, {0, 10, 10, table.n_rows}, strategy);
    ASSERT_NO_FATAL_FAILURE(group.Expect(
        want, positions, param, gpair, nullptr, [](int) { return nullptr; }, "public"));

    auto devices = MakeDeviceBuilder(std::vector<int>{0, 0, 0}, table.View(), strategy);
    for (int run = 0; run < 2; ++run) {
      RandomFeatures alone_policy{table.n_features, 5u}, policy{table.n_features, 5u};
      bool const restricted = run == 1;
      auto const expected =
          restricted ? alone->Build(param, {gpair.data(), Memory::kHost}, nullptr, &alone_policy)
                     : want;
      auto const got = devices->Build(param, {gpair.data(), Memory::kHost}, nullptr,
                                      restricted ? &policy : nullptr);
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, expected, "devices"));
      ASSERT_EQ(Positions(devices.get(), table.n_rows), Positions(alone.get(), table.n_rows));
    }
    EXPECT_GT(devices->DeviceBytes(), 0u);
  }
}

/** @brief Tables, gradients and positions in device memory, where each device reads the gradients of all
 *         rows, and where they are divided: as some rows are sampled, or for four devices many. */
TEST_F(WorkersOnDevices, InDeviceMemory) {
  GrowParam param;
  for (auto const& [n_devices, n_rows] :
       {std::pair{2, RowIdx{3000}}, std::pair{4, RowIdx{Scaled(530000u, 3000u)}}}) {
    Random random{32};
    Table table = MakeTable({n_rows, 5, 0.2, 0}, &random);
    auto gpair = MakeGradients(table.n_rows, 0.0, 0.1, &random);
    std::vector<std::uint8_t> sampled;
    for (RowIdx row = 0; row < n_rows; ++row) {
      sampled.push_back(random.Chance(0.7) ? 1 : 0);
    }
    auto alone = MakeDeviceBuilder(-1, table.View(), Strategy::kAuto);
    auto d_offsets = ToDevice(table.offsets);
    auto d_entries = ToDevice(table.entries);
    auto d_gpair = ToDevice(gpair);
    DeviceBuffer<NodeIdx> d_positions{"test positions"};
    d_positions.Reserve(table.n_rows);
    CsrView view = table.View();
    view.offsets = d_offsets.Data();
    view.entries = d_entries.Data();
    view.memory = Memory::kDevice;
    std::vector<int> ordinals;
    for (int i = 0; i < n_devices; ++i) {
      ordinals.push_back(i % CountDevices());
    }
    for (CsrView const& rows : {view, table.View()}) {
      auto devices = MakeDeviceBuilder(ordinals, rows, Strategy::kAuto);
      for (auto const* included : std::vector<std::uint8_t const*>{sampled.data(), nullptr}) {
        auto const want = alone->Build(param, {gpair.data(), Memory::kHost}, included, nullptr);
        auto const got =
            devices->Build(param, {d_gpair.Data(), Memory::kDevice}, included, nullptr);
        ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "device memory"));
        EXPECT_TRUE(devices->AnyDeletedRow(d_gpair.Data()));
        std::vector<NodeIdx> to_root(want.size(), kRoot);
        for (auto const& remap : {std::vector<NodeIdx>{}, to_root}) {
          auto const expected = Positions(alone.get(), table.n_rows, remap);
          devices->WritePositions(remap, Memory::kDevice, d_positions.Data());
          EXPECT_EQ(ToHost(d_positions.Data(), table.n_rows), expected);
          EXPECT_EQ(Positions(devices.get(), table.n_rows, remap), expected);
        }
      }
    }
  }
}

/** @brief What one worker cannot read, none does; the words of its error are told to all. */
TEST_F(WorkersOnDevices, AFaultyRowEndsTheSetUpEverywhere) {
  for (auto const& [feature, want] :
       {std::pair<FeatureIdx, std::string>{1, "Row 10 has two values of feature 1"},
        std::pair<FeatureIdx, std::string>{9, "Row 10 has a value of feature 9"}}) {
    Random random{33};
    Table table = MakeTable({100, 4, 0.0, 0}, &random);
    table.entries[4 * 70 + 2].feature = feature;  // in a row of the last worker
    ThreadWorkers workers{3};
    std::vector<std::string> told(3);
    workers.Run([&](std::int32_t rank) {
      Table const rows = RowsOf(table, 30 * rank, rank == 2 ? 100 : 30 * (rank + 1));
      try {
        static_cast<void>(MakeDeviceBuilder(0, rows.View(), Strategy::kAuto, workers.Worker(rank)));
      } catch (WorkerError const& e) {
        told[rank] = e.what();
      } catch (std::invalid_argument const& e) {
        told[rank] = e.what();
      }
    });
    EXPECT_EQ(told[2].rfind(want, 0), 0u) << told[2];
    EXPECT_EQ(told[0], "Rank 2 of 3: " + told[2]);
    EXPECT_EQ(told[1], told[0]);
  }
}

TEST_F(WorkersOnDevices, OtherColumnsEndTheSetUpEverywhere) {
  Random random{34};
  Table const table = MakeTable({40, 4, 0.0, 0}, &random);
  Table const wider = MakeTable({40, 5, 0.0, 0}, &random);
  ThreadWorkers workers{2};
  std::vector<std::string> told(2);
  workers.Run([&](std::int32_t rank) {
    try {
      static_cast<void>(MakeDeviceBuilder(0, (rank == 0 ? table : wider).View(), Strategy::kAuto,
                                          workers.Worker(rank)));
    } catch (WorkerError const& e) {
      told[rank] = e.what();
    }
  });
  EXPECT_EQ(told[0],
            "Rank 1 has rows of 5 features, rank 0 of 4; give all workers the same "
            "columns.");
  EXPECT_EQ(told[1], told[0]);
}

/** @brief A policy that fails on one worker, in the midst of a tree. */
class FailingFeatures : public FeaturePolicy {
 public:
  bool Select(std::int32_t depth, std::vector<LiveNode> const&, FeatureMask*) override {
    if (depth == 2) {
      throw std::domain_error{"no features today"};
    }
    return false;
  }
};

/** @brief A failure within a tree ends it on every worker, and what is grown next is right. */
TEST_F(WorkersOnDevices, AFailureWithinATreeEndsItEverywhere) {
  Random random{35};
  Table table = MakeTable({2000, 4, 0.1, 0}, &random);
  auto gpair = MakeGradients(table.n_rows, 0.0, 0.0, &random);
  auto bad = gpair;
  bad[1500].grad = std::numeric_limits<float>::quiet_NaN();
  GrowParam param;
  param.max_depth = 5;
  param.min_child_weight = 0.0f;
  auto alone = MakeDeviceBuilder(-1, table.View(), Strategy::kHistogram);
  auto const want = alone->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  ASSERT_GT(want.size(), 20u);
  auto devices = MakeDeviceBuilder(std::vector<int>{0, 0}, table.View(), Strategy::kHistogram);
  FailingFeatures failing;
  EXPECT_THROW(devices->Build(param, {bad.data(), Memory::kHost}, nullptr, nullptr),
               NonFiniteGradient);
  EXPECT_THROW(devices->Build(param, {gpair.data(), Memory::kHost}, nullptr, &failing),
               std::domain_error);
  auto const got = devices->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "after a failure"));

  Group group{3, 1, Transport::kCopies};
  group.Make(table, {0, 500, 1600, 2000}, Strategy::kHistogram);
  std::vector<std::string> told(3);
  auto const begins = std::vector<RowIdx>{0, 500, 1600};
  EXPECT_THROW(group.Workers().Run([&](std::int32_t rank) {
    try {
      static_cast<void>(group.Builder(rank)->Build(param,
                                                   {gpair.data() + begins[rank], Memory::kHost},
                                                   nullptr, rank == 1 ? &failing : nullptr));
    } catch (WorkerError const& e) {
      told[rank] = e.what();
      throw;
    }
  }),
               std::domain_error);
  EXPECT_EQ(told[0], "Rank 1 of 3 has failed; its own error says why.");
  EXPECT_EQ(told[2], told[0]);
}

/** @brief Two devices: columns apart, copies between them. */
class WorkersOnTwoDevices : public WorkersOnDevices {
 protected:
  void SetUp() override {
    WorkersOnDevices::SetUp();
    if (!this->IsSkipped() && CountDevices() < 2) {
      GTEST_SKIP() << "One GPU is visible, this takes two.";
    }
  }
  void CompareBy(Transport transport) {
    for (int seed = 0; seed < NumSeeds(10); ++seed) {
      Random random{static_cast<unsigned>(seed)};
      Shape shape{static_cast<RowIdx>(random.Int(0, 6000)),
                  static_cast<FeatureIdx>(random.Int(1, 9)), random.Pick({0.0, 0.3, 0.9}),
                  random.Pick({0, 6, 50})};
      for (Way const& way : Ways(shape.n_rows)) {
        ASSERT_NO_FATAL_FAILURE(this->Compare(400 + seed, shape, 2, 2, transport, 2, way));
      }
    }
  }
};

TEST_F(WorkersOnTwoDevices, Copies) {
  ExpectExchange(2, 2, Transport::kCopies, {5, 0, 1000, 1});
  this->CompareBy(Transport::kCopies);
}

/** @brief NCCL between threads, as between processes. */
class WorkersByNccl : public WorkersOnTwoDevices {
 protected:
  void SetUp() override {
    WorkersOnTwoDevices::SetUp();
    if (!this->IsSkipped() && Nccl::Load() == nullptr) {
      GTEST_SKIP() << "NCCL was not found; name libnccl.so.2 by GPU_EXACT_NCCL.";
    }
  }
};

TEST_F(WorkersByNccl, EachTellsEach) {
  ExpectExchange(2, 2, Transport::kNccl, {5, 0, 1000, 1});
  ExpectExchange(2, 2, Transport::kNccl, {0});
}

TEST_F(WorkersByNccl, Trees) { this->CompareBy(Transport::kNccl); }

/** @brief A worker that does not come is waited for until the deadline, and no longer. */
TEST_F(WorkersByNccl, NobodyWaitsForEver) {
  ThreadWorkers workers{2};
  std::string told;
  std::atomic<bool> is_over{false};
  auto const begin = std::chrono::steady_clock::now();
  workers.Run([&](std::int32_t rank) {
    DeviceContext context{rank};
    DeviceContext::Scope const scope{context};
    auto comm = DeviceCommunicator::Make(workers.Worker(rank), Transport::kNccl);
    DeviceBuffer<std::uint32_t> data{"test data"};
    ZeroAsync(data.Reserve(2), 2);
    Parts const parts{{0, 1, 2}, sizeof(std::uint32_t)};
    comm->AllGather(data.Data(), parts);  // connections are made
    comm->Await();
    workers.Worker(rank)->AllGather(nullptr, 0);  // nobody asks for the deadline meanwhile
    if (rank == 0) {
      setenv("GPU_EXACT_PEER_TIMEOUT", "2", 1);
      try {
        comm->AllGather(data.Data(), parts);
        comm->Await();
      } catch (WorkerError const& e) {
        told = e.what();
      }
      is_over = true;
    }
    while (!is_over) {
      std::this_thread::yield();
    }
  });
  unsetenv("GPU_EXACT_PEER_TIMEOUT");
  EXPECT_EQ(told,
            "Rank 0 of 2: A worker has not answered for 2 s. Its own error may say why; "
            "GPU_EXACT_PEER_TIMEOUT sets the seconds.");
  EXPECT_LT(MillisecondsSince(begin), 20e3);
}
}  // namespace
}  // namespace gpu_exact
