/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements quantile_cuts.cuh.
 */
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <numeric>

#include "device/histogram/bins/quantile_cuts.cuh"
#include "device/runtime/device_context.cuh"
#include "device/table/value_sort.cuh"
#include "plan/bin_numbers.h"

namespace gpu_exact {
namespace {
/** @brief Describes one of the columns that are sorted together. */
struct SortedColumn {
  std::uint64_t begin;        // first entry among the keys
  std::uint64_t first_value;  // among the values
  std::uint32_t n_entries;
  std::uint32_t first_bin;  // among the bins of these columns
  BinNumbers numbers;
};

/** @brief Lends the values of these columns, in the order of column and value. */
struct ValuesRef {
  SortedColumn const* columns;   // shape: (n_columns), ascending by first_value
  std::uint32_t const* entries;  // the first one of each value
  std::uint32_t n_columns;
  std::uint64_t n;

  [[nodiscard]] __device__ std::uint64_t End(std::uint32_t column) const {
    return column + 1 < n_columns ? columns[column + 1].first_value : n;
  }
  /** @brief Count the entries of lower values of a column. */
  [[nodiscard]] __device__ std::uint32_t Rank(std::uint32_t column, std::uint64_t value) const {
    SortedColumn const& c = columns[column];
    return value < this->End(column) ? static_cast<std::uint32_t>(entries[value] - c.begin)
                                     : c.n_entries;
  }
  /** @brief Give the number of a value's bin in its column. */
  [[nodiscard]] __device__ std::uint32_t NumberOf(std::uint32_t column, std::uint64_t value) const {
    SortedColumn const& c = columns[column];
    return c.numbers.Of(value - c.first_value, this->Rank(column, value),
                        this->Rank(column, value + 1));
  }
};

// grid: rows of one column after the other, one thread each; missing values come last among all keys
__global__ void MakeKeysOfColumnsKernel(float const* const* columns, FeatureIdx first,
                                        std::uint32_t n_columns, RowIdx n_rows, std::uint64_t* keys,
                                        RowIdx* rows) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  auto const column = static_cast<std::uint32_t>(i / n_rows);
  if (column < n_columns) {
    auto const row = static_cast<RowIdx>(i % n_rows);
    float const value = columns[first + column][row];
    keys[i] = isnan(value) ? ~std::uint64_t{0} : ValueKey::Make(first + column, RadixKey(value));
    if (rows != nullptr) {
      rows[i] = row;
    }
  }
}

// one warp a block of the entries [begin, begin + n)
__global__ void KeepRowsKernel(std::uint64_t const* keys, RowIdx const* rows, std::uint64_t begin,
                               std::uint32_t n, std::uint32_t n_high, unsigned char* out) {
  WaitForPreviousKernel();
  static_assert(kSortedColumnsBlock == 32);
  auto const i = GlobalIdx();
  std::uint32_t const lane = threadIdx.x % 32;
  RowIdx const row = i < n ? rows[begin + i] : 0;
  unsigned const begins = __ballot_sync(kAllLanes, i < n && ValueKey::IsFirst(keys, begin + i));
  if (i - lane >= n) {
    return;
  }
  SortedColumnsBlock<unsigned char> const block{out, i / 32, n_high};
  reinterpret_cast<std::uint16_t*>(block.low)[lane] = static_cast<std::uint16_t>(row);
  if (n_high == 1) {
    block.high[lane] = static_cast<unsigned char>(row >> 16);
  } else {
    reinterpret_cast<std::uint16_t*>(block.high)[lane] = static_cast<std::uint16_t>(row >> 16);
  }
  if (lane == 0) {
    *reinterpret_cast<std::uint32_t*>(block.begins) = begins;
  }
}

// one thread a column; result: first_value
__global__ void FindFirstValuesKernel(std::uint32_t const* entries, std::uint64_t n,
                                      SortedColumn* columns, std::uint32_t n_columns) {
  WaitForPreviousKernel();
  auto c = GlobalIdx();
  if (c < n_columns) {
    auto const begin = columns[c].begin;
    columns[c].first_value =
        PartitionPoint(std::uint64_t{0}, n, [=](std::uint64_t i) { return entries[i] >= begin; });
  }
}

/** @brief Names where the bins of some columns are written. */
struct BinsOut {
  float* lowest;
  std::uint32_t* first_rank;
  std::uint8_t* is_range;
  std::uint32_t* n_ranges;  // by column, zero before

