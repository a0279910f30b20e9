/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 */
#include "train/table_cache.h"

#include <xgboost/logging.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <utility>

#include "gpu_exact/device.h"
#include "src/common/categorical.h"
#include "train/device_status.h"
#include "train/run_log.h"
#include "workers/tell_all.h"

namespace gpu_exact {
namespace {
using xgboost::SparsePage;

static_assert(sizeof(CsrEntry) == sizeof(xgboost::Entry) &&
              offsetof(CsrEntry, feature) == offsetof(xgboost::Entry, index) &&
              offsetof(CsrEntry, value) == offsetof(xgboost::Entry, fvalue));
static_assert(sizeof(EntryIdx) == sizeof(xgboost::bst_idx_t));
static_assert(sizeof(FeatureType) == sizeof(xgboost::FeatureType) &&
              static_cast<int>(FeatureType::kCategorical) ==
                  static_cast<int>(xgboost::FeatureType::kCategorical));

/** @brief Tells one table from another. */
struct Key {
  DataToken data;
  GroupToken group;
  int ordinal;
};

bool operator==(Key const& lhs, Key const& rhs) {
  auto const data = lhs.data.lock();
  return data && data == rhs.data.lock() && IsSame(lhs.group, rhs.group) &&
         lhs.ordinal == rhs.ordinal;
}

/** @brief Lists the tables of the process. Owns none of them: the updaters do. */
class Registry {
 public:
  std::shared_ptr<DeviceTable> Get(Key const& key) {
    std::lock_guard<std::mutex> guard{mutex_};
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                  [](auto const& entry) { return entry.table.expired(); }),
                   entries_.end());
    for (auto const& entry : entries_) {
      auto table = entry.table.lock();
      if (table && entry.key == key) {
        return table;
      }
    }
    auto table = std::make_shared<DeviceTable>();
    entries_.push_back({key, table});
    return table;
  }

  /** @brief Tell whether any other table may be given up; see DeviceTable::MayGiveUp(). */
  bool HasIdle(DeviceTable const* wanted, std::vector<int> const& devices, DeviceTable::For why) {
    return this->AnyIdle(wanted,
                         [&](DeviceTable* table) { return table->MayGiveUp(devices, why); });
  }
  /** @brief Give such tables up; tells whether there was any. */
  bool GiveUpIdle(DeviceTable const* wanted, std::vector<int> const& devices,
                  DeviceTable::For why) {
    return this->AnyIdle(wanted, [&](DeviceTable* table) {
      bool const there = table->MayGiveUp(devices, why);
      if (there) {
        table->GiveUp();
      }
      return there;
    });
  }

 private:
  /** @brief Call fn(table) for all tables but one that nobody uses now; tell whether any call did. */
  template <typename FnT>
  bool AnyIdle(DeviceTable const* but, FnT&& fn) {
    std::lock_guard<std::mutex> guard{mutex_};
    bool any{false};
    for (auto const& entry : entries_) {
      auto table = entry.table.lock();
      if (table && table.get() != but) {
        std::unique_lock<std::mutex> lock{table->mutex, std::try_to_lock};
        any |= lock && fn(table.get());
      }
    }
    return any;
  }

  struct Entry {
    Key key;
    std::weak_ptr<DeviceTable> table;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

Registry& Tables() {
  static auto& tables = *new Registry;  // never freed: threads may live on while the process ends
  return tables;
}

/** @brief Give a page as the builder reads it: on its device if it lies there, else on the host. */
CsrView ViewOf(SparsePage const& page, std::size_t n_features, int ordinal) {
  auto const& data = page.data;
  bool const on_device =
      data.DeviceCanRead() && !data.HostCanRead() && data.Device().ordinal == std::max(ordinal, 0);
  CsrView view;
  if (on_device) {
    page.offset.SetDevice(data.Device());
    view.offsets = page.offset.ConstDevicePointer();
    view.entries = reinterpret_cast<CsrEntry const*>(data.ConstDevicePointer());
  } else {
    view.offsets = page.offset.ConstHostPointer();
    view.entries = reinterpret_cast<CsrEntry const*>(data.ConstHostPointer());
  }
  view.n_entries = data.Size();
  view.n_rows = static_cast<RowIdx>(page.Size());
  view.n_features = static_cast<FeatureIdx>(n_features);
  view.memory = on_device ? Memory::kDevice : Memory::kHost;
  return view;
}

/** @brief Reads the pages of a DMatrix in external memory, from its cache each time. */
class CachedPages final : public RowPages {
 public:
  CachedPages(xgboost::DMatrix* data, int ordinal) : data_{data}, ordinal_{ordinal} {}
  void ForEach(std::function<void(CsrView const&, RowIdx)> const& visit) const override {
    for (auto const& page : data_->GetBatches<SparsePage>()) {
      visit(ViewOf(page, data_->Info().num_col_, ordinal_), static_cast<RowIdx>(page.base_rowid));
    }
  }

