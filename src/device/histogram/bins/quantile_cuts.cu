/**
 * Copyright 2026, the gpu_exact contributors
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
#include "plan/quantile_law.h"

namespace gpu_exact {
namespace {
/** @brief Describes a column whose pieces, single values or finer bins, are gathered to bins. */
struct PieceColumn {
  std::uint64_t begin;        // first entry among the keys; of finer bins, 0
  std::uint64_t first_piece;  // among the pieces
  std::uint32_t n_entries;
  std::uint32_t n_quantiles;     // 0: every piece is a bin
  std::uint32_t shift{kByRank};  // of pieces' numbers, which then tell the bin

  [[nodiscard]] __device__ double Quantiles(std::uint64_t rank) const {
    return QuantileLaw{n_entries, n_quantiles}.Below(rank);
  }
};

/** @brief Lends pieces in the order of column and value. */
struct PiecesRef {
  PieceColumn const* columns;  // shape: (n_columns), ascending by first_piece
  std::uint32_t const* ranks;  // entries before each piece, from the column's begin
  std::uint32_t n_columns;
  std::uint64_t n;

  [[nodiscard]] __device__ std::uint32_t ColumnOf(std::uint64_t piece) const {
    auto const* c = columns;
    return PartitionPoint(1u, n_columns,
                          [=](std::uint32_t k) { return c[k].first_piece > piece; }) -
           1;
  }
  [[nodiscard]] __device__ std::uint64_t End(std::uint32_t column) const {
    return column + 1 < n_columns ? columns[column + 1].first_piece : n;
  }
  /** @brief Number pieces so that it ascends in a column, alike for those of one bin. */
  [[nodiscard]] __device__ std::uint64_t CodeOf(std::uint32_t column, std::uint64_t piece) const {
    PieceColumn const c = columns[column];
    if (c.n_quantiles == 0) {
      return piece;
    }
    if (c.shift != kByRank) {
      return (piece - c.first_piece) >> c.shift;
    }
    std::uint64_t const rank = ranks[piece] - c.begin;
    std::uint64_t const end =
        piece + 1 < this->End(column) ? ranks[piece + 1] - c.begin : c.n_entries;
    // The last value that begins in a quantile may be a long one: it has a bin of its own.
    double const first = c.Quantiles(rank);
    bool const is_long = c.Quantiles(end) - first >= 2.0;
    return 2 * static_cast<std::uint64_t>(first) + (is_long ? 1 : 0);
  }
  [[nodiscard]] __device__ bool BeginsBin(std::uint64_t piece) const {
    std::uint32_t const column = this->ColumnOf(piece);
    return piece == columns[column].first_piece ||
           this->CodeOf(column, piece) != this->CodeOf(column, piece - 1);
  }
};

struct BeginsBin {
  PiecesRef pieces;
  __device__ bool operator()(std::uint64_t piece) const { return pieces.BeginsBin(piece); }
};

/** @brief Tells whether a (column, value) pair is met first among sorted keys. */
struct BeginsValue {
  std::uint64_t const* keys;
  __device__ bool operator()(std::uint64_t i) const { return ValueKey::IsFirst(keys, i); }
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

// one thread a column; result: first_piece, the first value of the column
__global__ void FindFirstPiecesKernel(std::uint32_t const* positions, std::uint64_t n,
                                      PieceColumn* columns, std::uint32_t n_columns) {
  WaitForPreviousKernel();
  auto c = GlobalIdx();
  if (c < n_columns) {
    auto const begin = columns[c].begin;
    columns[c].first_piece =
        PartitionPoint(std::uint64_t{0}, n, [=](std::uint64_t i) { return positions[i] >= begin; });
  }
}

// one thread a column boundary; bins: their first pieces
__global__ void FindBinOffsetsKernel(PiecesRef pieces, std::uint64_t const* bins,
                                     std::uint64_t n_bins, std::uint64_t* offsets) {
  WaitForPreviousKernel();
  auto c = GlobalIdx();
  if (c <= pieces.n_columns) {
    auto const first = c < pieces.n_columns ? pieces.columns[c].first_piece : pieces.n;
    offsets[c] =
        PartitionPoint(std::uint64_t{0}, n_bins, [=](std::uint64_t i) { return bins[i] >= first; });
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

/** @brief Bounds the pieces of a bin: [begin, end). */
struct BinPieces {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t column;

  __device__ BinPieces(PiecesRef const& pieces, std::uint64_t const* bins, std::uint64_t n_bins,
                       std::uint64_t i)
      : begin{bins[i]}, column{pieces.ColumnOf(bins[i])} {
    end = i + 1 < n_bins ? min(bins[i + 1], pieces.End(column)) : pieces.End(column);
  }
};

// one thread a bin
__global__ void WriteCutsKernel(PiecesRef pieces, std::uint64_t const* keys,
                                std::uint64_t const* bins, std::uint64_t n_bins, BinsOut out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= n_bins) {
    return;
  }
  BinPieces const bin{pieces, bins, n_bins, i};
  std::uint32_t const first = pieces.ranks[bin.begin];
  auto const rank = static_cast<std::uint32_t>(first - pieces.columns[bin.column].begin);
  out.Write(i, bin.column, ValueKey::Value(keys[first]), rank, bin.end - bin.begin > 1);
}

// one thread a coarse bin
__global__ void MergeBinsKernel(PiecesRef pieces, CutsRef finer, std::uint64_t const* bins,
                                std::uint64_t n_bins, BinsOut out) {
  WaitForPreviousKernel();
  auto i = GlobalIdx();
  if (i >= n_bins) {
    return;
  }
  BinPieces const bin{pieces, bins, n_bins, i};
  out.Write(i, bin.column, finer.lowest[bin.begin], finer.first_rank[bin.begin],
            bin.end - bin.begin > 1 || finer.is_range[bin.begin] != 0);
}

// one thread a category
__global__ void WriteCategoriesKernel(std::uint32_t n, BinsOut out) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i < n) {
    out.Write(i, 0, static_cast<float>(i), 0, false);
  }
}