  __device__ void Write(std::uint64_t i, std::uint32_t column, float lowest_value,
                        std::uint32_t rank, bool range) const {
    lowest[i] = lowest_value;
    first_rank[i] = rank;
    is_range[i] = range ? 1 : 0;
    if (range) {
      atomicAdd(n_ranges + column, 1u);
    }
  }
};

// one thread a bin; of one without values: what the next one has
__global__ void WriteCutsKernel(ValuesRef values, std::uint64_t const* keys, std::uint64_t n_bins,
                                BinsOut out) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i >= n_bins) {
    return;
  }
  auto const* columns = values.columns;
  std::uint32_t const c =
      PartitionPoint(1u, values.n_columns,
                     [=](std::uint32_t k) { return columns[k].first_bin > i; }) -
      1;
  auto const number = static_cast<std::uint32_t>(i - columns[c].first_bin);
  std::uint64_t const end = values.End(c);
  // The last value has the last number: there is one.
  std::uint64_t const first = PartitionPoint(columns[c].first_value, end - 1, [&](std::uint64_t v) {
    return values.NumberOf(c, v) >= number;
  });
  bool const is_range = first + 1 < end && values.NumberOf(c, first) == number &&
                        values.NumberOf(c, first + 1) == number;
  out.Write(i, c, ValueKey::Value(keys[values.entries[first]]), values.Rank(c, first), is_range);
}

// one thread a coarse bin; shifts: of each feature
__global__ void MergeBinsKernel(CutsRef finer, std::uint8_t const* shifts,
                                std::uint64_t const* offsets, std::uint32_t n_features,
                                std::uint64_t n_bins, BinsOut out) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i >= n_bins) {
    return;
  }
  std::uint32_t const f =
      PartitionPoint(1u, n_features, [=](std::uint32_t k) { return offsets[k] > i; }) - 1;
  std::uint64_t const end = finer.offsets[f + 1];
  std::uint64_t const first = finer.offsets[f] + ((i - offsets[f]) << shifts[f]);
  std::uint64_t const past = min(first + (1u << shifts[f]), end);
  std::uint32_t n_filled{0};
  bool any_range{false};
  for (std::uint64_t bin = first; bin < past; ++bin) {
    n_filled += finer.HasValues(bin, end) ? 1 : 0;
    any_range = any_range || finer.is_range[bin] != 0;
  }
  out.Write(i, f, finer.lowest[first], finer.first_rank[first], any_range || n_filled > 1);
}

// one thread a category
__global__ void WriteCategoriesKernel(std::uint32_t n, BinsOut out) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i < n) {
    out.Write(i, 0, static_cast<float>(i), 0, false);
  }
}

/** @brief List the indices below n for which is_first holds, ascending. Waits. */
template <typename IndexT, typename FnT>
std::uint64_t Select(FnT is_first, std::uint64_t n, IndexT* out) {
  DeviceBuffer<std::uint64_t> n_selected{"selected"};
  auto indices = thrust::make_counting_iterator(std::uint64_t{0});
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceSelect::If(storage, bytes, indices, out, n_selected.Reserve(1),
                                 static_cast<std::int64_t>(n), is_first, Stream());
  });
  return ToHost(n_selected.Data(), 1)[0];
}