 private:
  xgboost::DMatrix* data_;
  int ordinal_;
};
}  // namespace

std::vector<FeatureType> TypesOf(xgboost::MetaInfo const& info) {
  auto const& of_xgboost = info.feature_types.ConstHostVector();
  std::vector<FeatureType> types;
  if (std::any_of(of_xgboost.cbegin(), of_xgboost.cend(), xgboost::common::IsCatOp{})) {
    std::transform(of_xgboost.cbegin(), of_xgboost.cend(), std::back_inserter(types),
                   [](auto type) { return static_cast<FeatureType>(type); });
    types.resize(info.num_col_);  // a table without rows may have been told of others
  }
  return types;
}

TreeBuilder* DeviceTable::Builder(xgboost::DMatrix* data, std::vector<int> const& devices,
                                  TableOptions const& options,
                                  std::vector<FeatureType> const& types,
                                  std::shared_ptr<Communicator> const& comm, std::uint64_t epoch) {
  auto const& info = data->Info();
  auto own_types = TypesOf(info);
  if (!builder_ || !(options_ == options) || own_types_ != own_types || devices_ != devices ||
      epoch_ != epoch || !this->HasItsContexts()) {
    this->Drop();
    auto const begin = std::chrono::steady_clock::now();
    CachedPages const pages{data, devices.front()};
    std::shared_ptr<SparsePage const> page;  // the only one
    auto const own_rows = [&] {
      if (data->SingleColBlock()) {
        page = data->GetBatches<SparsePage>().begin().Page();
        return ViewOf(*page, info.num_col_, devices.front());
      }
      CsrView view;
      view.n_entries = info.num_nonzero_;
      view.n_rows = static_cast<RowIdx>(info.num_row_);
      view.n_features = static_cast<FeatureIdx>(info.num_col_);
      view.pages = &pages;
      return view;
    };
    auto view = TellAll(comm.get(), own_rows)[comm ? comm->Rank() : 0];
    view.feature_types = types.empty() ? nullptr : types.data();
    using Logger = xgboost::ConsoleLogger;
    LongSetUp const progress{view, !Logger::ShouldLog(Logger::LV::kWarning)};
    comm_ = comm;
    std::unique_ptr<TreeBuilder> builder;
    auto const make = [&](bool device_only) {
      TableOptions where{options};
      where.device_only = device_only;
      builder = comm ? MakeDeviceBuilder(devices.front(), view, where, comm_.get())
                     : MakeDeviceBuilder(devices, view, where);
    };
    // Where a table is limited to bytes, what others hold makes no difference.
    if (!comm && options.memory_limit <= 1.0 && Tables().HasIdle(this, devices, For::kSpeed)) {
      try {
        make(true);
      } catch (OutOfDeviceMemory const&) {
        Tables().GiveUpIdle(this, devices, For::kSpeed);
      }
    }
    if (!builder) {
      try {
        make(false);
      } catch (OutOfDeviceMemory const&) {
        if (comm || !Tables().GiveUpIdle(this, devices, For::kRoom)) {
          throw;
        }
        make(false);
      }
    }
    devices_ = devices;
    contexts_.resize(devices_.size());
    std::transform(devices_.cbegin(), devices_.cend(), contexts_.begin(), ContextOf);
    options_ = options;
    own_types_ = std::move(own_types);
    epoch_ = epoch;
    builder_ = std::move(builder);  // where this is reached, Drop() knows its contexts
    set_up_ms_ = MillisecondsSince(begin);
  }
  return builder_.get();
}

void DeviceTable::Drop() noexcept {
  if (builder_ && (ForkedAfterCuda() || !this->HasItsContexts())) {
    static_cast<void>(builder_.release());
  }
  builder_.reset();
}

bool DeviceTable::HasItsContexts() const noexcept {
  return std::equal(devices_.cbegin(), devices_.cend(), contexts_.cbegin(),
                    [](int device, std::uint64_t context) { return ContextOf(device) == context; });
}

bool DeviceTable::MayGiveUp(std::vector<int> const& devices, For why) const {
  return builder_ && !comm_ && (why == For::kRoom || !was_given_up_) &&
         std::find_first_of(devices_.cbegin(), devices_.cend(), devices.cbegin(), devices.cend()) !=
             devices_.cend();
}

void DeviceTable::GiveUp() {
  this->Drop();
  was_given_up_ = true;
}

std::uint64_t DeviceTable::Epoch(xgboost::MetaInfo const& info, TableOptions const& options) const {
  return builder_ && options_ == options && own_types_ == TypesOf(info) ? epoch_ : 0;
}

std::shared_ptr<DeviceTable> TableCache::Get(xgboost::MetaInfo const& info, int ordinal) {
  DataToken const data = info.CatsShared();
  auto const group = CurrentGroup();
  auto table = Tables().Get({data, group, ordinal});
  if (!IsSame(group_, group) || ordinal_ != ordinal) {
    uses_.clear();
    group_ = group;
    ordinal_ = ordinal;
  }
  uses_.erase(
      std::remove_if(uses_.begin(), uses_.end(),
                     [&](auto const& use) { return use.data.expired() || use.table == table; }),
      uses_.end());
  uses_.push_back({data, table});
  return table;
}
}  // namespace gpu_exact
