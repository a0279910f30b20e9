/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implementation of device_table.cuh.
 */
#include <cub/device/device_scan.cuh>
#include <stdexcept>
#include <vector>

#include "benchmarks/device_table.cuh"
#include "device/runtime/device_context.cuh"

namespace gpu_exact::bench {
namespace {
/** @brief What is hashed with row and column, so that draws of one cell are independent. */
enum Draw : std::uint64_t { kValue, kPresent, kNoise, kWord };

/** @brief Uniform in [0, 1), 24 bits: the finaliser of MurmurHash3. */
__device__ float Uniform(Draw draw, std::uint64_t row, std::uint64_t column) {
  std::uint64_t x = (row * 4 + draw) * 0x9e3779b97f4a7c15ull + column * 0xd1b54a32d192ed03ull;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return static_cast<float>((x ^ (x >> 33)) >> 40) * 0x1p-24f;
}

/** @brief Without its name: what a kernel can take. */
struct Cells {
  RowIdx n_rows;
  FeatureIdx n_features;
  std::uint32_t distinct;
  float missing;
  FeatureIdx missing_together;
  std::uint32_t entries_per_row;

  __device__ float Value(RowIdx row, FeatureIdx f) const {
    float u = Uniform(kValue, row, f);
    std::uint32_t n = distinct == kVaried ? 2u << (f % 16) : distinct;
    return n == 0 ? u : floorf(u * static_cast<float>(n)) / static_cast<float>(n);
  }
  /** @brief Calls fn(feature) for each present feature of a row, ascending. */
  template <typename FnT>
  __device__ void ForPresent(RowIdx row, FnT&& fn) const {
    if (entries_per_row == 0) {
      for (FeatureIdx f = 0; f < n_features; ++f) {
        if (missing == 0.0f || Uniform(kPresent, row, f / missing_together) >= missing) {
          fn(f);
        }
      }
      return;
    }
    // The inverse distribution function of a density 1/x at ascending points: words by Zipf's law.
    FeatureIdx next = 0;
    for (std::uint32_t i = 0; i < entries_per_row && next < n_features; ++i) {
      float at = (static_cast<float>(i) + Uniform(kWord, row, i)) / entries_per_row;
      auto word = static_cast<FeatureIdx>(powf(static_cast<float>(n_features), at)) - 1;
      FeatureIdx f = min(max(word, next), n_features - 1);
      fn(f);
      next = f + 1;
    }
  }
};

// one thread a row; result: counts[row], and 0 behind the last
__global__ void CountKernel(Cells cells, EntryIdx* counts) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row <= cells.n_rows) {
    EntryIdx n{0};
    if (row < cells.n_rows) {
      cells.ForPresent(row, [&](FeatureIdx) { ++n; });
    }
    counts[row] = n;
  }
}

// one thread a row
__global__ void FillKernel(Cells cells, EntryIdx const* offsets, CsrEntry* entries) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row < cells.n_rows) {
    EntryIdx at = offsets[row];
    cells.ForPresent(row, [&](FeatureIdx f) { entries[at++] = {f, cells.Value(row, f)}; });
  }
}

/** @brief Of the logistic loss. */
__device__ GradientPair GradientsOf(float label, float margin) {
  float const p = 1.0f / (1.0f + expf(-margin));
  return {p - label, p * (1.0f - p)};
}

// one thread a row; a model that knows a part of the labels
__global__ void MarginsKernel(Cells cells, float signal, EntryIdx const* offsets,
                              CsrEntry const* entries, float* labels, float* margins,
                              GradientPair* gradients) {
  WaitForPreviousKernel();
  constexpr EntryIdx kUsed = 8;
  auto row = GlobalIdx();
  if (row >= cells.n_rows) {
    return;
  }
  float score{0.0f}, before{0.5f};
  for (EntryIdx i = offsets[row]; i < min(offsets[row + 1], offsets[row] + kUsed); ++i) {
    float centred = entries[i].value - 0.5f;
    score += 6.0f * centred * before + (entries[i].feature % 2 == 0 ? centred : -centred);
    before = centred;
  }
  margins[row] = Uniform(kNoise, row, 0) - 0.5f;
  labels[row] = Uniform(kNoise, row, 1) < 1.0f / (1.0f + expf(-signal * score)) ? 1.0f : 0.0f;
  gradients[row] = GradientsOf(labels[row], margins[row]);
}

