/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Tables of more than 2^31 and 2^32 entries, and more than 2^32 pairs of node and column,
 *        where what is counted in 32 bits wraps. They take up to 130 GiB of the device, and skip
 *        where there is less.
 */
#include <algorithm>
#include <cmath>

#include "plan/memory_plan.h"
#include "tests/device/histogram/histogram_strategy.cuh"
#include "tests/device/random_problem.h"
#include "tests/support/reference_builder.h"

namespace gpu_exact {
namespace {
constexpr std::uint64_t kTwoTo31 = std::uint64_t{1} << 31;
constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;

TEST(CheckGrid, TakesWhatCudaTakes) {
  EXPECT_NO_THROW(CheckGrid("Some", kTwoTo31 - 1));
  EXPECT_THROW(CheckGrid("Some", kTwoTo31), DeviceError);
  EXPECT_THROW(CheckGrid("Some", kTwoTo32 + 1), DeviceError);
}

/** @brief A small table over and over: many rows in little memory of the host. */
class RepeatedTable final : public RowPages {
 public:
  static constexpr std::size_t kPageEntries = std::size_t{1} << 25;

  /**
   * @param n_copies     A power of two.
   * @param page_entries A page has several copies, if they fit.
   */
  RepeatedTable(Table const& table, RowIdx n_copies, std::size_t page_entries = kPageEntries)
      : page_{table}, n_rows_{table.n_rows * n_copies} {
    std::size_t n = page_.entries.size();
    for (; page_.n_rows < n_rows_ && 2 * n <= page_entries; n *= 2, page_.n_rows *= 2) {
      page_.entries.resize(2 * n);
      std::copy_n(page_.entries.cbegin(), n, page_.entries.begin() + static_cast<long>(n));
      for (RowIdx r = 1; r <= page_.n_rows; ++r) {
        page_.offsets.push_back(n + page_.offsets[r]);
      }
    }
  }
  void ForEach(std::function<void(CsrView const&, RowIdx)> const& visit) const override {
    for (RowIdx first = 0; first < n_rows_; first += page_.n_rows) {
      visit(page_.View(), first);
    }
  }
  [[nodiscard]] CsrView View() const {
    CsrView view;
    view.n_entries = page_.entries.size() * (n_rows_ / page_.n_rows);
    view.n_rows = n_rows_;
    view.n_features = page_.n_features;
    view.pages = this;
    return view;
  }

 private:
  Table page_;
  RowIdx n_rows_;
};

/** @brief Gradients that follow the last two columns, in multiples of 1/16. */
std::vector<GradientPair> FollowLastColumns(Table const& table, Random* random) {
  std::vector<GradientPair> gpair;
  for (RowIdx r = 0; r < table.n_rows; ++r) {
    float signal = static_cast<float>(random->Int(-8, 8));
    for (auto i = table.offsets[r]; i < table.offsets[r + 1]; ++i) {
      CsrEntry const& e = table.entries[i];
      signal += e.feature + 2 >= table.n_features ? 32.0f * e.value : 0.0f;
    }
    gpair.push_back({std::rint(signal) / 16.0f, static_cast<float>(random->Int(1, 3))});
  }
  return gpair;
}

/** @brief So many levels of splits, down to single rows. */
GrowParam Deep(std::int32_t max_depth) {
  GrowParam param;
  param.max_depth = max_depth;
  param.min_child_weight = 0.0f;
  param.reg_lambda = 0.0f;
  return param;
}

class Sizes : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && UnderSanitizer()) {
      GTEST_SKIP() << "Tables of billions of entries; other tests run the same kernels.";
    }
  }

  /** @brief Why a plan cannot be kept here; empty where it can. */
  static std::string WhyNot(MemoryPlan const& plan) {
    std::size_t free{0}, total{0};
    EXACT_CUDA(cudaMemGetInfo(&free, &total));
    return plan.Peak() <= free ? ""
                               : "Takes up to " + std::to_string(plan.Peak()) + " bytes, and " +
                                     std::to_string(free) + " of the GPU are free.";
  }

  /**
   * @brief A tree over a table's copies is that of the table with as many times the gradients: all
   *        sums are the same, and exact.
   * @param builder Of the copies.
   * @param copies  Their number is a power of two, so that products are exact.
   */
  static void Compare(TreeBuilder* builder, CsrView const& copies, Table const& table,
                      GrowParam const& param, Random* random, GrownTree* out_tree) {
    auto gpair = FollowLastColumns(table, random);
    DeviceBuffer<GradientPair> d_gpair{"test gradients"};
    CopyAsync(d_gpair.Reserve(copies.n_rows), gpair.data(), table.n_rows);
    for (RowIdx n = table.n_rows; n < copies.n_rows; n *= 2) {
      CopyAsync(d_gpair.Data() + n, d_gpair.Data(), n);
    }
    auto const n_copies = static_cast<float>(copies.n_rows / table.n_rows);
    for (GradientPair& g : gpair) {
      g = {g.grad * n_copies, g.hess * n_copies};
    }
    auto reference = MakeReferenceBuilder(table.View());
    auto const want = reference->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
    auto const positions = Positions(reference.get(), table.n_rows);
    ASSERT_GE(want[kRoot].feature + 2, table.n_features) << "of the last columns";
    for (int run = 0; run < 2; ++run) {
      *out_tree = builder->Build(param, {d_gpair.Data(), Memory::kDevice}, nullptr, nullptr);
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(*out_tree, want, "run " + std::to_string(run)));
    }
    DeviceBuffer<NodeIdx> d_positions{"test positions"};
    builder->WritePositions({}, Memory::kDevice, d_positions.Reserve(copies.n_rows));
    for (RowIdx first : {RowIdx{0}, copies.n_rows - table.n_rows}) {
      EXPECT_EQ(ToHost(d_positions.Data() + first, table.n_rows), positions) << "from " << first;
    }
  }
};

