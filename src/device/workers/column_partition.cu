/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements column_partition.cuh.
 */
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <numeric>
#include <stdexcept>
#include <string>

#include "device/runtime/device_context.cuh"
#include "device/runtime/warp.cuh"
#include "device/table/row_table.cuh"
#include "device/workers/column_partition.cuh"
#include "host/all_or_none.h"
#include "plan/column_shares.h"

namespace gpu_exact {
namespace {
/** @brief Tells where a feature's column is. */
struct ColumnOwner {
  std::uint32_t worker;
  FeatureIdx column;  // of that worker
};

struct Widen {
  __host__ __device__ std::uint64_t operator()(std::uint32_t n) const { return n; }
};

/** @brief Call fn(entry, its owner, lanes of the same worker) by a warp for the entries of its
 *         row. */
template <typename FnT>
__device__ void ForEachOwner(CsrView const& table, ColumnOwner const* owners, std::uint64_t row,
                             FnT&& fn) {
  WalkRow(table, row, [&](EntryIdx i, bool has) {
    CsrEntry const entry = has ? table.entries[i] : CsrEntry{0, 0.0f};
    ColumnOwner const owner = has ? owners[entry.feature] : ColumnOwner{~0u, 0};
    unsigned const same = __match_any_sync(kAllLanes, owner.worker);
    fn(has, entry, owner, same);
    __syncwarp();  // what the first lane of each worker writes is read next
  });
}

__device__ bool IsFirstOf(unsigned lanes) { return (lanes & LaneMaskLt()) == 0; }

// one warp a row; result: entries of each row for each worker, shape (n_workers, n_rows), zero before
__global__ void CountForWorkersKernel(CsrView table, ColumnOwner const* owners,
                                      std::uint32_t* counts) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForEachOwner(table, owners, row, [&](bool has, CsrEntry, ColumnOwner owner, unsigned same) {
    if (has && IsFirstOf(same)) {
      counts[std::uint64_t{owner.worker} * table.n_rows + row] += __popc(same);
    }
  });
}

// one warp a row; next: where its next entry for each worker goes, moves on; result: all entries by
// worker, row, column
__global__ void WriteForWorkersKernel(CsrView table, ColumnOwner const* owners, EntryIdx* next,
                                      CsrEntry* out) {
  WaitForPreviousKernel();
  auto row = WarpRow();
  if (row >= table.n_rows) {
    return;
  }
  ForEachOwner(table, owners, row, [&](bool has, CsrEntry e, ColumnOwner owner, unsigned same) {
    auto const at = std::uint64_t{owner.worker} * table.n_rows + row;
    EntryIdx const to = has ? next[at] : 0;
    __syncwarp();
    if (has) {
      out[to + __popc(same & LaneMaskLt())] = {owner.column, e.value};
      if (IsFirstOf(same)) {
        next[at] = to + __popc(same);
      }
    }
  });
}

/** @brief Puts the own entries in order for the workers that they go to. */
struct Outgoing {
  DeviceBuffer<std::uint32_t> counts{"entries of rows for workers"};
  DeviceBuffer<CsrEntry> entries{"rows for workers"};

  Outgoing(CsrView const& table, std::vector<ColumnOwner> const& owners, std::int32_t n_workers) {
    std::uint64_t const n = std::uint64_t(n_workers) * table.n_rows;
    DeviceBuffer<ColumnOwner> d_owners{"columns of workers"};
    DeviceBuffer<EntryIdx> next{"places of rows for workers"};
    CopyFromHost(d_owners.Reserve(owners.size()), owners.data(), owners.size());
    ZeroAsync(counts.Reserve(n), n);
    LaunchRows("CountForWorkers", CountForWorkersKernel, table.n_rows, table, d_owners.Data(),
               counts.Data());
    next.Reserve(n);
    entries.Reserve(table.n_entries);
    if (n != 0) {
      auto wide = thrust::make_transform_iterator(counts.Data(), Widen{});
      CallCub([&](void* storage, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(storage, bytes, wide, next.Data(), n, Stream());
      });
    }
    LaunchRows("WriteForWorkers", WriteForWorkersKernel, table.n_rows, table, d_owners.Data(),
               next.Data(), entries.Data());
    Synchronize();  // what is not kept goes
  }
};

/** @brief Turn the sizes of parts into their begins. */
template <typename FnT>
Parts MakeParts(std::int32_t n_workers, std::size_t unit, FnT&& size_of) {
  Parts parts{{0}, unit};
  for (std::int32_t rank = 0; rank < n_workers; ++rank) {
    parts.begins.push_back(parts.begins.back() + size_of(rank));
  }
  return parts;
}
}  // namespace

