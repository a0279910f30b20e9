/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes a builder of a table: chooses the strategy and what memory it takes, divides columns
 *        among workers.
 */
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "device/builder/device_builder.cuh"
#include "device/histogram/histogram_strategy.cuh"
#include "device/runtime/device_context.cuh"
#include "device/sort/sort_strategy.cuh"
#include "gpu_exact/device.h"
#include "gpu_exact/tree_builder.h"
#include "host/all_or_none.h"
#include "plan/bin_bound.h"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
/** @brief Sets for kAuto how long columns get histograms; many short ones are sorted. */
constexpr EntryIdx kLongColumn = 256;
constexpr std::uint64_t kSmallTable = std::uint64_t{1} << 26;  // row offsets

/** @brief Tell why a table cannot have histograms; empty where it can. */
std::string WhyNotHistogram(CsrView const& table) {
  constexpr RowIdx kMaxRows = std::numeric_limits<std::int32_t>::max();
  if (table.n_rows > kMaxRows) {
    return "at most " + std::to_string(kMaxRows) + " rows, the table has " +
           std::to_string(table.n_rows);
  }
  return "";
}

/**
 * @brief Choose the strategy, never kAuto.
 * @param max_bins How many bins a block has room for; kMaxGroupBins where several devices agree.
 * @throw std::invalid_argument where the table is too large for the one that was asked for.
 */
Strategy ChooseStrategy(Strategy strategy, CsrView const& table, std::uint32_t max_bins) {
  std::string why_not = WhyNotHistogram(table);
  if (NumCategorical(table) != 0) {
    if (strategy == Strategy::kSort) {
      throw std::invalid_argument{
          "gpu_exact_strategy=sort takes no categorical features; set it to auto or histogram."};
    }
    if (!why_not.empty()) {
      throw UnfitTable{"With categorical features a table has " + why_not +
                       "; train with fewer rows, or encode categories as numbers."};
    }
    return Strategy::kHistogram;
  }
  if (strategy == Strategy::kHistogram && !why_not.empty()) {
    throw std::invalid_argument{"gpu_exact_strategy=histogram takes " + why_not +
                                "; set it to auto or sort."};
  }
  if (strategy == Strategy::kAuto) {
    // To look up where a row's bins are takes about as long as to sort a sixth of an entry.
    bool const histogram = why_not.empty() && table.n_entries >= kLongColumn * table.n_features &&
                           NumRowOffsets(table.n_entries, table.n_rows, table.n_features, {false},
                                         max_bins) <= 6 * table.n_entries + kSmallTable;
    return histogram ? Strategy::kHistogram : Strategy::kSort;
  }
  return strategy;
}

/**
 * @brief Make a strategy for a table, as far as memory goes; stats are told what was planned.
 * @param partition The columns of several workers; its own table is this one, and is released. nullptr: there is
 *                  one worker.
 */
std::unique_ptr<SplitStrategy> MakeStrategy(CsrView const& table, Strategy strategy,
                                            TableOptions const& options, ColumnPartition* partition,
                                            TreeStats* stats) {
  ProfilerRange const range{"gpu_exact: set-up"};
  std::size_t free{0}, total{0};
  EXACT_CUDA(cudaMemGetInfo(&free, &total));
  std::uint64_t const rows_bytes = partition != nullptr ? partition->OwnTableBytes() : 0;
  MemoryRoom const room{free + rows_bytes, total, options.memory_limit, BinMatrix::MaxBins(),
                        rows_bytes};
  FeatureIdx const n_categorical = NumCategorical(table);
  // What the table takes at least; then there is room to count categories.
  ChosenMemory chosen = ChooseMemory(
      table, strategy, room,
      {std::vector<std::uint32_t>(n_categorical, 0),
       std::min(table.n_entries, std::uint64_t{n_categorical} * table.n_rows), table.n_entries});
  TableCategories categories;
  if (n_categorical != 0) {
    categories = CountCategories(table);
    chosen = ChooseMemory(table, strategy, room, categories.columns);
  }
  if (options.device_only && chosen.plan.HostBytes() != 0) {
    throw OutOfDeviceMemory{
        "The table does not fit on the GPU as a whole: " + chosen.plan.Describe() + "."};
  }
  std::uint64_t const exchange_bytes = partition != nullptr ? partition->ExchangeBytes() : 0;
  *stats = {strategy, std::max(chosen.plan.Peak(), exchange_bytes), chosen.plan.HostBytes()};
  auto const release_own_table = [&] {
    if (partition != nullptr) {
      partition->ReleaseOwnTable();
    }
  };
  if (strategy == Strategy::kHistogram) {
    StagedTable staged{table, chosen.memory};
    if (staged.WholeRead()) {
      release_own_table();
    }
    categories.of_feature.resize(table.n_features, 0);
    auto binned = std::make_unique<BinnedTable>(std::move(staged), std::vector<std::uint32_t>{},
                                                chosen.memory, std::move(categories.of_feature));
    release_own_table();
    return MakeHistogramStrategy(std::move(binned), chosen.memory);
  }
  auto sort = MakeSortStrategy(table);
  release_own_table();
  return sort;
}
}  // namespace

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(int ordinal, CsrView const& rows,
                                               TableOptions const& options, Communicator* comm) {
  auto context = std::make_shared<DeviceContext>(ordinal);
  DeviceContext::Scope const scope{*context};
  TreeStats stats;
  if (comm == nullptr || comm->Size() == 1) {
    Strategy const strategy = ChooseStrategy(options.strategy, rows, BinMatrix::MaxBins());
    auto made = MakeStrategy(rows, strategy, options, nullptr, &stats);
    return MakeTreeBuilder(context, rows.n_rows, std::move(made), stats);
  }
  auto partition = std::make_unique<ColumnPartition>(comm, rows);
  // The device is not asked: workers with GPUs of several kinds choose the same.
  Strategy const strategy = ChooseStrategy(options.strategy, partition->Whole(), kMaxGroupBins);
  std::unique_ptr<TreeBuilder> builder;
  AllOrNone(comm, [&] {
    std::unique_ptr<SplitStrategy> made;
    try {
      made = MakeStrategy(partition->OwnTable(), strategy, options, partition.get(), &stats);
    } catch (InvalidCategory const& e) {
      throw InvalidCategory{partition->FeatureOf(ColumnIdx{e.feature}), e.value};
    }
    RowIdx const n_rows = partition->Whole().n_rows;
    builder = MakeTreeBuilder(context, n_rows, std::move(made), stats, std::move(partition));
  });
  return builder;
}
}  // namespace gpu_exact