/** @brief Keep the rows of some columns. @param keeps Whether each of them is kept. */
void KeepRows(std::vector<SortedColumn> const& columns, std::vector<bool> const& keeps,
              std::uint64_t const* keys, RowIdx const* rows, SortedColumns* out) {
  auto const n_bytes = [&](std::size_t c) {
    return keeps[c] ? SortedColumnBytes(columns[c].n_entries, out->NumHigh()) : 0;
  };
  std::uint64_t n{0};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    n += n_bytes(c);
  }
  unsigned char* room = out->AddRoom(n);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    out->AddColumn(keeps[c] ? room : nullptr);
    if (keeps[c]) {
      LaunchN("KeepRows", KeepRowsKernel, std::uint64_t{columns[c].n_entries} + 31, keys, rows,
              columns[c].begin, columns[c].n_entries, out->NumHigh(), room);
      room += n_bytes(c);
    }
  }
}

/** @brief Sorts (column, value) keys of some columns, and the rows of theirs. */
class ColumnSorter {
 public:
  ColumnSorter(TableSource const& table, bool with_rows) : table_{table}, with_rows_{with_rows} {}

  /**
   * @brief Sort the next columns. Does not wait.
   * @param n_entries How many entries these have.
   */
  void Sort(FeatureIdx first, std::uint32_t n_columns, EntryIdx n_entries) {
    bool const by_column = table_.columns != nullptr;
    std::uint64_t const n = by_column ? std::uint64_t{n_columns} * table_.n_rows : n_entries;
    keys_ = {key_halves_[0].Reserve(n), key_halves_[1].Reserve(n)};
    rows_ = {with_rows_ ? row_halves_[0].Reserve(n) : nullptr, row_halves_[1].Reserve(n)};
    if (by_column) {
      LaunchN("MakeKeysOfColumns", MakeKeysOfColumnsKernel, n, table_.columns, first, n_columns,
              table_.n_rows, keys_.Current(), rows_.Current());
    } else {
      ZeroAsync(row_offsets_.Reserve(std::size_t{table_.n_rows} + 1), 1);
      ColumnSubset const part{nullptr, row_offsets_.Data(), n_columns, n, first};
      FindRowOffsets(table_.rows, part, row_offsets_.Data());
      MakeKeys(table_.rows, part, keys_.Current(), rows_.Current());
    }
    if (n != 0) {
      CallCub([&](void* storage, std::size_t& bytes) {
        int const n_bits = ValueKey::NumBits(first + n_columns);
        return with_rows_
                   ? cub::DeviceRadixSort::SortPairs(storage, bytes, keys_, rows_, n, 0, n_bits,
                                                     Stream())
                   : cub::DeviceRadixSort::SortKeys(storage, bytes, keys_, n, 0, n_bits, Stream());
      });
    }
  }

  [[nodiscard]] std::uint64_t const* Keys() { return keys_.Current(); }
  [[nodiscard]] RowIdx const* Rows() { return rows_.Current(); }
  // The other half, as long as the keys, is free until the next ones are sorted.
  [[nodiscard]] RowIdx* FreeRows() { return rows_.Alternate(); }

 private:
  TableSource table_;
  bool with_rows_;
  DeviceBuffer<EntryIdx> row_offsets_{"row offsets of some columns"};
  DeviceBuffer<std::uint64_t> key_halves_[2]{DeviceBuffer<std::uint64_t>{"sort keys"},
                                             DeviceBuffer<std::uint64_t>{"sort keys, second half"}};
  DeviceBuffer<RowIdx> row_halves_[2]{DeviceBuffer<RowIdx>{"rows of keys"},
                                      DeviceBuffer<RowIdx>{"rows of keys, second half"}};
  cub::DoubleBuffer<std::uint64_t> keys_;
  cub::DoubleBuffer<RowIdx> rows_;
};
}  // namespace

QuantileCuts::QuantileCuts(UnbinnedColumns const& columns)
    : QuantileCuts{columns.n_entries.size()} {
  this->Make(columns, nullptr, nullptr);
}

FinestBins MakeFinestBins(UnbinnedColumns const& columns, SortedColumnsRule const& rule,
                          Memory rows_at) {
  FinestBins out{QuantileCuts{columns.n_entries.size()}, nullptr};
  // Where rows may be needless, the columns are first sorted without them.
  if (!rule.MayKeepNoColumn() || !out.bins.Make(columns, &rule, nullptr)) {
    out.rows = std::make_unique<SortedColumns>(columns.table.n_rows, rows_at);
    out.bins.Make(columns, &rule, out.rows.get());
    if (!out.rows->Any()) {
      out.rows.reset();
    }
  }
  return out;
}