ColumnPartition::ColumnPartition(Communicator* comm, CsrView const& rows, Transport transport)
    : workers_{DeviceCommunicator::Make(comm, transport)} {
  std::int32_t const n_workers = comm->Size();
  std::int32_t const rank = comm->Rank();
  this->SumSizes(rows);

  static constexpr EntryIdx kNoEntries = 0;
  CsrView const own = rows.n_rows != 0 ? rows : CsrView{&kNoEntries,       nullptr,      0, 0,
                                                        whole_.n_features, Memory::kHost};
  std::unique_ptr<RowTable> table;
  std::vector<std::uint32_t> n_entries;
  AllOrNone(comm, [&] {
    table = std::make_unique<RowTable>(own);
    n_entries = table->CountEntries();
  });
  std::vector<std::int32_t> worker_of;
  Traffic const traffic = this->ShareOut(n_entries, &worker_of);

  std::unique_ptr<Outgoing> outgoing;
  DeviceBuffer<std::uint32_t> counts{"entries of rows of the own columns"};
  AllOrNone(comm, [&] {
    std::vector<ColumnOwner> owners;
    std::vector<FeatureIdx> n_columns(n_workers, 0);
    for (std::int32_t w : worker_of) {
      owners.push_back({static_cast<std::uint32_t>(w), n_columns[w]++});
    }
    outgoing = std::make_unique<Outgoing>(table->View(), owners, n_workers);
    std::uint64_t const n_counts = std::uint64_t(n_workers) * own.n_rows;
    exchange_bytes_ = 16 * own.n_entries + 8 * own.n_rows + 12 * n_counts;
    table.reset();
    std::uint64_t n_received{0};
    for (std::int32_t from = 0; from < n_workers; ++from) {
      n_received += traffic[from * n_workers + rank];
    }
    own_table_ = {nullptr,        nullptr, n_received, whole_.n_rows, std::max(1u, n_columns[rank]),
                  Memory::kDevice};
    own_table_.feature_types = own_types_.empty() ? nullptr : own_types_.data();
    entries_.Reserve(n_received);
    counts.Reserve(whole_.n_rows);
    offsets_.Reserve(std::size_t{whole_.n_rows} + 1);
    exchange_bytes_ =
        std::max(exchange_bytes_, 8 * (own.n_entries + n_received) +
                                      12 * std::uint64_t{whole_.n_rows} + 4 * n_counts);
    ZeroAsync(offsets_.Data(), 1);
  });
  workers_->AllToAllAndWait(
      outgoing->counts.Data(),
      MakeParts(n_workers, sizeof(std::uint32_t), [&](std::int32_t) { return own.n_rows; }),
      counts.Data(), Parts{row_begins_, sizeof(std::uint32_t)});
  workers_->AllToAllAndWait(
      outgoing->entries.Data(),
      MakeParts(n_workers, sizeof(CsrEntry),
                [&](std::int32_t to) { return traffic[rank * n_workers + to]; }),
      entries_.Data(), MakeParts(n_workers, sizeof(CsrEntry), [&](std::int32_t from) {
        return traffic[from * n_workers + rank];
      }));
  AllOrNone(comm, [&] {
    if (whole_.n_rows != 0) {
      auto wide = thrust::make_transform_iterator(counts.Data(), Widen{});
      CallCub([&](void* storage, std::size_t& bytes) {
        return cub::DeviceScan::InclusiveSum(storage, bytes, wide, offsets_.Data() + 1,
                                             whole_.n_rows, Stream());
      });
      Synchronize();
    }
  });
  own_table_.offsets = offsets_.Data();
  own_table_.entries = entries_.Data();
}

