/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Makes several GPUs of one process workers of one group, a thread each.
 */
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/level/training_rows.cuh"
#include "device/runtime/device_context.cuh"
#include "gpu_exact/tree_builder.h"
#include "host/all_or_none.h"
#include "host/thread_communicator.h"

namespace gpu_exact {
namespace {
/** @brief Limits the bytes that the first device sends beyond what it would have to where rows are
 *         divided. */
constexpr std::uint64_t kMostBeyond = std::uint64_t{8} << 20;

/** @brief Shares one policy among workers: the first one asks, the others hear the answer. */
class SharedPolicy final : public FeaturePolicy {
 public:
  /** @param policy The caller's, on the first worker; nullptr elsewhere. */
  SharedPolicy(FeaturePolicy* policy, Communicator* comm) : policy_{policy}, comm_{comm} {}

  bool Select(std::int32_t depth, std::vector<LiveNode> const& nodes,
              FeatureMask* out_mask) override {
    std::vector<FeatureMask const*> answers(comm_->Size(), nullptr);
    JointStep step{comm_};
    if (comm_->Rank() == 0 && policy_->Select(depth, nodes, out_mask)) {
      answers.front() = out_mask;
    }
    comm_->AllGather(answers.data(), sizeof(FeatureMask const*));
    step.Run([&] {  // nobody goes before all have read
      if (comm_->Rank() != 0 && answers.front() != nullptr) {
        *out_mask = *answers.front();
      }
    });
    return answers.front() != nullptr;
  }

 private:
  FeaturePolicy* policy_;
  Communicator* comm_;
};

class MultiDeviceBuilder final : public TreeBuilder {
 public:
  MultiDeviceBuilder(std::vector<int> ordinals, CsrView const& table, TableOptions const& options)
      : ordinals_{std::move(ordinals)},
        first_{ordinals_.front()},
        workers_{static_cast<std::int32_t>(ordinals_.size())},
        builders_(ordinals_.size()) {
    for (std::uint64_t rank = 0; rank <= ordinals_.size(); ++rank) {
      // A table that lies on the first device is the first one's.
      bool const divided = table.memory == Memory::kHost;
      row_begins_.push_back(static_cast<RowIdx>(divided ? table.n_rows * rank / ordinals_.size()
                                                        : (rank == 0 ? 0 : table.n_rows)));
    }
    workers_.Run([&](std::int32_t rank) {
      std::vector<EntryIdx> offsets;
      CsrView const rows = this->RowsOf(table, rank, &offsets);
      builders_[rank] = MakeDeviceBuilder(ordinals_[rank], rows, options, workers_.Worker(rank));
    });
    DeviceContext::Scope const scope{first_};
    scan_ = std::make_unique<RowScan>();
  }

  GrownTree Build(GrowParam const& param, GradientView gradients, std::uint8_t const* row_included,
                  FeaturePolicy* features) override {
    if (gradients.memory == Memory::kDevice) {
      DeviceContext::Scope const scope{first_};
      Synchronize();  // other streams read them
    }
    GrowParam of_worker{param};  // threads of the host are shared out too; a team serves one thread
    std::int32_t const n_threads = param.team.n_threads;
    of_worker.team = {std::max(n_threads / workers_.Size(), std::min(n_threads, 1)), nullptr};
    // Each reads those of all rows on the first device, or its part, which the others then hear of.
    std::uint64_t const beyond =
        std::uint64_t{row_begins_.back()} * sizeof(GradientPair) * (ordinals_.size() - 2);
    bool const is_whole =
        gradients.memory == Memory::kDevice && row_included == nullptr && beyond <= kMostBeyond;
    GrownTree tree;
    workers_.Run([&](std::int32_t rank) {
      SharedPolicy policy{features, workers_.Worker(rank)};
      RowIdx const first = is_whole ? 0 : row_begins_[rank];
      GrownTree grown =
          builders_[rank]->Build(of_worker, {gradients.data + first, gradients.memory, is_whole},
                                 row_included == nullptr ? nullptr : row_included + first,
                                 features == nullptr ? nullptr : &policy);
      if (rank == 0) {
        tree = std::move(grown);
      }
    });
    is_whole_ = is_whole;
    return tree;
  }

  void WritePositions(std::vector<NodeIdx> const& remap, Memory memory,
                      NodeIdx* out_positions) override {
    if (is_whole_) {
      builders_.front()->WritePositions(remap, memory, out_positions);
      return;
    }
    if (memory == Memory::kDevice) {
      DeviceContext::Scope const scope{first_};
      Synchronize();  // whatever used that memory before
    }
    workers_.Run([&](std::int32_t rank) {
      builders_[rank]->WritePositions(remap, memory, out_positions + row_begins_[rank]);
    });
  }

  /** @brief Keep the pool of the first device, if it writes all positions: the others may not reach
   *         it. */
  [[nodiscard]] bool KeepsPool() const override {
    return is_whole_ && builders_.front()->KeepsPool();
  }

  [[nodiscard]] bool AnyDeletedRow(GradientPair const* gradients) override {
    DeviceContext::Scope const scope{first_};
    return scan_->AnyDeleted({gradients, nullptr, row_begins_.back()});
  }

  [[nodiscard]] std::uint64_t DeviceBytes() const override {
    std::uint64_t bytes{first_.Bytes()};
    for (auto const& builder : builders_) {
      bytes += builder->DeviceBytes();
    }
    return bytes;
  }
  [[nodiscard]] TreeStats Stats() const override { return builders_.front()->Stats(); }

 private:
  /** @brief Give the rows that a device reads. @param offsets Gets the offsets of these rows, which the view
   *         lends. */
  [[nodiscard]] CsrView RowsOf(CsrView const& table, std::int32_t rank,
                               std::vector<EntryIdx>* offsets) const {
    RowIdx const first = row_begins_[rank];
    RowIdx const end = row_begins_[rank + 1];
    if (first == end) {
      return {nullptr,          nullptr,       0,       0,
              table.n_features, Memory::kHost, nullptr, table.feature_types};
    }
    if (table.memory == Memory::kDevice) {
      return table;
    }
    EntryIdx const base = table.offsets[first];
    offsets->assign(table.offsets + first, table.offsets + end + 1);
    for (EntryIdx& offset : *offsets) {
      offset -= base;
    }
    return {offsets->data(),  table.entries + base, offsets->back(), end - first,
            table.n_features, Memory::kHost,        nullptr,         table.feature_types};
  }

  std::vector<int> ordinals_;
  DeviceContext first_;             // of the first device, beside its builder's
  std::vector<RowIdx> row_begins_;  // shape: (n_workers + 1)
  ThreadWorkers workers_;           // before the builders, which borrow them
  std::vector<std::unique_ptr<TreeBuilder>> builders_;
  std::unique_ptr<RowScan> scan_;  // on the first device
  // Of the last tree: each device has read the gradients of all rows, and knows all positions.
  bool is_whole_{false};
};
}  // namespace

std::unique_ptr<TreeBuilder> MakeDeviceBuilder(std::vector<int> const& ordinals,
                                               CsrView const& table, TableOptions const& options) {
  if (ordinals.size() == 1) {
    return MakeDeviceBuilder(ordinals.front(), table, options);
  }
  return std::make_unique<MultiDeviceBuilder>(ordinals, table, options);
}
}  // namespace gpu_exact
