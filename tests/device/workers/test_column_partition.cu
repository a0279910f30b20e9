/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief The columns of each worker against the whole table: each column is one worker's, with all its
 *        rows.
 */
#include <algorithm>
#include <memory>
#include <vector>

#include "device/runtime/device_context.cuh"
#include "device/workers/column_partition.cuh"
#include "host/thread_communicator.h"
#include "tests/device/table_arrays.cuh"
#include "tests/device/workers/worker_test.h"

namespace gpu_exact {
namespace {
class ColumnPartitionTest : public WorkerTest {
 protected:
  /** @param begins First row of each worker, and the end. */
  static void Check(Table const& table, std::vector<RowIdx> const& begins, Transport transport) {
    auto const n_workers = static_cast<std::int32_t>(begins.size() - 1);
    ThreadWorkers workers{n_workers};
    std::vector<std::vector<FeatureIdx>> features(n_workers);
    std::vector<Table> tables(n_workers);
    workers.Run([&](std::int32_t rank) {
      DeviceContext context{-1};
      DeviceContext::Scope const scope{context};
      Table const own = RowsOf(table, begins[rank], begins[rank + 1]);
      ColumnPartition partition{workers.Worker(rank), own.View(), transport};
      EXPECT_EQ(partition.Whole().n_rows, table.n_rows);
      EXPECT_EQ(partition.Whole().n_features, table.n_features);
      EXPECT_EQ(partition.Whole().n_entries, table.entries.size());
      EXPECT_EQ(partition.RowBegins(), std::vector<std::uint64_t>(begins.cbegin(), begins.cend()));
      CsrView const& view = partition.OwnTable();
      tables[rank].n_rows = view.n_rows;
      tables[rank].n_features = view.n_features;
      tables[rank].offsets = ToHost(view.offsets, std::size_t{view.n_rows} + 1);
      tables[rank].entries = ToHost(view.entries, view.n_entries);
      for (FeatureIdx f = 0; f < table.n_features; ++f) {
        if (partition.ColumnOf(f) != kRemoteColumn) {
          EXPECT_EQ(InOwnTable(partition.ColumnOf(f)), features[rank].size());
          features[rank].push_back(f);
        }
      }
      if (features[rank].empty()) {  // then there is an empty one
        EXPECT_EQ(view.n_features, 1u);
        EXPECT_EQ(view.n_entries, 0u);
      } else {
        EXPECT_EQ(ToHost(partition.Features().features, view.n_features), features[rank]);
      }
      partition.ReleaseOwnTable();
      EXPECT_EQ(partition.OwnTableBytes(), 0u);
    });
    std::vector<std::int32_t> owner(table.n_features, -1);
    for (std::int32_t rank = 0; rank < n_workers; ++rank) {
      for (FeatureIdx f : features[rank]) {
        ASSERT_EQ(owner[f], -1) << "feature " << f << " has two owners";
        owner[f] = rank;
      }
    }
    ASSERT_EQ(std::count(owner.cbegin(), owner.cend(), -1), 0) << "a feature has no owner";
    for (std::int32_t rank = 0; rank < n_workers; ++rank) {
      Table const& got = tables[rank];
      ASSERT_EQ(got.n_rows, table.n_rows);
      for (RowIdx r = 0; r < table.n_rows; ++r) {
        auto i = got.offsets[r];
        for (auto k = table.offsets[r]; k < table.offsets[r + 1]; ++k) {
          CsrEntry const& want = table.entries[k];
          if (owner[want.feature] == rank) {
            ASSERT_LT(i, got.offsets[r + 1]) << "row " << r << " of worker " << rank;
            ASSERT_EQ(features[rank][got.entries[i].feature], want.feature) << "row " << r;
            ASSERT_EQ(got.entries[i].value, want.value) << "row " << r;
            ++i;
          }
        }
        ASSERT_EQ(i, got.offsets[r + 1]) << "row " << r << " of worker " << rank;
      }
    }
  }
};

TEST_F(ColumnPartitionTest, EveryColumnOnceWithAllItsRows) {
  Random random{1};
  for (auto transport : {Transport::kCopies, Transport::kHost}) {
    for (Shape const& shape : {Shape{200, 7, 0.0, 0}, Shape{1, 1, 0.0, 0}, Shape{40, 100, 0.7, 0},
                               Shape{30, 3, 1.0, 0}}) {
      Table const table = MakeTable(shape, &random);
      RowIdx const n = shape.n_rows;
      Check(table, {0, n}, transport);
      Check(table, {0, n / 3, n}, transport);
      Check(table, {0, n / 2, n / 2, n - n / 4, n}, transport);  // a worker without rows
      ASSERT_FALSE(HasFailure()) << n << " rows, " << shape.n_features << " columns";
    }
  }
}
}  // namespace
}  // namespace gpu_exact