void ColumnPartition::SumSizes(CsrView const& rows) {
  struct Sizes {
    std::uint64_t n_rows;
    std::uint64_t n_entries;
    std::uint64_t n_features;
  };
  std::vector<Sizes> sizes(workers_->Size());
  sizes[workers_->Rank()] = {rows.n_rows, rows.n_entries, rows.n_features};
  workers_->OfHost()->AllGather(sizes.data(), sizeof(Sizes));
  row_begins_ = {0};
  for (auto const& s : sizes) {
    if (s.n_features != sizes.front().n_features) {
      throw WorkerError{"Rank " + std::to_string(&s - sizes.data()) + " has rows of " +
                        std::to_string(s.n_features) + " features, rank 0 of " +
                        std::to_string(sizes.front().n_features) +
                        "; give all workers the same columns."};
    }
    row_begins_.push_back(row_begins_.back() + s.n_rows);
    whole_.n_entries += s.n_entries;
  }
  if (row_begins_.back() > kMostRows) {
    throw std::invalid_argument{"All workers have " + std::to_string(row_begins_.back()) +
                                " rows, and at most " + std::to_string(kMostRows) +
                                " fit; train with fewer rows."};
  }
  whole_.n_rows = static_cast<RowIdx>(row_begins_.back());
  whole_.n_features = static_cast<FeatureIdx>(sizes.front().n_features);
  if (rows.feature_types != nullptr) {
    types_.assign(rows.feature_types, rows.feature_types + whole_.n_features);
    whole_.feature_types = types_.data();
  }
}

ColumnPartition::Traffic ColumnPartition::ShareOut(std::vector<std::uint32_t> const& n_entries,
                                                   std::vector<std::int32_t>* out_worker_of) {
  std::int32_t const n_workers = workers_->Size();
  std::int32_t const rank = workers_->Rank();
  std::vector<std::uint64_t> sums(n_entries.cbegin(), n_entries.cend());
  if (!sums.empty()) {
    workers_->OfHost()->AllReduce(sums.data(), sums.size());
  }
  *out_worker_of = ShareColumns(sums, n_workers);
  Traffic traffic(std::size_t{1} * n_workers * n_workers);
  std::vector<FeatureIdx>& features = h_features_;
  column_of_.assign(n_entries.size(), kRemoteColumn);
  for (std::size_t f = 0; f < n_entries.size(); ++f) {
    std::int32_t const worker = (*out_worker_of)[f];
    traffic[rank * n_workers + worker] += n_entries[f];
    if (worker == rank) {
      column_of_[f] = ColumnIdx{static_cast<FeatureIdx>(features.size())};
      features.push_back(static_cast<FeatureIdx>(f));
    }
  }
  workers_->OfHost()->AllGather(traffic.data(), n_workers * sizeof(std::uint64_t));
  features.resize(std::max<std::size_t>(1, features.size()));  // of the empty column
  if (!types_.empty()) {
    for (FeatureIdx const f : features) {
      own_types_.push_back(types_[f]);
    }
  }
  AllOrNone(workers_->OfHost(), [&] {
    CopyFromHost(features_.Reserve(features.size()), features.data(), features.size());
  });
  return traffic;
}

void ColumnPartition::ReleaseOwnTable() {
  offsets_.Release();
  entries_.Release();
  own_table_.offsets = nullptr;
  own_table_.entries = nullptr;
}
}  // namespace gpu_exact
