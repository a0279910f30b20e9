/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief The memory formula and its text.
 */
#include <gtest/gtest.h>

#include "src/memory_plan.h"

namespace gpu_exact {
namespace {
TEST(MemoryPlan, BytesAnEntryAndRow) {
  constexpr EntryIdx kEntries = EntryIdx{1} << 32;
  auto plan = MemoryPlan::Make(kEntries, 0, 1, Strategy::kSort);
  EXPECT_NEAR(static_cast<double>(plan.Peak()) / kEntries, 32.24, 0.01);
  auto with_rows = MemoryPlan::Make(kEntries, 1000, 1, Strategy::kSort);
  EXPECT_EQ(with_rows.Peak() - plan.Peak(), 18000u);
}

TEST(MemoryPlan, EntriesOfManyRowsCarryGradients) {
  constexpr EntryIdx kEntries = EntryIdx{1} << 30;
  auto gathered = MemoryPlan::Make(kEntries, kGatheredRows, 1, Strategy::kSort);
  auto carried = MemoryPlan::Make(kEntries, kGatheredRows + 1, 1, Strategy::kSort);
  EXPECT_EQ(carried.Peak() - gathered.Peak(), 16 * kEntries + 18);
}

TEST(MemoryPlan, PartitionedDenseAndSparse) {
  constexpr RowIdx kRows = 1 << 22;
  auto dense = MemoryPlan::Make(EntryIdx{64} * kRows, kRows, 64, Strategy::kPartition);
  EXPECT_NEAR(static_cast<double>(dense.Peak()) / kRows, 64 * 32.05 + 46, 1.0);
  auto sparse = MemoryPlan::Make(EntryIdx{8} * kRows, kRows, 64, Strategy::kPartition);
  EXPECT_NEAR(static_cast<double>(sparse.Peak()) / kRows, 8 * 40 + 8, 40.0);
}

TEST(MemoryPlan, NamesEveryPart) {
  auto text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1, Strategy::kSort).Describe();
  EXPECT_NE(text.find("sorting the table 24 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("entries sorted by node 16"), std::string::npos) << text;
  text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1, Strategy::kPartition).Describe();
  EXPECT_NE(text.find("entries by node 24"), std::string::npos) << text;
}
}  // namespace
}  // namespace gpu_exact