/** @brief What the tests below rest on, where it costs nothing. */
TEST_F(Sizes, CopiesGrowTheSameTree) {
  Random random{5};
  for (double missing : {0.0, 0.6}) {
    Table const table = MakeTable({1 << 9, 12, missing, 0}, &random);
    RepeatedTable const copies{table, 1 << 4, 1 << 14};
    for (Strategy strategy : {Strategy::kSort, Strategy::kHistogram}) {
      auto builder = MakeDeviceBuilder(-1, copies.View(), strategy);
      GrownTree tree;
      Compare(builder.get(), copies.View(), table, Deep(5), &random, &tree);
    }
  }
}

/** @brief 67 million rows of 66 columns, of which only two begin beyond 2^32 places. */
TEST_F(Sizes, HistogramsOfADenseTable) {
  constexpr RowIdx kRows = 1 << 16;
  constexpr RowIdx kCopies = 1 << 10;
  constexpr FeatureIdx kColumns = 66;
  constexpr EntryIdx kEntries = EntryIdx{kRows} * kCopies * kColumns;
  static_assert(kEntries > kTwoTo32);
  HistogramMemory shared;  // the builder shares bins where there is no room for more
  shared.reads_finest = true;
  auto const why =
      WhyNot(MemoryPlan::Make(kEntries, kRows * kCopies, kColumns, Strategy::kHistogram, shared));
  if (!why.empty()) {
    GTEST_SKIP() << why;
  }
  Random random{1};
  Table const table = MakeTable({kRows, kColumns, 0.0, 0}, &random);
  RepeatedTable const copies{table, kCopies};
  auto builder = MakeDeviceBuilder(-1, copies.View(), Strategy::kHistogram);
  GrownTree tree;
  Compare(builder.get(), copies.View(), table, Deep(5), &random, &tree);
}

/** @brief Six values of ten are missing: entries lie by row, in bins and beside them. */
TEST_F(Sizes, HistogramsOfASparseTable) {
  constexpr RowIdx kRows = 1 << 10;
  constexpr RowIdx kCopies = 1 << 8;
  constexpr FeatureIdx kColumns = 41'200;
  HistogramMemory memory;
  memory.reads_finest = true;
  auto const n_about = static_cast<EntryIdx>(0.4 * kRows * kCopies * kColumns);
  auto const why =
      WhyNot(MemoryPlan::Make(n_about, kRows * kCopies, kColumns, Strategy::kHistogram, memory));
  if (!why.empty()) {
    GTEST_SKIP() << why;
  }
  Random random{2};
  Table const table = MakeTable({kRows, kColumns, 0.6, 0}, &random);
  RepeatedTable const copies{table, kCopies};
  ASSERT_GT(copies.View().n_entries, kTwoTo32);
  // Fewer bins than a column has values, so that bins are ranges.
  auto builder = MakeBuilder(kRows * kCopies, [&] {
    return MakeHistogramStrategy(copies.View(), memory, {256, 32});
  });
  GrownTree tree;
  Compare(builder.get(), copies.View(), table, Deep(4), &random, &tree);
}

/** @brief Levels of few nodes, and of so many that long columns are read again. */
class SortedSizes : public Sizes {
 protected:
  static constexpr RowIdx kRows = 1 << 12;
  static constexpr std::int32_t kDepth = 9;

