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
  auto plan = MemoryPlan::Make(kEntries, 0, 1);
  EXPECT_NEAR(static_cast<double>(plan.Peak()) / kEntries, 47.99, 0.01);
  auto with_rows = MemoryPlan::Make(kEntries, 1000, 1);
  EXPECT_EQ(with_rows.Peak() - plan.Peak(), 18000u);
}

TEST(MemoryPlan, NamesEveryPart) {
  auto text = MemoryPlan::Make(EntryIdx{1} << 20, 1, 1).Describe();
  EXPECT_NE(text.find("sorting the table 36 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("entries sorted by node 32"), std::string::npos) << text;
}
}  // namespace
}  // namespace gpu_exact
