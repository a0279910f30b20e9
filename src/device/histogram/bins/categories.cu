/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements categories.cuh.
 */
#include "device/histogram/bins/categories.cuh"
#include "device/table/row_table.cuh"
#include "gpu_exact/device.h"
#include "plan/memory_plan.h"

namespace gpu_exact {
namespace {
constexpr unsigned long long kNotFound = ~0ull;

// grid: strided over entries; n_categories: by feature, zero before; first_invalid: the first entry that is no
// category, kNotFound before
__global__ void CountCategoriesKernel(CsrView table, FeatureType const* types,
                                      std::uint32_t* n_categories,
                                      unsigned long long* first_invalid) {
  WaitForPreviousKernel();
  for (EntryIdx i = GlobalIdx(); i < table.n_entries; i += std::uint64_t{gridDim.x} * blockDim.x) {
    CsrEntry const e = table.entries[i];
    if (types[e.feature] != FeatureType::kCategorical) {
      continue;
    }
    if (InvalidCategory::Is(e.value)) {
      atomicMin(first_invalid, static_cast<unsigned long long>(i));
      continue;
    }
    std::uint32_t const n = static_cast<std::uint32_t>(e.value) + 1;
    if (n > __ldcg(n_categories + e.feature)) {
      atomicMax(n_categories + e.feature, n);
    }
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
  DeviceBuffer<std::uint32_t> n_entries{"entries of columns"};
  DeviceBuffer<unsigned long long> first_invalid{"first that is no category"};
  FeatureType const* const h_types = table.feature_types;
  CopyFromHost(types.Reserve(table.n_features), h_types, table.n_features);
  ZeroAsync(n.Reserve(table.n_features), table.n_features);
  ZeroAsync(n_entries.Reserve(table.n_features), table.n_features);
  CopyFromHost(first_invalid.Reserve(1), &kNotFound, 1);
  ForEachPart(table, at_once, [&](CsrView const& part, RowIdx) {
    constexpr unsigned kThreads = 256;
    constexpr std::uint64_t kOfThread = 16;
    Launch("CountCategories", CountCategoriesKernel, CeilDiv(part.n_entries, kThreads * kOfThread),
           kThreads, part, types.Data(), n.Data(), first_invalid.Data());
    if (auto const at = ToHost(first_invalid.Data(), 1).front(); at != kNotFound) {
      CsrEntry const e = ToHost(part.entries + at, 1).front();
      throw InvalidCategory{e.feature, e.value};
    }
    AddEntries(part, n_entries.Data());
  });
  counted.of_feature = ToHost(n.Data(), table.n_features);
  std::vector<std::uint32_t> const of_column = ToHost(n_entries.Data(), table.n_features);
  counted.columns.n_elements = 0;
  for (FeatureIdx f = 0; f < table.n_features; ++f) {
    counted.columns.n_elements += MostElements(of_column[f], table.n_rows);
    if (h_types[f] == FeatureType::kCategorical) {
      counted.columns.n_categories.push_back(counted.of_feature[f]);
      counted.columns.n_entries += of_column[f];
    }
  }
  return counted;
}
}  // namespace gpu_exact