// one thread a piece; result: columns whose pieces are too long to be gathered by their numbers
__global__ void FindLongBinsKernel(PiecesRef pieces, std::uint32_t* is_long) {
  WaitForPreviousKernel();
  auto const i = GlobalIdx();
  if (i >= pieces.n) {
    return;
  }
  std::uint32_t const column = pieces.ColumnOf(i);
  PieceColumn const c = pieces.columns[column];
  std::uint64_t const k = i - c.first_piece;
  if (c.shift == kByRank || (k & ((1u << c.shift) - 1)) != 0) {
    return;
  }
  std::uint64_t const end = i + (1u << c.shift);
  std::uint64_t const last = end < pieces.End(column) ? pieces.ranks[end] : c.n_entries;
  constexpr double kRounding = 1e-6;
  if (c.Quantiles(last) - c.Quantiles(pieces.ranks[i]) > 3.0 + kRounding) {
    is_long[column] = 1;
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

/** @brief Find the pieces that begin bins, and where the bins of each column begin. Waits. */
std::vector<std::uint64_t> FindBins(PiecesRef const& pieces, std::uint64_t* out_bins,
                                    DeviceBuffer<std::uint64_t>* out_offsets) {
  auto const n_bins = Select(BeginsBin{pieces}, pieces.n, out_bins);
  auto const n_offsets = std::size_t{pieces.n_columns} + 1;
  LaunchN("FindBinOffsets", FindBinOffsetsKernel, n_offsets, pieces, out_bins, n_bins,
          out_offsets->Reserve(n_offsets));
  return ToHost(out_offsets->Data(), n_offsets);
}

/** @brief Keep the rows of some columns. @param keeps Whether each of them is kept. */
void KeepRows(std::vector<PieceColumn> const& columns, std::vector<bool> const& keeps,
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
   * @param n_entries Of the columns.
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
  // The other halves, as long as the keys, are free until the next ones are sorted.
  [[nodiscard]] std::uint64_t* FreeKeys() { return keys_.Alternate(); }
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
  if (!rule.MayKeepNone() || !out.bins.Make(columns, &rule, nullptr)) {
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
  auto const& [table, n_entries, max_bins, max_values, sorted_at_once, n_categories] = all;
  bool const keeps_rows = out_rows != nullptr;
  auto const n_categories_of = [&all](FeatureIdx f) {
    return all.n_categories.empty() ? 0 : all.n_categories[f];
  };
  std::uint64_t room{0};
  for (FeatureIdx f = 0; f < n_entries.size(); ++f) {
    room +=
        std::max(n_categories_of(f), std::min(n_entries[f], std::max(max_bins[f], max_values[f])));
  }
  lowest_.Reserve(room);
  first_rank_.Reserve(room);
  is_range_.Reserve(room);
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  h_offsets_ = {0};
  ColumnSorter sorter{table, keeps_rows};
  DeviceBuffer<std::uint32_t> n_ranges{"ranges of columns"};
  DeviceBuffer<std::uint64_t> offsets{"bins of some columns"};
  DeviceBuffer<PieceColumn> d_columns{"columns that are sorted"};
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
    std::vector<PieceColumn> columns;
    do {
      columns.push_back({n, 0, n_entries[end], 0});
      n_sorted += size(end);
      n += n_entries[end++];
    } while (end < n_features && n_categories_of(end) == 0 &&
             n_sorted + size(end) <= sorted_at_once);
    auto const n_columns = end - first;
    sorter.Sort(first, n_columns, n);
    std::uint64_t const* keys = sorter.Keys();
    std::uint32_t* positions = sorter.FreeRows();  // first entries of values
    std::uint64_t* bins = sorter.FreeKeys();       // first values of bins
    CopyFromHost(d_columns.Reserve(n_columns), columns.data(), n_columns);
    PiecesRef pieces{d_columns.Data(), positions, n_columns, 0};
    pieces.n = Select(BeginsValue{keys}, n, positions);
    LaunchN("FindFirstPieces", FindFirstPiecesKernel, n_columns, positions, pieces.n,
            d_columns.Data(), n_columns);
    columns = ToHost(d_columns.Data(), n_columns);
    for (std::uint32_t c = 0; c < n_columns; ++c) {
      auto const next = c + 1 < n_columns ? columns[c + 1].first_piece : pieces.n;
      bool const few = next - columns[c].first_piece <= max_values[first + c];
      columns[c].n_quantiles = few ? 0 : max_bins[first + c] - 1;
    }
    CopyFromHost(d_columns.Data(), columns.data(), n_columns);
    auto const of_columns = FindBins(pieces, bins, &offsets);
    auto const begin = h_offsets_.back();
    ZeroAsync(n_ranges.Reserve(n_columns), n_columns);
    LaunchN("WriteCuts", WriteCutsKernel, of_columns.back(), pieces, keys, bins, of_columns.back(),
            BinsOut{lowest_.Data() + begin, first_rank_.Data() + begin, is_range_.Data() + begin,
                    n_ranges.Data()});
    auto const ranges = ToHost(n_ranges.Data(), n_columns);
    std::vector<bool> keeps;
    for (std::uint32_t c = 0; c < n_columns; ++c) {
      h_offsets_.push_back(begin + of_columns[c + 1]);
      has_ranges_[first + c] = ranges[c] != 0;
      ColumnBins const finest{this->NumBins(first + c), ranges[c] != 0};
      if (keeps_rows) {
        keeps.push_back(rule->Keeps(finest));
      } else if (rule != nullptr && rule->NeedsRows(finest)) {
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

QuantileCuts::QuantileCuts(QuantileCuts const& finer, std::vector<std::uint32_t> const& n_entries,
                           std::uint32_t max_bins, bool by_number)
    : h_offsets_{0},
      has_ranges_(n_entries.size(), 0),
      is_categorical_{finer.is_categorical_},
      shifts_(n_entries.size(), kByRank) {
  auto const n_features = static_cast<FeatureIdx>(n_entries.size());
  std::vector<PieceColumn> columns;
  bool any_shift{false};
  for (FeatureIdx f = 0; f < n_features; ++f) {
    std::uint32_t const n_finer = finer.NumBins(f);
    bool const few = n_finer <= max_bins || this->IsCategorical(f);
    columns.push_back({0, finer.h_offsets_[f], n_entries[f], few ? 0 : max_bins - 1});
    if (few) {
      shifts_[f] = 0;
    } else if (by_number) {
      std::uint32_t shift{1};
      while (CeilDiv(n_finer, std::uint64_t{1} << shift) > max_bins) {
        ++shift;
      }
      if (n_finer % (1u << shift) == 0) {  // columns side by side are shifted at once
        columns.back().shift = shift;
        any_shift = true;
      }
    }
  }
  DeviceBuffer<PieceColumn> d_columns{"columns of bins"};
  DeviceBuffer<std::uint64_t> bins{"first bins of coarse ones"};
  DeviceBuffer<std::uint32_t> n_ranges{"ranges of columns"};
  auto const n = finer.h_offsets_.back();
  CopyFromHost(d_columns.Reserve(n_features), columns.data(), n_features);
  PiecesRef const pieces{d_columns.Data(), finer.first_rank_.Data(), n_features, n};
  if (any_shift) {
    ZeroAsync(n_ranges.Reserve(n_features), n_features);
    LaunchN("FindLongBins", FindLongBinsKernel, n, pieces, n_ranges.Data());
    auto const is_long = ToHost(n_ranges.Data(), n_features);
    for (FeatureIdx f = 0; f < n_features; ++f) {
      if (columns[f].shift != kByRank && is_long[f] == 0) {
        shifts_[f] = static_cast<std::uint8_t>(columns[f].shift);
      } else {
        columns[f].shift = kByRank;
      }
    }
    CopyFromHost(d_columns.Data(), columns.data(), n_features);
  }
  h_offsets_ = FindBins(pieces, bins.Reserve(n), &offsets_);
  auto const n_bins = h_offsets_.back();
  ZeroAsync(n_ranges.Reserve(n_features), n_features);
  LaunchN("MergeBins", MergeBinsKernel, n_bins, pieces, finer.Ref(), bins.Data(), n_bins,
          BinsOut{lowest_.Reserve(n_bins), first_rank_.Reserve(n_bins), is_range_.Reserve(n_bins),
                  n_ranges.Data()});
  auto const ranges = ToHost(n_ranges.Data(), n_features);
  std::transform(ranges.cbegin(), ranges.cend(), has_ranges_.begin(),
                 [](std::uint32_t r) { return r != 0 ? 1 : 0; });
}
}  // namespace gpu_exact