bool QuantileCuts::Make(UnbinnedColumns const& all, SortedColumnsRule const* rule,
                        SortedColumns* out_rows) {
  auto const& [table, n_entries, max_bins, max_values, sorted_at_once, coarsest, n_categories] =
      all;
  bool const keeps_rows = out_rows != nullptr;
  auto const n_categories_of = [&all](FeatureIdx f) {
    return all.n_categories.empty() ? 0 : all.n_categories[f];
  };
  std::uint64_t room{0};
  for (FeatureIdx f = 0; f < n_entries.size(); ++f) {
    std::uint32_t const n_codes = n_categories_of(f);
    room += n_codes != 0 ? n_codes : std::min(n_entries[f], std::max(max_bins[f], max_values[f]));
  }
  lowest_.Reserve(room);
  first_rank_.Reserve(room);
  is_range_.Reserve(room);
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  h_offsets_ = {0};
  ColumnSorter sorter{table, keeps_rows};
  DeviceBuffer<std::uint32_t> n_ranges{"ranges of columns"};
  DeviceBuffer<SortedColumn> d_columns{"columns that are sorted"};
  // What a column takes while it is sorted.
  auto size = [&all](FeatureIdx f) -> EntryIdx {
    return all.table.columns != nullptr ? all.table.n_rows : all.n_entries[f];
  };
  for (FeatureIdx first = 0; first < n_features;) {
    if (std::uint32_t const n_codes = n_categories_of(first); n_codes != 0) {
      this->AddCategories(n_codes);
      if (keeps_rows) {
        out_rows->AddColumn(nullptr);
      }
      ++first;
      continue;
    }
    FeatureIdx end = first;
    EntryIdx n{0};
    EntryIdx n_sorted{0};
    std::vector<SortedColumn> columns;
    do {
      columns.push_back({n, 0, n_entries[end], 0, {}});
      n_sorted += size(end);
      n += n_entries[end++];
    } while (end < n_features && n_categories_of(end) == 0 &&
             n_sorted + size(end) <= sorted_at_once);
    auto const n_columns = end - first;
    sorter.Sort(first, n_columns, n);
    std::uint64_t const* keys = sorter.Keys();
    std::uint32_t* first_entries = sorter.FreeRows();  // of values
    CopyFromHost(d_columns.Reserve(n_columns), columns.data(), n_columns);
    ValuesRef values{d_columns.Data(), first_entries, n_columns, 0};
    values.n = Select(BeginsValue{keys}, n, first_entries);
    LaunchN("FindFirstValues", FindFirstValuesKernel, n_columns, first_entries, values.n,
            d_columns.Data(), n_columns);
    columns = ToHost(d_columns.Data(), n_columns);
    auto const begin = h_offsets_.back();
    std::vector<std::uint32_t> n_values;
    for (std::uint32_t c = 0; c < n_columns; ++c) {
      FeatureIdx const f = first + c;
      auto const next = c + 1 < n_columns ? columns[c + 1].first_value : values.n;
      n_values.push_back(static_cast<std::uint32_t>(next - columns[c].first_value));
      if (n_values[c] <= max_values[f]) {
        std::uint32_t const most = std::min(n_entries[f], std::max(max_bins[f], max_values[f]));
        columns[c].numbers = BinNumbers::OfValues(n_entries[f], n_values[c],
                                                  NumbersOfValues(n_values[c], coarsest, most));
      } else {
        columns[c].numbers = BinNumbers::OfQuantiles(n_entries[f], max_bins[f]);
      }
      columns[c].first_bin = static_cast<std::uint32_t>(h_offsets_.back() - begin);
      h_offsets_.push_back(h_offsets_.back() + columns[c].numbers.Size());
    }
    CopyFromHost(d_columns.Data(), columns.data(), n_columns);
    std::uint64_t const n_bins = h_offsets_.back() - begin;
    ZeroAsync(n_ranges.Reserve(n_columns), n_columns);
    LaunchN("WriteCuts", WriteCutsKernel, n_bins, values, keys, n_bins,
            BinsOut{lowest_.Data() + begin, first_rank_.Data() + begin, is_range_.Data() + begin,
                    n_ranges.Data()});
    auto const ranges = ToHost(n_ranges.Data(), n_columns);
    std::vector<bool> keeps;
    for (std::uint32_t c = 0; c < n_columns; ++c) {
      has_ranges_[first + c] = ranges[c] != 0;
      if (keeps_rows) {
        keeps.push_back(rule->Keeps({this->NumBins(first + c), ranges[c] != 0}));
      } else if (rule != nullptr && rule->NeedsRows({n_values[c], ranges[c] != 0})) {
        return false;
      }
    }
    if (keeps_rows) {
      KeepRows(columns, keeps, keys, sorter.Rows(), out_rows);
    }
    first = end;
  }
  if (keeps_rows) {
    out_rows->Upload();
  }
  CopyFromHost(offsets_.Reserve(h_offsets_.size()), h_offsets_.data(), h_offsets_.size());
  return true;
}

