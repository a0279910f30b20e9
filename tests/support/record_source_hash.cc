/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Part of every test program: its results say which sources it was built of.
 */
#include <gtest/gtest.h>

#include "gpu_exact/source_hash.h"

namespace gpu_exact {
namespace {
class RecordSourceHash : public ::testing::Environment {
 public:
  void SetUp() override { ::testing::Test::RecordProperty("source_hash", SourceHash()); }
};

[[maybe_unused]] auto const* const environment =
    ::testing::AddGlobalTestEnvironment(new RecordSourceHash);
}  // namespace
}  // namespace gpu_exact
