/**
 * Copyright 2026, the gpu_exact contributors
 *
 * @brief Implements categories.cuh.
 */
#include "device/histogram/bins/categories.cuh"
#include "device/runtime/warp.cuh"
#include "device/table/row_table.cuh"
#include "gpu_exact/device.h"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
/** @brief Holds what is found of a table. */
struct FoundCategories {
  std::uint32_t* n;              // of each feature, zero before
  std::uint64_t* n_entries;      // of categorical features, zero before
  std::uint64_t* first_invalid;  // the first entry that is no category, kNotFound before
};
constexpr std::uint64_t kNotFound = ~std::uint64_t{0};

// grid: strided over entries
__global__ void CountCategoriesKernel(CsrView table, FeatureType const* types,
                                      FoundCategories out) {
  WaitForPreviousKernel();
  std::uint32_t n_entries{0};
  for (EntryIdx i = GlobalIdx(); i < table.n_entries; i += std::uint64_t{gridDim.x} * blockDim.x) {
    CsrEntry const e = table.entries[i];
    if (types[e.feature] != FeatureType::kCategorical) {
      continue;
    }
    ++n_entries;
    if (InvalidCategory::Is(e.value)) {
      atomicMin(reinterpret_cast<unsigned long long*>(out.first_invalid),
                static_cast<unsigned long long>(i));
      continue;
    }
    std::uint32_t const n = static_cast<std::uint32_t>(e.value) + 1;
    if (n > __ldcg(out.n + e.feature)) {
      atomicMax(out.n + e.feature, n);
    }
  }
  n_entries = WarpSum(n_entries);
  if (threadIdx.x % 32 == 0 && n_entries != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(out.n_entries),
              static_cast<unsigned long long>(n_entries));
  }
}
}  // namespace

TableCategories CountCategories(CsrView const& table, EntryIdx at_once) {
  TableCategories counted{std::vector<std::uint32_t>(table.n_features, 0), {}};
  if (NumCategorical(table) == 0) {
    return counted;
  }
  DeviceBuffer<FeatureType> types{"feature types"};
  DeviceBuffer<std::uint32_t> n{"categories"};
  DeviceBuffer<std::uint64_t> totals{"entries with categories"};
  FeatureType const* const h_types = table.feature_types;
  CopyFromHost(types.Reserve(table.n_features), h_types, table.n_features);
  FoundCategories const found{n.Reserve(table.n_features), totals.Reserve(2), totals.Data() + 1};
  ZeroAsync(found.n, table.n_features);
  std::uint64_t const begin[] = {0, kNotFound};
  CopyFromHost(totals.Data(), begin, 2);
  ForEachPart(table, at_once, [&](CsrView const& part, RowIdx) {
    constexpr unsigned kThreads = 256;
    constexpr std::uint64_t kOfThread = 16;
    Launch("CountCategories", CountCategoriesKernel, CeilDiv(part.n_entries, kThreads * kOfThread),
           kThreads, part, types.Data(), found);
    if (auto const at = ToHost(found.first_invalid, 1).front(); at != kNotFound) {
      CsrEntry const e = ToHost(part.entries + at, 1).front();
      throw InvalidCategory{e.feature, e.value};
    }
  });
  counted.of_feature = ToHost(found.n, table.n_features);
  counted.columns.n_entries = ToHost(found.n_entries, 1).front();
  for (FeatureIdx f = 0; f < table.n_features; ++f) {
    if (h_types[f] == FeatureType::kCategorical) {
      counted.columns.n_categories.push_back(counted.of_feature[f]);
    }
  }
  return counted;
}
}  // namespace gpu_exact
