/**
 * Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
 *
 * @brief Implements training_rows.cuh.
 */
#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/functional>

#include "device/level/training_rows.cuh"
#include "device/runtime/fixed_sum.cuh"

namespace gpu_exact {
namespace {
constexpr int kThreads = 256;
constexpr int kRowsPerThread = 8;

/** @brief Join summaries but for their magnitudes. */
__device__ RowSummary Join(RowSummary const& a, RowSummary const& b) {
  return {max(a.max_grad_bits, b.max_grad_bits),
          max(a.max_hess_bits, b.max_hess_bits),
          max(a.min_grad_bits, b.min_grad_bits),
          max(a.min_hess_bits, b.min_hess_bits),
          a.n_not_finite + b.n_not_finite,
          a.n_left_out + b.n_left_out,
          {0, 0}};
}

/** @brief Invert the bits of a float that is not negative, so that the least one is the largest; 0
 *         for 0. */
__device__ std::uint32_t InvertedBits(float x) { return x == 0.0f ? 0 : ~__float_as_uint(x); }

// grid: strided over rows; result: *out_summary but its magnitudes
__global__ __launch_bounds__(kThreads) void SummariseKernel(TrainingRows rows,
                                                            RowSummary* out_summary) {
  WaitForPreviousKernel();
  using BlockReduce = cub::BlockReduce<RowSummary, kThreads>;
  __shared__ typename BlockReduce::TempStorage temp;
  RowSummary summary{};
  auto stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (auto row = GlobalIdx(); row < rows.n_rows; row += stride) {
    if (rows.Has(static_cast<RowIdx>(row))) {
      GradientPair g = rows.gpair[row];
      bool finite = isfinite(g.grad) && isfinite(g.hess);
      float const grad = fabsf(g.grad);
      float const hess = fabsf(g.hess);
      RowSummary const one{__float_as_uint(grad),
                           __float_as_uint(hess),
                           InvertedBits(grad),
                           InvertedBits(hess),
                           0,
                           0,
                           {0, 0}};
      summary = Join(summary, finite ? one : RowSummary{0, 0, 0, 0, 1, 0, {0, 0}});
    } else {
      ++summary.n_left_out;
    }
  }
  summary = BlockReduce{temp}.Reduce(
      summary, [](RowSummary const& a, RowSummary const& b) { return Join(a, b); });
  if (threadIdx.x == 0) {
    atomicMax(&out_summary->max_grad_bits, summary.max_grad_bits);
    atomicMax(&out_summary->max_hess_bits, summary.max_hess_bits);
    atomicMax(&out_summary->min_grad_bits, summary.min_grad_bits);
    atomicMax(&out_summary->min_hess_bits, summary.min_hess_bits);
    atomicAdd(&out_summary->n_not_finite, summary.n_not_finite);
    atomicAdd(&out_summary->n_left_out, summary.n_left_out);
  }
}

// grid: strided over rows; result: *out, zero before
__global__ __launch_bounds__(kThreads) void SumRoundingKernel(TrainingRows rows,
                                                              Quantiser quantiser, Rounding* out) {
  WaitForPreviousKernel();
  using BlockReduce = cub::BlockReduce<Rounding, kThreads>;
  __shared__ typename BlockReduce::TempStorage temp;
  Rounding sum{};
  auto stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (auto row = GlobalIdx(); row < rows.n_rows; row += stride) {
    if (rows.Has(static_cast<RowIdx>(row))) {
      sum = sum + quantiser.Rounded(rows.gpair[row]);
    }
  }
  sum = BlockReduce{temp}.Reduce(sum, cuda::std::plus<>{});
  if (threadIdx.x == 0) {
    auto const add = [](std::uint64_t* to, std::uint64_t x) {
      atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
    };
    add(&out->all.grad, sum.all.grad);
    add(&out->all.hess, sum.all.hess);
    add(&out->few_bits.grad, sum.few_bits.grad);
    add(&out->few_bits.hess, sum.few_bits.hess);
    atomicAdd(&out->n_few_bits, sum.n_few_bits);
  }
}

// one thread a row; result: *out_any, zero before
__global__ void AnyDeletedKernel(TrainingRows rows, std::uint32_t* out_any) {
  WaitForPreviousKernel();
  auto row = GlobalIdx();
  bool deleted = row < rows.n_rows && rows.Deleted(static_cast<RowIdx>(row));
  if (__syncthreads_or(deleted) && threadIdx.x == 0) {
    *out_any = 1;  // whoever writes, writes the same
  }
}

/** @brief Adds the trained rows to *out. All threads of a grid strided over rows. */
template <bool kMagnitudes>
__device__ void AddRows(TrainingRows const& rows, Quantiser const& quantiser, FixedSum* out) {
  using BlockReduce = cub::BlockReduce<FixedSum, kThreads>;
  __shared__ typename BlockReduce::TempStorage temp;
  FixedSum sum{0, 0};
  auto stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (auto row = GlobalIdx(); row < rows.n_rows; row += stride) {
    if (rows.Has(static_cast<RowIdx>(row))) {
      GradientPair g = rows.gpair[row];
      sum = sum + quantiser.Fixed({kMagnitudes ? fabsf(g.grad) : g.grad, g.hess});
    }
  }
  sum = BlockReduce{temp}.Reduce(sum, cuda::std::plus<>{});
  if (threadIdx.x == 0) {
    AtomicAdd(out, sum);
  }
}

/** @brief Give what all blocks have added up, by one thread of the last of them; it is zero then. */
template <typename T>
__device__ T Take(T* sum) {
  T const all = *sum;
  *sum = {};
  return all;
}

// grid: strided over rows; result: *out_summary, page-locked memory, with the magnitudes
__global__ __launch_bounds__(kThreads) void SumMagnitudesKernel(TrainingRows rows,
                                                                RowScanSums* sums,
                                                                RowSummary* out_summary) {
  WaitForPreviousKernel();
  RowSummary* const summary = &sums->summary;
  AddRows<true>(rows, summary->ByLargest(rows.n_rows), &summary->magnitudes);
  if (threadIdx.x == 0 && EndsGrid(&sums->n_ended)) {
    *out_summary = Take(summary);
  }
}

// grid: strided over rows; result: *out
__global__ __launch_bounds__(kThreads) void SumKernel(TrainingRows rows, Quantiser quantiser,
                                                      RowScanSums* sums, FixedSum* out) {
  WaitForPreviousKernel();
  AddRows<false>(rows, quantiser, &sums->sum);
  if (threadIdx.x == 0 && EndsGrid(&sums->n_ended)) {
    *out = Take(&sums->sum);
  }
}
}  // namespace

RowScan::RowScan(std::uint64_t max_blocks) : max_blocks_{max_blocks} {
  ZeroAsync(sums_.Reserve(1), 1);
  host_summary_.Reserve(1);
  any_deleted_.Reserve(1);
}

std::uint64_t RowScan::Grid(RowIdx n_rows) const {
  // Without a row there is a sum, too.
  return std::clamp<std::uint64_t>(CeilDiv(n_rows, kThreads * kRowsPerThread), 1, max_blocks_);
}

RowSummary RowScan::Summarise(TrainingRows const& rows) {
  Launch("Summarise", SummariseKernel, this->Grid(rows.n_rows), kThreads, rows,
         &sums_.Data()->summary);
  Launch("SumMagnitudes", SumMagnitudesKernel, this->Grid(rows.n_rows), kThreads, rows,
         sums_.Data(), host_summary_.Data());
  Synchronize();
  return *host_summary_.Data();
}

Rounding RowScan::SumRounding(TrainingRows const& rows, Quantiser const& quantiser) {
  ZeroAsync(rounding_.Reserve(1), 1);
  Launch("SumRounding", SumRoundingKernel, this->Grid(rows.n_rows), kThreads, rows, quantiser,
         rounding_.Data());
  return ToHost(rounding_.Data(), 1).front();
}

bool RowScan::AnyDeleted(TrainingRows const& rows) {
  *any_deleted_.Data() = 0;
  LaunchN("AnyDeleted", AnyDeletedKernel, rows.n_rows, rows, any_deleted_.Data());
  Synchronize();
  return *any_deleted_.Data() != 0;
}

void RowScan::Sum(TrainingRows const& rows, Quantiser const& quantiser, FixedSum* out) {
  Launch("Sum", SumKernel, this->Grid(rows.n_rows), kThreads, rows, quantiser, sums_.Data(), out);
}
}  // namespace gpu_exact