  void Check(RowIdx n_copies, FeatureIdx n_columns, EntryIdx more_than) {
    RowIdx const n_rows = kRows * n_copies;
    EntryIdx const n_entries = EntryIdx{n_rows} * n_columns;
    ASSERT_GT(n_entries, more_than);
    auto const why = WhyNot(MemoryPlan::Make(n_entries, n_rows, n_columns, Strategy::kSort));
    if (!why.empty()) {
      GTEST_SKIP() << why;
    }
    Random random{3};
    Table const table = MakeTable({kRows, n_columns, 0.0, 0}, &random);
    RepeatedTable const copies{table, n_copies};
    auto builder = MakeDeviceBuilder(-1, copies.View(), {Strategy::kSort, 1.0});
    GrownTree tree;
    Compare(builder.get(), copies.View(), table, Deep(kDepth), &random, &tree);
    EXPECT_GT(tree.size(), 640u);
  }
};

TEST_F(SortedSizes, EntriesOfManyRowsBeyondTwoTo31) { this->Check(1 << 10, 520, kTwoTo31); }
TEST_F(SortedSizes, EntriesBeyondTwoTo32) { this->Check(1 << 9, 2050, kTwoTo32); }

constexpr FeatureIdx kBits = 16;

/** @brief 2^16 rows: many columns of few entries, then one for each bit of a row's number. */
Table MakeWideTable(FeatureIdx n_columns, FeatureIdx n_of_row, Random* random) {
  Table table;
  table.n_rows = RowIdx{1} << kBits;
  table.n_features = n_columns;
  FeatureIdx const stride = (n_columns - kBits) / n_of_row;
  for (RowIdx r = 0; r < table.n_rows; ++r) {
    for (FeatureIdx k = 0; k < n_of_row; ++k) {
      auto const place = static_cast<FeatureIdx>(random->Int(0, static_cast<int>(stride) - 1));
      table.entries.push_back({k * stride + place, static_cast<float>(random->Int(0, 63))});
    }
    for (FeatureIdx bit = 0; bit < kBits; ++bit) {
      table.entries.push_back({n_columns - kBits + bit, (r >> bit & 1u) != 0 ? 1.0f : 0.0f});
    }
    table.offsets.push_back(table.entries.size());
  }
  return table;
}

/** @brief Each bit tells a little less than the one above it, so that every node is halved by the
 *         next one. */
std::vector<GradientPair> FollowBits() {
  std::vector<GradientPair> gpair(std::size_t{1} << kBits, {0.0f, 1.0f});
  float weight{256.0f};
  for (FeatureIdx bit = kBits; bit-- > 0; weight *= 0.8f) {
    float const step = std::rint(16.0f * weight) / 16.0f;  // so that sums are exact
    for (std::size_t r = 0; r < gpair.size(); ++r) {
      gpair[r].grad += (r >> bit & 1u) != 0 ? step : -step;
    }
  }
  return gpair;
}

/** @brief A candidate of each node and column is kept where nodes are sorted. */
TEST_F(Sizes, SmallNodesTimesColumns) {
  constexpr RowIdx kRows = RowIdx{1} << kBits;
  constexpr FeatureIdx kColumns = 270'000;
  constexpr FeatureIdx kOfRow = 256;
  constexpr std::int32_t kDepth = 15;
  auto const why = WhyNot(
      MemoryPlan::Make(EntryIdx{kRows} * (kOfRow + kBits), kRows, kColumns, Strategy::kHistogram)
          .WithNodes(kRows, kColumns, Strategy::kHistogram, kDepth));
  if (!why.empty()) {
    GTEST_SKIP() << why;
  }
  Random random{4};
  Table const table = MakeWideTable(kColumns, kOfRow, &random);
  auto const gpair = FollowBits();
  GrowParam const param = Deep(kDepth);
  auto judge = MakeDeviceBuilder(-1, table.View(), Strategy::kSort);
  auto const want = judge->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  auto const positions = Positions(judge.get(), kRows);
  judge.reset();
  auto histogram = MakeDeviceBuilder(-1, table.View(), Strategy::kHistogram);
  auto const got = histogram->Build(param, {gpair.data(), Memory::kHost}, nullptr, nullptr);
  ASSERT_NO_FATAL_FAILURE(ExpectSameTree(got, want, "small nodes"));
  EXPECT_EQ(Positions(histogram.get(), kRows), positions);
  constexpr std::uint64_t kPairBytes = 16;
  EXPECT_GT(histogram->DeviceBytes(), kPairBytes * kTwoTo32) << "so many pairs were searched";
}
}  // namespace
}  // namespace gpu_exact