void QuantileCuts::AddCategories(std::uint32_t n) {
  std::uint64_t const begin = h_offsets_.back();
  is_categorical_[h_offsets_.size() - 1] = 1;
  LaunchN("WriteCategories", WriteCategoriesKernel, n, n,
          BinsOut{lowest_.Data() + begin, first_rank_.Data() + begin, is_range_.Data() + begin,
                  nullptr});
  h_offsets_.push_back(begin + n);
}

std::vector<ColumnBins> QuantileCuts::ByColumn() const {
  std::vector<ColumnBins> columns;
  for (FeatureIdx f = 0; f < has_ranges_.size(); ++f) {
    columns.push_back({this->NumBins(f), has_ranges_[f] != 0, shifts_.empty() ? 0u : shifts_[f],
                       this->IsCategorical(f)});
  }
  return columns;
}

QuantileCuts::QuantileCuts(QuantileCuts const& finer, std::uint32_t max_bins)
    : h_offsets_{0},
      has_ranges_(finer.has_ranges_.size(), 0),
      is_categorical_{finer.is_categorical_} {
  auto const n_features = static_cast<FeatureIdx>(has_ranges_.size());
  for (FeatureIdx f = 0; f < n_features; ++f) {
    std::uint32_t const n = finer.NumBins(f);
    std::uint32_t const shift = this->IsCategorical(f) ? 0 : ShiftOf(n, max_bins);
    shifts_.push_back(static_cast<std::uint8_t>(shift));
    h_offsets_.push_back(h_offsets_.back() + CeilDiv(n, std::uint64_t{1} << shift));
  }
  DeviceBuffer<std::uint8_t> shifts{"shifts of bins"};
  DeviceBuffer<std::uint32_t> n_ranges{"ranges of columns"};
  auto const n_bins = h_offsets_.back();
  CopyFromHost(shifts.Reserve(n_features), shifts_.data(), n_features);
  CopyFromHost(offsets_.Reserve(h_offsets_.size()), h_offsets_.data(), h_offsets_.size());
  ZeroAsync(n_ranges.Reserve(n_features), n_features);
  LaunchN("MergeBins", MergeBinsKernel, n_bins, finer.Ref(), shifts.Data(), offsets_.Data(),
          n_features, n_bins,
          BinsOut{lowest_.Reserve(n_bins), first_rank_.Reserve(n_bins), is_range_.Reserve(n_bins),
                  n_ranges.Data()});
  auto const ranges = ToHost(n_ranges.Data(), n_features);
  std::transform(ranges.cbegin(), ranges.cend(), has_ranges_.begin(),
                 [](std::uint32_t r) { return r != 0 ? 1 : 0; });
}
}  // namespace gpu_exact