// one thread a row
__global__ void BoostKernel(RowIdx n_rows, NodeIdx const* positions, float const* weights,
                            float const* labels, float* margins, GradientPair* gradients) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  if (row < n_rows) {
    margins[row] += weights[positions[row]];
    gradients[row] = GradientsOf(labels[row], margins[row]);
  }
}
}  // namespace

Shape FindShape(std::string const& name) {
  Shape const shapes[] = {
      {"higgs", 10500000, 28, 12, 0, 0.0f, 1, 0},    {"bosch", 1070000, 968, 6, 801, 0.81f, 19, 0},
      {"yltr", 473134, 700, 6, kVaried, 0.0f, 1, 0}, {"news20", 19996, 1355191, 6, 0, 0.0f, 1, 455},
      {"epsilon", 400000, 2000, 6, 0, 0.0f, 1, 0},   {"year", 463715, 90, 8, 0, 0.0f, 1, 0},
      {"airline", 20000000, 8, 8, 4000, 0.0f, 1, 0}, {"tall", 50000000, 10, 6, 0, 0.0f, 1, 0},
      {"gisette", 6000, 5000, 6, 800, 0.0f, 1, 0},   {"small", 10000, 28, 6, 0, 0.0f, 1, 0},
  };
  std::string known;
  for (Shape const& shape : shapes) {
    if (shape.name == name) {
      return shape;
    }
    known += (known.empty() ? "" : ", ") + shape.name;
  }
  throw std::invalid_argument{"There is no shape `" + name + "`; there are " + known + "."};
}

DeviceTable::DeviceTable(Shape const& shape)
    : n_rows_{shape.n_rows}, n_features_{shape.n_features} {
  Cells cells{shape.n_rows,  shape.n_features,       shape.distinct,
              shape.missing, shape.missing_together, shape.entries_per_row};
  auto n_offsets = std::uint64_t{n_rows_} + 1;
  EntryIdx* offsets = offsets_.Reserve(n_offsets);
  LaunchN("Count", CountKernel, n_offsets, cells, offsets);
  CallCub([&](void* storage, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, offsets, offsets, n_offsets, Stream());
  });
  CopyAsync(&n_entries_, offsets + n_rows_, 1);
  Synchronize();
  LaunchN("Fill", FillKernel, n_rows_, cells, offsets, entries_.Reserve(n_entries_));
  LaunchN("Margins", MarginsKernel, n_rows_, cells, shape.signal, offsets, entries_.Data(),
          labels_.Reserve(n_rows_), margins_.Reserve(n_rows_), gradients_.Reserve(n_rows_));
  Synchronize();
}

CsrView DeviceTable::View() const {
  return {offsets_.Data(), entries_.Data(), n_entries_, n_rows_, n_features_, Memory::kDevice};
}

void DeviceTable::Boost(TreeBuilder* builder, GrownTree const& tree) {
  constexpr float kLearningRate = 0.3f;  // XGBoost's default
  std::vector<float> weights;
  for (TreeNode const& node : tree) {
    weights.push_back(kLearningRate * node.weight);
  }
  CopyAsync(weights_.Reserve(weights.size()), weights.data(), weights.size());
  NodeIdx* const positions = positions_.Reserve(n_rows_);
  builder->WritePositions({}, Memory::kDevice, positions);
  LaunchN("Boost", BoostKernel, n_rows_, n_rows_, positions, weights_.Data(), labels_.Data(),
          margins_.Data(), gradients_.Data());
  Synchronize();
}

void DeviceTable::ReleaseEntries() {
  offsets_.Release();
  entries_.Release();
}
}  // namespace gpu_exact::bench
