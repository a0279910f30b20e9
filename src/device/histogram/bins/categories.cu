/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements categories.cuh.
 */
#include "device/histogram/bins/categories.cuh"
#include "device/runtime/warp.cuh"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
/** @brief Holds what is found of a table. */
struct FoundCategories {
  std::uint32_t* n;              // of each feature, zero before
  std::uint64_t* first_invalid;  // place of the first value that is none, kNotFound before
};
constexpr std::uint64_t kNotFound = ~std::uint64_t{0};

/** @brief Count a value's category, and those below it. Returns 0 where it is none. */
__device__ std::uint32_t CountUpTo(float value, std::uint64_t place, FoundCategories const& out) {
  if (InvalidCategory::Is(value)) {
    atomicMin(reinterpret_cast<unsigned long long*>(out.first_invalid),
              static_cast<unsigned long long>(place));
    return 0;
  }
  return static_cast<std::uint32_t>(value) + 1;
}

// grid: strided over entries; an entry's place is its number
__global__ void CountOfEntriesKernel(CsrView table, FeatureType const* types, FoundCategories out) {
  WaitForPreviousKernel();
  for (EntryIdx i = GlobalIdx(); i < table.n_entries; i += std::uint64_t{gridDim.x} * blockDim.x) {
    CsrEntry const e = table.entries[i];
    if (types[e.feature] == FeatureType::kCategorical) {
      std::uint32_t const n = CountUpTo(e.value, i, out);
      if (n > __ldcg(out.n + e.feature)) {
        atomicMax(out.n + e.feature, n);
      }
    }
  }
}

// grid: strided over the rows of a column; a value's place is its number by row
__global__ void CountOfColumnKernel(float const* const* columns, FeatureIdx f, RowIdx n_rows,
                                    FeatureIdx n_features, FoundCategories out) {
  WaitForPreviousKernel();
  float const* const column = columns[f];
  std::uint32_t most{0};
  for (auto row = GlobalIdx(); row < n_rows; row += std::uint64_t{gridDim.x} * blockDim.x) {
    if (!isnan(column[row])) {
      most = max(most, CountUpTo(column[row], row * n_features + f, out));
    }
  }
  most = WarpMax(most);
  if (threadIdx.x % 32 == 0) {
    atomicMax(out.n + f, most);
  }
}

/** @brief Throw the error of the value in a place. */
[[noreturn]] void ThrowInvalid(TableSource const& table, std::uint64_t place) {
  if (table.columns == nullptr) {
    CsrEntry const e = ToHost(table.rows.entries + place, 1).front();
    throw InvalidCategory{e.feature, e.value};
  }
  auto const f = static_cast<FeatureIdx>(place % table.n_features);
  float const* const column = ToHost(table.columns + f, 1).front();
  throw InvalidCategory{f, ToHost(column + place / table.n_features, 1).front()};
}
}  // namespace

std::vector<std::uint32_t> CountCategories(TableSource const& table, CsrView const& view) {
  std::vector<std::uint32_t> n(table.n_features, 0);
  if (NumCategorical(view) == 0) {
    return n;
  }
  FeatureType const* const types = view.feature_types;
  constexpr unsigned kThreads = 256;
  constexpr std::uint64_t kOfThread = 16;
  auto const n_blocks = [](std::uint64_t n_values) {
    return CeilDiv(n_values, kThreads * kOfThread);
  };
  DeviceBuffer<std::uint32_t> d_n{"categories"};
  DeviceBuffer<std::uint64_t> first_invalid{"values that are no categories"};
  FoundCategories const found{d_n.Reserve(table.n_features), first_invalid.Reserve(1)};
  ZeroAsync(found.n, table.n_features);
  CopyFromHost(found.first_invalid, &kNotFound, 1);
  if (table.columns == nullptr) {
    DeviceBuffer<FeatureType> d_types{"feature types"};
    CopyFromHost(d_types.Reserve(table.n_features), types, table.n_features);
    Launch("CountOfEntries", CountOfEntriesKernel, n_blocks(table.rows.n_entries), kThreads,
           table.rows, d_types.Data(), found);
    Synchronize();
  } else {
    for (FeatureIdx f = 0; f < table.n_features; ++f) {
      if (types[f] == FeatureType::kCategorical) {
        Launch("CountOfColumn", CountOfColumnKernel, n_blocks(table.n_rows), kThreads,
               table.columns, f, table.n_rows, table.n_features, found);
      }
    }
  }
  n = ToHost(found.n, table.n_features);
  if (auto const place = ToHost(found.first_invalid, 1).front(); place != kNotFound) {
    ThrowInvalid(table, place);
  }
  return n;
}
}  // namespace gpu_exact
